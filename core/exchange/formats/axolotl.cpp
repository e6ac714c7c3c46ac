// Axolotl's YAML (axolotl 067b021c src/axolotl/utils/schemas/{config,model,peft,training,fsdp}.py,
// utils/config/__init__.py, loaders/model.py).
#include <algorithm>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_axolotl(const Look& look) {
  if (!look.is_map() || !(look.has("base_model") || look.has("base_model_config"))) return 0;
  int score = 40;
  for (const char* key : {"sequence_len", "micro_batch_size", "datasets", "adapter", "sample_packing", "val_set_size",
                          "load_in_4bit", "load_in_8bit", "num_epochs", "flash_attention", "lora_r", "special_tokens",
                          "lora_target_linear", "wandb_project", "pretraining_dataset"}) {
    if (look.has(key)) score += 15;
  }
  return score >= 70 ? std::min(score, 95) : 0;
}

bool is_on(const Node* node) {
  return node != nullptr && (node->is_bool() ? node->boolean : node->is_string() && !node->text.empty());
}

bool has_plugin(Keys& keys, std::string_view word) {
  const Node* plugins = keys["plugins"];
  if (plugins == nullptr) return false;
  for (const Node& plugin : plugins->items) {
    if (contains(lower_case(plugin.text), word)) return true;
  }
  return false;
}

/// A key of fsdp_config, which has them with and without the prefix.
const Node* fsdp(Keys& keys, const std::string& name) {
  const Node* node = keys["fsdp_config." + name];
  return node != nullptr ? node : keys["fsdp_config.fsdp_" + name];
}

struct Facts {
  bool sharded = false;  // FSDP
  int zero = -1;
  bool quantised = false;
};

void read_parallelism(Keys& keys, Facts& facts) {
  const Node* list = keys["fsdp"];
  const Node* config = keys["fsdp_config"];
  const Node* version = keys["fsdp_version"];
  if (version == nullptr) version = fsdp(keys, "version");
  facts.sharded = (list != nullptr && (!list->items.empty() || !list->text.empty())) || config != nullptr;
  if (facts.sharded) {
    const bool second = version != nullptr && version->integer == 2;
    const Node* strategy = fsdp(keys, "sharding_strategy");
    const std::string first = fsdp_strategy(strategy == nullptr ? std::string_view{} : strategy->text);
    keys.state("parallelism.fsdp", of(second ? "fsdp2" : first), {list, config, second ? version : strategy});
    // src/axolotl/monkeypatch/accelerate/fsdp2.py: fsdp2_prepare_model: axolotl's own, of layers and the rest.
    if (second) {
      keys.assume("parallelism.fsdp_options.groups", of("resharded_root"), "axolotl lays FSDP 2's units out itself");
    } else {
      state_fsdp1(keys, [&](const char* name) { return fsdp(keys, name); });
    }
    const Node* reshard = fsdp(keys, "reshard_after_forward");
    if (reshard != nullptr && reshard->is_bool())
      keys.state("parallelism.reshard_after_forward", to_value(*reshard), {reshard});
    if (const Node* offload = fsdp(keys, "offload_params"); is_on(offload)) {
      keys.state("offload.parameters", of("cpu"), {offload});
      keys.state("offload.optimizer", of("cpu"), {offload});
    }
    keys.touch("fsdp_config");
  }
  const Node* deepspeed = keys["deepspeed"];
  if (deepspeed != nullptr && !deepspeed->text.empty()) {
    facts.zero = zero_stage_of_name(deepspeed->text);
    state_deepspeed_file(keys, deepspeed, false);
  }
  for (const auto& [path, name] : {std::pair{"parallelism.tensor", "tensor_parallel_size"},
                                   {"parallelism.context", "context_parallel_size"},
                                   {"parallelism.context", "sequence_parallel_degree"},
                                   {"parallelism.data_shard", "dp_shard_size"},
                                   {"parallelism.data_replicate", "dp_replicate_size"},
                                   {"parallelism.expert", "expert_parallel_size"}}) {
    const Node* node = keys[name];
    if (node != nullptr && node->integer > 1) keys.state(path, to_value(*node), {node});
  }
  const Node* shard = keys["dp_shard_size"];
  const Node* replicate = keys["dp_replicate_size"];
  if (shard != nullptr && shard->integer > 1) {
    const std::int64_t replicas = replicate == nullptr ? 1 : std::max<std::int64_t>(1, replicate->integer);
    keys.state("parallelism.data", of(shard->integer * replicas), {shard, replicate},
               "dp_shard_size times dp_replicate_size");
  }
}

