// Types of the engine's one seam. The words themselves (which optimizers, which precisions) are not repeated here:
// `handle({verb: "describe"})` lists them, with defaults, limits, units and help.

/** Bytes, exact. */
export type Bytes = number;

/** A card: a catalog name or alias, or only its memory: as torch sees it, or as it is sold. */
export type Gpu = string | { name?: string; memory_gib?: number; vram_gb?: number };

/** Everything has a default; `null` stands for it. Keys that nobody knows are warned of, not refused. */
export interface Request {
  schema?: 1;
  /** What is asked for; "estimate" when absent. */
  verb?: "estimate" | "fit" | "advise" | "map" | "catalog" | "describe" | "version" | (string & {});
  /** Of the verb "catalog": keeps the entries with a name that contains it. */
  pattern?: string;
  /** Of the verb "catalog": only these. */
  list?: "models" | "gpus";

  // The model, one of:
  /** Catalog id or alias: "meta-llama/Llama-2-7b-hf", "llama-2-7b". */
  model?: string | null;
  /** A Hugging Face config.json, as it is. */
  config?: object | null;
  /** Only a count. */
  parameters?: number | null;
  /** Class name, where the head that is trained is not config.json's. */
  architecture?: string | null;

  method?: string | null;
  adapter?: {
    r?: number | null;
    lora_alpha?: number | null;
    lora_dropout?: number | null;
    target_modules?: string | string[] | null;
    modules_to_save?: string[] | null;
    dtype?: string | null;
    use_dora?: boolean | null;
  } | null;
  quantization?: {
    bits?: number | null;
    quant_type?: string | null;
    double_quant?: boolean | null;
    group_size?: number | null;
    quant_storage?: string | null;
    prepare_kbit?: boolean | string | null;
  } | null;
  freeze?: string[] | null;

  /** A recipe's name, or what differs from one. */
  precision?:
    | string
    | {
        recipe?: string | null;
        weights?: string | null;
        autocast?: string | null;
        gradients?: string | null;
        master_weights?: string | null;
        optimizer_states?: string | null;
      }
    | null;
  micro_batch_size?: number | null;
  sequence_length?: number | null;
  decoder_sequence_length?: number | null;
  gradient_accumulation_steps?: number | null;
  padding?: boolean | null;
  packing?: boolean | null;
  images_per_sample?: number | null;
  image_size?: number | [number, number] | null;

  attention?: string | null;
  gradient_checkpointing?: string | boolean | { every?: number | null; selective?: string | string[] | null } | null;
  use_reentrant?: boolean | null;
  optimizer?: string | null;
  max_grad_norm?: number | null;
  optimizer_in_backward?: boolean | null;
  loss?: string | null;
  liger?: string[] | null;
  compile?: string | boolean | null;
  keep_outputs?: boolean | null;
  outputs_to_fp32?: boolean | null;
  zero_grad_to_none?: boolean | null;

  parallelism?: object | null;
  moe?: object | null;
  offload?: object | null;
  framework?: { name?: string | null; version?: string | null } | null;
  allocator?: { expandable_segments?: boolean | null } | null;
  /** Factors that you state instead of leaving them to the engine; each is echoed in the answer. */
  overrides?: {
    fragmentation_gib?: number | null;
    misc_overhead_gib?: number | null;
    cuda_context_gib?: number | null;
  } | null;
  calibration?: object | null;

