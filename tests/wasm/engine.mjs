// What the tests share: the built engine and the catalog.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const bin = process.env.TIDEMARK_ENGINE ?? join(root, "build/wasm/bin");
export const catalogText = (name) => readFileSync(join(root, "catalog", name), "utf8");

const { createTidemark } = await import(pathToFileURL(join(bin, "tidemark.js")));

export const newEngine = () => createTidemark();

export async function loadedEngine() {
  const engine = await newEngine();
  const issues = engine.loadCatalog(catalogText("models.json"), catalogText("gpus.json"));
  if (issues.length > 0) throw new Error(issues[0].message);
  return engine;
}
