// The npm package as somebody gets it: packed, installed into an empty folder, used from there. Needs dist/ (./dev build page).
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { answersTo } from "./engines.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const skip = existsSync(join(root, "dist/widget/tidemark-worker.js")) ? false : "dist/ is not built";
const empty = mkdtempSync(join(tmpdir(), "tidemark-package-"));
after(() => rmSync(empty, { recursive: true, force: true }));
const installed = join(empty, "node_modules/tidemark");
const write = (name, text) => writeFileSync(join(empty, name), text);
const tool = (name) => join(root, "web/node_modules/.bin", name);

const job = { schema: 1, model: "meta-llama/Llama-3.2-1B", method: "lora", gpu: "RTX 4090", sequence_length: 1024 };

test("the package installs into an empty folder, without dependencies", { skip }, () => {
  const said = execFileSync("node", [join(root, "wasm/package.mjs")], { encoding: "utf8" });
  const [, file] = /^(tidemark-[\d.]+\.tgz): /.exec(said);
  write("package.json", '{ "private": true, "type": "module" }');
  const flags = ["--offline", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", ["install", ...flags, join(root, "dist", file)], { cwd: empty });
  assert.deepEqual(
    readdirSync(join(empty, "node_modules")).filter((name) => !name.startsWith(".")),
    ["tidemark"],
  );
  for (const name of ["LICENSE", "README.md", "THIRD_PARTY_NOTICES.txt"]) assert.ok(existsSync(join(installed, name)));
});

test("Node answers from it as the engine does", { skip }, async () => {
  write(
    "ask.js",
    `import { openTidemark } from "tidemark";
     const tidemark = await openTidemark();
     console.log(tidemark.handleText(${JSON.stringify(job)}));`,
  );
  const said = execFileSync("node", ["ask.js"], { cwd: empty, encoding: "utf8" });
  const [answer] = await answersTo([job]);
  assert.deepEqual(JSON.parse(said), answer);
});

const npx = (words, input) =>
  execFileSync("npx", ["--offline", "tidemark", ...words], { cwd: empty, encoding: "utf8", input });

test("its command writes the calculator with a static answer, and refuses what it does not know", {
  skip,
}, async () => {
  const html = npx(["embed", `model=${job.model}`, "method=lora", "gpu=RTX 4090", "seq-len=1k", "controls=gpu"]);
  const [{ estimate, fits }] = await answersTo([job]);
  const size = `${(estimate.allocated.expected / 2 ** 30).toFixed(2)} GiB`;
  assert.match(
    html,
    /^<tidemark-calculator model="meta-llama\/Llama-3.2-1B" method="lora" sequence-length="1024" gpu="RTX 4090" controls="gpu">/,
  );
  assert.ok(html.includes(`takes ${size} of GPU memory, between`) && html.includes(`Fits on ${fits[0].gpu}`));
  assert.equal([...html.matchAll(/<rect /g)].length, estimate.breakdown.filter(({ bytes }) => bytes > 0).length);
  const { status, stderr } = spawnSync("npx", ["--offline", "tidemark", "embed", "modell=x"], {
    cwd: empty,
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr.includes('"modell=x" is no option=value')], [2, true]);
});

test("coding agents ask it by the Model Context Protocol", { skip }, async () => {
  const call = (id, name, given) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: given } });
  const asked = [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {} } },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: 2, method: "tools/list" },
    call(3, "estimate", { ...job }),
    call(4, "advise", { ...job, method: "full", gpu: "8GiB" }),
    call(5, "estimate", { model: "there-is-no-such-model" }),
    call(6, "nonsense", {}),
  ];
  const said = npx(["mcp"], `${asked.map((message) => JSON.stringify(message)).join("\n")}\nnot json\n`);
  const answers = said
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    answers.map(({ id }) => id),
    [1, 2, 3, 4, 5, 6, null],
  );
  assert.equal(answers[0].result.serverInfo.name, "tidemark");
  assert.deepEqual(
    answers[1].result.tools.map(({ name }) => name),
    ["estimate", "advise", "fit", "catalog"],
  );
  assert.ok(answers[1].result.tools[0].inputSchema.properties.method.enum.includes("qlora"));
  const [{ estimate, fits }] = await answersTo([job]);
  const answer = JSON.parse(answers[2].result.content[0].text);
  assert.deepEqual([answer.allocated, answer.fits], [estimate.allocated, fits]);
  assert.equal(JSON.parse(answers[3].result.content[0].text).combination.found, true);
  assert.deepEqual([answers[4].result.isError, answers[5].error.code, answers[6].error.code], [true, -32602, -32700]);
});

test("its types let pass a job and refuse a misspelt one", { skip }, () => {
  const source = (key) =>
    `import { openTidemark, type Job } from "tidemark";
     import type { TidemarkCalculator } from "tidemark/widget";
     const job: Job = { model: "gpt2", ${key}: 512 };
     const { estimate, fits } = (await openTidemark()).handle(job);
     const bytes: number | undefined = estimate?.allocated.expected;
     export const widget = document.querySelector("tidemark-calculator")!;
     const same: TidemarkCalculator = widget;
     widget.addEventListener("estimate", () => console.log(bytes, fits, same.answer));`;
  for (const module of ["nodenext", "esnext"]) {
    const resolution = module === "nodenext" ? "nodenext" : "bundler";
    const flags = ["--noEmit", "--strict", "--target", "es2022", "--module", module, "--moduleResolution", resolution];
    const compile = (name) => spawnSync(tool("tsc"), [...flags, name], { cwd: empty, encoding: "utf8" }).stdout;
    write("right.ts", source("sequence_length"));
    write("wrong.ts", source("sequence_lenght"));
    assert.equal(compile("right.ts"), "");
    assert.match(compile("wrong.ts"), /sequence_lenght/);
  }
});

test("a bundler takes the engine and the widget, and leaves Node's parts out of what browsers run", { skip }, () => {
  write("page.js", 'import { openTidemark } from "tidemark"; import "tidemark/widget"; openTidemark();');
  const flags = ["--bundle", "--format=esm", "--platform=browser", "--external:node:*", "--outfile=bundle.js"];
  execFileSync(tool("esbuild"), ["page.js", ...flags, "--log-level=error"], { cwd: empty });
  const bundle = readFileSync(join(empty, "bundle.js"), "utf8");
  for (const name of ["tidemark.wasm", "models.json", "gpus.json", "tidemark-worker.js"])
    assert.match(bundle, new RegExp(`new URL\\("\\./${name.replace(".", "\\.")}", import\\.meta\\.url\\)`), name);
});
