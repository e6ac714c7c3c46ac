// Loads the engine in browsers, workers and Node:
//   import { createTidemark } from "./tidemark.js";
//   const tidemark = await createTidemark();
//   tidemark.loadCatalog(modelsJson, gpusJson);
//   tidemark.handle({ model: "llama-2-7b", gpu: "A100-80GB" }).estimate.allocated.expected;
import { createTidemarkFrom } from "./api.js";

/** Options: `wasmBinary`, the bytes of tidemark.wasm; without it they are read from beside this file. */
export async function createTidemark({ wasmBinary } = {}) {
  return createTidemarkFrom(wasmBinary ?? (await readBeside("tidemark.wasm")));
}

async function readBeside(name) {
  const url = new URL(name, import.meta.url);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}
