// Made by wasm/make_types.py from docs/request.schema.json and core/answer/answer.schema.json: change those.
// What is not said here of an option (labels, units, which are for experts) says `handle({verb: "describe"})`.

/** A card: a catalog name or alias, or its memory: as torch sees it, or as it is sold. */
export type Gpu = string | {
  /** Memory on the box, where nothing else is known. */
  vram_gb: number;
} | {
  /** A catalog name or alias. */
  name?: string;
  /** Memory as torch sees it, GiB. */
  memory_gib?: number;
  /** The same in units of 10^9 bytes. */
  memory_gb?: number;
};

/** What is trained, and how. Everything has a default; `null` stands for it. */
export interface Job {
  /** Catalog id or alias, letters' case ignored: meta-llama/Llama-2-7b-hf, llama-2-7b. */
  model?: string | null;
  /** A Hugging Face config.json, as it is (on the command line: the file's path, - for standard input). */
  config?: object | null;
  /**
   * Only a parameter count: a published architecture of that class is assumed, and the answer says which. Unit:
   * parameters.
   */
  parameters?: number | null;
  /** Class name, where the head that is trained is not config.json's: BertForSequenceClassification. */
  architecture?: string | null;
  /** Whose configuration it is; the class says so, too. @default "auto" */
  library?: "auto" | "transformers" | "diffusers" | null;
  /**
   * A recorded nn.Module of one's own. Not modelled: What `tidemark trace` recorded is given as "config": tidemark
   * estimate --config my-model.json.
   */
  model_trace?: null;
  /** Which parameters are trained. @default "full" */
  method?: "full" | "lora" | "qlora" | "freeze" | "oft" | "qoft" | "boft" | "ia3" | "adalora" | "loha" | "lokr" | "vera" | "ln_tuning" | "prompt_tuning" | "p_tuning" | null;
  /** Patterns of module names that are not trained: embed_tokens, layers.0, vision_tower. @default [] */
  freeze?: string | string[] | null;
  /**
   * Patterns of names that are trained, and nothing else is; of what `freeze` names, where that is given: layers.31,
   * lm_head. Beside adapters: what is trained with them, in place. "vision_tower" and "projector" are those parts of
   * any model that sees. @default []
   */
  trainable?: string | string[] | null;
  /**
   * Of the layers the last so many are trained, below 0 the first so many, and nothing else; 0: as `freeze` says
   * (LLaMA-Factory). Unit: layers. @default 0
   */
  freeze_trainable_layers?: number | null;
  /** The trained layers lie in equal steps, as LLaMA Pro adds them. @default false */
  use_llama_pro?: boolean | null;
  /**
   * So many layers are added as the model is loaded, in equal steps, and nothing else is trained (ms-swift). Unit:
   * layers. @default 0
   */
  llama_pro_new_blocks?: number | null;
  /**
   * Which modules of the trained layers are trained. Not modelled: Parts of the trained layers are not modelled; name
   * what is frozen with "freeze" instead. @default "all"
   */
  freeze_trainable_modules?: "all" | null;
  /**
   * So many layers are trained at a time, drawn anew every few steps, and all that lies outside the layers. Unit:
   * layers. @default 0
   */
  lisa_layers?: number | null;
  /** Where only what is trained was cast: LLaMA-Factory loads bf16 and makes trained weights fp32. */
  frozen_dtype?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** What is learned; it chooses the head where `architecture` does not. @default "sft" */
  task?: "sft" | "pretrain" | "classification" | "token_classification" | "question_answering" | "embedding" | "reranker" | "generative_reranker" | "reward" | "seq2seq" | "vision" | "vlm" | "diffusion" | "dpo" | "kto" | "orpo" | "simpo" | "cpo" | "grpo" | "rloo" | "ppo" | "gkd" | "prm" | "bco" | "tpo" | "online_dpo" | "text_classification" | "sequence_classification" | "image_classification" | "sentence-transformers:pair" | "sentence-transformers:pair_class" | "sentence-transformers:pair_score" | "sentence-transformers:qa" | null;
  /**
   * Texts that a sample compares: 2 of a pair, 3 of a triplet; of a reranker (1 unless stated) the documents that stand
   * beside a query, each in a row of the batch. Unit: texts. @default 2
   */
  texts_per_sample?: number | null;
  /**
   * The vision tower is not trained, nor adapted (ms-swift freeze_vit, LLaMA-Factory freeze_vision_tower). @default
   * false
   */
  freeze_vision?: boolean | null;
  /** What lies between the vision tower and the language model is not trained, nor adapted. @default false */
  freeze_projector?: boolean | null;
  /** The language model is not trained, nor adapted. @default false */
  freeze_llm?: boolean | null;
  reference_model?: {
    /** Whether the loss compares with a reference on the card. */
    present?: boolean | null;
    /** The reference is the model with its adapter switched off; else a frozen copy. */
    shared_with_adapter?: boolean | null;
    /** The reference's log-probabilities are computed before training (precompute_ref_log_probs). @default false */
    precompute?: boolean | null;
    /** The reference's name; it is taken to have the model's shape. */
    model?: string | null;
    /** Dtype of a copy; it is taken to be the model's. */
    dtype?: string | null;
    /**
     * A copy that waits in host memory. Not modelled: A reference in host memory is not modelled yet. @default false
     */
    offloaded?: false | null;
  } | null;
  /**
   * Catalog id or alias of the model that scores answers, of which PPO's value model is another copy; absent: the model
   * itself with a score in the place of its head (ppo, online_dpo), or functions alone (grpo, rloo).
   */
  reward_model?: string | null;
  /** Its config.json. */
  reward_config?: object | null;
  /** Functions alone score the answers: no reward model is there. @default false */
  reward_functions?: boolean | null;
  /**
   * A model that predicts returns. Not modelled: The value model is taken to be what the reward model is: TRL's scripts
   * load both from reward_model_path. Name that with "reward_model".
   */
  value_model?: null;
  /** Answers that are generated and scored at a time (PPO). Unit: answers. @default 64 */
  local_rollout_forward_batch_size?: number | null;
  /**
   * Catalog id or alias of the model to distil from (gkd; absent: the model itself), or that scores generated answers
   * (grpo; absent: none does).
   */
  teacher_model?: string | null;
  /** Its config.json. */
  teacher_config?: object | null;
  /**
   * The address of a teacher on another machine. Not modelled: A teacher on another machine, of which the likeliest
   * tokens alone come, is not modelled.
   */
  teacher_model_server?: null;
  /** Of its weights; absent: as the student's. */
  teacher_dtype?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** Of the micro-batches, those whose answers the student generates. @default 0.5 */
  lmbda?: number | null;
  /** The teacher generates the others. @default false */
  seq_kd?: boolean | null;
  /**
   * KL coefficient of generated answers: 0, GRPO's default, means no reference model; RLOO's is 0.05. Of distillation
   * 0.5: 0 is the teacher's divergence alone, 1 the student's.
   */
  beta?: number | null;
  rollout?: {
    /** What generates the answers. @default "transformers" */
    engine?: "transformers" | "vllm" | null;
    /** On the card that trains, or elsewhere (vllm_mode). @default "colocate" */
    mode?: "colocate" | "server" | null;
    /** Of the card's memory, which vLLM on it takes. @default 0.3 */
    gpu_memory_utilization?: number | null;
    /** vLLM gives its share back while the model trains. @default false */
    sleep?: boolean | null;
    /** They divide its weights; each gives its share anyhow. Unit: GPUs. @default 1 */
    tensor_parallel?: number | null;
    /**
     * ZeRO-3 gathers all weights at once while the model generates; false: module by module, for each token. @default
     * true
     */
    gather_weights?: boolean | null;
  } | null;
  /** Answers generated for each prompt (GRPO: 8, RLOO: 2 unless stated); a batch counts answers. Unit: answers. */
  num_generations?: number | null;
  /** Micro-batches whose answers are generated together; absent: those of an optimizer step. Unit: micro-batches. */
  steps_per_generation?: number | null;
  /** Answers that all GPUs generate together, in place of steps_per_generation. Unit: answers. */
  generation_batch_size?: number | null;
  /** How often is trained on what was generated. @default 1 */
  num_iterations?: number | null;
  /**
   * Answers are scored by so many layers' states of a frozen model (Axolotl's EBFT); 0: by functions. Unit: layers.
   * @default 0
   */
  feature_layers?: number | null;
  /** Tokens of a prompt; sequence_length counts prompt and answer. Unit: tokens. */
  max_prompt_length?: number | null;
  /**
   * Tokens of an answer (GRPO, RLOO: 256, GKD: 128, PPO: 53, online DPO: 64 unless stated); sequence_length counts
   * prompt and answer. Unit: tokens.
   */
  max_completion_length?: number | null;
  adapter?: {
    /** Which of PEFT's adapters (peft_type). @default "lora" */
    kind?: "lora" | "adalora" | "ia3" | "loha" | "lokr" | "vera" | "oft" | "boft" | "ln_tuning" | "prompt_tuning" | "p_tuning" | "prefix_tuning" | null;
    /** Rank. @default 16 */
    r?: number | null;
    /** AdaLoRA: rank at the start, 12; all memory is taken for it. */
    init_r?: number | null;
    /** AdaLoRA: mean rank at the end; it moves no memory. @default 8 */
    target_r?: number | null;
    /** IA3: those of the targets whose inputs are scaled; none named: PEFT's of this model. */
    feedforward_modules?: string | string[] | null;
    /** LoKr: the left factor is of low rank, too. @default false */
    decompose_both?: boolean | null;
    /** LoKr: rows of the left factor; -1: near the root. @default -1 */
    decompose_factor?: number | null;
    /** Inputs that a block turns; 0: adapter.r says how many. @default 32 */
    oft_block_size?: number | null;
    /** OFT: all blocks of a module are one. @default false */
    block_share?: boolean | null;
    /** OFT: a series takes the place of a solver. @default true */
    use_cayley_neumann?: boolean | null;
    /** OFT: how many terms. @default 5 */
    num_cayley_neumann_terms?: number | null;
    /**
     * OFT: blocks stay near the identity. Not modelled: Constrained OFT is not modelled yet; leave "coft" out. @default
     * false
     */
    coft?: false | null;
    /** Inputs that a block turns; 0: boft_block_num counts. @default 4 */
    boft_block_size?: number | null;
    /** Blocks of each module, where boft_block_size is 0. @default 0 */
    boft_block_num?: number | null;
    /** Tokens that a learned prompt puts before a sample. @default 20 */
    num_virtual_tokens?: number | null;
    /**
     * P-tuning, prefix tuning: width of the network that makes them; null: the model's, of keys that of a token's keys.
     */
    encoder_hidden_size?: number | null;
    /** P-tuning: what makes the tokens. @default "MLP" */
    encoder_reparameterization_type?: "MLP" | null;
    /** Prefix tuning: a small network makes the prefix. @default false */
    prefix_projection?: boolean | null;
    /** Scaling numerator; it moves no memory. @default 32 */
    lora_alpha?: number | null;
    /** Dropout on the input of each adapter. Unit: probability. @default 0.0 */
    lora_dropout?: number | null;
    /**
     * Adapted modules: all-linear, attention, a list of names or their last parts (q_proj,v_proj), as a string a
     * regular expression for the whole name, or auto: PEFT's own for the model type, as adapters beside LoRA have them
     * where none are named. @default "all-linear"
     */
    target_modules?: string | string[] | null;
    /** Modules trained in full beside the adapters, by the ends of their names: lm_head,embed_tokens. @default [] */
    modules_to_save?: string | string[] | null;
    /**
     * Modules that get no adapter, whatever the targets: a list of names or last parts, or an expression. @default []
     */
    exclude_modules?: string | string[] | null;
    /** Ranks that differ, by a name's end or a regular expression for it: {"down_proj": 8}. @default {} */
    rank_pattern?: unknown;
    /** Scalings that differ, by the same patterns; they move no memory. @default {} */
    alpha_pattern?: unknown;
    /** Numbers of the layers that get adapters; only with a list of names. */
    layers_to_transform?: unknown;
    /** Names of the lists whose numbers layers_to_transform means: layers, h. None: any. @default [] */
    layers_pattern?: string | string[] | null;
    /** Biases of the model that are trained too. @default "none" */
    bias?: "none" | "all" | "lora_only" | null;
    /** PEFT's task type: a classifier's head is trained in full. @default "auto" */
    task_type?: "auto" | "CAUSAL_LM" | "SEQ_CLS" | "TOKEN_CLS" | "QUESTION_ANS" | "SEQ_2_SEQ_LM" | "FEATURE_EXTRACTION" | "none" | null;
    /** Scaling by the root of the rank; it moves no memory. @default false */
    use_rslora?: boolean | null;
    /** How the base stores its weights; it moves no memory. @default false */
    fan_in_fan_out?: boolean | null;
    /**
     * How adapters start (true, gaussian, pissa, olora, eva, corda, loftq, orthogonal); training takes the same memory.
     * @default true
     */
    init_lora_weights?: unknown;
    /**
     * Tokens whose embeddings are trained. Not modelled: Training single rows of the token table is not modelled yet;
     * modules_to_save trains all of it.
     */
    trainable_token_indices?: null;
    /** Parameters, rather than modules, that get adapters: experts.gate_up_proj, experts.down_proj. @default [] */
    target_parameters?: string | string[] | null;
    /** Dtype of the adapters' weights; PEFT keeps them in fp32 unless told otherwise. @default "fp32" */
    dtype?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
    /** DoRA: a magnitude vector beside each adapter. @default false */
    use_dora?: boolean | null;
    /** Another name of "adapter.lora_dropout". */
    vera_dropout?: number | null;
  } | null;
  /** axolotl's word for target_modules all-linear. @default false */
  lora_target_linear?: boolean | null;
  quantization?: {
    /** Bits per quantised weight: 4 or 8; of GPTQ and HQQ also 2 and 3. Unit: bits. @default 4 */
    bits?: number | null;
    /** Number format; 8 bits mean int8. @default "nf4" */
    quant_type?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
    /** Block scales are quantised again. @default true */
    double_quant?: boolean | null;
    /**
     * Also experts whose weights are one parameter are packed, and unpacked as a layer runs: Axolotl's. @default false
     */
    moe_experts?: boolean | null;
    /**
     * Elements that share a scale; -1: a whole row (GPTQ, AWQ). Of GPTQ and AWQ 128 unless stated. Unit: elements.
     * @default 64
     */
    group_size?: number | null;
    /**
     * GPTQ quantised columns in the order of their activations. AutoGPTQ multiplies by such weights in other steps.
     * @default false
     */
    desc_act?: boolean | null;
    /** Elements of packed weights, which GPUs divide and gather. @default "auto" */
    quant_storage?: "auto" | "uint8" | "bf16" | "fp16" | "fp32" | "bfloat16" | "float16" | "float32" | null;
    /** Whether peft.prepare_model_for_kbit_training ran: it upcasts what is not quantised. @default false */
    prepare_kbit?: "false" | false | "true" | true | "norms_only" | "norms_back" | null;
    /** Another name of "quantization.quant_type". */
    method?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
    /** Another name of "quantization.quant_type". */
    quant_method?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
  } | null;
  /** from_pretrained(load_in_4bit=True): what method qlora means. @default false */
  load_in_4bit?: boolean | null;
  /** from_pretrained(load_in_8bit=True): method qlora with 8 bits. @default false */
  load_in_8bit?: boolean | null;
  /** Recipe of mixed precision; or an object with the keys below. @default "auto" */
  precision?: "auto" | "bf16" | "fp16" | "fp32" | "pure_bf16" | "bf16_amp" | "fp16_bf16_amp" | "amp_bf16" | "amp_fp16" | "pure_fp16" | "deepspeed_bf16" | "deepspeed_fp16" | "megatron_bf16" | "fsdp_bf16" | null | {
    /** In the object form: the recipe to start from. */
    recipe?: "fp32" | "pure_bf16" | "bf16_amp" | "fp16_bf16_amp" | "amp_bf16" | "amp_fp16" | "pure_fp16" | "deepspeed_bf16" | "deepspeed_fp16" | "megatron_bf16" | "fsdp_bf16" | null;
    /** Dtype of the weights; gradients and optimizer states follow unless stated. */
    weights?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
    /** Dtype of torch.autocast, or none. */
    autocast?: "none" | "bf16" | "fp16" | "bfloat16" | "float16" | null;
    /** Dtype of the gradients. */
    gradients?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
    /** Dtype of a second copy of the weights that the optimizer updates, or none. */
    master_weights?: "none" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
    /** Dtype of the optimizer's moments, where the optimizer does not decide for itself. */
    optimizer_states?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  } | null;
  /**
   * torchao's convert_to_float8_training, without torch.compile, of every linear layer but the head. @default "none"
   */
  float8?: "none" | "tensorwise" | "rowwise" | null | {
    /** Another name of "float8". */
    recipe_name?: "none" | "tensorwise" | "rowwise" | null;
  } | null;
  qat?: {
    /**
     * Quantisation-aware training by torchao, without torch.compile: what linear layers' weights are rounded to.
     * @default "none"
     */
    weight_dtype?: "none" | "int4" | "fp8" | "mxfp4" | "nvfp4" | "float8_e4m3fn" | "float8" | null;
    /** What linear layers' inputs are rounded to. @default "none" */
    activation_dtype?: "none" | "int8" | "fp8" | "mxfp4" | "nvfp4" | "float8_e4m3fn" | "float8" | null;
    /** Elements of an int4 weight that share a scale. @default 32 */
    group_size?: number | null;
    /** The token table is rounded as weights are. @default false */
    quantize_embedding?: boolean | null;
  } | null;
  /** from_pretrained's dtype, where precision is auto. @default "auto" */
  dtype?: "auto" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** TrainingArguments.bf16, where precision is auto: bf16 autocast, or none when false. */
  bf16?: boolean | null;
  /** TrainingArguments.fp16, where precision is auto: fp16 autocast with loss scaling. */
  fp16?: boolean | null;
  /** Samples per forward pass on one GPU (per_device_train_batch_size). Unit: samples. @default 1 */
  micro_batch_size?: number | null;
  /** Tokens per sample, padding included; 0 for models of pictures alone. Unit: tokens. @default 2048 */
  sequence_length?: number | null;
  /** Target length of encoder-decoder models; sequence_length when absent. Unit: tokens. */
  decoder_sequence_length?: number | null;
  /** Micro-batches per optimizer step. Unit: micro-batches. @default 1 */
  gradient_accumulation_steps?: number | null;
  /**
   * An attention mask with padding is passed: scaled_dot_product_attention then avoids its flash kernel. @default false
   */
  padding?: boolean | null;
  /** Several samples are packed into each row of sequence_length. @default false */
  packing?: boolean | null;
  /** Pictures in each sample of a model that sees; sequence_length includes their tokens. Unit: images. @default 0 */
  images_per_sample?: number | null;
  /**
   * Of one video in each sample, in place of images; image_size is a frame's, sequence_length includes their tokens.
   * Unit: frames. @default 0
   */
  video_frames?: number | null;
  /** Pixels per side, [height, width] or "896x1344" of them; the model's own size where absent. Unit: pixels. */
  image_size?: unknown;
  /** The VAE of a diffusion model, on the card or not. @default "cached" */
  vae?: "cached" | "mixed_precision" | "fp32" | null;
  /** Those of a diffusion model (CLIP, T5, Mistral, Qwen), on the card or not. @default "cached" */
  text_encoders?: "cached" | "frozen" | "trained" | null;
  /**
   * Pieces that each picture is cut into, the whole included; 0: one, or as the model cuts that size. Unit: tiles.
   * @default 0
   */
  image_tiles?: number | null;
  /** Objects to find in an image. Not modelled: Models that find objects are not modelled yet. */
  boxes_per_image?: null;
  /** Length of the recordings that a model of speech hears; Whisper pads all to its window. Unit: seconds. */
  audio_seconds?: number | null;
  /**
   * Samples of a batch joined into one row, without padding; all are taken to be sequence_length long. @default false
   */
  padding_free?: boolean | null;
  /** attn_implementation. @default "sdpa" */
  attention?: "eager" | "sdpa" | "flash_attention_2" | "flash_attention_3" | "xformers" | "math" | "fa2" | "flash_attn" | "flash_attn_2" | "flash_attention" | "kernels_community/flash_attn2" | "kernels_community/flash_attn" | "true" | true | "fa3" | "flash_attn_3" | "kernels_community/flash_attn3" | "kernels_community/vllm_flash_attn3" | "auto" | "false" | false | "disabled" | "flex_attention" | "flash_attention_4" | null;
  /** What is run again in backward instead of being kept; or an object with one of the keys below. @default "none" */
  gradient_checkpointing?: "none" | "full" | "offload" | "true" | true | "false" | false | "unsloth" | null | {
    /** Checkpoint every k-th layer. Unit: layers. */
    every?: number | null;
    /** Run again only these parts of each layer. */
    selective?: "core_attn" | "op" | null | ("core_attn" | "op")[];
  } | null;
  /** torch.utils.checkpoint's older, re-entrant form; transformers 4's default, not version 5's. */
  use_reentrant?: boolean | null;
  /** What autograd saves waits in host memory (TRL's OffloadActivations, with streams). @default false */
  activation_offloading?: boolean | null;
  /** Feed-forward layers over pieces of the sequence. Not modelled: Not modelled yet. */
  tiled_mlp?: null;
  /** Hugging Face's `optim`. @default "auto" */
  optimizer?: "auto" | "adafactor" | "adagrad" | "adam_mini" | "adamw_8bit" | "adamw_bnb_8bit" | "bitsandbytes.optim.AdamW8bit" | "paged_adamw_8bit" | "bitsandbytes.optim.PagedAdamW8bit" | "adamw_bnb_32bit" | "adamw_32bit" | "paged_adamw_32bit" | "paged_adamw" | "bitsandbytes.optim.PagedAdamW" | "adamw_hf" | "adopt_adamw" | "adamw_anyprecision" | "adamw_torch" | "adamw" | "adam" | "torch.optim.AdamW" | "adamw_torch_fused" | "ao_adamw_fp8" | "adamw_torch_8bit" | "ao_adamw_8bit" | "adamw_torch_4bit" | "ao_adamw_4bit" | "ademamix" | "ademamix_8bit" | "paged_ademamix_32bit" | "paged_ademamix_8bit" | "apollo_adamw" | "apollo_adamw_layerwise" | "badam" | "came_pytorch" | "dion" | "galore_adamw" | "galore_adamw_8bit" | "galore_adafactor" | "galore_adamw_layerwise" | "galore_adamw_8bit_layerwise" | "q_galore_adamw8bit" | "grokadamw" | "lion_32bit" | "lion" | "lion_8bit" | "paged_lion_32bit" | "paged_lion_8bit" | "lomo" | "adalomo" | "lorafa" | "muon" | "prodigy" | "rmsprop" | "rmsprop_bnb_32bit" | "rmsprop_bnb" | "rmsprop_bnb_8bit" | "schedule_free_adamw" | "schedule_free_radam" | "schedule_free_sgd" | "sgd" | "torch.optim.SGD" | "sgd_momentum" | "stable_adamw" | "optimi_adamw" | null;
  /** Hugging Face's `optim_args`: of GaLore and APOLLO "rank=128" counts, and "proj=svd". */
  optim_args?: string | null;
  /**
   * Linear layers whose gradients GaLore and APOLLO project: all-linear, a list of parts of their names (attn,mlp), or
   * as a string a regular expression for the whole name. @default "all-linear"
   */
  optim_target_modules?: string | string[] | null;
  /** Gradient clipping; 0 for none. @default 1.0 */
  max_grad_norm?: number | null;
  /** Each parameter is updated, and its gradient freed, as soon as the gradient exists. @default false */
  optimizer_in_backward?: boolean | null;
  /** How the loss is computed from the last hidden state. @default "auto" */
  loss?: "auto" | "default" | "liger" | "chunked" | "chunked_nll" | "nll" | "cut_cross_entropy" | "mean_square" | null;
  /** Liger kernels in use, besides the loss. @default [] */
  liger?: "rms_norm" | "swiglu" | "rope" | "layer_norm" | null | ("rms_norm" | "swiglu" | "rope" | "layer_norm")[];
  /** Axolotl's functions that take the place of PEFT's LoRA layers, several of them at a time. @default ["auto"] */
  lora_kernels?: "auto" | "none" | "mlp" | "qkv" | "o" | "embedding" | null | ("auto" | "none" | "mlp" | "qkv" | "o" | "embedding")[];
  /** Axolotl's key for a word of `lora_kernels`. @default false */
  lora_mlp_kernel?: boolean | null;
  /** Axolotl's key for a word of `lora_kernels`. @default false */
  lora_qkv_kernel?: boolean | null;
  /** Axolotl's key for a word of `lora_kernels`. @default false */
  lora_o_kernel?: boolean | null;
  /** Axolotl's key for a word of `lora_kernels`. @default false */
  lora_embedding_kernel?: boolean | null;
  /**
   * Axolotl's kernel that norms and turns q and k at once: Qwen3's and Qwen3.5's, and always Gemma 4's. @default false
   */
  fused_attn_kernel?: boolean | null;
  /** torch.compile. @default "none" */
  compile?: "none" | "per_block" | "full" | "true" | true | "false" | false | null;
  /** TrainingArguments.use_liger_kernel: the fused loss with rms_norm, swiglu and rope. @default false */
  use_liger_kernel?: boolean | null;
  /** How layers run that keep a state instead of attending. @default "fused" */
  kernels?: "fused" | "fla" | "mamba_ssm" | "torch" | "torch-slow" | null;
  /** axolotl's key for a word of `liger` or `loss`. @default false */
  liger_rms_norm?: boolean | null;
  /** axolotl's key for a word of `liger` or `loss`. @default false */
  liger_glu_activation?: boolean | null;
  /** axolotl's key for a word of `liger` or `loss`. @default false */
  liger_rope?: boolean | null;
  /** axolotl's key for a word of `liger` or `loss`. @default false */
  liger_fused_linear_cross_entropy?: boolean | null;
  /** axolotl's key for a word of `liger` or `loss`. @default false */
  cut_cross_entropy?: boolean | null;
  /** A hand-written loop still holds the model's outputs (the logits) during backward; the Trainer does not. */
  keep_outputs?: boolean | null;
  /** accelerate converts the outputs to fp32 under autocast; a loop of one's own does not. */
  outputs_to_fp32?: boolean | null;
  /** zero_grad frees the gradients (torch 2.0 and later). @default true */
  zero_grad_to_none?: boolean | null;
  evaluation?: {
    /**
     * Samples per forward of evaluation during training (per_device_eval_batch_size); absent: it is not counted. Unit:
     * samples.
     */
    micro_batch_size?: number | null;
    /**
     * compute_metrics without eval_accumulation_steps: logits of all batches stay on the card until the end. @default
     * false
     */
    keep_logits?: boolean | null;
    /** Of the evaluation set, where its logits stay. Unit: samples. */
    samples?: number | null;
    /**
     * predict_with_generate: the model generates from each batch before its loss is taken; keys and values stay.
     * @default false
     */
    generate?: boolean | null;
    /** For each row (generation_max_length); absent: as many as a row of the labels has. Unit: tokens. */
    max_new_tokens?: number | null;
    /** Rows that generation keeps for each sample. Unit: beams. @default 1 */
    num_beams?: number | null;
  } | null;
  /**
   * The share of a label that the Trainer's LabelSmoother gives to all words: the loss is then made of fp32 logits
   * outside of the model. DPO's own label_smoothing takes no memory. @default 0.0
   */
  label_smoothing_factor?: number | null;
  /** Noise on the token table's rows (transformers' Trainer); 0: none. */
  neftune_noise_alpha?: number | null;
  parallelism?: {
    /** GPUs that each train on other rows: DistributedDataParallel, or sharded as below. Unit: GPUs. @default 1 */
    data?: number | null;
    /** Who runs data-parallel GPUs. @default "ddp" */
    data_parallel?: "ddp" | "dp" | null;
    ddp?: {
      /** DDP's gradients are views of its buckets instead of copies beside them. @default false */
      gradient_as_bucket_view?: boolean | null;
      /** MiB of gradients that DDP reduces together. Unit: MiB. @default 25 */
      bucket_cap_mb?: number | null;
      /**
       * DDP walks the graph for parameters without a gradient, as the Trainer has it; of no effect on memory. @default
       * false
       */
      find_unused?: boolean | null;
      /** The graph is the same in each step; of no effect on memory. @default false */
      static_graph?: boolean | null;
    } | null;
    /**
     * GPUs that divide heads and feed-forward of every layer: transformers' tp_plan; with the two below torch's
     * parallelize_module, which divides the vocabulary, too. Unit: GPUs. @default 1
     */
    tensor?: number | null;
    /** GPUs that have some of the layers each: torch.distributed.pipelining. Unit: GPUs. @default 1 */
    pipeline?: number | null;
    /**
     * GPUs on which device_map="auto" lays the layers, one after another, in one process (naive). Unit: GPUs. @default
     * 1
     */
    device_map?: number | null;
    /** GPUs that have a part of every sequence each: Megatron-Core's. Unit: GPUs. @default 1 */
    context?: number | null;
    /**
     * GPUs that divide the experts of a mixture: some of the data-parallel ones under Megatron-Core and torchtitan;
     * transformers' own share a batch. Unit: GPUs. @default 1
     */
    expert?: number | null;
    /** GPUs that divide each expert of a mixture: Megatron-Core's; else as many as parallelism.tensor. Unit: GPUs. */
    expert_tensor?: number | null;
    /** Outside attention and feed-forward tensor-parallel GPUs have a part of the sequence each. @default false */
    sequence_parallel?: boolean | null;
    /** DeepSpeed: 1 divides optimizer states and master weights, 2 gradients too, 3 weights too. @default 0 */
    zero_stage?: number | null;
    /** Fully sharded data parallelism. @default "none" */
    fsdp?: "none" | "fsdp2" | "full_shard" | "shard_grad_op" | "hybrid_shard" | null;
    /** Stretches of layers that each GPU of a pipeline has (interleaved). @default 1 */
    virtual_pipeline?: number | null;
    /** Micro-batches of micro_batch_size rows that a pipeline's step runs; by default as many as it has stages. */
    num_micro_batches?: number | null;
    /** GPUs that share a host: what each keeps in host memory is counted so often. Unit: GPUs. @default 8 */
    gpus_per_node?: number | null;
    fsdp_mixed_precision?: {
      /** Dtype of gathered weights. @default "auto" */
      param?: "auto" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
      /** Dtype in which gradients are reduced. @default "auto" */
      reduce?: "auto" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
    } | null;
    /**
     * Weights are let go after forward: true, false, or the number of parts that they are cut into (FSDP 2). @default
     * true
     */
    reshard_after_forward?: unknown;
    fsdp_options?: {
      /**
       * Which unit holds what lies outside the layers (FSDP 2). Under transformers, TRL, axolotl, LLaMA-Factory,
       * ms-swift and accelerate it is "accelerate" unless it is stated ("resharded_root" with transformers 4), under
       * torchtitan "separate". @default "root"
       */
      groups?: "root" | "separate" | "accelerate" | "resharded_root" | null;
      /** The last layer's weights are let go after forward, too (FSDP 2); torchtitan keeps them. @default true */
      reshard_last?: boolean | null;
      /**
       * With gradient accumulation only the last micro-step reduces gradients; until then they are kept whole. @default
       * false
       */
      no_sync?: boolean | null;
      /** FSDP 1: the optimizer sees parameters, not one flat tensor for each unit. @default true */
      use_orig_params?: boolean | null;
      /** Of a node; else each does, into host memory. @default false */
      cpu_ram_efficient_loading?: boolean | null;
      /** FSDP 1: the host waits where more than two all-gathers are under way; moves no allocation. @default true */
      limit_all_gathers?: boolean | null;
      /** FSDP 1: when the weights that backward needs next are gathered. @default "backward_pre" */
      backward_prefetch?: "backward_pre" | "backward_post" | "none" | "null" | null;
      /** FSDP 1: the next layer's weights are gathered before a layer runs. @default false */
      forward_prefetch?: boolean | null;
      /** Which modules are units (FSDP 1). @default "auto" */
      wrap?: "auto" | "layers" | "peft" | null;
      /** Groups of GPUs that hold all shards each (HSDP); parallelism.data counts all GPUs. @default 1 */
      replicate?: number | null;
    } | null;
    /** Layers of each pipeline stage, as a list; else they are cut as evenly as they come. */
    pipeline_layout?: unknown;
    zero?: {
      /**
       * Sizes follow the model's width, as the Trainer resolves "auto"; else they are DeepSpeed's own. @default false
       */
      hf_auto?: boolean | null;
      /** Two buckets for gradients instead of one. @default true */
      overlap_comm?: boolean | null;
      /**
       * 0.19.8; with transformers 4 one before 0.19.3 is taken, which lets go of frozen weights behind re-entrant
       * checkpoints.
       */
      version?: string | number | null;
      /** Elements of a bucket of gradients. Unit: elements. */
      reduce_bucket_size?: number | null | "auto";
      /** Elements of weights that are gathered ahead. Unit: elements. */
      stage3_prefetch_bucket_size?: number | null | "auto";
      /** Parameters of fewer elements stay whole. Unit: elements. */
      stage3_param_persistence_threshold?: number | null | "auto";
      /** Elements that may be whole at a time. Unit: elements. */
      stage3_max_live_parameters?: number | null | "auto";
      /** What is used again within so many elements stays whole. Unit: elements. */
      stage3_max_reuse_distance?: number | null | "auto";
      /** Elements of parts that stage 3 steps together. Unit: elements. */
      sub_group_size?: number | null | "auto";
      /** Gradients are copied into buckets. @default true */
      contiguous_gradients?: boolean | null;
    } | null;
    /**
     * Tensor-parallel GPUs take the loss of the logits that each of them has, without gathering them. @default false
     */
    loss_parallel?: boolean | null;
    /** In which order a pipeline runs its micro-batches. @default "1f1b" */
    pipeline_schedule?: "1f1b" | "gpipe" | "interleaved" | "zero_bubble" | "zbv" | null;
    /**
     * The GPU that the answer is about: else the worst of a pipeline, and of ZeRO-1 and -2 the one with the token
     * table.
     */
    rank?: number | null;
  } | null;
  /**
   * FSDP in the words of TrainingArguments. Not modelled: Of jobs on several GPUs data, tensor and pipeline parallelism
   * are modelled so far (parallelism.data with fsdp or zero_stage, .tensor, .pipeline).
   */
  fsdp?: null;
  moe?: {
    /** How experts are computed. @default "default" */
    implementation?: "default" | "grouped_mm" | "batched_mm" | "eager" | "ktransformers" | "ktransformers_int8" | null;
    /**
     * Tokens that an expert accepts, relative to an even split. Not modelled: transformers drops no tokens: there is no
     * capacity.
     */
    capacity_factor?: null;
    /**
     * Tokens of the busiest expert, relative to an even split: a stated assumption, because routing depends on the
     * data. It moves loops over experts; grouped and batched products need the same whatever the routing. @default 1.0
     */
    load_imbalance?: number | null;
  } | null;
  offload?: {
    /** Where optimizer states live: on the host with FSDP's CPUOffloadPolicy. @default "none" */
    optimizer?: "none" | "cpu" | "nvme" | null;
    /** Where weights live. @default "none" */
    parameters?: "none" | "cpu" | "nvme" | null;
    /** Where gradients live. @default "none" */
    gradients?: "none" | "cpu" | null;
    /**
     * Where saved activations live: activation_offloading in other words; see also gradient_checkpointing offload.
     * @default "none"
     */
    activations?: "none" | "cpu" | null;
    /** Share of the optimizer states that is offloaded; of no effect without offloading. @default 1.0 */
    optimizer_fraction?: number | null;
    /** What DeepSpeed offloads is page-locked. @default true */
    pin_memory?: boolean | null;
    /** In host memory, each of a sub-group's fp32 elements: offload_optimizer.buffer_count. @default 4 */
    optimizer_buffer_count?: number | null;
    /** In host memory: offload_param.buffer_count. @default 5 */
    parameters_buffer_count?: number | null;
    /** Of each: offload_param.buffer_size. Unit: elements. @default 100000000 */
    parameters_buffer_size?: number | null;
    /**
     * Of each GPU's part, which the disk does not get: offload_param.max_in_cpu. Unit: elements. @default 1000000000
     */
    max_in_cpu?: number | null;
  } | null;
  framework?: {
    /** Who runs the step: its defaults hold where nothing is stated. @default "transformers" */
    name?: "transformers" | "pytorch" | "accelerate" | "trl" | "axolotl" | "llama_factory" | "llama_factory_v1" | "ms_swift" | "autotrain" | "peft" | "llamafactory" | "llamafactory_v1" | "swift" | "megatron" | "megatron-lm" | "nemo" | "megatron-deepspeed" | "galvatron" | "hetu-galvatron" | "torchtune" | "torchtitan" | "litgpt" | "nemo-automodel" | "automodel" | "unsloth" | "sd_scripts" | "sd-scripts" | "kohya" | "kohya_ss" | null;
    /**
     * Release of transformers beneath it (5.24, 5.12, 4.46), of torchtitan (0.2.0) or Unsloth (2026.10.9), or a date
     * (2026-07): defaults and copies of the logits depend on it. @default "5.24"
     */
    version?: string | number | null;
    /**
     * Release of PEFT (0.18, 0.21): from 0.20 on what names the experts of a mixture, all-linear among it, adapts their
     * weights where transformers 5 has them in one parameter. @default "0.21"
     */
    peft?: string | number | null;
  } | null;
  megatron?: {
    /** Whose layers Megatron-Core builds. @default "transformer_engine" */
    transformer_impl?: "transformer_engine" | "local" | null;
    /** What computes Megatron-Core's cross entropy. @default "none" */
    cross_entropy_fusion_impl?: "none" | "native" | "te" | null;
    /**
     * Megatron-Core's products of weights' gradients add to the fp32 buffer; off with
     * --no-gradient-accumulation-fusion. @default true
     */
    gradient_accumulation_fusion?: boolean | null;
  } | null;
  /**
   * CUBLAS_WORKSPACE_CONFIG=:4096:8, which torch.use_deterministic_algorithms wants: 32 MiB a handle on any card.
   * @default false
   */
  deterministic?: boolean | null;
  allocator?: {
    /** PYTORCH_ALLOC_CONF=expandable_segments:True. @default false */
    expandable_segments?: boolean | null;
  } | null;
  /**
   * What the job does besides that moves memory and is not modelled, in words of its own: the answer says so and its
   * range is wider. @default []
   */
  not_counted?: string | string[] | null;
  overrides?: {
    /** Memory lost to fragmentation, taken off what a card can give. Unit: GiB. */
    fragmentation_gib?: number | null;
    /** Memory that others take on the card: other processes, a desktop, NCCL. Unit: GiB. */
    misc_overhead_gib?: number | null;
    /** CUDA context with its kernels, instead of the catalog's figure. Unit: GiB. */
    cuda_context_gib?: number | null;
  } | null;
  /** The document that `calibrate` returns: factors fitted to measurements of your own. */
  calibration?: object | null;
  /**
   * Card to check: a catalog name or alias, {"memory_gib": 24} as torch sees it or {"vram_gb": 24} as on the box (on
   * the command line 24GiB and --vram-gb 24; repeatable).
   */
  gpu?: Gpu | null;
  /** Several cards to check. @default [] */
  gpus?: Gpu[] | null;
  /** Another name of "model". */
  model_name_or_path?: string | null;
  /** Another name of "model". */
  base_model?: string | null;
  /** Another name of "model". */
  model_id?: string | null;
  /** Another name of "method". */
  finetuning_type?: "full" | "lora" | "qlora" | "freeze" | "oft" | "qoft" | "boft" | "ia3" | "adalora" | "loha" | "lokr" | "vera" | "ln_tuning" | "prompt_tuning" | "p_tuning" | null;
  /** Another name of "method". */
  train_type?: "full" | "lora" | "qlora" | "freeze" | "oft" | "qoft" | "boft" | "ia3" | "adalora" | "loha" | "lokr" | "vera" | "ln_tuning" | "prompt_tuning" | "p_tuning" | null;
  /** Another name of "llama_pro_new_blocks". */
  llamapro_num_new_blocks?: number | null;
  /** Another name of "lisa_layers". */
  lisa_activated_layers?: number | null;
  /** Another name of "lisa_layers". */
  lisa_n_layers?: number | null;
  /** Another name of "freeze_vision". */
  freeze_vit?: boolean | null;
  /** Another name of "freeze_vision". */
  freeze_vision_tower?: boolean | null;
  /** Another name of "freeze_projector". */
  freeze_aligner?: boolean | null;
  /** Another name of "freeze_projector". */
  freeze_multi_modal_projector?: boolean | null;
  /** Another name of "freeze_llm". */
  freeze_language_model?: boolean | null;
  /** Another name of "reference_model.precompute". */
  precompute_ref_log_probs?: boolean | null;
  /** Another name of "reward_model". */
  reward_model_path?: string | null;
  /** Another name of "teacher_model". */
  teacher_model_name_or_path?: string | null;
  /** Another name of "rollout.mode". */
  vllm_mode?: "colocate" | "server" | null;
  /** Another name of "rollout.gpu_memory_utilization". */
  vllm_gpu_memory_utilization?: number | null;
  /** Another name of "rollout.sleep". */
  vllm_enable_sleep_mode?: boolean | null;
  /** Another name of "rollout.tensor_parallel". */
  vllm_tensor_parallel_size?: number | null;
  /** Another name of "rollout.gather_weights". */
  ds3_gather_for_generation?: boolean | null;
  ebft?: {
    /** Another name of "feature_layers". */
    feature_layers?: number | null;
  } | null;
  /** Another name of "max_completion_length". */
  response_length?: number | null;
  /** Another name of "adapter.kind". */
  peft_type?: "lora" | "adalora" | "ia3" | "loha" | "lokr" | "vera" | "oft" | "boft" | "ln_tuning" | "prompt_tuning" | "p_tuning" | "prefix_tuning" | null;
  /** Another name of "adapter.r". */
  lora_r?: number | null;
  /** Another name of "adapter.r". */
  lora_rank?: number | null;
  /** Another name of "adapter.lora_alpha". */
  lora_alpha?: number | null;
  /** Another name of "adapter.lora_dropout". */
  lora_dropout?: number | null;
  /** Another name of "adapter.target_modules". */
  lora_target_modules?: string | string[] | null;
  /** Another name of "adapter.target_modules". */
  target_modules?: string | string[] | null;
  /** Another name of "adapter.target_modules". */
  lora_target?: string | string[] | null;
  /** Another name of "adapter.modules_to_save". */
  lora_modules_to_save?: string | string[] | null;
  /** Another name of "adapter.modules_to_save". */
  modules_to_save?: string | string[] | null;
  /** Another name of "adapter.modules_to_save". */
  additional_target?: string | string[] | null;
  /** Another name of "adapter.dtype". */
  lora_dtype?: "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** Another name of "adapter.use_dora". */
  use_dora?: boolean | null;
  /** Another name of "adapter.use_dora". */
  peft_use_dora?: boolean | null;
  /** Another name of "quantization.bits". */
  quantization_bit?: number | null;
  /** Another name of "quantization.bits". */
  quant_bits?: number | null;
  /** Another name of "quantization.quant_type". */
  bnb_4bit_quant_type?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
  /** Another name of "quantization.quant_type". */
  quantization_type?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
  /** Another name of "quantization.quant_type". */
  quant_method?: "nf4" | "fp4" | "int8" | "gptq" | "awq" | "hqq" | "torchao_nf4" | "quanto" | "torchao" | "aqlm" | "eetq" | null;
  /** Another name of "quantization.double_quant". */
  bnb_4bit_use_double_quant?: boolean | null;
  /** Another name of "quantization.double_quant". */
  double_quantization?: boolean | null;
  /** Another name of "quantization.double_quant". */
  use_nested_quant?: boolean | null;
  /** Another name of "quantization.moe_experts". */
  quantize_moe_experts?: boolean | null;
  /** Another name of "quantization.quant_storage". */
  bnb_4bit_quant_storage?: "auto" | "uint8" | "bf16" | "fp16" | "fp32" | "bfloat16" | "float16" | "float32" | null;
  /** Another name of "float8". */
  fp8_recipe?: "none" | "tensorwise" | "rowwise" | null;
  /** Another name of "dtype". */
  torch_dtype?: "auto" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** Another name of "dtype". */
  model_dtype?: "auto" | "fp32" | "bf16" | "fp16" | "float32" | "bfloat16" | "float16" | null;
  /** Another name of "micro_batch_size". */
  per_device_train_batch_size?: number | null;
  /** Another name of "micro_batch_size". */
  per_gpu_train_batch_size?: number | null;
  /** Another name of "micro_batch_size". */
  train_micro_batch_size_per_gpu?: number | null;
  /** Another name of "sequence_length". */
  max_seq_length?: number | null;
  /** Another name of "sequence_length". */
  max_length?: number | null;
  /** Another name of "sequence_length". */
  cutoff_len?: number | null;
  /** Another name of "sequence_length". */
  sequence_len?: number | null;
  /** Another name of "sequence_length". */
  max_seq_len?: number | null;
  /** Another name of "sequence_length". */
  seq_length?: number | null;
  /** Another name of "sequence_length". */
  model_max_length?: number | null;
  /** Another name of "sequence_length". */
  block_size?: number | null;
  /** Another name of "sequence_length". */
  context_length?: number | null;
  /** Another name of "packing". */
  sample_packing?: boolean | null;
  /** Another name of "packing". */
  pack_to_max_length?: boolean | null;
  /** Another name of "attention". */
  attn_implementation?: "eager" | "sdpa" | "flash_attention_2" | "flash_attention_3" | "xformers" | "math" | "fa2" | "flash_attn" | "flash_attn_2" | "flash_attention" | "kernels_community/flash_attn2" | "kernels_community/flash_attn" | "true" | true | "fa3" | "flash_attn_3" | "kernels_community/flash_attn3" | "kernels_community/vllm_flash_attn3" | "auto" | "false" | false | "disabled" | "flex_attention" | "flash_attention_4" | null;
  /** Another name of "attention". */
  attn_impl?: "eager" | "sdpa" | "flash_attention_2" | "flash_attention_3" | "xformers" | "math" | "fa2" | "flash_attn" | "flash_attn_2" | "flash_attention" | "kernels_community/flash_attn2" | "kernels_community/flash_attn" | "true" | true | "fa3" | "flash_attn_3" | "kernels_community/flash_attn3" | "kernels_community/vllm_flash_attn3" | "auto" | "false" | false | "disabled" | "flex_attention" | "flash_attention_4" | null;
  /** Another name of "attention". */
  flash_attn?: "eager" | "sdpa" | "flash_attention_2" | "flash_attention_3" | "xformers" | "math" | "fa2" | "flash_attn" | "flash_attn_2" | "flash_attention" | "kernels_community/flash_attn2" | "kernels_community/flash_attn" | "true" | true | "fa3" | "flash_attn_3" | "kernels_community/flash_attn3" | "kernels_community/vllm_flash_attn3" | "auto" | "false" | false | "disabled" | "flex_attention" | "flash_attention_4" | null;
  /** Another name of "attention". */
  flash_attention?: "eager" | "sdpa" | "flash_attention_2" | "flash_attention_3" | "xformers" | "math" | "fa2" | "flash_attn" | "flash_attn_2" | "flash_attention" | "kernels_community/flash_attn2" | "kernels_community/flash_attn" | "true" | true | "fa3" | "flash_attn_3" | "kernels_community/flash_attn3" | "kernels_community/vllm_flash_attn3" | "auto" | "false" | false | "disabled" | "flex_attention" | "flash_attention_4" | null;
  /** Another name of "gradient_checkpointing". */
  use_gradient_checkpointing?: "none" | "full" | "offload" | "true" | true | "false" | false | "unsloth" | null;
  /** Another name of "gradient_checkpointing". */
  activation_checkpointing?: "none" | "full" | "offload" | "true" | true | "false" | false | "unsloth" | null;
  gradient_checkpointing_kwargs?: {
    /** Another name of "use_reentrant". */
    use_reentrant?: boolean | null;
  } | null;
  activation_checkpointing_kwargs?: {
    /** Another name of "use_reentrant". */
    use_reentrant?: boolean | null;
  } | null;
  /** Another name of "use_reentrant". */
  use_reentrant_gc?: boolean | null;
  /** Another name of "optimizer". */
  optim?: "auto" | "adafactor" | "adagrad" | "adam_mini" | "adamw_8bit" | "adamw_bnb_8bit" | "bitsandbytes.optim.AdamW8bit" | "paged_adamw_8bit" | "bitsandbytes.optim.PagedAdamW8bit" | "adamw_bnb_32bit" | "adamw_32bit" | "paged_adamw_32bit" | "paged_adamw" | "bitsandbytes.optim.PagedAdamW" | "adamw_hf" | "adopt_adamw" | "adamw_anyprecision" | "adamw_torch" | "adamw" | "adam" | "torch.optim.AdamW" | "adamw_torch_fused" | "ao_adamw_fp8" | "adamw_torch_8bit" | "ao_adamw_8bit" | "adamw_torch_4bit" | "ao_adamw_4bit" | "ademamix" | "ademamix_8bit" | "paged_ademamix_32bit" | "paged_ademamix_8bit" | "apollo_adamw" | "apollo_adamw_layerwise" | "badam" | "came_pytorch" | "dion" | "galore_adamw" | "galore_adamw_8bit" | "galore_adafactor" | "galore_adamw_layerwise" | "galore_adamw_8bit_layerwise" | "q_galore_adamw8bit" | "grokadamw" | "lion_32bit" | "lion" | "lion_8bit" | "paged_lion_32bit" | "paged_lion_8bit" | "lomo" | "adalomo" | "lorafa" | "muon" | "prodigy" | "rmsprop" | "rmsprop_bnb_32bit" | "rmsprop_bnb" | "rmsprop_bnb_8bit" | "schedule_free_adamw" | "schedule_free_radam" | "schedule_free_sgd" | "sgd" | "torch.optim.SGD" | "sgd_momentum" | "stable_adamw" | "optimi_adamw" | null;
  /** Another name of "max_grad_norm". */
  gradient_clipping?: number | null;
  /** Another name of "compile". */
  torch_compile?: "none" | "per_block" | "full" | "true" | true | "false" | false | null;
  /** Another name of "use_liger_kernel". */
  use_liger?: boolean | null;
  /** Another name of "use_liger_kernel". */
  enable_liger_kernel?: boolean | null;
  /** Another name of "liger_glu_activation". */
  liger_swiglu?: boolean | null;
  /** Another name of "evaluation.micro_batch_size". */
  per_device_eval_batch_size?: number | null;
  /** Another name of "evaluation.micro_batch_size". */
  eval_batch_size?: number | null;
  /** Another name of "evaluation.generate". */
  predict_with_generate?: boolean | null;
  /** Another name of "evaluation.max_new_tokens". */
  generation_max_length?: number | null;
  /** Another name of "evaluation.num_beams". */
  generation_num_beams?: number | null;
  /** Another name of "neftune_noise_alpha". */
  noisy_embedding_alpha?: number | null;
  /** Another name of "parallelism.ddp.gradient_as_bucket_view". */
  ddp_gradient_as_bucket_view?: boolean | null;
  /** Another name of "parallelism.ddp.bucket_cap_mb". */
  ddp_bucket_cap_mb?: number | null;
  /** Another name of "parallelism.ddp.find_unused". */
  ddp_find_unused_parameters?: boolean | null;
  deepspeed?: {
    /** Another name of "parallelism.zero.overlap_comm". */
    overlap_comm?: boolean | null;
    /** Another name of "parallelism.zero.reduce_bucket_size". */
    reduce_bucket_size?: number | null | "auto";
    /** Another name of "parallelism.zero.stage3_prefetch_bucket_size". */
    stage3_prefetch_bucket_size?: number | null | "auto";
    /** Another name of "parallelism.zero.stage3_param_persistence_threshold". */
    stage3_param_persistence_threshold?: number | null | "auto";
    /** Another name of "parallelism.zero.stage3_max_live_parameters". */
    stage3_max_live_parameters?: number | null | "auto";
    /** Another name of "parallelism.zero.stage3_max_reuse_distance". */
    stage3_max_reuse_distance?: number | null | "auto";
    /** Another name of "parallelism.zero.sub_group_size". */
    sub_group_size?: number | null | "auto";
    /** Another name of "parallelism.zero.contiguous_gradients". */
    contiguous_gradients?: boolean | null;
  } | null;
  /** Another name of "moe.implementation". */
  experts_implementation?: "default" | "grouped_mm" | "batched_mm" | "eager" | "ktransformers" | "ktransformers_int8" | null;
  /**
   * Moves no memory of the peak: it weighs losses of preferences; the Trainer's, of words, is label_smoothing_factor.
   */
  label_smoothing?: unknown;
  /**
   * Moves no memory of the peak: it weighs losses of preferences; the Trainer's, of words, is label_smoothing_factor.
   */
  dpo_label_smoothing?: unknown;
  /** Moves no memory of the peak: it changes how matrices are multiplied, not what is kept. */
  tf32?: unknown;
  /** Moves no memory of the peak: the longest batch is asked about. */
  group_by_length?: unknown;
  /** Moves no memory of the peak: the longest batch is asked about. */
  length_column_name?: unknown;
  /** Moves no memory of the peak: the longest batch is asked about. */
  train_sampling_strategy?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  dataloader_num_workers?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  dataloader_pin_memory?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  preprocessing_num_workers?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  save_steps?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  save_strategy?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  save_total_limit?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  saves_per_epoch?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  output_dir?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  logging_steps?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  logging_dir?: unknown;
  /** Moves no memory of the peak: it concerns host memory and files. */
  report_to?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  learning_rate?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  lr_scheduler_type?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  warmup_ratio?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  warmup_steps?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  num_train_epochs?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  num_epochs?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  max_steps?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  weight_decay?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  seed?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  adam_beta1?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  adam_beta2?: unknown;
  /** Moves no memory of the peak: it is a schedule. */
  adam_epsilon?: unknown;
  /** Moves no memory of the peak: parts are gathered into the weights themselves. */
  allgather_bucket_size?: unknown;
  /** Moves no memory of the peak: it is the order in which gradients are divided. */
  round_robin_gradients?: unknown;
  /** Moves no memory of the peak: it is taken to be the dtype of autocast, or of the weights. */
  bnb_4bit_compute_dtype?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  eval_steps?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  eval_strategy?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  evaluation_strategy?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  evals_per_epoch?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  val_set_size?: unknown;
  /** Moves no memory of the peak: evaluation counts where evaluation.micro_batch_size says its batch. */
  val_size?: unknown;
}

