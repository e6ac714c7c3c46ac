// The catalog without what only its editors need (sources, notes, checks): what the engine reads, and nothing else.
// tests/wasm asserts that the engine answers the same from either.

import { readFileSync } from "node:fs";

/** Of each model type what a configuration need not say: keys of top level whose value is the class's default. */
const defaults = JSON.parse(readFileSync(new URL("defaults.json", import.meta.url), "utf8"));

function withoutDefaults(config) {
  const known = defaults[config.model_type] ?? {};
  const says = ([key, value]) => !(key in known) || JSON.stringify(known[key]) !== JSON.stringify(value);
  return Object.fromEntries(Object.entries(config).filter(says));
}

const pick = (object, keys) => Object.fromEntries(keys.filter((key) => key in object).map((key) => [key, object[key]]));

const isObject = (value) => value !== null && typeof value === "object";

function countKeys(value, counts) {
  if (!isObject(value)) return counts;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) counts[key] = (counts[key] ?? 0) + 1;
    countKeys(inner, counts);
  }
  return counts;
}

/**
 * The same object with its keys in one order: words, numbers, objects, of each the commonest first. A page's gzip finds
 * more that is alike so, and the engine reads by name.
 */
function inOneOrder(value, counts) {
  if (!isObject(value) || Array.isArray(value)) return value;
  const kind = (inner) => (isObject(inner) ? 2 : typeof inner === "number" ? 1 : 0);
  const entries = Object.entries(value).sort(
    ([a, x], [b, y]) => kind(x) - kind(y) || counts[b] - counts[a] || (a < b ? -1 : 1),
  );
  return Object.fromEntries(entries.map(([key, inner]) => [key, inOneOrder(inner, counts)]));
}

export function compactModels(text) {
  const { schema, date, models } = JSON.parse(text);
  for (const model of models) model.config = withoutDefaults(model.config);
  const counts = models.reduce((sum, model) => countKeys(model.config, sum), {});
  return JSON.stringify({
    schema,
    date,
    models: models.map((model) => {
      const { computed, published = [] } = model.parameters ?? {};
      // One stated count is enough, an exact one where there is one; where the difference is known it says the count.
      const stated = published.find((source) => source.delta === 0) ?? published[0];
      const told = computed !== undefined && stated !== undefined && "delta" in stated ? ["delta"] : ["count", "delta"];
      const short = stated && pick(stated, told);
      return {
        ...pick(model, ["id", "aliases", "same_arch_ids", "family", "kind"]),
        config: inOneOrder(model.config, counts),
        parameters: { computed, published: short && [short] },
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
