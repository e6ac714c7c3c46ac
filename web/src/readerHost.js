// The side of the reader that computes, in a worker of its own or, where there is none, on the page's thread. It speaks as engineHost.js does;
// its first message is {parts: {packed}}, as the page carries them. Requests: {read: sources}, {compare: estimate},
// {write: format, request, model}, {patch: sources, changes}, {formats: true}.
import { createReaderFrom } from "tidemark:reader";
import { rowsOf } from "./catalogColumns.js";
import { textOf, unpackUpTo } from "./unpack.js";
import { together } from "./wasmStreams.js";

/** reply(message) is called for each message. Returns the function that takes one. */
export function createReaderHost(reply) {
  let begin = null;
  const started = new Promise((resolve) => {
    begin = resolve;
  }).then(start);
  return async ({ parts, id, request }) => {
    try {
      if (parts) begin(parts);
      const answer = await started;
      reply(parts ? { ready: true } : { id, text: JSON.stringify(await answer(request)) });
    } catch (error) {
      reply({ id, failed: String(error?.message ?? error) });
    }
  };
}

async function start({ packed }) {
  const parts = await unpackUpTo(packed, "reader");
  const reader = await createReaderFrom(together(parts.reader));
  let catalog = null;
  /** The config.json of a catalog's model. */
  function configOf(id) {
    catalog ??= JSON.parse(rowsOf(textOf(parts.models))).models;
    return catalog.find((model) => model.id === id)?.config ?? null;
  }
  return async (request) => {
    if (request.read) return reader.read(request.read);
    if (request.compare) return reader.compare(request.compare);
    if (request.formats) return reader.formats();
    if (request.patch) return reader.patched(request.patch, request.changes);
    const { write: format, request: asked, model, assumed } = request;
    return reader.exported({ format, request: asked, assumed, model, config: asked.config ?? configOf(model) });
  };
}

/** What answers like a worker, on this thread. */
export function createLocalReader() {
  const worker = {
    onmessage: null,
    onerror: null,
    postMessage: (message) => setTimeout(() => take(message), 0),
    terminate: () => {
      worker.onmessage = null;
    },
  };
  const take = createReaderHost((data) => worker.onmessage?.({ data }));
  return worker;
}
