// Builds the page: node web/build.mjs [folder of the built engine]
//
// Everything (engine, catalog, UI, styles) goes into one file, dist/index.html: it opens from a file share, runs no
// script but its own and can reach no network. Beside it, for hosting: tidemark.wasm, tidemark.js, tidemark.d.ts.
import { build, transform } from "esbuild";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { minify } from "terser";
import { pack, splitBehind } from "./pack.mjs";
import { apart } from "./wasmStreams.mjs";
import { accuracyOf } from "./accuracy.mjs";
import { compactDescribe, compactGpus, compactModels } from "./catalog.mjs";
import { columnsOf } from "./src/catalogColumns.js";
import { example } from "./src/example.js";
import chinese from "./src/messages.zh.js";
import said from "./src/said.zh.js";
import { createSchema } from "./src/schema.js";
import { manifestOf } from "./widget/manifest.mjs";
import { widgetStyles } from "./widget/styles.mjs";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const engine = resolve(process.argv[2] ?? join(root, "build/wasm/bin"));
const dist = join(root, "dist");

// Kilobytes of 1000 bytes, gzip -9; the build fails above them. The engine's aim is 260 KB. With dense decoders and four
// encoders it took 227; mixtures of experts, models that see, encoder-decoders, speech, layers that keep states, pictures
// alone, preferences, models divided among GPUs, diffusion, Megatron-Core and traces brought 200 more, which are block programs
// and config readers; Unsloth's own code, Axolotl's LoRA functions and the encoders beside a denoiser another 12, fifteen model types
// of the newest releases as many, four more with sound and videos and LoRA under Megatron-Core 6, sixteen encoders, pictures and videos and online DPO 14; of the page a hundred more models are 5. ESM, words for idle options and rerankers took 6 more; BLIP-2, Aria, Swin V2, WavLM, BEiT and Donut 13; nineteen model types of texts, pictures and sounds with DeepSeek-V4 and device_map for all of them 17, twenty-three of transformers 5.24 another 26, fifteen that came behind them 26, and what transformers did otherwise until 5.24 nine, of which the page carries four. These bounds keep it from growing unseen; of the page 420
// are aimed at.
// Of the widget a visitor loads the script with the page, the worker and what it starts from once one comes into view.
// With the reader of scripts and configurations the page may have 900 by its aim, by `gzip -9`, and has three more since what 5.13 to 5.24 changed was told apart; that module is held to 309.5. Chinese, the engine's sentences and the titles of all options too, is 28 of it: the page may load nothing,
// so every language that it speaks is in it, packed, and unpacked by whom it is for.
const budgets = {
  "index.html": 904,
  "index.html without reader": 705,
  "reader.wasm": 309.5,
  "tidemark.wasm + glue": 731,
  "widget's script": 27,
  "widget's worker": 10,
};

if (!existsSync(join(engine, "tidemark.wasm"))) {
  console.error(`There is no engine in ${engine}: run wasm/build.sh first.`);
  process.exit(1);
}
const read = (...path) => readFileSync(join(...path), "utf8");

const wasm = readFileSync(join(engine, "tidemark.wasm"));
const reader = readFileSync(join(engine, "reader.wasm"));

// What the page carries beside its script, each in a <script> of a type that no browser runs. All of it is ASCII, so that the browser
// keeps the page with one byte per character. Two questions are asked here, so that the page need not wait for its engine: what the form
// is made of, and what the example needs.
const models = compactModels(read(root, "catalog/models.json"));
const gpus = compactGpus(read(root, "catalog/gpus.json"));
const { createTidemarkFrom } = await import(pathToFileURL(join(engine, "api.js")).href);
const tidemark = await createTidemarkFrom(wasm);
const [wrong] = tidemark.loadCatalog(models, gpus);
if (wrong) throw new Error(wrong.message);
const describe = tidemark.handleText({ verb: "describe" });
const schema = createSchema(JSON.parse(describe));
const answer = tidemark.handleText(schema.toRequest(example));
// What the page starts from comes first, and stands before the script; the reader, for which nobody waits, last.
const carried = {
  describe: compactDescribe(describe),
  example: answer,
  zh: JSON.stringify({ ...chinese, said }),
  gpus,
  models: columnsOf(models),
  engine: apart(wasm),
};
const packed = pack({ ...carried, reader: apart(reader) });
const [first, rest] = await splitBehind(packed, "zh");
const data = { first, rest };