  gpu?: Gpu | null;
  gpus?: Gpu[] | null;
  /** Saved tensors wait in host memory. */
  activation_offloading?: unknown;
  /** Length of a recording. */
  audio_seconds?: unknown;
  /** TrainingArguments.bf16, where precision is auto: bf16 autocast, or none when false. */
  bf16?: boolean;
  /** Objects to find in an image. */
  boxes_per_image?: unknown;
  /** A DeepSpeed configuration. */
  deepspeed?: unknown;
  /** from_pretrained's dtype, where precision is auto. */
  dtype?: string;
  /** Batches of evaluation between steps. */
  evaluation?: unknown;
  /** TrainingArguments.fp16, where precision is auto: fp16 autocast with loss scaling. */
  fp16?: boolean;
  /** The language model is not trained. */
  freeze_llm?: unknown;
  /** The projector is not trained. */
  freeze_projector?: unknown;
  /** The vision tower is not trained. */
  freeze_vision?: unknown;
  /** FSDP in the words of TrainingArguments. */
  fsdp?: unknown;
  /** Tiles that an image is cut into. */
  image_tiles?: unknown;
  /** fla, mamba_ssm or torch. */
  kernels?: unknown;
  /** Whose configuration it is, where that does not say. */
  library?: unknown;
  /** from_pretrained(load_in_4bit=True): what method qlora means. */
  load_in_4bit?: boolean;
  /** from_pretrained(load_in_8bit=True): method qlora with 8 bits. */
  load_in_8bit?: boolean;
  /** axolotl's word for target_modules all-linear. */
  lora_target_linear?: boolean;
  /** Tokens of a generated answer. */
  max_completion_length?: unknown;
  /** Tokens of a prompt. */
  max_prompt_length?: unknown;
  /** A recorded nn.Module of one's own. */
  model_trace?: unknown;
  /** Noise on the embeddings. */
  neftune_noise_alpha?: unknown;
  /** Answers generated for each prompt. */
  num_generations?: unknown;
  /** Samples of a batch joined into one row. */
  padding_free?: unknown;
  /** A frozen copy for preferences. */
  reference_model?: unknown;
  /** A model that scores answers. */
  reward_model?: unknown;
  /** Answers generated on the same card. */
  rollout?: unknown;
  /** What is learned; it chooses the head where `architecture` does not. */
  task?: string;
  /** A model to distil from. */
  teacher_model?: unknown;
  /** Feed-forward layers over pieces of the sequence. */
  tiled_mlp?: unknown;
  /** TrainingArguments.use_liger_kernel: the fused loss with rms_norm, swiglu and rope. */
  use_liger_kernel?: boolean;
  /** A model that predicts returns. */
  value_model?: unknown;
}

/** An amount and how sure we are of it. */
export interface Range {
  low: Bytes;
  expected: Bytes;
  high: Bytes;
}

export type Category =
  | "weights"
  | "gradients"
  | "optimizer_states"
  | "activations"
  | "logits_loss"
  | "workspace"
  | "communication"
  | "buffers";

export type Phase = "load" | "forward" | "loss" | "backward" | "reduce" | "optimizer" | "zero_grad" | (string & {});

export interface BreakdownEntry {
  name: string;
  bytes: Bytes;
  /** In symbols: "2·B·S·F × 32". */
  formula: string;
  /** The same with numbers. */
  substituted: string;
  /** Which line of which project does it, with version. */
  source: string;
  confidence: "exact" | "measured" | "modelled";
}

export interface BreakdownGroup {
  category: Category;
  bytes: Bytes;
  /** Largest first; they sum to `bytes`. */
  entries: BreakdownEntry[];
}

/** One labelled moment of the step. */
export interface Instant {
  instant: string;
  phase: Phase;
  total: Bytes;
  bytes: Record<Category, Bytes>;
}

/** Dtypes as used: "bf16", "fp32", … or "none". */
export interface Recipe {
  name: string;
  weights: string;
  gradients: string;
  master_weights: string;
  optimizer_states: string;
  autocast: string;
  /** Of the adapters and their gradients, where only those are trained. */
  adapters?: string;
}

export interface Estimate {
  /** What was estimated: catalog id, or the class of a pasted config. */
  model: string;
  /** Which model was assumed when only a count was given; else empty. */
  architecture: string;
  /** torch.cuda.max_memory_allocated, from the second step on. */
  allocated: Range;
  /** torch.cuda.max_memory_reserved. */
  reserved: Range;
  /** What nvidia-smi shows. */
  device: Range;
  first_step_allocated: Bytes;
  /** Memory of the host, per node. */
  host: { expected: Bytes };
  peak: { phase: Phase; at: string; rank: string };
  phase_peaks: Record<string, Bytes>;
  /** Sums to `allocated.expected`. */
  breakdown: BreakdownGroup[];
  timeline: Instant[];
  parameters: {
    total: number;
    trainable: number;
    active: number;
    base: number;
    published: number;
    adapted_modules: number;
    saved_modules: number;
  };
  recipe: Recipe;
  /** Which kernel the attention really runs. */
  attention_kernel: string;
  overrides: Record<string, number>;
}

/** Whether the job fits one card. */
export interface Fit {
  gpu: string;
  usable_bytes: Bytes;
  verdict: "fits" | "tight" | "does_not_fit" | "unknown";
  /** Negative when it does not fit. */
  headroom_bytes: Bytes;
  utilization: number;
  /** Why the verdict is unknown or an estimate. */
  reason?: string;
}

/** Trouble found in a request or a document; with an error among them there is no estimate. */
export interface Issue {
  /** Stable, for programs: "UNKNOWN_KEY". */
  code: string;
  severity: "error" | "warning" | "note";
  /** JSON pointer into the request: "/adapter/rank". */
  path: string;
  /** For people. */
  message: string;
  /** What was probably meant, or empty. */
  suggestion: string;
}