void read_method(Keys& keys, Facts& facts) {
  const Node* adapter = keys["adapter"];
  const Node* four = keys["load_in_4bit"];
  const Node* eight = keys["load_in_8bit"];
  const std::string name = adapter == nullptr ? std::string{} : lower_case(adapter->text);
  const bool four_on = is_on(four);
  const bool eight_on = is_on(eight);
  refuse_both_widths(keys.reading, four_on, eight_on);
  facts.quantised = !name.empty() && (four_on || eight_on);
  const Node* trainable = keys["unfrozen_parameters"];
  if (!name.empty()) {
    keys.state("method", of(facts.quantised ? "qlora" : name), {adapter, four, eight});
  } else if (trainable != nullptr && !trainable->items.empty()) {
    keys.state("method", of("freeze"), {trainable});
    keys.state("trainable", to_value(*trainable), {trainable});
  } else {
    keys.assume("method", of("full"), "no adapter");
    // axolotl 067b021 src/axolotl/utils/freeze.py: freeze_mm_modules. Adapters are put where their targets say.
    const Node* text_alone = keys["freeze_mm_modules"];
    if (is_on(text_alone)) {
      for (const char* part : {"freeze_vision", "freeze_projector"}) keys.state(part, of(true), {text_alone});
    }
    // axolotl 067b021c utils/schemas/peft.py: validate_adapter raises.
    if (four_on || eight_on) refuse_packed_alone(keys.reading, four_on ? "load_in_4bit" : "load_in_8bit");
    if (keys["lisa_step_interval"] != nullptr) keys.copy("lisa_layers", "lisa_n_layers");
    keys.touch("lisa_layers_attribute");
  }
}

/// bitsandbytes as axolotl sets it up.
void read_quantization(Keys& keys, const Facts& facts) {
  if (!facts.quantised) return;
  const bool four = is_on(keys["load_in_4bit"]);
  const Node* node = four ? keys["load_in_4bit"] : keys["load_in_8bit"];
  const char* why = "bnb 4-bit details are axolotl constants (src/axolotl/loaders/model.py axolotl@067b021c)";
  keys.state("quantization.bits", of(four ? 4 : 8), {node});
  keys.state("quantization.quant_type", of(four ? "nf4" : "int8"), {node}, four ? why : "");
  if (four) {
    keys.state("quantization.double_quant", of(true), {node}, why);
    keys.state("quantization.quant_storage", of("bfloat16"), {node}, why);
    // bnb_config_kwargs overrides those (loaders/model.py L712).
    keys.copy("quantization.quant_type", "bnb_config_kwargs.bnb_4bit_quant_type");
    keys.copy("quantization.double_quant", "bnb_config_kwargs.bnb_4bit_use_double_quant");
  }
  const bool skipped = facts.sharded || facts.zero == 3;
  const bool experts_packed = keys.truthy("quantize_moe_experts");
  if (skipped || experts_packed) {
    keys.state("quantization.prepare_kbit", of(false), {node},
               "skipped under FSDP and ZeRO-3, and beside packed experts (loaders/model.py L985-1022)");
  } else {
    keys.state("quantization.prepare_kbit", of("norms_back"), {node},
               "runs, then norms, embeddings and head go back to torch_dtype for adapters (loaders/model.py L447-478)");
  }
  if (experts_packed) keys.copy("quantization.moe_experts", "quantize_moe_experts");
}

void read_adapter(Keys& keys) {
  if (keys["adapter"] == nullptr || keys["adapter"]->text.empty()) return;
  keys.copy("adapter.r", "lora_r");
  keys.copy("adapter.lora_alpha", "lora_alpha");
  if (!keys.copy("adapter.lora_dropout", "lora_dropout")) {
    keys.assume("adapter.lora_dropout", of(0.0), "default 0.0 (schemas/peft.py)");
  }
  const Node* linear = keys["lora_target_linear"];
  const Node* modules = keys["lora_target_modules"];
  if (is_on(linear)) {
    keys.state("adapter.target_modules", of("all-linear"), {linear});
    if (modules != nullptr) keys.note("lora_target_linear and lora_target_modules are joined");
  } else if (modules != nullptr) {
    keys.state("adapter.target_modules", to_value(*modules), {modules});
  }
  for (const auto& [path, name] : {std::pair{"adapter.modules_to_save", "lora_modules_to_save"},
                                   {"adapter.target_parameters", "lora_target_parameters"},
                                   {"adapter.layers_to_transform", "peft_layers_to_transform"}}) {
    const Node* node = keys[name];
    if (node != nullptr && !node->items.empty()) keys.state(path, to_value(*node), {node});
  }
  if (keys.truthy("peft_use_dora")) keys.copy("adapter.use_dora", "peft_use_dora");
  if (keys.truthy("peft_use_rslora")) keys.copy("adapter.use_rslora", "peft_use_rslora");
}