// `import … from "tidemark:api"` and friends are what only the build knows.
const accuracy = accuracyOf(read(root, "docs/accuracy.md"));
const parts = {
  "tidemark:accuracy": { contents: `export const accuracy = ${JSON.stringify(accuracy)}`, loader: "js" },
  "tidemark:api": { contents: `export * from ${JSON.stringify(join(engine, "api.js"))}`, loader: "js" },
  "tidemark:reader": { contents: `export * from ${JSON.stringify(join(engine, "reader.js"))}`, loader: "js" },
};

/** WebAssembly that wasm-opt, which Emscripten brings along, has made smaller; as it is where there is none. */
function smaller(wasm) {
  const file = join(mkdtempSync(join(tmpdir(), "tidemark-")), "xz.wasm");
  writeFileSync(file, wasm);
  const features = ["--mvp-features", "--enable-mutable-globals", "--enable-bulk-memory", "--enable-sign-ext"];
  const done = spawnSync("wasm-opt", [file, ...features, "-Oz", "-o", file]);
  return done.status === 0 ? readFileSync(file) : wasm;
}

/**
 * Of xz-decompress its classes, without what webpack puts around them, and its WebAssembly in characters of which gzip still finds what
 * repeats (base64 takes a quarter more): a byte is one of 90 from `#` on, behind `}` another 90 and behind `~` the rest.
 */
function unwrapped(source) {
  const [, base64] = source.match(/"data:application\/wasm;base64,([\w+/=]*)"/);
  const [, classes] = source.match(/\n(const XZ_OK = [\s\S]*)\n\}\)\(\);/);
  const behind = (byte) => ["", "}", "~"][Math.floor(byte / 90)];
  const bytes = Array.from(smaller(Buffer.from(base64, "base64")));
  const text = bytes.map((byte) => behind(byte) + String.fromCharCode(35 + (byte % 90))).join("");
  const packed = /_dist_\w+\.replace\('data:application\/wasm;base64,', ''\)/.exec(classes)?.[0];
  return `${replaced(classes, [
    [packed, JSON.stringify(text)],
    [
      "atob(base64Wasm), c => c.charCodeAt(0)",
      'base64Wasm.match(/[}~]?./g), c => c.charCodeAt(c.length - 1) - 35 + 90 * " }~".indexOf(c[c.length - 2] ?? " ")',
    ],
  ])}\nexport default { XzReadableStream };`;
}

function replaced(text, pairs) {
  return pairs.reduce((now, [from, to]) => {
    if (!now.includes(from)) throw new Error(`xz-decompress has changed: ${from.slice(0, 60)} is gone.`);
    return now.replace(from, () => to);
  }, text);
}

const inlined = {
  name: "tidemark",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^tidemark:/ }, ({ path }) => ({ path, namespace: "tidemark" }));
    onLoad({ filter: /.*/, namespace: "tidemark" }, ({ path }) => ({ ...parts[path], resolveDir: root }));
    onLoad({ filter: /xz-decompress\.js$/ }, ({ path }) => ({ contents: unwrapped(readFileSync(path, "utf8")) }));
  },
};

const common = {
  bundle: true,
  minify: !process.env.READABLE,
  write: false,
  charset: "ascii",
  target: ["es2021"],
  legalComments: "none",
};