/** Of the verb "estimate". */
export interface EstimateRequest extends Job {
  /** Version of this vocabulary. */
  schema?: 1;
  verb?: "estimate" | null;
}

/** Of the verb "fit". */
export interface FitRequest extends Job {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "fit";
  /** Every card of the catalog, beside those that are named; so it is when none is. @default false */
  all_gpus?: boolean | null;
  /** A share of each card, 0.8 for "keep the peak below 80 %": told beside the verdict. */
  rule_of_thumb?: number | null;
  /** How many of each card the job takes, divided among them. @default true */
  fewest?: boolean | null;
}

/** Of the verb "advise". */
export interface AdviseRequest extends Job {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "advise";
  /** Largest micro-batch, sequence and rank that fit. @default true */
  frontiers?: boolean | null;
  /** Largest micro-batch for the sizes that cards are sold in. @default true */
  tiers?: boolean | null;
  /** MemScale's modes, recomputed for this job. @default true */
  modes?: boolean | null;
}

/** Of the verb "map". */
export interface MapRequest extends Job {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "map";
  /** Micro-batch sizes, the rows; powers of two when absent. */
  batches?: number[] | null;
  /** Sequence lengths, the columns; powers of two when absent. */
  sequences?: number[] | null;
  /** Numbers of cards, the rows in place of micro-batch sizes: divided as the job says, else by FSDP 2 or ZeRO. */
  cards?: number[] | null;
  /** Full estimates; false for quick ones, a few thousandths low. Up to 256 cells are exact when it is absent. */
  exact?: boolean | null;
}