/// utils/schemas/config.py: check_auto_enable_lora_kernels: where none of the keys is there, all are on.
void read_lora_kernels(Keys& keys, const Facts& facts) {
  if (keys["adapter"] == nullptr || keys["adapter"]->text.empty()) return;
  std::vector<Value> kernels;
  std::vector<Origin> origins;
  constexpr const char* kWords[] = {"mlp", "qkv", "o", "embedding"};
  for (const char* word : kWords) {
    const Node* node = keys["lora_" + std::string{word} + "_kernel"];
    if (node == nullptr || !node->is_bool()) continue;
    if (node->boolean) kernels.push_back(of(word));
    origins.push_back(keys.origin(node));
  }
  if (!origins.empty()) {
    if (kernels.empty()) kernels.push_back(of("none"));
    state(keys.reading, "lora_kernels", of(std::move(kernels)), std::move(origins));
    return;
  }
  const Node* version = keys["fsdp_version"] != nullptr ? keys["fsdp_version"] : fsdp(keys, "version");
  const bool first = facts.sharded && (version == nullptr || version->integer != 2);
  const Node* rl = keys["rl"];
  const bool off = first || (rl != nullptr && !rl->text.empty()) || is_on(keys["load_in_8bit"]) ||
                   keys.truthy("trust_remote_code") || keys.truthy("nvfp4_merge_aware");
  const std::string_view name = keys["adapter"]->text;
  if (off || (name != "lora" && name != "qlora")) return;
  for (const char* word : kWords) kernels.push_back(of(word));
  keys.assume(
      "lora_kernels", of(std::move(kernels)),
      "axolotl turns its LoRA kernels on when none is named (schemas/config.py: check_auto_enable_lora_kernels)");
}

void read_batch(Keys& keys) {
  if (!keys.copy("micro_batch_size", "micro_batch_size")) {
    keys.assume("micro_batch_size", of(1), "default 1 (schemas/training.py)");
  }
  const Node* micro = keys["micro_batch_size"];
  const Node* batch = keys["batch_size"];
  if (!keys.copy("gradient_accumulation_steps", "gradient_accumulation_steps")) {
    if (batch != nullptr && micro != nullptr && micro->integer > 0) {
      keys.state("gradient_accumulation_steps", of(batch->integer / micro->integer), {batch, micro});
    } else {
      keys.assume("gradient_accumulation_steps", of(1), "default 1 (schemas/training.py)");
    }
  }
  if (!keys.copy("sequence_length", "sequence_len")) {
    keys.assume("sequence_length", of(512), "default 512 (schemas/config.py)");
  }
  const Node* packing = keys["sample_packing"];
  const Node* pad = keys["pad_to_sequence_len"];
  if (packing != nullptr) {
    keys.state("packing", of(is_on(packing)), {packing});
  } else {
    keys.assume("packing", of(false), "default false");
  }
  if (is_on(packing)) {
    keys.state("padding", of(false), {packing}, "packed rows carry no 2-D mask with flash attention");
  } else {
    keys.state("padding", of(true), {packing, pad},
               "the collator pads to the longest row (or to sequence_len with pad_to_sequence_len)");
  }
}

void read_attention(Keys& keys) {
  constexpr std::pair<const char*, const char*> kSwitches[] = {
      {"flash_attention", "flash_attention_2"}, {"sdp_attention", "sdpa"},    {"xformers_attention", "xformers"},
      {"flex_attention", "flex_attention"},     {"eager_attention", "eager"}, {"sage_attention", "sage_attention"}};
  std::string word;
  const Node* named = keys["attn_implementation"];
  const Node* hybrid = keys["gemma4_hybrid_attn_impl"];
  if (is_on(hybrid)) {
    // axolotl 067b021 loaders/patch_manager.py: _apply_gemma_hybrid_attention: 512 dimensions are too many for it.
    word = "sdpa";
    keys.state("attention", of(word), {named, hybrid});
    not_counted(keys.reading, "gemma4_hybrid_attn_impl", {keys.origin(hybrid)});
  } else if (named != nullptr) {
    word = named->text;
    keys.state("attention", of(word), {named});
  }
  for (const auto& [key, name] : kSwitches) {
    const Node* node = keys[key];
    if (!is_on(node) || !word.empty()) continue;
    word = name;
    keys.state("attention", of(name), {node});
  }
  if (word.empty()) keys.assume("attention", of("sdpa"), "transformers default (sdpa since 4.36)");
}

