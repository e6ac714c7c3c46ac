// The catalog without what only its editors need (sources, notes, checks): what the engine reads, and nothing else.
// tests/wasm asserts that the engine answers the same from either.

const pick = (object, keys) => Object.fromEntries(keys.filter((key) => key in object).map((key) => [key, object[key]]));

export function compactModels(text) {
  const { schema, date, models } = JSON.parse(text);
  return JSON.stringify({
    schema,
    date,
    models: models.map((model) => {
      const { computed, published = [] } = model.parameters ?? {};
      return {
        ...pick(model, ["id", "aliases", "same_arch_ids", "family", "kind", "config"]),
        parameters: { computed, published: published.map((source) => pick(source, ["count", "delta"])) },
      };
    }),
  });
}

export function compactGpus(text) {
  const { schema, date, gpus } = JSON.parse(text);
  return JSON.stringify({
    schema,
    date,
    gpus: gpus.map(({ sources, usable, ...gpu }) => {
      if (usable) {
        const { sources, note, ...figures } = usable;
        gpu.usable = figures;
      }
      return gpu;
    }),
  });
}

/** Of `describe` what a page makes its form of: without the verbs, and without help for what cannot be chosen. */
export function compactDescribe(text) {
  const { verbs, model_types, options, ...rest } = JSON.parse(text);
  const choice = ({ help, ...value }) => (value.modelled === false ? value : { ...value, help });
  const compact = ({ path, values, ...option }) => ({ ...option, values: values?.map(choice) });
  return JSON.stringify({ ...rest, options: options.map(compact) });
}
