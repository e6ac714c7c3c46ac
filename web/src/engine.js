// The engine as the page sees it: questions in, promises of answers out. It runs in a worker, so that the page never waits for it.
//
// One question at a time is with the worker; of those that wait, each kind has one place, which a newer question of that kind takes.
// What people wait for goes first. Where several ask (widgets on one page), each has its own places.

// The kinds, most urgent first.
const kinds = [
  "describe",
  "estimate",
  "pin",
  "trial",
  "catalog",
  "fit",
  "onCards",
  "map",
  "advise",
  "tables",
  "read",
  "compare",
  "export",
];

/**
 * partsOf() promises what the host starts from. makeWorker() and makeLocal() make something with a worker's interface; the second is used where the
 * first throws, or fails before it is ready. describeFailure(reason) words what is answered when the engine broke; onready(isLocal) is
 * called when one has started.
 */
export function createEngine({ partsOf, makeWorker, makeLocal, describeFailure, onready }) {
  const waiting = new Map();
  let worker = null;
  let isLocal = false;
  let isReady = false;
  let current = null;
  let counter = 0;

  function open() {
    isReady = false;
    try {
      worker = isLocal ? makeLocal() : makeWorker();
    } catch {
      isLocal = true;
      worker = makeLocal();
    }
    const mine = worker;
    mine.onmessage = ({ data }) => mine === worker && take(data);
    mine.onerror = (event) => {
      event.preventDefault?.();
      if (mine === worker) broken(event.message || "worker");
    };
    partsOf().then((parts) => mine.postMessage({ parts }));
  }

  function take(data) {
    if (data.ready) {
      isReady = true;
      onready?.(isLocal);
    } else if (data.failed !== undefined) broken(data.failed);
    else if (current && data.id === current.message.id) finish(data);
  }

  function finish(data) {
    const { resolve, read } = current;
    current = null;
    resolve(read(data));
    next();
  }

  /** An engine that broke is thrown away; the question that broke it is answered with an issue, the others go on with a new one. */
  function broken(reason) {
    worker.terminate();
    worker = null;
    if (!isReady && !isLocal) {
      isLocal = true;
      open();
      if (current) worker.postMessage(current.message);
    } else if (current) {
      finish({ failed: reason });
    }
  }

  function next() {
    if (current) return;
    if (waiting.size === 0) return;
    // The most urgent; of those, the one whose place was taken first.
    const urgency = (place) => kinds.indexOf(waiting.get(place).kind);
    const place = [...waiting.keys()].reduce((first, other) => (urgency(other) < urgency(first) ? other : first));
    current = waiting.get(place);
    waiting.delete(place);
    if (!worker) open();
    worker.postMessage(current.message);
  }

  function put(asker, kind, message, read) {
    if (!kinds.includes(kind)) throw new Error(kind);
    return new Promise((resolve) => {
      const place = `${kind} ${asker}`;
      waiting.get(place)?.resolve(undefined);
      counter += 1;
      waiting.set(place, { kind, message: { id: counter, ...message }, read, resolve });
      next();
    });
  }

  const issue = (reason) => ({
    schema: 1,
    issues: [{ code: "INTERNAL_ERROR", severity: "error", path: "", message: describeFailure(reason), suggestion: "" }],
  });
  let askers = 0;
  const askedBy = (asker) => ({
    /**
     * Any verb. Resolves to its answer, or to undefined when a newer question of that kind took its place. Never rejects.
     * @param {string} kind
     * @param {import("../../wasm/tidemark.js").Request} request
     * @returns {Promise<any>}
     */
    ask: (kind, request) =>
      put(asker, kind, { request }, ({ text, failed }) => (failed === undefined ? JSON.parse(text) : issue(failed))),
    /** Bytes for each batch size (rows) and sequence length (columns), NaN where there is no estimate, and how long it took. */
    map: (request, batches, sequences) =>
      put(asker, "map", { request, batches, sequences }, ({ bytes, milliseconds }) => ({
        bytes: bytes ?? new Float64Array(batches.length * sequences.length).fill(NaN),
        milliseconds: milliseconds ?? 0,
      })),
  });
  return {
    ...askedBy(0),
    /** The same engine for someone else, whose questions take the places of none but their own. */
    another() {
      askers += 1;
      return askedBy(askers);
    },
  };
}