void read_precision(Keys& keys, const Facts& facts) {
  const Node* bf16 = keys["bf16"] != nullptr ? keys["bf16"] : keys["bfloat16"];
  const Node* fp16 = keys["fp16"];
  const bool fp16_on = is_on(fp16) && !(bf16 != nullptr && is_on(bf16) && bf16->text != "auto");
  if (keys["deepspeed"] != nullptr && !keys["deepspeed"]->text.empty()) {
    const Node* half = fp16_on ? fp16 : is_on(keys["float16"]) && !is_on(bf16) ? keys["float16"] : nullptr;
    keys.state("precision", of(half != nullptr ? "deepspeed_fp16" : "deepspeed_bf16"), {half != nullptr ? half : bf16});
  } else if (fp16_on) {
    keys.state("precision", precision_of("fp16", "fp16"), {fp16});
  } else if (is_on(keys["bfloat16"]) && !is_on(keys["bf16"])) {
    keys.state("precision", of("pure_bf16"), {keys["bfloat16"]});
  } else if (is_on(bf16) || bf16 == nullptr) {
    const bool automatic = bf16 == nullptr || bf16->text == "auto";
    keys.state("precision", of("bf16_amp"), {bf16, fp16},
               automatic ? "bf16: auto means bf16 on Ampere and later, fp16 before" : "");
  } else if (is_on(keys["float16"]) || keys.truthy("load_in_8bit")) {
    keys.state("precision", of("pure_fp16"), {keys["float16"], keys["load_in_8bit"], bf16},
               "the dtype of the weights alone (utils/config: resolve_dtype)");
  } else {
    keys.state("precision", of("fp32"), {bf16}, "neither bf16 nor fp16 (loaders: resolve_dtype)");
  }
  if (facts.quantised) keys.note("the quantised base computes in torch_dtype");
}

void read_checkpointing(Keys& keys, const Facts& facts) {
  const Node* node = keys["gradient_checkpointing"];
  const Node* sharded = fsdp(keys, "activation_checkpointing");
  const Node* reentrant = keys["gradient_checkpointing_kwargs.use_reentrant"];
  if (is_on(node)) {
    const bool host = node->is_string() && (contains(node->text, "offload") || node->text == "unsloth");
    keys.state("gradient_checkpointing", of(host ? "offload" : "full"), {node});
    if (reentrant != nullptr) {
      keys.state("use_reentrant", to_value(*reentrant), {reentrant});
    } else if (!host && keys["rl"] == nullptr && keys["unfrozen_parameters"] == nullptr) {
      keys.assume("use_reentrant", of(!keys.truthy("activation_offloading") || !facts.sharded),
                  "axolotl sets it when unset (src/axolotl/utils/config/__init__.py L376-383 axolotl@067b021c)");
    } else if (!host) {
      keys.assume("use_reentrant", of(false),
                  "not where answers are compared or some parameters alone are trained (core/builders/base.py: "
                  "_configure_gradient_checkpointing)");
    }
  } else if (is_on(sharded)) {
    keys.state("gradient_checkpointing", of("full"), {sharded});
    keys.assume("use_reentrant", of(false), "accelerate's checkpoint_wrapper (utils/fsdp_utils.py: apply_ac)");
  } else {
    keys.state("gradient_checkpointing", of("none"), {node}, "default false axolotl@067b021c");
  }
}

