// Packs the npm package from what web/build.mjs left in dist/: node wasm/package.mjs → dist/tidemark-<version>.tgz
// All files lie side by side, so that the worker, the engine and the catalog find each other, in node_modules as on a server.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const dist = join(root, "dist");
const folder = join(dist, "npm");

const widget = [
  "tidemark-calculator.js",
  "tidemark-calculator.d.ts",
  "tidemark-worker.js",
  "tidemark-frame.js",
  "tidemark-zh.json",
  "tidemark-static.js",
  "tidemark-static.d.ts",
  "custom-elements.json",
  "models.json",
  "gpus.json",
];
const files = [
  ...["package.json", "index.js", "index.d.ts", "cli.mjs", "mcp.mjs", "README.md"].map((name) => join(here, name)),
  ...["tidemark.js", "tidemark.wasm", "tidemark.d.ts", "THIRD_PARTY_NOTICES.txt"].map((name) => join(dist, name)),
  ...widget.map((name) => join(dist, "widget", name)),
  join(root, "LICENSE"),
];

const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const [, project] = /^project\(tidemark VERSION ([\d.]+)/m.exec(readFileSync(join(root, "CMakeLists.txt"), "utf8"));
if (version !== project) throw new Error(`wasm/package.json says ${version}, CMakeLists.txt ${project}`);
const missing = files.filter((file) => !existsSync(file));
if (missing.length > 0) throw new Error(`${missing.join(", ")} are missing: ./dev build page makes them`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const file of files) copyFileSync(file, join(folder, basename(file)));
const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", dist], { cwd: folder, encoding: "utf8" });
const [{ filename, size, entryCount }] = JSON.parse(packed);
console.log(`${filename}: ${entryCount} files, ${(size / 1000).toFixed(1)} KB, in dist/`);
