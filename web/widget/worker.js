// The widget's worker: the engine, and beside this file what it starts from.
import { createLocalWorker, serve } from "../src/engineHost.js";

// By name: their checksums, which web/build.mjs writes in.
const { integrity } = /** @type {any} */ (globalThis.tidemarkBuild ?? {});

/** Reads the engine and the catalog, whose addresses the page has told. */
async function openFiles(addresses) {
  const get = async (name) => {
    const response = await fetch(addresses[name], { integrity: integrity?.[name] });
    if (!response.ok) throw new Error(`${addresses[name]}: ${response.status}`);
    return response;
  };
  const [wasm, models, gpus] = await Promise.all([
    get("wasm").then((response) => response.arrayBuffer()),
    get("models").then((response) => response.text()),
    get("gpus").then((response) => response.text()),
  ]);
  return { wasm: new Uint8Array(wasm), models, gpus };
}

/** The same on a page's own thread. */
export const createLocal = () => createLocalWorker(openFiles);

if (typeof document === "undefined") serve(self, openFiles);