void read_loss(Keys& keys) {
  const Node* cut = keys["cut_cross_entropy"];
  const Node* fused = keys["liger_fused_linear_cross_entropy"];
  const Node* chunked = keys["chunked_cross_entropy"];
  const bool cut_by_plugin = has_plugin(keys, "cut_cross_entropy") && (cut == nullptr || is_on(cut));
  if (is_on(cut) || cut_by_plugin) {
    keys.state("loss", of("cut_cross_entropy"), {cut, keys["plugins"]});
  } else if (is_on(fused)) {
    keys.state("loss", of("liger"), {fused});
  } else if (is_on(chunked)) {
    keys.state("loss", of("chunked"), {chunked});
  }
  std::vector<Value> kernels;
  std::vector<Origin> origins;
  for (const auto& [name, keys_of] : {std::pair{"layer_norm", "liger_layer_norm"},
                                      {"rms_norm", "liger_rms_norm"},
                                      {"rope", "liger_rope"},
                                      {"swiglu", "liger_glu_activation"},
                                      {"swiglu", "liger_swiglu"},
                                      {"cross_entropy", "liger_cross_entropy"}}) {
    const Node* node = keys[keys_of];
    if (!is_on(node)) continue;
    kernels.push_back(of(name));
    origins.push_back(keys.origin(node));
  }
  if (!kernels.empty()) state(keys.reading, "liger", of(std::move(kernels)), std::move(origins));
}

// core/trainers/ebft/args.py: EBFTFieldsMixin.
void read_features(Keys& keys) {
  const Node* layers = keys["ebft.feature_layers"];
  const Value count = of(layers == nullptr ? 3 : static_cast<std::int64_t>(layers->items.size()));
  keys.state("feature_layers", count, {layers}, layers == nullptr ? "EBFT's default" : "");
  for (const char* key : {"ebft.mode", "ebft.embed_method", "ebft.use_whitening", "ebft.alignment_coef",
                          "ebft.diversity_coef", "ebft.ce_coef"})
    keys.touch(key);
}

void read_task(Keys& keys) {
  const Node* rl = keys["rl"];
  const Node* streamed = keys["pretraining_dataset"];
  const Node* reward = keys["reward_model"];
  if (rl != nullptr && !rl->text.empty()) {
    // core/builders/rl.py: GDPO is GRPO's trainer with rewards that are normalised one by one.
    // core/trainers/ebft/__init__.py: EBFT is GRPO's, too, but where answers begin all over a text.
    const bool compares = rl->text == "ebft" && keys.text("ebft.mode") != "strided";
    const std::string task = rl->text == "ipo" ? "dpo" : rl->text == "gdpo" || compares ? "grpo" : rl->text;
    keys.state("task", of(task), {rl});
    if (compares) read_features(keys);
    const bool adapter = keys["adapter"] != nullptr;
    // axolotl src/axolotl/core/trainers/grpo/__init__.py: set_training_args_kwargs
    if (task == "grpo")
      state_rollout(keys, "trl.", "vllm.gpu_memory_utilization", "server", "a server is started with vllm-serve");
    if (rl->text == "dpo" || rl->text == "ipo" || rl->text == "kto") {
      keys.assume("reference_model", object({{"present", of(true)}, {"shared_with_adapter", of(adapter)}}),
                  "a copy unless an adapter is trained");
    }
  } else if (is_on(reward)) {
    keys.state("task", of("reward"), {reward});
  } else if (streamed != nullptr) {
    keys.state("task", of("pretrain"), {streamed});
  } else if (keys["processor_type"] != nullptr) {
    keys.state("task", of("vlm"), {keys["processor_type"]});
    keys.unknown("image sizes");
  } else {
    keys.assume("task", of("sft"), "neither rl nor pretraining_dataset");
  }
}

void read_evaluation(Keys& keys) {
  const Node* share = keys["val_set_size"];
  const Node* sets = keys["test_datasets"];
  const Node* batch = keys["eval_batch_size"];
  if ((share == nullptr || share->real <= 0) && sets == nullptr) return;
  if (batch != nullptr) {
    keys.state("evaluation.micro_batch_size", to_value(*batch), {batch});
  } else if (keys["micro_batch_size"] != nullptr) {
    keys.state("evaluation.micro_batch_size", to_value(*keys["micro_batch_size"]), {share, sets},
               "eval_batch_size is micro_batch_size when unset (utils/config/__init__.py)");
  }
}

