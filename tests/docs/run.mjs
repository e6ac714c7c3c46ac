// Generators of documentation with the widget in their pages, built for real and opened:
//   node tests/docs/run.mjs [--browser=firefox] [mkdocs] [sphinx] [hugo] [vitepress] [docusaurus]
//
// Each folder beside this file is a small site. It is copied to build/docs-sites, gets dist/widget (VitePress: the npm package), is built by its
// generator, served, and opened: the widget must show what the engine answers, in light and dark, and ask nothing of other origins.
// Needs dist/, Python's venv and the package registries; takes minutes, and is therefore no part of `./dev test`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { answerTo } from "../browser/widgets.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const sites = join(root, "build/docs-sites");
const widget = join(root, "dist/widget");
const python = join(sites, "python");
const words = process.argv.slice(2);
const browserName = words.find((word) => word.startsWith("--browser="))?.slice("--browser=".length) ?? "chromium";

const run = (folder, command, ...args) =>
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
const npm = (folder, ...args) => run(folder, "npm", ...args, "--no-audit", "--no-fund", "--loglevel=error");

/** A tool of requirements.txt, from a Python of its own. */
function pythonTool(name) {
  if (!existsSync(join(python, "bin", name))) {
    run(sites, "python3", "-m", "venv", python);
    run(sites, join(python, "bin/pip"), "install", "--quiet", "--requirement", join(here, "requirements.txt"));
  }
  return join(python, "bin", name);
}
const copyWidget = (folder) => cpSync(widget, folder, { recursive: true });

// Each builds the site in its folder and returns where the pages are.
const generators = {
  mkdocs(folder) {
    copyWidget(join(folder, "docs/widget"));
    run(folder, pythonTool("mkdocs"), "build", "--strict", "--quiet");
    return join(folder, "site");
  },
  sphinx(folder) {
    copyWidget(join(folder, "_static/widget"));
    run(folder, pythonTool("sphinx-build"), "--fail-on-warning", "--quiet", ".", "_build");
    return join(folder, "_build");
  },
  hugo(folder) {
    copyWidget(join(folder, "static/widget"));
    run(folder, pythonTool("hugo"), "--quiet", "--panicOnWarning");
    return join(folder, "public");
  },
  vitepress(folder) {
    run(root, "node", "wasm/package.mjs");
    const { version } = JSON.parse(readFileSync(join(root, "wasm/package.json"), "utf8"));
    npm(folder, "install", join(root, `dist/tidemark-${version}.tgz`));
    run(folder, "npx", "vitepress", "build");
    return join(folder, ".vitepress/dist");
  },
  docusaurus(folder) {
    copyWidget(join(folder, "static/widget"));
    npm(folder, "install");
    run(folder, "npx", "docusaurus", "build");
    return join(folder, "build");
  },
};

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
Object.assign(types, {
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".mjs": "text/javascript",
});

async function serve(folder) {
  const server = createServer((request, response) => {
    let file = join(folder, decodeURIComponent(request.url.split("?")[0]));
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) return response.writeHead(404).end();
    const type = types[extname(file)] ?? "application/octet-stream";
    return response.writeHead(200, { "content-type": type }).end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

const request = { schema: 1, model: "meta-llama/Llama-3.2-1B", method: "lora", gpu: "RTX 4090" };

async function opensWell(name, folder) {
  const { launch } = await import(`../browser/${browserName}.mjs`);
  const { estimate } = await answerTo(request);
  const server = await serve(folder);
  for (const scheme of ["light", "dark"]) {
    const browser = await launch({ scheme });
    try {
      await browser.open(`${server.origin}/`);
      const shown = `(((document.querySelector("tidemark-calculator") || {}).answer || {}).estimate || { allocated: {} }).allocated.expected`;
      const end = Date.now() + 60000;
      while ((await browser.evaluate(shown)) !== estimate.allocated.expected) {
        if (Date.now() > end)
          throw new Error(`${name} shows no answer; the browser says: ${browser.messages.join("; ")}`);
        await sleep(100);
      }
      const others = browser.requests.filter((url) => !url.startsWith(server.origin) && !/^(data|blob):/.test(url));
      assert.deepEqual(others, [], "requests to other origins");
      await browser.screenshot(join(sites, `${name}-${browserName}-${scheme}.png`));
    } finally {
      await browser.close();
    }
  }
  server.close();
}

const wanted = words.filter((word) => !word.startsWith("--"));
mkdirSync(sites, { recursive: true });
let passed = 0;
let failed = 0;
for (const name of wanted.length > 0 ? wanted : Object.keys(generators)) {
  const folder = join(sites, name);
  const started = Date.now();
  try {
    // What npm brought may stay.
    for (const left of ["docs", "site", "_build", "public", "build", ".vitepress"])
      rmSync(join(folder, left), { recursive: true, force: true });
    cpSync(join(here, name), folder, { recursive: true });
    await opensWell(name, generators[name](folder));
    passed += 1;
    console.log(`  ok    ${name} (${Math.round((Date.now() - started) / 1000)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`  FAIL  ${name}: ${error.message}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
