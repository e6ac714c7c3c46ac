#include "core/job/options.hpp"

#include <cctype>

#include "core/job/recipe.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kOneGpuOnly = "Jobs on one GPU are modelled so far; several GPUs come later.";
constexpr std::string_view kNoOffload = "Offloading to host memory is not modelled yet.";
constexpr std::string_view kNoExperts = "Mixtures of experts are not modelled yet.";
constexpr std::string_view kNoImages = "Vision-language models are not modelled yet.";

template <class Enum>
constexpr int number(Enum value) {
  return static_cast<int>(value);
}

constexpr Choice kMethods[] = {
    {"full", number(Method::kFull), "every parameter is trained"},
    {"lora", number(Method::kLora), "low-rank adapters beside frozen weights (PEFT)"},
    {"qlora", number(Method::kQlora), "adapters beside quantised weights (bitsandbytes)"},
    {"freeze", number(Method::kFreeze), "the modules named by `freeze` are not trained"},
};

constexpr Choice kQuantTypes[] = {
    {"nf4", number(QuantType::kNf4), "4-bit NormalFloat"},
    {"fp4", number(QuantType::kFp4), "4-bit float"},
    {"int8", number(QuantType::kInt8), "LLM.int8()"},
    {"gptq", 0, "GPTQ", false},
    {"awq", 0, "AWQ", false},
    {"hqq", 0, "HQQ", false},
    {"torchao_nf4", 0, "torchao's NF4 tensors", false},
};

constexpr Choice kPrepareKbit[] = {
    {"false", number(PrepareKbit::kOff), "weights that are not quantised keep their dtype"},
    {"true", number(PrepareKbit::kAll), "peft.prepare_model_for_kbit_training: all of them become fp32"},
    {"norms_only", number(PrepareKbit::kNormsOnly), "only norms become fp32"},
};

constexpr Choice kRecipes[] = {
    {"fp32", 0, "fp32 everything"},
    {"pure_bf16", 0, "bf16 weights, gradients and optimizer states; no autocast"},
    {"bf16_amp", 0, "bf16 weights under bf16 autocast (from_pretrained(dtype=bfloat16) with Trainer bf16=True)"},
    {"amp_bf16", 0, "fp32 weights under bf16 autocast (Trainer bf16=True)"},
    {"amp_fp16", 0, "fp32 weights under fp16 autocast with loss scaling (Trainer fp16=True)"},
    {"pure_fp16", 0, "fp16 weights, gradients and optimizer states; no autocast"},
    {"deepspeed_bf16", 0, "bf16 weights and gradients, fp32 master weights and states; no autocast"},
    {"megatron_bf16", 0, "bf16 weights, fp32 gradients, fp32 master weights and states; no autocast"},
    {"fsdp_bf16", 0, "fp32 shards, bf16 unsharded weights", false},
    {"fp8", 0, "fp8 linear layers", false},
};