// utils/schemas/quantization.py QATConfig, utils/quantization.py prepare_model_for_qat. Formats of 4-bit floats round
// inputs as they do weights, whatever is said of them; steps before fake_quant_after_n_steps need less.
void read_qat(Keys& keys) {
  const Node* weights = keys["qat.weight_dtype"];
  if (keys["qat"] == nullptr) return;
  keys.state("qat.weight_dtype", weights == nullptr ? of("int8") : to_value(*weights), {weights, keys["qat"]},
             weights == nullptr ? "default int8 (schemas/quantization.py)" : "");
  keys.copy("qat.activation_dtype", "qat.activation_dtype");
  keys.copy("qat.group_size", "qat.group_size");
  keys.copy("qat.quantize_embedding", "qat.quantize_embedding");
  keys.touch("qat.fake_quant_after_n_steps");
  if (weights != nullptr && weights->text == "nvfp4")
    keys.note(
        "torchao 0.17 knows no training for the NVFP4WeightOnlyConfig that Axolotl 067b021 makes of \"nvfp4\" and "
        "raises a ValueError: the figure is that of torchao's NVFP4FakeQuantizedLinear, as before");
}

/// Keys that move memory and that the engine has nothing for.
void read_what_is_not_counted(Keys& keys) {
  constexpr const char* kKeys[] = {"tiled_mlp",
                                   "use_onebitllms",
                                   "diffusion",
                                   "use_scattermoe",
                                   "use_sonicmoe",
                                   "use_eaft",
                                   "llmcompressor",
                                   "use_kernels",
                                   "use_dsv4_kernels",
                                   "use_glm_dsa_kernels",
                                   "flash_attn_cross_entropy"};
  for (const char* key : kKeys) {
    const Node* node = keys[key];
    if (node == nullptr || (node->is_bool() && !node->boolean)) continue;
    keys.touch(key);
    not_counted(keys.reading, key, {keys.origin(node)});
  }
  read_qat(keys);
  if (keys.truthy("fp8")) keys.copy("fp8", "fp8");
  keys.copy("fused_attn_kernel", "fused_attn_kernel");
  if (keys.truthy("relora")) keys.note("ReLoRA's merges between steps are not counted");
  if (const Node* experts = keys["experts_implementation"]; experts != nullptr) {
    const std::string& word = experts->text;
    if (word == "eager" || word == "grouped_mm" || word == "batched_mm") {
      keys.state("moe.implementation", of(word), {experts});
    } else {
      not_counted(keys.reading, "experts_implementation " + word, {keys.origin(experts)});
    }
  }
  const Node* workers = keys["ray_num_workers"];
  if (keys.truthy("use_ray") && workers != nullptr && workers->integer > 0)
    keys.state("parallelism.data", of(workers->integer), {workers});
}

void read_axolotl(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  Facts facts;
  keys.assume("framework.name", of("transformers"), "axolotl trains with transformers' Trainer");
  keys.copy_any("model", {"base_model", "base_model_config"});
  read_parallelism(keys, facts);
  read_method(keys, facts);
  read_attention(keys);
  read_quantization(keys, facts);
  read_adapter(keys);
  read_lora_kernels(keys, facts);
  read_batch(keys);
  read_precision(keys, facts);
  read_checkpointing(keys, facts);
  if (keys.truthy("activation_offloading"))
    keys.state("offload.activations", of("cpu"), {keys["activation_offloading"]});
  if (const Node* settings = keys["optim_args"]; settings != nullptr && settings->is_string())
    keys.copy("optim_args", "optim_args");
  if (const Node* rank = keys["qgalore_rank"]; rank != nullptr)
    keys.state("optim_args", of("rank=" + std::to_string(rank->integer)), {rank});
  keys.copy("optim_target_modules", "optim_target_modules");
  if (const Node* optimizer = keys["optimizer"]; optimizer != nullptr) {
    keys.state("optimizer", of(optimizer_word(optimizer->text)), {optimizer});
  } else {
    keys.assume("optimizer", of("adamw_torch_fused"), "default (schemas/training.py L122); adamw_hf up to v0.7.0");
  }
  keys.copy("max_grad_norm", "max_grad_norm");
  keys.copy_any("neftune_noise_alpha", {"neftune_noise_alpha", "noisy_embedding_alpha"});
  read_loss(keys);
  read_task(keys);
  read_evaluation(keys);
  if (keys.truthy("torch_compile")) keys.state("compile", of("full"), {keys["torch_compile"]});
  read_what_is_not_counted(keys);
  for (const char* question : {"gpu", "parallelism.data (launcher)", "axolotl version"}) keys.unknown(question);
  keys.tell_unread();
}

const Format kRows[] = {
    {"axolotl", "Axolotl configuration", recognise_axolotl, read_axolotl, 50},
};

}  // namespace

extern const FormatRows axolotl_rows;
const FormatRows axolotl_rows = kRows;

}  // namespace tidemark::exchange
