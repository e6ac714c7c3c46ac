// The engine as plain functions, on bytes that are already here. The page uses this; tidemark.js finds the bytes first.
import createEngineModule from "./engine.js";

/** Instantiates the engine from the bytes of tidemark.wasm. */
export async function createTidemarkFrom(wasmBinary) {
  const module = await createEngineModule({ wasmBinary });
  const asText = (document) => (typeof document === "string" ? document : JSON.stringify(document));
  const handleText = (request) => module.handle(asText(request));
  return {
    handleText,
    handle: (request) => JSON.parse(handleText(request)),
    loadCatalog: (models, gpus) => JSON.parse(module.loadCatalog(asText(models), asText(gpus))).issues,
    map: (request, batches, sequences) => module.map(asText(request), batches, sequences).slice(),
    version: () => JSON.parse(module.handle('{"verb":"version"}')),
  };
}