/** Of the verb "catalog". */
export interface CatalogRequest {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "catalog";
  /** "models" or "gpus" alone. */
  list?: "models" | "gpus" | null;
  /** Only entries with a name that contains it. @default "" */
  pattern?: string | null;
}

/** Of the verb "describe". */
export interface DescribeRequest {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "describe";
}

/** Of the verb "version". */
export interface VersionRequest {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "version";
}

/** Of the verb "calibrate". */
export interface CalibrateRequest extends Job {
  /** Version of this vocabulary. */
  schema?: 1;
  verb: "calibrate";
  /**
   * What was measured: each the "job" that ran, where it differs from the request's own options, and "allocated_bytes",
   * "reserved_bytes", "device_bytes" or some of them. @default []
   */
  measurements?: ({
    /** How it is called in the answer. */
    name?: string;
    /** What ran: options, over those of the request. */
    job?: object;
    /** torch.cuda.max_memory_allocated(). */
    allocated_bytes?: number | null;
    /** torch.cuda.max_memory_reserved(). */
    reserved_bytes?: number | null;
    /** Of the process, as nvidia-smi shows it. */
    device_bytes?: number | null;
  })[] | null;
  /** Fit a factor on activations, too: for models whose code is not what Tidemark knows. @default false */
  activations?: boolean | null;
}

