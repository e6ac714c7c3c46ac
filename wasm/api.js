// The engine as plain functions, on bytes that are already here. The page uses this; tidemark.js finds the bytes first.
// What each function does stands in tidemark.d.ts.
import createEngineModule from "./engine.js";

/** Instantiates the engine from the bytes of tidemark.wasm. */
export async function createTidemarkFrom(wasmBinary) {
  const module = await createEngineModule({ wasmBinary });
  const asText = (document) => (typeof document === "string" ? document : (JSON.stringify(document) ?? "null"));
  const handleText = (request) => module.handle(asText(request));
  return {
    loadCatalog: (models, gpus) => JSON.parse(module.loadCatalog(asText(models), asText(gpus))).issues,
    handle: (request) => JSON.parse(handleText(request)),
    handleText,
    // The module's view into its memory is good until its next call: hand out a copy.
    map: (request, batches, sequences) =>
      module.map(asText(request), JSON.stringify(Array.from(batches)), JSON.stringify(Array.from(sequences))).slice(),
    version: () => JSON.parse(handleText({ verb: "version" })),
  };
}
