// The side of the engine that computes, in a worker or, where there is none, on the page's own thread. Messages in:
// {parts}, once, from which `open` makes {wasm, models, gpus}: the engine's bytes and the catalog's texts; and {id, request} or {id, request, batches, sequences} for a map. Messages out: {ready}, then
// {id, text} or {id, bytes, milliseconds}; {id, failed} when the engine broke, after which it must not be asked again.
import { createTidemarkFrom } from "tidemark:api";

/** reply(message, transferables) is called for each message. Returns the function that takes one. */
export function createHost(reply, open) {
  let begin = null;
  const engine = new Promise((resolve) => {
    begin = resolve;
  })
    .then(open)
    .then(start);

  return async (message) => {
    const { id } = message;
    try {
      if (message.parts) {
        begin(message.parts);
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

async function start({ wasm, models, gpus }) {
  const tidemark = await createTidemarkFrom(wasm);
  // "nothing", "one" for what the first question names, or "all".
  let loaded = "nothing";
  function load(someModels, someGpus, amount) {
    const wrong = tidemark.loadCatalog(someModels, someGpus).find(({ severity }) => severity === "error");
    if (wrong) throw new Error(wrong.message);
    loaded = amount;
  }

  /** Reading the whole catalog takes longer than the first answer, which needs two entries of it: the rest is read before the second. */
  function prepare({ verb = "estimate", model, teacher_model: teacher, gpu, gpus: several }) {
    // What options there are hangs on no catalog.
    if (loaded === "all" || verb === "describe") return undefined;
    if (loaded === "nothing" && verb === "estimate" && several === undefined && !teacher) {
      const [someModels, someGpus] = [only(models, "models", "id", model), only(gpus, "gpus", "name", gpu)];
      if (someModels && someGpus) return load(someModels, someGpus, "one");
    }
    return load(models, gpus, "all");
  }
  return { tidemark, prepare };
}

/** The catalog with one entry, or null where none has just that name. */
function only(text, list, key, name) {
  const catalog = JSON.parse(text);
  const entry = catalog[list].find((one) => one[key] === name);
  return entry ? JSON.stringify({ ...catalog, [list]: [entry] }) : null;
}

/** In a worker: listens to its messages. */
export function serve(scope, open) {
  const take = createHost((message, transfer) => scope.postMessage(message, transfer ?? []), open);
  scope.onmessage = ({ data }) => take(data);
}

/** What answers like a worker, on this thread. */
export function createLocalWorker(open) {
  let ended = false;
  const worker = {
    onmessage: null,
    onerror: null,
    postMessage: (message) => setTimeout(() => ended || take(message), 0),
    terminate: () => {
      ended = true;
    },
  };
  const take = createHost((data) => ended || worker.onmessage?.({ data }), open);
  return worker;
}
