// The site, dist/site: every link of every page leads somewhere, nothing is loaded from elsewhere, and the calculators in it compute.
//   node web/site/build.mjs && node tests/docs/site.mjs [--static]      --static: without a browser
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const site = join(root, "dist/site");
const pages = readdirSync(site, { recursive: true })
  .filter((name) => name.endsWith(".html"))
  .map((name) => join(site, name));
const unescaped = (text) => text.replaceAll("&amp;", "&").replaceAll("&#34;", '"').replaceAll("&quot;", '"');

/** Tags of a page with an address, without what stands in its scripts. */
function addressesOf(text) {
  const html = text.replace(/(<script[^>]*>)[\s\S]*?<\/script>/g, "$1");
  return [...html.matchAll(/<(\w[\w-]*)\s([^>]*?)\/?>/g)].flatMap(([, tag, attributes]) =>
    [...attributes.matchAll(/(?:^|\s)(href|src|page)="([^"]*)"/g)].map(([, name, address]) => ({
      tag,
      attributes,
      isLoaded: name === "src" || (tag === "link" && !/rel="(canonical|prev|next)"/.test(attributes)),
      address: unescaped(address),
    })),
  );
}

const idsOf = (file) =>
  new Set([...readFileSync(file, "utf8").matchAll(/\s(?:id|name)="([^"]*)"/g)].map(([, id]) => id));

/** What is wrong with an address on that page, or nothing. */
function wrongWith(page, { address, isLoaded }) {
  if (/^(data|blob|mailto|javascript):/.test(address)) return undefined;
  if (/^(\w+:)?\/\//.test(address)) return isLoaded ? "loaded from elsewhere" : undefined;
  const [path, anchor] = address.split("#");
  let file = path === "" ? page : join(dirname(page), decodeURIComponent(path.split("?")[0]));
  if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
  if (!relative(site, file) || relative(site, file).startsWith("..")) return "leaves the site";
  if (!existsSync(file)) return "leads nowhere";
  // A job, not a heading.
  const isState = /^v=\d/.test(anchor ?? "");
  if (anchor && !isState && !idsOf(file).has(decodeURIComponent(anchor))) return "has no such heading";
  return undefined;
}

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
Object.assign(types, { ".wasm": "application/wasm", ".svg": "image/svg+xml" });

async function serve() {
  const server = createServer((request, response) => {
    let file = join(site, decodeURIComponent(request.url.split("?")[0]));
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) return response.writeHead(404).end();
    return response
      .writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" })
      .end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

async function until(browser, expression) {
  const end = Date.now() + 60000;
  while (!(await browser.evaluate(`!!(${expression})`))) {
    if (Date.now() > end) throw new Error(`waited in vain: ${expression}; ${browser.messages.join("; ")}`);
    await sleep(100);
  }
}

const cases = {
  "every link of every page leads somewhere, and nothing is loaded from elsewhere"() {
    assert.ok(pages.length > 20, `${pages.length} pages`);
    let links = 0;
    const wrong = pages.flatMap((page) =>
      addressesOf(readFileSync(page, "utf8")).flatMap((one) => {
        links += 1;
        const reason = wrongWith(page, one);
        return reason ? [`${relative(site, page)}: ${one.address} ${reason}`] : [];
      }),
    );
    assert.deepEqual(wrong, []);
    return `${links} links of ${pages.length} pages`;
  },
  "answers of the gallery are live calculators"() {
    const gallery = readFileSync(join(site, "docs/gallery/index.html"), "utf8");
    const amount = gallery.match(/<tidemark-calculator /g)?.length ?? 0;
    assert.ok(amount >= 15, `${amount} calculators`);
    return `${amount} calculators`;
  },
  "the page knows where its documentation lies, and is the same page otherwise"() {
    const meta = '<meta name="tidemark-docs" content="docs/">\n';
    const page = readFileSync(join(site, "index.html"), "utf8");
    assert.equal(page.replace(meta, ""), readFileSync(join(root, "dist/index.html"), "utf8"));
    assert.ok(existsSync(join(site, "docs/accuracy/index.html")) && existsSync(join(site, "docs/method/index.html")));
  },
};
if (!process.argv.includes("--static"))
  Object.assign(cases, {
    async "in a browser the start page and the gallery compute, without a request to others"() {
      const { launch } = await import("../browser/chromium.mjs");
      const server = await serve();
      const browser = await launch();
      try {
        for (const path of ["docs/", "docs/gallery/"]) {
          await browser.open(`${server.origin}/${path}`);
          await until(browser, `document.querySelector("tidemark-calculator").answer?.estimate`);
        }
        await browser.open(`${server.origin}/#v=1&model=openai-community/gpt2`);
        await until(browser, `document.documentElement.dataset.ready`);
        await browser.evaluate(`document.querySelector('[data-testid="sure"]').click()`);
        await until(browser, `document.querySelector('[data-testid="sure-box"] a[href="docs/accuracy/"]')`);
        const others = browser.requests.filter((url) => !url.startsWith(server.origin) && !/^(data|blob):/.test(url));
        assert.deepEqual(others, []);
      } finally {
        await browser.close();
        server.close();
      }
    },
  });

let failed = 0;
for (const [title, check] of Object.entries(cases)) {
  try {
    const said = await check();
    console.log(`  ok    ${title}${said ? `: ${said}` : ""}`);
  } catch (error) {
    failed += 1;
    console.log(`  FAIL  ${title}: ${error.message}`);
  }
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
