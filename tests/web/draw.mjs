// States of the page drawn at random, from a seed: some options of `describe`, each with a value that somebody may give it.

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const calibration = {
  factors: {
    activations: 1.25,
    fragmentation: 1.5,
    communication: null,
    context: [{ gpu: "NVIDIA T4", bytes: 400000000 }],
  },
  errors: { calibrated: { mean_percent: 1, worst_percent: 2 }, left_out: { mean_percent: 3, worst_percent: 7.5 } },
  measurements: [],
};
const config = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  hidden_size: 512,
  intermediate_size: 1024,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 8,
  vocab_size: 32000,
  tie_word_embeddings: false,
};
const models = [
  { model: "gpt2" },
  { model: "meta-llama/Llama-3.2-1B" },
  { model: "Qwen/Qwen2.5-0.5B" },
  { model: "it's no model; $(true) \\" },
  { config },
  { parameters: 7e9 },
];
const cards = ["NVIDIA L4", "4090", "A100-80GB", "no such card", { memory_gib: 24 }, { vram_gb: 24.5 }];
// Lists of names, patterns, and what a shell or a separator could take apart.
const lists = [
  ["q_proj"],
  ["q_proj", "v_proj"],
  "attention",
  ["lm_head", "embed_tokens"],
  "model\\.layers\\.[0-3]\\..*",
  ["a,b", "c d", 'e"f', "100%"],
  [],
];
const texts = {
  architecture: ["LlamaForCausalLM", "GPT2ForSequenceClassification"],
  "framework.version": ["4.46", "5.10"],
};
const oddText = ["bf16", "it's $(odd) `text`", "--dashed", "0", "ü\n漢"];
const anything = [[224, 224], 336, null, "text", { a: [1, "x"] }];

/** One value for an option; now and then one that the engine refuses. */
export function valueFor(option, random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  switch (option.type) {
    case "boolean":
      return random() < 0.04 ? "maybe" : random() < 0.5;
    case "integer":
    case "number":
      return numberFor(option, pick, random);
    case "choice":
      return pick(option.values.filter((choice) => choice.modelled || random() < 0.1))?.name ?? "odd";
    case "choices":
      return option.values.filter(() => random() < 0.4).map((choice) => choice.name);
    case "strings":
      return pick(lists);
    case "gpu":
      return pick(cards);
    case "gpus":
      return cards.filter(() => random() < 0.4);
    case "any":
      return pick(anything);
    case "object":
      return option.name === "calibration" ? calibration : config;
    default:
      return pick(random() < 0.7 ? (texts[option.name] ?? oddText) : oddText);
  }
}

function numberFor(option, pick, random) {
  const least = option.minimum ?? 0;
  const most = Math.min(option.maximum ?? 4096, 65536);
  const value = pick([least, option.default ?? least, 2, 3, 64, 1024, 4096, most, -1]);
  return option.type === "number" && random() < 0.5 ? value + 0.25 : value;
}

/** A state's values, among them those of the option named `sure`. */
export function stateWith(sure, schema, random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const values = { ...pick(models.filter((_, at) => at !== 3 || random() < 0.2)), sequence_length: 512 };
  if (random() < 0.5) values.gpu = pick(cards);
  const names = [sure, ...Array.from({ length: Math.floor(random() * 4) }, () => pick(schema.options).name)];
  for (const name of names) {
    if (["model", "config", "parameters"].includes(name)) continue;
    const value = valueFor(schema.find(name), random);
    if (value !== null) values[name] = value;
  }
  return schema.prune(values);
}