constexpr Choice kFloats[] = {
    {"fp32", number(Dtype::kFp32), "32-bit float"},      {"bf16", number(Dtype::kBf16), "bfloat16"},
    {"fp16", number(Dtype::kFp16), "half precision"},    {"fp8", number(Dtype::kFp8), "8-bit float", false},
    {"float32", number(Dtype::kFp32), "", true, "fp32"}, {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr int kNoDtype = -1;
constexpr Choice kFloatsOrNone[] = {
    {"none", kNoDtype, "none"},
    {"fp32", number(Dtype::kFp32), "32-bit float"},
    {"bf16", number(Dtype::kBf16), "bfloat16"},
    {"fp16", number(Dtype::kFp16), "half precision"},
    {"float32", number(Dtype::kFp32), "", true, "fp32"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr Choice kAutocast[] = {
    {"none", kNoDtype, "no autocast"},
    {"bf16", number(Dtype::kBf16), "torch.autocast(dtype=torch.bfloat16)"},
    {"fp16", number(Dtype::kFp16), "torch.autocast(dtype=torch.float16)"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr Choice kAttention[] = {
    {"eager", number(AttentionKernel::kEager), "matmul, softmax, matmul: keeps the S x S probabilities"},
    {"sdpa", number(AttentionKernel::kSdpa), "torch scaled_dot_product_attention with its own choice of kernel"},
    {"flash_attention_2", number(AttentionKernel::kFlashAttention2), "the flash-attn package, version 2"},
    {"flash_attention_3", number(AttentionKernel::kFlashAttention3),
     "the flash-attn package, version 3; taken to need what version 2 needs"},
    {"xformers", number(AttentionKernel::kXformers),
     "xFormers memory-efficient attention; taken to need what sdpa's efficient kernel needs"},
    {"math", number(AttentionKernel::kMath), "scaled_dot_product_attention held to its math kernel"},
};

constexpr Choice kCheckpointing[] = {
    {"none", number(Checkpointing::kNone), "every layer keeps what backward needs"},
    {"full", number(Checkpointing::kFull), "every layer keeps its input and is run again in backward"},
    {"offload", number(Checkpointing::kOffload), "as full, with the inputs kept in host memory"},
};

constexpr int kSelectiveOther = 1;
constexpr Choice kSelective[] = {
    {"core_attn", 0, "run again only softmax(QK)V"},
    {"op", kSelectiveOther, "torchtitan's per-operation policy", false},
    {"layernorm", kSelectiveOther, "Megatron: norms", false},
    {"mlp", kSelectiveOther, "Megatron: feed-forward", false},
};

// Hugging Face TrainingArguments.optim, and a few that users name in its place.
constexpr Choice kOptimizers[] = {
    {"adamw_torch", number(Optimizer::kAdamwTorch), "torch AdamW, foreach: a temporary of one copy of the weights"},
    {"adamw_torch_fused", number(Optimizer::kAdamwTorchFused), "torch AdamW, fused"},
    {"adamw_8bit", number(Optimizer::kAdamw8bit), "bitsandbytes, 8-bit block-wise states"},
    {"adamw_bnb_8bit", number(Optimizer::kAdamw8bit), "", true, "adamw_8bit"},
    {"paged_adamw_8bit", number(Optimizer::kPagedAdamw8bit), "the same, large states in managed memory"},
    {"adamw_bnb_32bit", number(Optimizer::kAdamw32bit), "bitsandbytes, fp32 states"},
    {"adamw_32bit", number(Optimizer::kAdamw32bit), "", true, "adamw_bnb_32bit"},
    {"paged_adamw_32bit", number(Optimizer::kPagedAdamw32bit), "the same, large states in managed memory"},
    {"paged_adamw", number(Optimizer::kPagedAdamw32bit), "", true, "paged_adamw_32bit"},
    {"adamw_torch_8bit", number(Optimizer::kAdamwTorchao8bit), "torchao, 8-bit states"},
    {"adamw_torch_4bit", number(Optimizer::kAdamwTorchao4bit), "torchao, 4-bit states"},
    {"adafactor", number(Optimizer::kAdafactor), "transformers' Adafactor: factored second moment"},
    {"sgd", number(Optimizer::kSgd), "torch SGD without momentum"},
    {"sgd_momentum", number(Optimizer::kSgdMomentum), "torch SGD with momentum"},
    {"lion_32bit", number(Optimizer::kLion32bit), "bitsandbytes Lion"},
    {"lion", number(Optimizer::kLion32bit), "", true, "lion_32bit"},
    {"lion_8bit", number(Optimizer::kLion8bit), "bitsandbytes Lion, 8-bit state"},
    {"paged_lion_32bit", number(Optimizer::kPagedLion32bit), "the same, large states in managed memory"},
    {"paged_lion_8bit", number(Optimizer::kPagedLion8bit), "the same, large states in managed memory"},
    {"galore_adamw", number(Optimizer::kGaloreAdamw), "GaLore: AdamW in a low-rank projection"},
    {"apollo_adamw", number(Optimizer::kApolloAdamw), "APOLLO: AdamW in a random projection"},
    {"adam_mini", number(Optimizer::kAdamMini), "Adam-mini: one second moment per head or neuron"},
    {"muon", number(Optimizer::kMuon), "Muon for matrices, AdamW for the rest"},
    {"adagrad", number(Optimizer::kAdagrad), "torch Adagrad"},
    {"rmsprop", number(Optimizer::kRmsprop), "torch RMSprop"},
    {"adamw_hf", number(Optimizer::kAdamwHf), "transformers' own AdamW, one parameter at a time; gone in version 5"},
    {"adamw_apex_fused", 0, "NVIDIA apex", false},
    {"adamw_anyprecision", 0, "torchdistx", false},
    {"ademamix", 0, "AdEMAMix", false},
    {"ademamix_8bit", 0, "AdEMAMix, 8-bit states", false},
    {"paged_ademamix_32bit", 0, "AdEMAMix, paged", false},
    {"paged_ademamix_8bit", 0, "AdEMAMix, paged, 8-bit states", false},
    {"rmsprop_bnb", 0, "bitsandbytes RMSprop", false},
    {"rmsprop_bnb_8bit", 0, "bitsandbytes RMSprop, 8-bit state", false},
    {"rmsprop_bnb_32bit", 0, "bitsandbytes RMSprop, fp32 state", false},
    {"galore_adamw_8bit", 0, "GaLore, 8-bit states", false},
    {"galore_adafactor", 0, "GaLore with Adafactor", false},
    {"galore_adamw_layerwise", 0, "GaLore, one layer at a time", false},
    {"apollo_adamw_layerwise", 0, "APOLLO, one layer at a time", false},
    {"lomo", 0, "LOMO", false},
    {"adalomo", 0, "AdaLomo", false},
    {"grokadamw", 0, "GrokAdamW", false},
    {"schedule_free_adamw", 0, "schedule-free AdamW", false},
    {"schedule_free_radam", 0, "schedule-free RAdam", false},
    {"schedule_free_sgd", 0, "schedule-free SGD", false},
    {"stable_adamw", 0, "StableAdamW", false},
};

constexpr Choice kCompile[] = {
    {"none", 0, "eager PyTorch"},
    {"per_block", 1, "torch.compile of each layer", false},
    {"full", 2, "torch.compile of the whole model", false},
};

constexpr Choice kLosses[] = {
    {"default", number(Loss::kDefault), "the model's own cross-entropy; its copies depend on framework.version"},
    {"liger", number(Loss::kLiger), "Liger's fused linear cross-entropy"},
    {"chunked", number(Loss::kChunked), "cross-entropy over chunks of the sequence"},
    {"cut_cross_entropy", number(Loss::kCutCrossEntropy), "Apple's cut cross-entropy"},
};

enum LigerKernel { kLigerRmsNorm, kLigerSwiglu, kLigerRope, kLigerOther };
constexpr Choice kLigerKernels[] = {
    {"rms_norm", kLigerRmsNorm, "fused RMSNorm"},
    {"swiglu", kLigerSwiglu, "fused SwiGLU"},
    {"rope", kLigerRope, "fused rotary embedding"},
    {"geglu", kLigerOther, "fused GeGLU", false},
    {"layer_norm", kLigerOther, "fused LayerNorm", false},
    {"cross_entropy", kLigerOther, "fused cross-entropy over materialised logits", false},
};

constexpr Choice kFsdp[] = {
    {"none", 0, "no FSDP"},
    {"full_shard", 1, "FSDP 1, ZeRO-3 like", false},
    {"shard_grad_op", 2, "FSDP 1, ZeRO-2 like", false},
    {"hybrid_shard", 3, "FSDP 1, sharded inside a node", false},
    {"fsdp2", 4, "fully_shard", false},
};

constexpr Choice kDevices[] = {
    {"none", 0, "on the GPU"},
    {"cpu", 1, "in host memory", false},
    {"nvme", 2, "on disk", false},
};

constexpr Choice kExperts[] = {
    {"default", 0, "the framework's own"},
    {"eager", 1, "a loop over experts", false},
    {"grouped_mm", 2, "one grouped matrix product", false},
};

constexpr Choice kFrameworks[] = {
    {"transformers", 0, "Hugging Face modelling code (Trainer, TRL, PEFT, accelerate, axolotl on top of it)"},
    {"megatron", 1, "Megatron-LM, NeMo", false},
    {"torchtune", 2, "torchtune", false},
    {"torchtitan", 3, "torchtitan", false},
    {"unsloth", 4, "Unsloth", false},
    {"litgpt", 5, "LitGPT", false},
    {"nemo-automodel", 6, "NeMo AutoModel", false},
    {"galvatron", 7, "Galvatron", false},
    {"deepspeed", 8, "DeepSpeed engine", false},
};

/// Attention projections by every name that the supported families give them.
const std::vector<std::string>& attention_modules() {
  static const std::vector<std::string> names = {"q_proj",
                                                 "k_proj",
                                                 "v_proj",
                                                 "o_proj",
                                                 "out_proj",
                                                 "qkv_proj",
                                                 "W_pack",
                                                 "Wqkv",
                                                 "wqkv",
                                                 "wo",
                                                 "c_attn",
                                                 "attn.c_proj",
                                                 "query_key_value",
                                                 "self_attention.dense",
                                                 "attention.dense",
                                                 "self_attn.dense",
                                                 "query",
                                                 "key",
                                                 "value",
                                                 "attention.output.dense",
                                                 "q_lin",
                                                 "k_lin",
                                                 "v_lin",
                                                 "out_lin",
                                                 "SelfAttention.q",
                                                 "SelfAttention.k",
                                                 "SelfAttention.v",
                                                 "SelfAttention.o",
                                                 "EncDecAttention.q",
                                                 "EncDecAttention.k",
                                                 "EncDecAttention.v",
                                                 "EncDecAttention.o"};
  return names;
}

std::optional<Dtype> dtype_or_none(int choice) {
  if (choice == kNoDtype) return std::nullopt;
  return static_cast<Dtype>(choice);
}

constexpr OptionGroup kGroups[] = {
    {"model", "Model"},
    {"method", "Method"},
    {"adapter", "LoRA adapters (method lora or qlora)"},
    {"quantization", "Quantised weights (method qlora)"},
    {"precision", "Precision"},
    {"batch", "Batch"},
    {"memory", "Attention and checkpointing"},
    {"optimizer", "Optimizer"},
    {"loss", "Loss and kernels"},
    {"loop", "Training loop details"},
    {"parallelism", "Parallelism"},
    {"moe", "Mixtures of experts"},
    {"offload", "Offloading"},
    {"runtime", "Framework and allocator"},
    {"gpu", "GPU"},
};

// Read from top to bottom: where an option refines another, it stands below it.
const Option kOptions[] = {
    // --- model
    {.name = "model",
     .type = OptionType::kText,
     .standard = "null",
     .group = "model",
     .help = "Catalog id or alias, letters' case ignored: meta-llama/Llama-2-7b-hf, llama-2-7b.",
     .flags = "-m",
     .apply = [](Request& r, const OptionValue& v) { r.model = v.text; }},
    {.name = "config",
     .type = OptionType::kDocument,
     .standard = "null",
     .group = "model",
     .help = "A Hugging Face config.json, as it is (on the command line: the file's path, - for standard input).",
     .apply = [](Request& r, const OptionValue& v) { r.config = *v.document; }},
    {.name = "parameters",
     .type = OptionType::kReal,
     .standard = "null",
     .minimum = 1e5,
     .maximum = 1e13,
     .unit = "parameters",
     .group = "model",
     .help = "Only a parameter count: a published architecture of that class is assumed, and the answer says which.",
     .flags = "--params",
     .apply = [](Request& r, const OptionValue& v) { r.parameters = v.real; }},
    {.name = "architecture",
     .type = OptionType::kText,
     .standard = "null",
     .group = "model",
     .help = "Class name, where the head that is trained is not config.json's: BertForSequenceClassification.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.class_name = v.text; }},

    // --- method
    {.name = "method",
     .type = OptionType::kChoice,
     .standard = "\"full\"",
     .choices = kMethods,
     .group = "method",
     .help = "Which parameters are trained.",
     .apply = [](Request& r, const OptionValue& v) { r.job.method = static_cast<Method>(v.choice); }},
    {.name = "freeze",
     .type = OptionType::kTextList,
     .standard = "[]",
     .group = "method",
     .help = "Patterns of module names that are not trained: embed_tokens, layers.0, vision_tower.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.freeze = v.list; }},

    // --- adapter
    {.name = "adapter.r",
     .type = OptionType::kInteger,
     .standard = "16",
     .minimum = 1,
     .maximum = 65536,
     .group = "adapter",
     .help = "Rank.",
     .flags = "--lora-r,--rank",
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.r = v.integer; }},
    {.name = "adapter.lora_alpha",
     .type = OptionType::kReal,
     .standard = "32",
     .minimum = 0,
     .maximum = 1e6,
     .group = "adapter",
     .help = "Scaling numerator; it moves no memory.",
     .flags = "--lora-alpha",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.lora_alpha = v.real; }},
    {.name = "adapter.lora_dropout",
     .type = OptionType::kReal,
     .standard = "0.0",
     .minimum = 0,
     .maximum = 1,
     .unit = "probability",
     .group = "adapter",
     .help = "Dropout on the input of each adapter.",
     .flags = "--lora-dropout",
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.lora_dropout = v.real; }},
    {.name = "adapter.target_modules",
     .type = OptionType::kTextList,
     .standard = "\"all-linear\"",
     .group = "adapter",
     .help = "Adapted modules: all-linear, attention, or a list of names (q_proj,v_proj).",
     .flags = "--lora-target-modules,--target-modules",
     .apply =
         [](Request& r, const OptionValue& v) {
           Adapter& adapter = r.job.adapter;
           adapter.all_linear = v.list.size() == 1 && v.list[0] == "all-linear";
           adapter.target_modules.clear();
           if (adapter.all_linear) return;
           adapter.target_modules = v.list.size() == 1 && v.list[0] == "attention" ? attention_modules() : v.list;
         }},
    {.name = "adapter.modules_to_save",
     .type = OptionType::kTextList,
     .standard = "[]",
     .group = "adapter",
     .help = "Modules trained in full beside the adapters: lm_head,embed_tokens.",
     .flags = "--lora-modules-to-save",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.modules_to_save = v.list; }},
    {.name = "adapter.dtype",
     .type = OptionType::kChoice,
     .standard = "\"fp32\"",
     .choices = kFloats,
     .group = "adapter",
     .help = "Dtype of the adapters' weights; PEFT keeps them in fp32 unless told otherwise.",
     .flags = "--lora-dtype",
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.dtype = static_cast<Dtype>(v.choice); }},
    {.name = "adapter.use_dora",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "adapter",
     .help = "DoRA: a magnitude vector beside each adapter.",
     .flags = "--dora",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.adapter.use_dora = v.boolean; }},

    // --- quantization
    {.name = "quantization.bits",
     .type = OptionType::kInteger,
     .standard = "4",
     .minimum = 4,
     .maximum = 8,
     .unit = "bits",
     .group = "quantization",
     .help = "Bits per quantised weight: 4 or 8.",
     .flags = "--bits",
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.quantization.bits = static_cast<int>(v.integer);
           if (v.integer == 8) r.job.quantization.quant_type = QuantType::kInt8;
         }},
    {.name = "quantization.quant_type",
     .type = OptionType::kChoice,
     .standard = "\"nf4\"",
     .choices = kQuantTypes,
     .group = "quantization",
     .help = "Number format; 8 bits mean int8.",
     .flags = "--quant-type",
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.quantization.quant_type = static_cast<QuantType>(v.choice);
           r.job.quantization.bits = r.job.quantization.quant_type == QuantType::kInt8 ? 8 : 4;
         }},
    {.name = "quantization.double_quant",
     .type = OptionType::kBool,
     .standard = "true",
     .group = "quantization",
     .help = "Block scales are quantised again.",
     .flags = "--double-quant",
     .apply = [](Request& r, const OptionValue& v) { r.job.quantization.double_quant = v.boolean; }},
    {.name = "quantization.group_size",
     .type = OptionType::kInteger,
     .standard = "64",
     .minimum = 16,
     .maximum = 65536,
     .unit = "elements",
     .group = "quantization",
     .help = "Elements that share a scale.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.quantization.group_size = v.integer; }},
    {.name = "quantization.quant_storage",
     .type = OptionType::kText,
     .standard = "\"uint8\"",
     .group = "quantization",
     .help = "Storage dtype of packed weights; it moves no memory.",
     .advanced = true},
    {.name = "quantization.prepare_kbit",
     .type = OptionType::kChoice,
     .standard = "false",
     .choices = kPrepareKbit,
     .group = "quantization",
     .help = "Whether peft.prepare_model_for_kbit_training ran: it upcasts what is not quantised.",
     .flags = "--prepare-kbit",
     .apply = [](Request& r,
                 const OptionValue& v) { r.job.quantization.prepare_kbit = static_cast<PrepareKbit>(v.choice); }},

    // --- precision
    {.name = "precision",
     .type = OptionType::kChoice,
     .standard = "\"amp_bf16\"",
     .choices = kRecipes,
     .group = "precision",
     .help = "Recipe of mixed precision; or an object with the keys below.",
     .apply = [](Request& r, const OptionValue& v) { r.job.recipe = *named_recipe(v.text); },
     .open =
         [](Request& r) {
           r.job.recipe = *named_recipe("fp32");
           r.job.recipe.name = "custom";
         }},
    {.name = "precision.recipe",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kRecipes,
     .group = "precision",
     .help = "In the object form: the recipe to start from.",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.recipe = *named_recipe(v.text);
           r.job.recipe.name = "custom";
         }},
    {.name = "precision.weights",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kFloats,
     .group = "precision",
     .help = "Dtype of the weights; gradients and optimizer states follow unless stated.",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           Recipe& recipe = r.job.recipe;
           recipe.weights = recipe.gradients = recipe.optimizer_states = static_cast<Dtype>(v.choice);
         }},
    {.name = "precision.autocast",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kAutocast,
     .group = "precision",
     .help = "Dtype of torch.autocast, or none.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.recipe.autocast = dtype_or_none(v.choice); }},
    {.name = "precision.gradients",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kFloats,
     .group = "precision",
     .help = "Dtype of the gradients.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.recipe.gradients = static_cast<Dtype>(v.choice); }},
    {.name = "precision.master_weights",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kFloatsOrNone,
     .group = "precision",
     .help = "Dtype of a second copy of the weights that the optimizer updates, or none.",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.recipe.master_weights = dtype_or_none(v.choice);
           if (r.job.recipe.master_weights) r.job.recipe.optimizer_states = *r.job.recipe.master_weights;
         }},
    {.name = "precision.optimizer_states",
     .type = OptionType::kChoice,
     .standard = "null",
     .choices = kFloats,
     .group = "precision",
     .help = "Dtype of the optimizer's moments, where the optimizer does not decide for itself.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.recipe.optimizer_states = static_cast<Dtype>(v.choice); }},

    // --- batch
    {.name = "micro_batch_size",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "samples",
     .group = "batch",
     .help = "Samples per forward pass on one GPU (per_device_train_batch_size).",
     .flags = "-b,--batch,--batch-size",
     .apply = [](Request& r, const OptionValue& v) { r.job.micro_batch_size = v.integer; }},
    {.name = "sequence_length",
     .type = OptionType::kInteger,
     .standard = "2048",
     .minimum = 1,
     .maximum = 1e8,
     .unit = "tokens",
     .group = "batch",
     .help = "Tokens per sample, padding included.",
     .flags = "-s,--seq-len,--seq",
     .apply = [](Request& r, const OptionValue& v) { r.job.sequence_length = v.integer; }},
    {.name = "decoder_sequence_length",
     .type = OptionType::kInteger,
     .standard = "null",
     .minimum = 1,
     .maximum = 1e8,
     .unit = "tokens",
     .group = "batch",
     .help = "Target length of encoder-decoder models; sequence_length when absent.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.decoder_sequence_length = v.integer; }},
    {.name = "gradient_accumulation_steps",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e9,
     .unit = "micro-batches",
     .group = "batch",
     .help = "Micro-batches per optimizer step.",
     .flags = "-a,--grad-accum",
     .apply = [](Request& r, const OptionValue& v) { r.job.gradient_accumulation_steps = v.integer; }},
    {.name = "padding",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "batch",
     .help = "An attention mask with padding is passed: scaled_dot_product_attention then avoids its flash kernel.",
     .apply = [](Request& r, const OptionValue& v) { r.job.padding = v.boolean; }},
    {.name = "packing",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "batch",
     .help = "Several samples are packed into each row of sequence_length.",
     .apply = [](Request& r, const OptionValue& v) { r.job.packing = v.boolean; }},
    {.name = "images_per_sample",
     .type = OptionType::kInteger,
     .standard = "0",
     .maximum = 1e4,
     .unit = "images",
     .group = "batch",
     .help = "Images per sample of a vision-language model.",
     .advanced = true,
     .missing = kNoImages},
    {.name = "image_size",
     .type = OptionType::kAny,
     .standard = "[336, 336]",
     .unit = "pixels",
     .group = "batch",
     .help = "Height and width of an image.",
     .advanced = true,
     .missing = kNoImages},

    // --- memory
    {.name = "attention",
     .type = OptionType::kChoice,
     .standard = "\"sdpa\"",
     .choices = kAttention,
     .group = "memory",
     .help = "attn_implementation.",
     .flags = "--attn",
     .apply = [](Request& r, const OptionValue& v) { r.job.attention = static_cast<AttentionKernel>(v.choice); }},
    {.name = "gradient_checkpointing",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kCheckpointing,
     .group = "memory",
     .help = "What is run again in backward instead of being kept; or an object with one of the keys below.",
     .flags = "--gc",
     .apply = [](Request& r, const OptionValue& v) { r.job.checkpointing = static_cast<Checkpointing>(v.choice); },
     .open = [](Request& r) { r.job.checkpointing = Checkpointing::kNone; }},
    {.name = "gradient_checkpointing.every",
     .type = OptionType::kInteger,
     .standard = "null",
     .minimum = 1,
     .maximum = 1e4,
     .unit = "layers",
     .group = "memory",
     .help = "Checkpoint every k-th layer.",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.checkpointing = v.integer == 1 ? Checkpointing::kFull : Checkpointing::kEvery;
           r.job.checkpoint_every = v.integer;
         }},
    {.name = "gradient_checkpointing.selective",
     .type = OptionType::kChoiceList,
     .standard = "null",
     .choices = kSelective,
     .group = "memory",
     .help = "Run again only these parts of each layer.",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           if (!v.choices.empty()) r.job.checkpointing = Checkpointing::kSelectiveCoreAttention;
         }},
    {.name = "use_reentrant",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "memory",
     .help = "torch.utils.checkpoint's older, re-entrant form (transformers 4's default).",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.use_reentrant = v.boolean; }},

    // --- optimizer
    {.name = "optimizer",
     .type = OptionType::kChoice,
     .standard = "\"adamw_torch_fused\"",
     .choices = kOptimizers,
     .group = "optimizer",
     .help = "Hugging Face's `optim`.",
     .flags = "-o,--optim",
     .apply = [](Request& r, const OptionValue& v) { r.job.optimizer = static_cast<Optimizer>(v.choice); }},
    {.name = "max_grad_norm",
     .type = OptionType::kReal,
     .standard = "1.0",
     .minimum = 0,
     .maximum = 1e9,
     .group = "optimizer",
     .help = "Gradient clipping; 0 for none.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.max_grad_norm = v.real; }},
    {.name = "optimizer_in_backward",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "optimizer",
     .help = "Each parameter is updated, and its gradient freed, as soon as the gradient exists.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.optimizer_in_backward = v.boolean; }},

    // --- loss
    {.name = "loss",
     .type = OptionType::kChoice,
     .standard = "\"default\"",
     .choices = kLosses,
     .group = "loss",
     .help = "How the loss is computed from the last hidden state.",
     .apply = [](Request& r, const OptionValue& v) { r.job.loss = static_cast<Loss>(v.choice); }},
    {.name = "liger",
     .type = OptionType::kChoiceList,
     .standard = "[]",
     .choices = kLigerKernels,
     .group = "loss",
     .help = "Liger kernels in use, besides the loss.",
     .apply =
         [](Request& r, const OptionValue& v) {
           r.job.liger_rms_norm = r.job.liger_swiglu = r.job.liger_rope = false;
           for (int kernel : v.choices) {
             if (kernel == kLigerRmsNorm) r.job.liger_rms_norm = true;
             if (kernel == kLigerSwiglu) r.job.liger_swiglu = true;
             if (kernel == kLigerRope) r.job.liger_rope = true;
           }
         }},
    {.name = "compile",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kCompile,
     .group = "loss",
     .help = "torch.compile.",
     .advanced = true},

    // --- loop
    {.name = "keep_outputs",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "loop",
     .help = "A hand-written loop still holds the model's outputs (the logits) during backward.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.keep_outputs = v.boolean; }},
    {.name = "outputs_to_fp32",
     .type = OptionType::kBool,
     .standard = "true",
     .group = "loop",
     .help = "accelerate converts the outputs to fp32 under autocast.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.outputs_to_fp32 = v.boolean; }},
    {.name = "zero_grad_to_none",
     .type = OptionType::kBool,
     .standard = "true",
     .group = "loop",
     .help = "zero_grad frees the gradients (torch 2.0 and later).",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.zero_grad_to_none = v.boolean; }},

    // --- parallelism
    {.name = "parallelism.data",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Data-parallel degree.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.tensor",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Tensor-parallel degree.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.pipeline",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Pipeline stages.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.context",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Context-parallel degree.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.expert",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Expert-parallel degree.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.expert_tensor",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "Tensor-parallel degree inside experts.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.sequence_parallel",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "parallelism",
     .help = "Activations outside tensor-parallel regions are sharded too.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.zero_stage",
     .type = OptionType::kInteger,
     .standard = "0",
     .minimum = 0,
     .maximum = 3,
     .group = "parallelism",
     .help = "DeepSpeed ZeRO stage.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.fsdp",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kFsdp,
     .group = "parallelism",
     .help = "Fully sharded data parallelism.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.virtual_pipeline",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e6,
     .group = "parallelism",
     .help = "Model chunks per pipeline stage.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.num_micro_batches",
     .type = OptionType::kInteger,
     .standard = "1",
     .minimum = 1,
     .maximum = 1e9,
     .group = "parallelism",
     .help = "Micro-batches in a pipeline step.",
     .advanced = true,
     .missing = kOneGpuOnly},
    {.name = "parallelism.gpus_per_node",
     .type = OptionType::kInteger,
     .standard = "8",
     .minimum = 1,
     .maximum = 1e6,
     .unit = "GPUs",
     .group = "parallelism",
     .help = "GPUs that share a host; of no effect on one GPU.",
     .advanced = true},
    {.name = "parallelism.fsdp_mixed_precision.param",
     .type = OptionType::kChoice,
     .standard = "\"bf16\"",
     .choices = kFloats,
     .group = "parallelism",
     .help = "Dtype of unsharded weights; of no effect on one GPU.",
     .advanced = true},
    {.name = "parallelism.fsdp_mixed_precision.reduce",
     .type = OptionType::kChoice,
     .standard = "\"fp32\"",
     .choices = kFloats,
     .group = "parallelism",
     .help = "Dtype of gradient reduction; of no effect on one GPU.",
     .advanced = true},
    {.name = "parallelism.reshard_after_forward",
     .type = OptionType::kBool,
     .standard = "true",
     .group = "parallelism",
     .help = "Weights are sharded again after forward; of no effect on one GPU.",
     .advanced = true},
    {.name = "parallelism.pipeline_layout",
     .type = OptionType::kAny,
     .standard = "null",
     .group = "parallelism",
     .help = "Layers of each pipeline stage.",
     .advanced = true,
     .missing = kOneGpuOnly},

    // --- moe
    {.name = "moe.implementation",
     .type = OptionType::kChoice,
     .standard = "\"default\"",
     .choices = kExperts,
     .group = "moe",
     .help = "How experts are computed.",
     .advanced = true,
     .missing = kNoExperts},
    {.name = "moe.capacity_factor",
     .type = OptionType::kReal,
     .standard = "null",
     .minimum = 0,
     .maximum = 1e6,
     .group = "moe",
     .help = "Tokens that an expert accepts, relative to an even split.",
     .advanced = true,
     .missing = kNoExperts},
    {.name = "moe.load_imbalance",
     .type = OptionType::kReal,
     .standard = "1.0",
     .minimum = 1,
     .maximum = 1e6,
     .group = "moe",
     .help = "Load of the busiest expert, relative to an even split.",
     .advanced = true,
     .missing = kNoExperts},

    // --- offload
    {.name = "offload.optimizer",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kDevices,
     .group = "offload",
     .help = "Where optimizer states live.",
     .advanced = true,
     .missing = kNoOffload},
    {.name = "offload.parameters",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kDevices,
     .group = "offload",
     .help = "Where weights live.",
     .advanced = true,
     .missing = kNoOffload},
    {.name = "offload.gradients",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kDevices,
     .group = "offload",
     .help = "Where gradients live.",
     .advanced = true,
     .missing = kNoOffload},
    {.name = "offload.activations",
     .type = OptionType::kChoice,
     .standard = "\"none\"",
     .choices = kDevices,
     .group = "offload",
     .help = "Where saved activations live; see also gradient_checkpointing offload.",
     .advanced = true,
     .missing = kNoOffload},
    {.name = "offload.optimizer_fraction",
     .type = OptionType::kReal,
     .standard = "1.0",
     .minimum = 0,
     .maximum = 1,
     .group = "offload",
     .help = "Share of the optimizer states that is offloaded; of no effect without offloading.",
     .advanced = true},

    // --- runtime
    {.name = "framework.name",
     .type = OptionType::kChoice,
     .standard = "\"transformers\"",
     .choices = kFrameworks,
     .group = "runtime",
     .help = "Whose modelling code runs.",
     .flags = "--framework",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.job.framework.name = v.text; }},
    {.name = "framework.version",
     .type = OptionType::kText,
     .standard = "\"5.12\"",
     .group = "runtime",
     .help = "Its release (5.12, 4.46) or date (2026-07); copies of the logits and other defaults depend on it.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { read_version(v.text, r.job.framework); }},
    {.name = "allocator.expandable_segments",
     .type = OptionType::kBool,
     .standard = "false",
     .group = "runtime",
     .help = "PYTORCH_ALLOC_CONF=expandable_segments:True.",
     .flags = "--expandable-segments",
     .apply = [](Request& r, const OptionValue& v) { r.job.expandable_segments = v.boolean; }},
    {.name = "overrides.fragmentation_gib",
     .type = OptionType::kReal,
     .standard = "null",
     .maximum = 1e5,
     .unit = "GiB",
     .group = "runtime",
     .help = "Memory lost to fragmentation, taken off what a card can give.",
     .flags = "--fragmentation-gib",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.overrides.fragmentation_gib = v.real; }},
    {.name = "overrides.misc_overhead_gib",
     .type = OptionType::kReal,
     .standard = "null",
     .maximum = 1e5,
     .unit = "GiB",
     .group = "runtime",
     .help = "Memory that others take on the card: other processes, a desktop, NCCL.",
     .flags = "--misc-overhead-gib",
     .advanced = true,
     .apply =
         [](Request& r, const OptionValue& v) {
           r.overrides.misc_overhead_gib = v.real;
           r.job.misc_overhead = static_cast<Bytes>(v.real * static_cast<double>(kGiB));
         }},
    {.name = "overrides.cuda_context_gib",
     .type = OptionType::kReal,
     .standard = "null",
     .maximum = 1e3,
     .unit = "GiB",
     .group = "runtime",
     .help = "CUDA context with its kernels, instead of the catalog's figure.",
     .flags = "--cuda-context-gib",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.overrides.cuda_context_gib = v.real; }},
    {.name = "calibration",
     .type = OptionType::kAny,
     .standard = "null",
     .group = "runtime",
     .help = "The document that `calibrate` returns.",
     .advanced = true,
     .missing = "Calibration comes later."},

    // --- gpu
    {.name = "gpu",
     .type = OptionType::kGpu,
     .standard = "null",
     .group = "gpu",
     .help = "Card to check: a catalog name or alias, {\"memory_gib\": 24} as torch sees it or {\"vram_gb\": 24} as on "
             "the box (on the command line 24GiB and --vram-gb 24; repeatable).",
     .flags = "-g",
     .apply = [](Request& r, const OptionValue& v) { r.gpus = v.gpus; }},
    {.name = "gpus",
     .type = OptionType::kGpuList,
     .standard = "[]",
     .group = "gpu",
     .help = "Several cards to check.",
     .advanced = true,
     .apply = [](Request& r, const OptionValue& v) { r.gpus.insert(r.gpus.end(), v.gpus.begin(), v.gpus.end()); }},
};