export type Request =
  | EstimateRequest
  | FitRequest
  | AdviseRequest
  | MapRequest
  | CatalogRequest
  | DescribeRequest
  | VersionRequest
  | CalibrateRequest;

/** Bytes, exact. */
export type Bytes = number;

/** Parameters, modules, tokens. */
export type Count = number;

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

/** An amount and how sure we are of it. */
export interface Range {
  low: Bytes;
  expected: Bytes;
  high: Bytes;
}

export type MaybeRange = Range | null;

export type Category = "weights" | "gradients" | "optimizer_states" | "activations" | "logits_loss" | "workspace" | "communication" | "buffers";

export type Phase = "load" | "forward" | "loss" | "backward" | "reduce" | "optimizer" | "zero_grad" | "evaluation" | "generation" | "scoring";

export type Verdict = "fits" | "tight" | "does_not_fit" | "unknown";

export type Confidence = "exact" | "measured" | "modelled";

export type Dtype = "fp32" | "bf16" | "fp16";

export type DtypeOrNone = "fp32" | "bf16" | "fp16" | "none";

/** Storages made at one place of the program, alive at the peak. */
export interface BreakdownEntry {
  /** "mlp.gate_proj: output" */
  name: string;
  bytes: Bytes;
  /** In symbols: "2·B·S·F × 32". */
  formula: string;
  /** The same with numbers. */
  substituted: string;
  /** Which line of which project does it, with version. */
  source: string;
  confidence: Confidence;
}

