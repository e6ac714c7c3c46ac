// Loads the engine in browsers, workers and Node:
//   import { createTidemark } from "./tidemark.js";
//   const tidemark = await createTidemark();
//   tidemark.loadCatalog(modelsJson, gpusJson);
//   tidemark.handle({ model: "llama-2-7b", gpu: "A100-80GB" }).estimate.allocated.expected;
import { createTidemarkFrom } from "./api.js";

/** Options: `wasmBinary`, the bytes of tidemark.wasm; without it they are read from beside this file. */
export async function createTidemark({ wasmBinary } = {}) {
  // Bundlers know a file by just these words.
  return createTidemarkFrom(wasmBinary ?? (await readBeside(new URL("./tidemark.wasm", import.meta.url))));
}

/** The bytes of a file beside this one, from disk or from where the page comes from. */
export async function readBeside(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}
