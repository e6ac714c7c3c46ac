// The reader of other people's files as plain functions, on bytes that are already here: scripts, configurations, logs in, what they say
// out; a job in, a file of another tool out. It executes nothing of what it reads.

/** Instantiates the reader from the bytes of reader.wasm. */
export async function createReaderFrom(wasmBytes) {
  const module = await WebAssembly.compile(wasmBytes);
  const instance = await WebAssembly.instantiate(module, importsOf(module));
  /** @type {any} */
  const wasm = instance.exports;
  wasm._initialize?.();

  function send(bytes) {
    const text = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    const at = wasm.room(text.length);
    new Uint8Array(wasm.memory.buffer, at, text.length).set(text);
  }
  function take(at) {
    return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, at, wasm.written())));
  }
  function put(sources) {
    wasm.forget();
    for (const { name, bytes, size = 0 } of sources) {
      send(name);
      wasm.name();
      send(bytes);
      wasm.bytes(size);
    }
  }
  return {
    /** Sources ({name, bytes: text or first bytes, size: of the whole file}) as one job: the document of `tidemark import --json`. */
    read(sources) {
      put(sources);
      return take(wasm.read());
    },
    /** The first of the sources with other values ({"adapter.r": 8}): {file, text, diff, lacks}. */
    patched(sources, changes) {
      put(sources);
      send(JSON.stringify(changes));
      return take(wasm.patched());
    },
    /** The logs that were read last beside an answer's estimate: [{file, verdict, rows, sentences}]. */
    compare(estimate) {
      send(JSON.stringify(estimate));
      return take(wasm.compare());
    },
    /**
     * {request, config and model of the catalog, format, assumed} as {file, text, lacks}; null where that format has no such job. It knows no
     * model's program: `assumed` is what an answer took by that where the request says nothing (its notes ASSUMED_DEFAULT: {sequence_length}).
     */
    exported(asked) {
      send(JSON.stringify(asked));
      return take(wasm.exported());
    },
    /** The formats that it writes: [{name, what, file}]. */
    formats: () => take(wasm.formats()),
  };
}

/** What the C library asks of a system: there is none, so nothing is written anywhere, and its end is an error. */
function importsOf(module) {
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = (...words) => {
      if (name === "proc_exit" || name === "abort") throw new Error(`the reader ended (${words})`);
      return 0;
    };
  }
  return imports;
}