export interface BreakdownGroup {
  category: Category;
  bytes: Bytes;
  /** Largest first; they sum to `bytes`. */
  entries: BreakdownEntry[];
}

export interface BytesByCategory {
  weights: Bytes;
  gradients: Bytes;
  optimizer_states: Bytes;
  activations: Bytes;
  logits_loss: Bytes;
  workspace: Bytes;
  communication: Bytes;
  buffers: Bytes;
}

export interface BytesByPhase {
  load: Bytes;
  forward: Bytes;
  loss: Bytes;
  backward: Bytes;
  reduce: Bytes;
  optimizer: Bytes;
  zero_grad: Bytes;
  evaluation?: Bytes;
  generation?: Bytes;
  scoring?: Bytes;
}

/** One labelled moment of the step. */
export interface Instant {
  instant: string;
  phase: Phase;
  total: Bytes;
  bytes: BytesByCategory;
}

/** Dtypes as used. */
export interface Recipe {
  name: string;
  weights: Dtype;
  gradients: Dtype;
  master_weights: DtypeOrNone;
  optimizer_states: Dtype;
  autocast: DtypeOrNone;
  /** Of the adapters and their gradients, where only those are trained. */
  adapters?: Dtype;
}

export interface Host {
  /** Paged and offloaded state. */
  expected: Bytes;
  /** The same in blocks of powers of two, as torch's host allocator gives what is pinned. */
  high: Bytes;
  /** What all processes keep of the model before it is on their GPUs, beyond mapped files. */
  load: Bytes;
}