/** One script of all that it imports. terser's look at what esbuild has made is worth a sixteenth of it, compressed. */
async function bundle(options) {
  const result = await build({ ...common, ...options });
  const text = result.outputFiles[0].text.trimEnd();
  if (!common.minify || options.entryPoints[0].endsWith(".css")) return text;
  const { code } = await minify(text, {
    module: options.format === "esm",
    ecma: 2020,
    compress: { passes: 3, unsafe_arrows: true, keep_fargs: false },
    format: { ascii_only: true, comments: false },
  });
  return code;
}

/** What is imported late (Node's files, the worker's text) is no business of whoever bundles this again. */
function keepImports(text) {
  return text.replace(/\bimport\((?=[\w"])/g, "import(/* webpackIgnore: true */ /* @vite-ignore */ ");
}

// What speaks with the reader of files alone: a page without it would have neither. For the size table.
const withoutReading = {
  name: "without reading",
  setup({ onLoad }) {
    const names = "createImporter sourceOf createImportPanel createExport createReaderHost createLocalReader".split(
      " ",
    );
    const contents = names.map((name) => `export const ${name} = 0;`).join("");
    onLoad({ filter: /src\/(importer|importPanel|exportPanel|readerHost)\.js$/ }, () => ({ contents }));
  },
};
const scriptWith = (...plugins) => ({
  entryPoints: [join(web, "src/entry.js")],
  format: "iife",
  plugins: [...plugins, inlined],
  // The engine's glue knows how to fetch; here there is nothing to fetch, and not the means to.
  define: { "import.meta.url": '"file:///"', fetch: "undefined", XMLHttpRequest: "undefined" },
});
const script = await bundle(scriptWith());
const style = await bundle({ entryPoints: [join(web, "src/main.css")], loader: { ".svg": "dataurl" } });

for (const [name, text] of Object.entries({ script, style, ...data })) {
  const bad = text.match(/<\/(script|style)|<!--/i);
  if (bad) throw new Error(`the ${name} contains ${bad[0]}, which would end it early in HTML`);
}

// The widget: a script, a worker, and beside them what that starts from. Each knows the checksums of those that it loads.
const widget = join(dist, "widget");
mkdirSync(widget, { recursive: true });
const sri = (data) => `sha384-${createHash("sha384").update(data).digest("base64")}`;
const known = (what) => ({ "globalThis.tidemarkBuild": JSON.stringify(what) });
const beside = { "tidemark.wasm": wasm, "models.json": models, "gpus.json": gpus };
const integrity = { wasm: sri(wasm), models: sri(models), gpus: sri(gpus) };
const shadow = await transform(widgetStyles(), { loader: "css", minify: !process.env.READABLE });
parts["tidemark:styles"] = { contents: `export const styles = ${JSON.stringify(shadow.code)}`, loader: "js" };
const module = { format: "esm", plugins: [inlined] };
const chineseText = `${JSON.stringify(chinese)}\n`;
const widgetWorker = await bundle({
  ...module,
  entryPoints: [join(web, "widget/worker.js")],
  define: { ...known({ integrity }), "import.meta.url": '"file:///"' },
});
const widgetScript = keepImports(
  await bundle({
    ...module,
    entryPoints: [join(web, "widget/element.js")],
    define: known({ workerIntegrity: sri(`${widgetWorker}\n`), wordsIntegrity: { zh: sri(chineseText) } }),
  }),
);
Object.assign(beside, {
  "tidemark-worker.js": `${widgetWorker}\n`,
  "tidemark-calculator.js": `${widgetScript}\n`,
  "tidemark-frame.js": read(web, "widget/frame.js"),
  "tidemark-zh.json": chineseText,
  "tidemark-static.js": `${await bundle({ entryPoints: [join(web, "widget/static.js")], format: "esm" })}\n`,
  "tidemark-static.d.ts": read(web, "widget/static.d.ts"),
  "tidemark-calculator.d.ts": read(web, "widget/element.d.ts"),
  "custom-elements.json": `${JSON.stringify(manifestOf(schema), null, 2)}\n`,
});
for (const [name, data] of Object.entries(beside)) writeFileSync(join(widget, name), data);

const sha256 = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'", // nothing is loaded and nothing is sent, from anywhere to anywhere
  `script-src ${sha256(script)} 'wasm-unsafe-eval'`, // this one script, and WebAssembly
  // The worker: it is made from that script's text and inherits this policy. No other blob can come to be without that script.
  "worker-src blob:",
  `style-src ${sha256(style)}`,
  "img-src data:", // the icon
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const blocks = (...names) =>
  names.map((name) => `<script type="text/plain" id="data-${name}">${data[name]}</script>`).join("");
const html = read(web, "src/index.html")
  .replace("%POLICY%", () => policy)
  .replace("%STYLE%", () => style)
  .replace("%FIRST%", () => blocks("first"))
  .replace("%DATA%", () => blocks("rest"))
  .replace("%SCRIPT%", () => script);
const leftover = Object.values(data)
  .reduce((rest, text) => rest.replace(text, ""), html.replace(script, ""))
  .match(/%[A-Z]+%|(src|href)="(?!data:|#)[^"]*"/);
if (leftover) throw new Error(`index.html still holds ${leftover[0]}`);

mkdirSync(dist, { recursive: true });
writeFileSync(join(dist, "index.html"), html);
const loader = keepImports(
  await bundle({
    entryPoints: [join(engine, "tidemark.js")],
    format: "esm",
    platform: "neutral",
    external: ["node:*"],
  }),
);
writeFileSync(join(dist, "tidemark.js"), `${loader}\n`);
copyFileSync(join(engine, "tidemark.wasm"), join(dist, "tidemark.wasm"));
copyFileSync(join(root, "wasm/tidemark.d.ts"), join(dist, "tidemark.d.ts"));
copyFileSync(join(root, "THIRD_PARTY_NOTICES.txt"), join(dist, "THIRD_PARTY_NOTICES.txt"));

// The size table, and the budgets.
const gzipped = (data) => gzipSync(data, { level: 9 }).length;
const lesserScript = await bundle(scriptWith(withoutReading));
const unread = pack(carried);
const withoutReader = html
  .replace(first, "")
  .replace(rest, () => unread)
  .replace(script, () => lesserScript);
const rows = [
  ["index.html", html.length, gzipped(html)],
  ["index.html without reader", withoutReader.length, gzipped(withoutReader)],
  ["reader.wasm", reader.length, gzipped(reader)],
  ["tidemark.wasm + glue", wasm.length + loader.length, gzipped(wasm) + gzipped(loader)],
  ["  tidemark.wasm", wasm.length, gzipped(wasm)],
  ["  glue (tidemark.js)", loader.length, gzipped(loader)],
  ["of index.html (alone):"],
  ...Object.entries({
    "what it carries, packed": packed,
    "  without the reader": unread,
    "  to start from": first,
    script,
  }).map(([name, text]) => [`  ${name}`, text.length, gzipped(text)]),
  ["  styles", style.length, gzipped(style)],
  ["widget's script", widgetScript.length, gzipped(widgetScript)],
  ["  its styles", shadow.code.length, gzipped(shadow.code)],
  ["widget's worker", widgetWorker.length, gzipped(widgetWorker)],
  ["  its models and GPUs", models.length + gpus.length, gzipped(models) + gzipped(gpus)],
];
let failed = false;
console.log(`${"KB".padEnd(24)}${"raw".padStart(9)}${"gzip".padStart(9)}${"budget".padStart(9)}`);
for (const [name, raw, gz] of rows) {
  if (raw === undefined) {
    console.log(name);
    continue;
  }
  const budget = budgets[name];
  const over = budget !== undefined && gz > budget * 1000;
  failed ||= over;
  const kilo = (bytes) => (bytes / 1000).toFixed(1).padStart(9);
  console.log(
    name.padEnd(24) + kilo(raw) + kilo(gz) + String(budget ?? "").padStart(9) + (over ? "  OVER BUDGET" : ""),
  );
}
console.log(`The page is at ${relative(process.cwd(), join(dist, "index.html"))}`);
process.exit(failed ? 1 : 0);
