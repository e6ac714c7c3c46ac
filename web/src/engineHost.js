// The side of the engine that computes, in a worker or, where there is none, on the page's own thread. Messages in:
// first {parts: {wasm, models, gpus}}, all packed, then {id, request} or {id, request, batches, sequences} for a map. Messages out: {ready}, then
// {id, text} or {id, bytes, milliseconds}; {id, failed} when the engine broke, after which it must not be asked again.
import { createTidemarkFrom } from "tidemark:api";
import { inflate } from "tidemark:unpack";

/** reply(message, transferables) is called for each message. Returns the function that takes one. */
export function createHost(reply) {
  let engine = null;

  return async (message) => {
    const { id } = message;
    try {
      if (message.parts) {
        engine = start(message.parts);
        await engine;
        reply({ ready: true });
        return;
      }
      const { tidemark, prepare } = await engine;
      prepare(message.request);
      if (message.batches) {
        const started = performance.now();
        const bytes = tidemark.map(message.request, message.batches, message.sequences);
        reply({ id, bytes, milliseconds: performance.now() - started }, [bytes.buffer]);
      } else {
        reply({ id, text: tidemark.handleText(message.request) });
      }
    } catch (error) {
      reply({ id, failed: String(error?.message ?? error) });
    }
  };
}

async function start(parts) {
  const text = async (part) => new TextDecoder().decode(await inflate(part));
  const [tidemark, models, gpus] = await Promise.all([inflate(parts.wasm).then(createTidemarkFrom), text(parts.models), text(parts.gpus)]);
  // "", the id of the one model that is loaded, or "all".
  let loaded = "";
  function load(text, what) {
    const wrong = tidemark.loadCatalog(text, gpus).find(({ severity }) => severity === "error");
    if (wrong) throw new Error(wrong.message);
    loaded = what;
  }

  /** Reading the whole catalog takes longer than the first answer, which needs one entry: the rest is read before the second. */
  function prepare({ verb = "estimate", model }) {
    if (loaded === "all") return;
    const catalog = loaded === "" && verb === "estimate" && typeof model === "string" ? JSON.parse(models) : null;
    const entry = catalog?.models.find(({ id }) => id === model);
    if (entry) load(JSON.stringify({ ...catalog, models: [entry] }), model);
    else load(models, "all");
  }
  return { tidemark, prepare };
}

/** In a worker: listens to its messages. */
export function serve(scope) {
  const take = createHost((message, transfer) => scope.postMessage(message, transfer ?? []));
  scope.onmessage = ({ data }) => take(data);
}

/** What answers like a worker, on this thread. */
export function createLocalWorker() {
  let ended = false;
  const worker = {
    onmessage: null,
    onerror: null,
    postMessage: (message) => setTimeout(() => ended || take(message), 0),
    terminate: () => {
      ended = true;
    },
  };
  const take = createHost((data) => ended || worker.onmessage?.({ data }));
  return worker;
}
