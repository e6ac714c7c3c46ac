// The one engine of all widgets of a page: in a worker that is made when the first widget comes into view.
import { createEngine } from "../src/engine.js";
import { setMessages, t } from "../src/messages.js";
import { createSchema } from "../src/schema.js";
import { inWords } from "../src/titles.js";

// Bundlers know a file beside a script by just these words.
const worker = new URL("./tidemark-worker.js", import.meta.url);
const files = {
  wasm: new URL("./tidemark.wasm", import.meta.url).href,
  models: new URL("./models.json", import.meta.url).href,
  gpus: new URL("./gpus.json", import.meta.url).href,
};
// What web/build.mjs knows of that file and of the languages', so that another origin's copies are checked.
const { workerIntegrity, wordsIntegrity } = /** @type {any} */ (globalThis.tidemarkBuild ?? {});

/** What answers like a worker and comes later: what is said to it waits. make() promises the real one. */
export function lateWorker(make) {
  const late = { onmessage: null, onerror: null, postMessage, terminate };
  let ended = false;
  const real = make().then((made) => {
    made.onmessage = (event) => ended || late.onmessage?.(event);
    made.onerror = (event) => ended || late.onerror?.(event);
    return made;
  });
  real.catch((error) => ended || late.onerror?.({ message: String(error?.message ?? error) }));
  function postMessage(message) {
    real.then((made) => made.postMessage(message)).catch(() => {});
  }
  function terminate() {
    ended = true;
    real.then((made) => made.terminate()).catch(() => {});
  }
  return late;
}

/**
 * Where the worker's text comes from. A browser makes no worker from another origin's file: from there its text is fetched, checked, and
 * made one of this page's.
 */
async function sourceOfWorker() {
  if (worker.origin === location.origin) return worker.href;
  const response = await fetch(worker, { integrity: workerIntegrity });
  if (!response.ok) throw new Error(`${worker} answered ${response.status}`);
  return URL.createObjectURL(new Blob([await response.text()], { type: "text/javascript" }));
}

async function makeWorker() {
  return new Worker(await sourceOfWorker(), { type: "module" });
}

/** Where no worker is allowed, the engine runs on the page's thread; what was not checked does not run there, either. */
async function makeLocal() {
  const { createLocal } = await import(await sourceOfWorker());
  return createLocal();
}

// Languages beside English, each in a file of its own.
const languages = new Map([["zh", new URL("./tidemark-zh.json", import.meta.url).href]]);
let spoken = null;

/** Speaks the language of the first widget's place. One page, one language; English where its words are not at hand. */
export function speak(element) {
  const place = element.closest("[lang]");
  const language = (place?.getAttribute("lang") ?? "").toLowerCase().split("-")[0];
  spoken ??= loadWords(languages.get(language), wordsIntegrity?.[language]);
  return spoken;
}

async function loadWords(address, integrity) {
  if (!address) return;
  try {
    const response = await fetch(address, { integrity });
    if (response.ok) setMessages(await response.json());
  } catch {
    // English, then.
  }
}

let service = null;

/** Starts the engine, once. Promises {engine, schema, catalog()}; rejects where it could not start. */
export function openService() {
  service ??= start();
  return service;
}

async function start() {
  const engine = createEngine({
    partsOf: async () => files,
    makeWorker: () => lateWorker(makeWorker),
    makeLocal: () => lateWorker(makeLocal),
    describeFailure: (reason) => t("issues.failed", { reason }),
    onready: undefined,
  });
  const describe = await engine.ask("describe", { verb: "describe" });
  if (!describe.options) {
    service = null;
    throw new Error(describe.issues?.[0]?.message ?? "describe");
  }
  let catalog = null;
  return {
    engine,
    schema: createSchema(inWords(describe)),
    /** The models and cards, asked for once. */
    catalog() {
      catalog ??= engine.ask("catalog", { verb: "catalog" });
      return catalog;
    },
  };
}
