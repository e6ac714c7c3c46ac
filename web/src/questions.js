// What the page asks of the engine, in the engine's words. Each promises an answer, or undefined where a newer question of its kind took
// its place.

/** engine as engine.js has it; values are the state's. */
export function createQuestions(engine, schema) {
  const ask = (kind, values, more = {}) => engine.ask(kind, { ...schema.toRequest(values), ...more });
  return {
    /** @returns {Promise<import("../../wasm/tidemark.js").Response | undefined>} */
    estimate: (values) => ask("estimate", values),
    /**
     * Of the pinned job, which does not wait for the present one's place.
     * @returns {Promise<import("../../wasm/tidemark.js").Response | undefined>}
     */
    pinned: (values) => ask("pin", values),
    /**
     * Of a job that may come to be the present one.
     * @returns {Promise<import("../../wasm/tidemark.js").Response | undefined>}
     */
    trial: (values) => ask("trial", values),
    /**
     * The verdict of every card, whichever is chosen.
     * @returns {Promise<import("../../wasm/tidemark.js").FitResponse | undefined>}
     */
    cards: ({ gpu, gpus, ...values }) => ask("fit", values, { verb: "fit" }),
    /**
     * Of the job on another number of cards, for the map.
     * @returns {Promise<import("../../wasm/tidemark.js").Response | undefined>}
     */
    onCards: (values) => ask("onCards", values),
    /** The search alone: the tables take several times as long, and come when they are asked for. */
    advice: (values) => ask("advise", values, { verb: "advise", frontiers: false, tiers: false, modes: false }),
    tables: (values, tables) =>
      ask("tables", values, { verb: "advise", frontiers: false, tiers: false, modes: false, ...tables }),
    /** @returns {Promise<import("../../wasm/tidemark.js").CatalogResponse>} */
    catalog: () => engine.ask("catalog", { verb: "catalog" }),
  };
}
