// The engine as the page sees it. Everything is synchronous once it has started.
import { createTidemarkFrom } from "tidemark:api";
import gpus from "tidemark:gpus";
import models from "tidemark:models";
import { unpack } from "tidemark:unpack";
import wasm from "tidemark:wasm";

/** Starts the engine and hands it the catalog. Once; keep the result. */
export async function startEngine() {
  const tidemark = await createTidemarkFrom(unpack(wasm));
  const issues = tidemark.loadCatalog(models, gpus);
  if (issues.some(({ severity }) => severity === "error")) throw new Error(issues[0].message);
  return {
    /** Any verb: an object in, the response out. Never throws on input. */
    handle: (request) => tidemark.handle(request),
    /** A request (object, or JSON text as a person wrote it) in, the contract's response out. Never throws on input. */
    estimate: (request) => tidemark.handle(request),
    /** The same response as the JSON text that the command line prints. */
    estimateText: (request) => tidemark.handleText(request),
    /** Which cards fit; all of the catalog unless the request names some. */
    fit: (request) => tidemark.handle({ ...request, verb: "fit" }),
    /** Every option with default, values, limits, unit and help. */
    describe: () => tidemark.handle({ verb: "describe" }),
    /** {models, gpus}; `pattern` keeps the entries whose name contains it. */
    catalog: (pattern = "") => tidemark.handle({ verb: "catalog", pattern }),
    /** Allocated bytes for each batch size (rows) and sequence length (columns), a Float64Array; NaN: no estimate. */
    map: (request, batches, sequences) => tidemark.map(request, batches, sequences),
    version: () => tidemark.version(),
  };
}