/** GPUs of a pipeline that are alike. */
export interface RankFigures {
  /** Rank of the first of them. */
  first: number;
  /** Of the last. */
  last: number;
  /** Which the first has: "0-7", "0-7, 16-23". */
  layers: string;
  parameters: Count;
  allocated: Bytes;
  reserved: Bytes;
  /** Of its peak. */
  phase: Phase;
}

/** The moment at which most is allocated. */
export interface Peak {
  phase: Phase;
  /** The module that was running. */
  at: string;
  /** On which GPU. */
  rank: string;
}

export interface ParameterCounts {
  /** Of the model as trained, adapters included. */
  total: Count;
  trainable: Count;
  /** Used for one token. */
  active: Count;
  /** Of the model without adapters. */
  base: Count;
  /** What the catalog's source states; 0 when unknown. */
  published: Count;
  adapted_modules: Count;
  saved_modules: Count;
}

/** Factors that the request states, echoed. */
export interface StatedOverrides {
  fragmentation_gib?: number;
  misc_overhead_gib?: number;
  cuda_context_gib?: number;
}

export interface Estimate {
  /** Catalog id, or the class of a pasted config. */
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
  host: Host;
  peak: Peak;
  /** Most allocated in each phase. */
  phase_peaks: BytesByPhase;
  /** Sums to `allocated.expected`. */
  breakdown: BreakdownGroup[];
  /** In time order. */
  timeline: Instant[];
  /** Where GPUs differ (stages of a pipeline): all of them; the rest of the answer is about one. */
  ranks?: RankFigures[];
  parameters: ParameterCounts;
  recipe: Recipe;
  /** Which kernel the attention really runs. */
  attention_kernel: string;
  overrides: StatedOverrides;
}