/** Of the verb "estimate". */
export interface Response {
  schema: 1;
  engine?: string;
  catalog?: string;
  /** Absent when an issue is an error. */
  estimate?: Estimate;
  fits?: Fit[];
  /** What can still be said of a model whose architecture is not modelled. */
  partial?: {
    model: string;
    parameters: number;
    weights: Bytes;
    gradients: Bytes;
    optimizer_states: Bytes;
    recipe: Recipe;
    note: string;
  };
  issues: Issue[];
}

/** Of the verb "fit": cards asked for, or the whole catalog. */
export interface FitResponse {
  schema: 1;
  engine?: string;
  catalog?: string;
  allocated?: Range;
  fits?: Fit[];
  issues: Issue[];
}

/** Of the verb "catalog". */
export interface CatalogResponse {
  schema: 1;
  engine: string;
  catalog: string;
  models?: {
    id: string;
    aliases: string[];
    family: string;
    kind: string;
    model_type: string;
    parameters: number;
    modelled: boolean;
  }[];
  gpus?: {
    name: string;
    aliases: string[];
    vendor: string;
    architecture: string;
    compute_capability: number;
    marketed_bytes: Bytes;
    visible_bytes: Bytes;
    estimated: boolean;
  }[];
}

export interface OptionDescription {
  /** "adapter.r" stands for {"adapter": {"r": …}}. */
  name: string;
  /** Its title in a form. */
  label: string;
  /** JSON pointer: "/adapter/r". */
  path: string;
  group: string;
  type: "string" | "strings" | "boolean" | "integer" | "number" | "choice" | "choices" | "object" | (string & {});
  default: unknown;
  values?: { name: string; help: string; modelled: boolean; aliases?: string[] }[];
  minimum?: number;
  maximum?: number;
  /** Where people usually are: the ends of a slider. */
  usual?: [number, number];
  unit?: string;
  /** When it decides anything: {"method": ["lora", "qlora"]}; always, where absent. */
  relevant?: Record<string, string[]>;
  /** In the object form, the key that holds what else is a word: "recipe" of precision. */
  word_key?: string;
  /** What that key starts from where an object does not say: a form refines from it. */
  word_default?: string;
  flags: string[];
  help: string;
  advanced: boolean;
  modelled: boolean;
  /** What is missing, when it is not modelled. */
  missing?: string;
}

/** Of the verb "describe". */
export interface DescribeResponse {
  schema: 1;
  engine: string;
  catalog: string;
  verbs: { name: string; help: string; modelled: boolean }[];
  groups: { name: string; title: string; usual: boolean; relevant?: Record<string, string[]> }[];
  options: OptionDescription[];
  model_types: string[];
}

export interface Version {
  schema: 1;
  engine: string;
  catalog: string;
}

/** The engine. Everything is synchronous, nothing throws on bad input, and nothing leaves the machine. */
export interface Tidemark {
  /** Objects, or the JSON texts of catalog/models.json and catalog/gpus.json. Errors mean that they could not be read. */
  loadCatalog(models: object | string, gpus: object | string): Issue[];

  /** A request in, an answer out. A string is JSON text as somebody wrote it. */
  handle(request: { verb: "fit" } & Request): FitResponse;
  handle(request: { verb: "catalog" } & Request): CatalogResponse;
  handle(request: { verb: "describe" } & Request): DescribeResponse;
  handle(request: { verb: "version" } & Request): Version;
  /** Verbs with keys and answers of their own, which `describe` lists. */
  handle(
    request: { verb: "advise" | "map" } & Request & Record<string, unknown>,
  ): { schema: 1; issues: Issue[] } & Record<string, unknown>;
  handle(request: Request | string): Response;

  /** The same as JSON text: what `tidemark estimate --json` prints, byte for byte. */
  handleText(request: Request | string): string;

  /**
   * Allocated bytes (expected) for each pair, one row per micro batch size; NaN where there is no estimate (what is
   * wrong with the request, `handle` tells).
   */
  map(request: Request | string, batches: ArrayLike<number>, sequences: ArrayLike<number>): Float64Array;

  version(): Version;
}

/**
 * Loads the engine, in browsers, workers and Node. `wasmBinary`: the bytes of tidemark.wasm; without it they are read
 * from beside tidemark.js.
 */
export function createTidemark(options?: { wasmBinary?: ArrayBuffer | Uint8Array }): Promise<Tidemark>;