bool same_letters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "boolean";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kReal:
      return "number";
    case OptionType::kText:
      return "string";
    case OptionType::kTextList:
      return "strings";
    case OptionType::kChoice:
      return "choice";
    case OptionType::kChoiceList:
      return "choices";
    case OptionType::kDocument:
      return "object";
    case OptionType::kGpu:
      return "gpu";
    case OptionType::kGpuList:
      return "gpus";
    case OptionType::kAny:
      return "any";
  }
  return "";
}

std::span<const Option> options() {
  return kOptions;
}

std::span<const OptionGroup> option_groups() {
  return kGroups;
}

const Option* find_option(std::string_view name) {
  for (const Option& option : kOptions) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

const Choice* find_choice(const Option& option, std::string_view word) {
  for (const Choice& choice : option.choices) {
    if (same_letters(choice.name, word)) return &choice;
  }
  return nullptr;
}

std::string flag_of(const Option& option) {
  std::string flag = "--";
  for (char c : option.name) flag += c == '.' || c == '_' ? '-' : c;
  return flag;
}

std::vector<std::string> flags_of(const Option& option) {
  std::vector<std::string> flags = {flag_of(option)};
  std::string_view rest = option.flags;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    flags.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return flags;
}

std::string pointer_of(std::string_view option_name) {
  std::string pointer = "/";
  for (char c : option_name) pointer += c == '.' ? '/' : c;
  return pointer;
}

bool read_version(std::string_view text, Framework& framework) {
  const Framework newest;
  std::size_t at = 0;
  while (at < text.size() && !std::isdigit(static_cast<unsigned char>(text[at]))) {
    // "core, main branch 2026-08-19" and "v5.12" carry their number behind words.
    ++at;
  }
  if (at == text.size()) return false;
  const auto read_number = [&](int& number_read) {
    const std::size_t start = at;
    long value = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < 100000) {
      value = value * 10 + (text[at] - '0');
      ++at;
    }
    number_read = static_cast<int>(value);
    return at > start;
  };
  int first = 0;
  int second = 0;
  read_number(first);
  if (at < text.size() && (text[at] == '.' || text[at] == '-')) {
    ++at;
    read_number(second);
  }
  if (first >= 2018 && first <= 2100) {
    // A date. Releases whose memory differs: 4.46 (October 2024) and 5.0 (end of 2025).
    const int month = first * 12 + (second >= 1 && second <= 12 ? second : 12);
    if (month >= 2025 * 12 + 12) {
      framework.major = newest.major;
      framework.minor = newest.minor;
    } else {
      framework.major = 4;
      framework.minor = month >= 2024 * 12 + 11 ? 57 : 44;
    }
    return true;
  }
  if (first > 99) return false;
  framework.major = first;
  framework.minor = second;
  return true;
}

}  // namespace tidemark