/** Whether the job fits one card. */
export interface Fit {
  gpu: string;
  usable_bytes: Bytes;
  verdict: Verdict;
  /** Negative when it does not fit. */
  headroom_bytes: Bytes;
  /** What is needed as a share of what is usable. */
  utilization: number;
  /** Why the verdict is unknown or an estimate. */
  reason?: string;
}

/** What can still be said of a model whose architecture is not modelled: count × bytes. */
export interface PartialEstimate {
  model: string;
  parameters: Count;
  weights: Bytes;
  gradients: Bytes;
  optimizer_states: Bytes;
  recipe: Recipe;
  /** What is missing. */
  note: string;
}

/** Of the verb "estimate". */
export interface EstimateResponse {
  schema: 1;
  /** Version of the engine. */
  engine?: string;
  /** Date of the catalog. */
  catalog?: string;
  /** Absent when an issue is an error. */
  estimate?: Estimate;
  /** One for each card asked for. */
  fits?: Fit[];
  partial?: PartialEstimate;
  issues: Issue[];
}

/** The smallest number of cards of one kind. */
export interface FewestCards {
  cards: number;
  /** "2 cards, FSDP 2" */
  title: string;
  patch: Patch;
  /** Expected on each of them. */
  allocated_bytes: Bytes;
}

/** A verdict, with what the job allocates on that card. */
export interface CardFit {
  gpu: string;
  usable_bytes: Bytes;
  verdict: Verdict;
  /** Negative when it does not fit. */
  headroom_bytes: Bytes;
  utilization: number;
  reason?: string;
  allocated: Range;
  /** Whether the peak stays below the share asked for. */
  within_rule_of_thumb?: boolean;
  /** How many of these cards the job takes, nothing else being changed; null where not even 64 do. */
  fewest?: FewestCards | null;
}

/** Of the verb "fit": cards asked for, or the whole catalog. */
export interface FitResponse {
  schema: 1;
  engine?: string;
  catalog?: string;
  model?: string;
  /** On the first card asked for. */
  allocated?: Range;
  /** The share asked for. */
  rule_of_thumb?: number;
  /** Smallest that fits first. */
  fits?: CardFit[];
  issues: Issue[];
}

/** What a change costs besides memory. */
export interface Cost {
  /** How much harm, to compare. */
  weight: number;
  harm: "nothing" | "speed" | "numerics" | "training";
  speed: string;
  exactness: string;
  quality: string;
  source: string;
}

export interface Change {
  /** JSON pointer into the request. */
  path: string;
  /** What to write there. */
  value: unknown;
}

/** A JSON merge patch (RFC 7396) of the request. */
export type Patch = Record<string, unknown>;

export interface Figures {
  allocated: Range;
  reserved: Range;
  host_bytes: Bytes;
  peak_phase: Phase;
  /** Of the expected peak of the job as it is. */
  saved_bytes: Bytes;
  fit: Fit;
}

/** One change by itself. */
export interface Suggestion {
  title: string;
  changes: Change[];
  patch: Patch;
  cost: Cost;
  allocated: Range;
  reserved: Range;
  host_bytes: Bytes;
  peak_phase: Phase;
  saved_bytes: Bytes;
  fit: Fit;
}

/** The smallest number of cards of one kind that a job fits, divided in one way. */
export interface MoreCards {
  title: string;
  changes: Change[];
  patch: Patch;
  cost: Cost;
  allocated: Range;
  reserved: Range;
  host_bytes: Bytes;
  peak_phase: Phase;
  saved_bytes: Bytes;
  fit: Fit;
  cards: number;
}

/** One way to run a job that fits. */
export interface Way {
  cards: number;
  gpu: string;
  /** "FSDP 2", "as it is", titles of changes. */
  how: string;
  /** Expected on each card. */
  allocated_bytes: Bytes;
  patch: Patch;
}

