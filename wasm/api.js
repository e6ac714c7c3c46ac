// The engine as plain functions, on bytes that are already here. The page uses this; tidemark.js finds the bytes first.
// What each function does stands in tidemark.d.ts.

/** Instantiates the engine from the bytes of tidemark.wasm. */
export async function createTidemarkFrom(wasmBinary) {
  const program = await WebAssembly.compile(wasmBinary);
  // The C library's door to the outside (its memory grew, it would print): nobody stands behind it.
  const imports = {};
  for (const { module, name } of WebAssembly.Module.imports(program)) {
    imports[module] ??= {};
    imports[module][name] = () => 0;
  }
  const { exports: engine } = await WebAssembly.instantiate(program, imports);
  engine._initialize();

  // Every call may make memory grow, and then it is another buffer: a view is made when it is used.
  const write = (index, text) => {
    const bytes = new TextEncoder().encode(text);
    const at = engine.room(index, bytes.length);
    new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  };
  const ask = (question, ...documents) => {
    documents.forEach((document, index) => {
      write(index, typeof document === "string" ? document : (JSON.stringify(document) ?? "null"));
    });
    return question();
  };
  const text = (at) => new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at, engine.length()));

  const handleText = (request) => text(ask(engine.handle, request));
  return {
    loadCatalog: (models, gpus) => JSON.parse(text(ask(engine.load_catalog, models, gpus))).issues,
    handle: (request) => JSON.parse(handleText(request)),
    handleText,
    map: (request, batches, sequences) => {
      const at = ask(engine.map, request, Array.from(batches), Array.from(sequences));
      return new Float64Array(engine.memory.buffer, at, engine.length()).slice();
    },
    version: () => JSON.parse(handleText({ verb: "version" })),
  };
}
