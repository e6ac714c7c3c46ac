// The widget's worker: the engine, and beside this file what it starts from.
import { createLocalWorker, serve } from "../src/engineHost.js";

// By name: their checksums, which web/build.mjs writes in.
const { integrity } = /** @type {any} */ (globalThis.tidemarkBuild ?? {});

/** Reads tidemark.wasm and the catalog from the folder that the page names. */
async function openFiles({ base }) {
  const get = async (name) => {
    const response = await fetch(new URL(name, base), { integrity: integrity?.[name] });
    if (!response.ok) throw new Error(`${name}: ${response.status}`);
    return response;
  };
  const [wasm, models, gpus] = await Promise.all([
    get("tidemark.wasm").then((response) => response.arrayBuffer()),
    get("models.json").then((response) => response.text()),
    get("gpus.json").then((response) => response.text()),
  ]);
  return { wasm: new Uint8Array(wasm), models, gpus };
}

/** The same on a page's own thread. */
export const createLocal = () => createLocalWorker(openFiles);

if (typeof document === "undefined") serve(self, openFiles);