/** One change of a combination. */
export interface Step {
  lever: "method" | "precision" | "sharding" | "model_parallel" | "sequence" | "optimizer" | "offload" | "checkpointing" | "batch" | "loss" | "attention" | "rank";
  title: string;
  changes: Change[];
  patch: Patch;
  cost: Cost;
}

/** The changes that make the job fit with least harm. */
export interface Combination {
  /** Whether it fits with them; else they are the most that was tried. */
  found: boolean;
  /** Whether nothing with less harm does. */
  proven: boolean;
  weight: number;
  steps: Step[];
  changes: Change[];
  patch: Patch;
  allocated: Range;
  reserved: Range;
  host_bytes: Bytes;
  peak_phase: Phase;
  saved_bytes: Bytes;
  fit: Fit;
  tried: number;
  verified: number;
}

/** How far one size goes on the card. */
export interface Frontier {
  /** "micro_batch_size" */
  option: string;
  current: number;
  /** 0 when none fits. */
  largest: number;
  /** The largest that was tried fits. */
  open: boolean;
  /** The model takes no more. */
  ends_with_model: boolean;
  allocated: MaybeRange;
  /** Of the next size, which does not fit. */
  next_allocated: MaybeRange;
}

/** The largest micro-batch on cards of one size. */
export interface Tier {
  vram_gb: number;
  usable_bytes: Bytes;
  /** 0 when none fits. */
  micro_batch_size: number;
  allocated: MaybeRange;
  /** What a table of presets says; 0 when nothing. */
  preset: number;
}

export type ModeName = "none" | "conservative" | "balanced" | "aggressive" | "aggressive_smaller_batch";

export interface ModeOutcome {
  mode: ModeName;
  techniques: string;
  changes: Change[];
  patch: Patch;
  allocated: Range;
  reserved: Range;
  host_bytes: Bytes;
  peak_phase: Phase;
  saved_bytes: Bytes;
  fit: Fit;
}

/** MemScale's modes, recomputed for this job. */
export interface Modes {
  unoptimised: Range;
  ratio: number;
  recommended: ModeName;
  recommended_fits: boolean;
  modes: ModeOutcome[];
}

/** Of the verb "advise". */
export interface AdviseResponse {
  schema: 1;
  engine?: string;
  catalog?: string;
  model?: string;
  /** The card that it is about. */
  gpu?: string;
  /** The job as it is. */
  now?: Figures;
  /** Null when the job fits as it is. */
  combination?: Combination | null;
  /** Least harm first, then most saved. */
  suggestions?: Suggestion[];
  /** Changes left out because they save nothing here. */
  without_effect?: number;
  expandable_segments?: Suggestion | null;
  smallest_card?: CardFit | null;
  smallest_card_changed?: CardFit | null;
  /** Where the job does not fit: how many such cards it does, divided. */
  more_cards?: MoreCards[];
  /** The fewest of this card, this card with the combination, the smallest card for the job as it is. */
  ways?: Way[];
  /** Which job the frontiers and tiers are about. */
  subject?: "request" | "combination";
  frontiers?: Frontier[];
  tiers?: Tier[];
  modes?: Modes | null;
  issues: Issue[];
}

/** Of the verb "map": one row for each micro-batch size, one column for each sequence length. */
export interface MapResponse {
  schema: 1;
  engine?: string;
  catalog?: string;
  model?: string;
  gpu?: string;
  usable_bytes?: Bytes;
  /** Full estimates, not quick ones. */
  exact?: boolean;
  /** One where rows are cards. */
  batches?: number[];
  /** The rows, where these were asked for. */
  cards?: number[];
  sequences?: number[];
  /** Null where there is no estimate. */
  allocated?: ((number | null)[])[];
  verdicts?: Verdict[][];
  issues: Issue[];
}

/** A factor on the engine's own figure; null where no measurement determines it. */
export type MaybeFactor = number | null;

/** What a process takes on a card outside PyTorch's allocator. */
export interface CalibratedContext {
  gpu: string;
  bytes: Bytes;
}

/** Relative errors of all figures that were measured. */
export interface CalibrationError {
  mean_percent: number;
  worst_percent: number;
}

export interface CalibratedRow {
  what: "allocated" | "reserved" | "device";
  measured_bytes: Bytes;
  /** Without a calibration. */
  estimated_bytes: number;
  /** With this one. */
  calibrated_bytes: number;
  /** By factors fitted to the other measurements alone. */
  left_out_bytes: number;
}

export interface CalibratedJob {
  name: string;
  model: string;
  /** Empty where the job names none. */
  gpu: string;
  rows: CalibratedRow[];
}

/** What a request's "calibration" takes. */
export interface Calibration {
  factors: {
    activations: MaybeFactor;
    fragmentation: MaybeFactor;
    communication: MaybeFactor;
    context: CalibratedContext[];
  };
  errors: {
    estimated: CalibrationError;
    calibrated: CalibrationError;
    left_out: CalibrationError;
  };
  measurements: CalibratedJob[];
}

/** Of the verb "calibrate". */
export interface CalibrateResponse {
  schema: 1;
  engine?: string;
  catalog?: string;
  calibration?: Calibration;
  issues: Issue[];
}

export interface CatalogModel {
  id: string;
  aliases: string[];
  family: string;
  kind: string;
  model_type: string;
  parameters: Count;
  modelled: boolean;
}

export interface CatalogGpu {
  name: string;
  aliases: string[];
  vendor: string;
  architecture: string;
  compute_capability: number;
  marketed_bytes: Bytes;
  visible_bytes: Bytes;
  /** Nobody measured what torch sees. */
  estimated: boolean;
}

/** Of the verb "catalog". */
export interface CatalogResponse {
  schema: 1;
  engine: string;
  catalog: string;
  models?: CatalogModel[];
  gpus?: CatalogGpu[];
}

/** When something decides anything: {"method": ["lora", "qlora"]}. */
export type Relevance = Record<string, string[]>;

export interface ChoiceDescription {
  name: string;
  help: string;
  modelled: boolean;
  aliases?: string[];
}

export interface OptionDescription {
  /** "adapter.r" stands for {"adapter": {"r": …}}. */
  name: string;
  /** Its title in a form. */
  label: string;
  /** JSON pointer: "/adapter/r". */
  path: string;
  group: string;
  type: "boolean" | "integer" | "number" | "string" | "strings" | "choice" | "choices" | "object" | "gpu" | "gpus" | "any";
  default: unknown;
  values?: ChoiceDescription[];
  minimum?: number;
  maximum?: number;
  /** Where people usually are: the ends of a slider. */
  usual?: [number, number];
  unit?: string;
  relevant?: Relevance;
  /** In the object form, the key that holds what else is a word: "recipe" of precision. */
  word_key?: string;
  /** What that key starts from where an object does not say. */
  word_default?: string;
  flags: string[];
  /** Other tools' keys for it. */
  also?: string[];
  help: string;
  advanced: boolean;
  modelled: boolean;
  /** What is missing, when it is not modelled. */
  missing?: string;
}

export interface GroupDescription {
  name: string;
  title: string;
  /** Many jobs change something in it. */
  usual: boolean;
  relevant?: Relevance;
}

/** A key of a request that one verb reads beside the options. */
export interface KeyDescription {
  name: string;
  type: "boolean" | "number" | "integers" | "string" | "measurements";
  default: unknown;
  help: string;
}

export interface VerbDescription {
  name: string;
  help: string;
  modelled: boolean;
  keys?: KeyDescription[];
}

/** Of the verb "describe". */
export interface DescribeResponse {
  schema: 1;
  engine: string;
  catalog: string;
  verbs: VerbDescription[];
  groups: GroupDescription[];
  options: OptionDescription[];
  model_types: string[];
}

/** Of the verb "version". */
export interface VersionResponse {
  schema: 1;
  engine: string;
  catalog: string;
}

export type Response = EstimateResponse;

/** An answer to any verb. */
export type Answer =
  | EstimateResponse
  | FitResponse
  | AdviseResponse
  | MapResponse
  | CalibrateResponse
  | CatalogResponse
  | DescribeResponse
  | VersionResponse;

/** The engine. Everything is synchronous, nothing throws on bad input, and nothing leaves the machine. */
export interface Tidemark {
  /** Objects, or the JSON texts of catalog/models.json and catalog/gpus.json. Errors mean that they could not be read. */
  loadCatalog(models: object | string, gpus: object | string): Issue[];

  /** A request in, an answer out. A string is JSON text as somebody wrote it. */
  handle(request: FitRequest): FitResponse;
  handle(request: AdviseRequest): AdviseResponse;
  handle(request: MapRequest): MapResponse;
  handle(request: CatalogRequest): CatalogResponse;
  handle(request: DescribeRequest): DescribeResponse;
  handle(request: VersionRequest): VersionResponse;
  handle(request: CalibrateRequest): CalibrateResponse;
  handle(request: EstimateRequest | string): EstimateResponse;
  handle(request: Request | string): Answer;

  /** The same as JSON text: what `tidemark estimate --json` prints, byte for byte. */
  handleText(request: Request | string): string;

  /**
   * Allocated bytes (expected) for each pair, one row per micro batch size; NaN where there is no estimate (what is
   * wrong with the request, `handle` tells).
   */
  map(request: Request | string, batches: ArrayLike<number>, sequences: ArrayLike<number>): Float64Array;

  version(): VersionResponse;
}

/**
 * Loads the engine, in browsers, workers and Node. `wasmBinary`: the bytes of tidemark.wasm; without it they are read
 * from beside tidemark.js.
 */
export function createTidemark(options?: { wasmBinary?: ArrayBuffer | Uint8Array }): Promise<Tidemark>;
