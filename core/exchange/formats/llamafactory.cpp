// LLaMA-Factory's YAML (LLaMA-Factory ff6d4d12 hparams/{finetuning_args,model_args,data_args}.py, model/adapter.py,
// model/model_utils/checkpointing.py).
#include <algorithm>
#include <utility>

#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/exchange/other_work.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// A command that says the job in LLaMA-Factory's words: llamafactory-cli train --stage sft, python src/train.py
/// --stage sft.
bool says_by_flags(const TrainingScript& text) {
  if (text.launch == nullptr) return false;
  const auto has = [&](std::string_view flag) { return has_flag(*text.launch, flag); };
  return has("model_name_or_path") && has("stage") &&
         (has("finetuning_type") || has("template") || has("dataset") || has("cutoff_len"));
}

int recognise_llamafactory(const Look& look) {
  if (look.syntax == Look::Syntax::kShell && look.source.bytes.find("--stage") != std::string::npos)
    return says_by_flags(training_script(look)) ? 96 : 0;
  if (!look.is_map() || !look.has("model_name_or_path")) return 0;
  if (look.has("finetuning_type")) return 95;
  if (look.has("stage") && (look.has("template") || look.has("cutoff_len") || look.has("dataset"))) return 90;
  if (look.has("template") && (look.has("infer_backend") || look.has("export_dir"))) return 85;
  return look.has("cutoff_len") && look.has("template") ? 85 : 0;
}

struct Facts {
  bool megatron = false;
  bool deepspeed = false;
  int zero = -1;
  bool sharded = false;
  std::string type;  // finetuning_type
  std::string model;
};

void read_framework(Keys& keys, Facts& facts) {
  const bool path = contains(lower_case(keys.file), "megatron");
  const bool axes = keys["pipeline_model_parallel_size"] != nullptr || keys["tensor_model_parallel_size"] != nullptr;
  facts.megatron = path || axes;
  if (!facts.megatron && keys.truthy("use_unsloth")) {
    keys.state("framework.name", of("unsloth"), {keys["use_unsloth"]},
               "FastLanguageModel in the Trainer (model/model_utils/unsloth.py)");
    return;
  }
  keys.state("framework.name", of(facts.megatron ? "megatron" : "transformers"),
             {keys["tensor_model_parallel_size"], keys["pipeline_model_parallel_size"]},
             facts.megatron ? "Megatron's keys: run with USE_MCA=1 (or USE_MEGATRON_BRIDGE=1)"
                            : "LLaMA-Factory trains with transformers' Trainer");
  for (const auto& [path_of, name] : {std::pair{"parallelism.tensor", "tensor_model_parallel_size"},
                                      {"parallelism.pipeline", "pipeline_model_parallel_size"},
                                      {"parallelism.expert", "expert_model_parallel_size"},
                                      {"parallelism.context", "context_parallel_size"},
                                      {"parallelism.virtual_pipeline", "virtual_pipeline_model_parallel_size"},
                                      {"parallelism.sequence_parallel", "sequence_parallel"},
                                      {"distributed_optimizer", "use_distributed_optimizer"}}) {
    if (facts.megatron) keys.copy(path_of, name);
  }
}

void read_method(Keys& keys, Facts& facts) {
  const Node* type = keys["finetuning_type"];
  facts.type = type == nullptr ? "lora" : lower_case(type->text);
  const Node* bits = keys["quantization_bit"];
  const std::string ready = quantised_by_name(facts.model);
  std::string method = facts.type;
  if ((bits != nullptr || !ready.empty()) && (method == "lora" || method == "oft")) method = "q" + method;
  keys.state("method", of(method), {type, bits, ready.empty() ? nullptr : keys["model_name_or_path"]},
             type == nullptr ? "default lora (finetuning_args.py L464)" : "");
  if (bits != nullptr) {
    // hparams/parser.py: ValueError "Quantization is only compatible with the LoRA or OFT method."
    if (facts.type != "lora" && facts.type != "oft") refuse_packed_alone(keys.reading, "quantization_bit");
    const char* why =
        "double quantisation default true; LLaMA-Factory has its own preparation (model_utils/checkpointing.py)";
    const Node* kind = keys["quantization_type"];
    const Node* nested = keys["double_quantization"];
    const std::string library = keys["quantization_method"] == nullptr ? "bnb" : keys.text("quantization_method");
    keys.state("quantization.bits", to_value(*bits), {bits});
    const std::string bnb = bits->integer == 8 ? "int8" : kind != nullptr ? kind->text : "nf4";
    const bool by_bnb = library == "bnb" || library == "bitsandbytes";
    keys.state("quantization.quant_type", of(by_bnb ? bnb : library), {kind, bits}, why);
    if (by_bnb && bits->integer == 4)
      keys.state("quantization.double_quant", of(nested == nullptr || nested->boolean), {nested, bits},
                 nested == nullptr ? why : "");
    if (keys.truthy("upcast_layernorm")) {
      keys.state("quantization.prepare_kbit", of("norms_only"), {keys["upcast_layernorm"]});
    } else {
      keys.state("quantization.prepare_kbit", of(false), {bits}, why);
    }
  } else if (!ready.empty()) {
    keys.state("quantization.quant_type", of(ready), {keys["model_name_or_path"]}, "from the model name");
    if (ready == "gptq" && contains(lower_case(facts.model), "int8")) {
      keys.state("quantization.bits", of(8), {keys["model_name_or_path"]}, "from the model name");
    }
  }
}

void read_adapter(Keys& keys, const Facts& facts) {
  if (facts.type == "oft") {
    keys.copy("adapter.oft_block_size", "oft_block_size");
    if (const Node* rank = keys["oft_rank"]; rank != nullptr && rank->integer > 0) keys.copy("adapter.r", "oft_rank");
    keys.touch("oft_target");  // model/adapter.py _setup_lora_tuning reads lora_target for OFT, too
  }
  if (facts.type == "freeze") {
    if (!keys.copy("freeze_trainable_layers", "freeze_trainable_layers"))
      keys.assume("freeze_trainable_layers", of(2), "default 2 (finetuning_args.py L23)");
    if (!keys.copy("freeze_trainable_modules", "freeze_trainable_modules"))
      keys.assume("freeze_trainable_modules", of("all"), "default all (finetuning_args.py L33)");
    if (keys.truthy("use_llama_pro")) keys.copy("use_llama_pro", "use_llama_pro");
    if (const Node* half = keys.truthy("bf16") ? keys["bf16"] : keys["fp16"];
        half != nullptr && half->boolean && !keys.truthy("pure_bf16"))
      keys.state("frozen_dtype", of(keys.truthy("bf16") ? "bf16" : "fp16"), {half},
                 "what is not trained keeps the dtype that it is loaded in (model/adapter.py L337-352)");
  }
  if (facts.type != "lora" && facts.type != "oft") return;
  const Node* target = keys["lora_target"];
  if (target == nullptr || target->text == "all") {
    keys.state("adapter.target_modules", of("all-linear"), {target}, target == nullptr ? "default all" : "");
  } else {
    keys.state("adapter.target_modules", word_list(*target), {target});
  }
  if (facts.type != "lora") return;
  const Node* rank = keys["lora_rank"];
  if (!keys.copy("adapter.r", "lora_rank")) keys.assume("adapter.r", of(8), "default 8 (finetuning_args.py L77)");
  if (!keys.copy("adapter.lora_alpha", "lora_alpha")) {
    keys.assume("adapter.lora_alpha", of(2 * (rank == nullptr ? 8 : rank->integer)), "default 2 x rank");
  }
  if (!keys.copy("adapter.lora_dropout", "lora_dropout")) keys.assume("adapter.lora_dropout", of(0.0), "default 0");
  if (const Node* further = keys["additional_target"]; further != nullptr)
    keys.state("adapter.modules_to_save", word_list(*further), {further});
  if (keys.truthy("use_dora")) keys.copy("adapter.use_dora", "use_dora");
  if (keys.truthy("use_rslora")) keys.copy("adapter.use_rslora", "use_rslora");
  const bool cast = !keys.truthy("pure_bf16") && !keys.truthy("use_badam") && facts.zero != 3 && !facts.sharded;
  keys.assume("adapter.dtype", of(cast ? "fp32" : "bf16"), "cast_trainable_params_to_fp32 (model/adapter.py L337-352)");
}

void read_batch(Keys& keys) {
  if (!keys.copy("sequence_length", "cutoff_len")) {
    keys.assume("sequence_length", of(2048), "default 2048 since v0.9.1 (data_args.py), 1024 before");
  }
  if (!keys.copy("micro_batch_size", "per_device_train_batch_size"))
    keys.assume("micro_batch_size", of(8), "default 8 (TrainingArguments)");
  if (!keys.copy("gradient_accumulation_steps", "gradient_accumulation_steps")) {
    keys.assume("gradient_accumulation_steps", of(1), "default 1 (TrainingArguments)");
  }
  const Node* packing = keys["packing"];
  const Node* neat = keys["neat_packing"];
  const bool by_stage = keys.text("stage") == "pt";
  const bool packed = packing != nullptr ? packing->boolean : (neat != nullptr && neat->boolean) || by_stage;
  keys.state("packing", of(packed), {packing, neat},
             packing != nullptr || neat != nullptr ? "" : "default: true for stage pt, else false");
  keys.assume("padding", of(!packed), packed ? "packed rows are full" : "collator pads to the longest sample");
}

void read_checkpointing(Keys& keys, const Facts& facts) {
  const Node* off = keys["disable_gradient_checkpointing"];
  const Node* recompute = keys["recompute_granularity"];
  if (facts.megatron) {
    if (recompute == nullptr) return keys.unknown("recompute (mcore_adapter default)");
    const Value selective = object({{"selective", words({"core_attn"})}});
    return keys.state("gradient_checkpointing", recompute->text == "full" ? of("full") : selective, {recompute});
  }
  if (off != nullptr && off->boolean) return keys.state("gradient_checkpointing", of("none"), {off});
  const bool host = keys.truthy("use_unsloth_gc");
  keys.state("gradient_checkpointing", of(host ? "offload" : "full"), {host ? keys["use_unsloth_gc"] : off},
             "on unless disable_gradient_checkpointing (model_utils/checkpointing.py)");
  if (keys.truthy("use_kt"))
    return keys.state("use_reentrant", of(false), {keys["use_kt"]}, "configure_kt_checkpointing (model_args.py)");
  const Node* reentrant = keys["use_reentrant_gc"];
  keys.state("use_reentrant", of(reentrant == nullptr || reentrant->boolean), {reentrant},
             reentrant == nullptr ? "default true (model_args.py L149); false under FSDP 2" : "");
}

void read_precision(Keys& keys, const Facts& facts) {
  const Node* bf16 = keys["bf16"];
  const Node* fp16 = keys["fp16"];
  const Node* pure = keys["pure_bf16"];
  const char* why =
      "weights load in the compute dtype, trainable ones are upcast to fp32 unless pure_bf16 (model/adapter.py "
      "L337-352)";
  const bool half = fp16 != nullptr && fp16->boolean;
  const bool brain = bf16 != nullptr && bf16->boolean;
  const bool full = facts.type == "full" || facts.type == "freeze";
  refuse_both_halves(keys.reading, brain, half);
  if (pure != nullptr && pure->boolean) {
    keys.state("precision", of("pure_bf16"), {pure});
  } else if (!half && !brain) {
    keys.unknown("precision: neither bf16 nor fp16, so the checkpoint's dtype");
  } else if (facts.megatron) {
    keys.state("precision", of(half ? "megatron_fp16" : "megatron_bf16"), {half ? fp16 : bf16});
  } else if (facts.deepspeed) {
    keys.state("precision", of(half ? "deepspeed_fp16" : "deepspeed_bf16"), {half ? fp16 : bf16});
  } else if (half) {
    keys.state("precision", precision_of(full ? "fp32" : "fp16", "fp16"), {fp16}, why);
  } else {
    keys.state("precision", of(full ? "amp_bf16" : "bf16_amp"), {bf16}, why);
  }
  if (keys.truthy("fp8")) keys.copy("fp8", "fp8");
}

void read_attention(Keys& keys) {
  const Node* node = keys["flash_attn"];
  const std::string word = node == nullptr   ? "auto"
                           : node->is_bool() ? (node->boolean ? "fa2" : "disabled")
                                             : node->text;
  const char* name = word == "fa2"        ? "flash_attention_2"
                     : word == "fa3"      ? "flash_attention_3"
                     : word == "disabled" ? "eager"
                                          : "sdpa";
  keys.state("attention", of(name), {node}, word == "auto" ? "auto: the model default (sdpa)" : "");
  if (keys.truthy("enable_liger_kernel")) {
    keys.state("loss", of("liger"), {keys["enable_liger_kernel"]});
    keys.state("liger", words({"rms_norm", "swiglu", "rope"}), {keys["enable_liger_kernel"]},
               "what apply_liger_kernel_to_* replaces");
  }
}

void read_optimizer(Keys& keys) {
  constexpr std::pair<const char*, const char*> kSwitches[] = {{"use_galore", "galore_adamw"},
                                                               {"use_apollo", "apollo_adamw"},
                                                               {"use_badam", "badam"},
                                                               {"use_adam_mini", "adam_mini"},
                                                               {"use_muon", "muon"}};
  const Node* optim = keys["optim"];
  if (optim != nullptr) {
    keys.state("optimizer", of(optimizer_word(optim->text)), {optim});
  } else {
    keys.assume("optimizer", of("adamw_torch_fused"),
                "TrainingArguments default with torch 2.8 and later (adamw_torch before)");
  }
  for (const auto& [key, name] : kSwitches) {
    if (keys.truthy(key)) keys.state("optimizer", of(name), {keys[key]});
  }
  if (keys.truthy("use_badam")) {
    for (const char* name : {"badam_start_block", "badam_switch_mode", "badam_switch_interval"}) keys.touch(name);
    if (keys.text("badam_mode") == "ratio") keys.unknown("badam_mode ratio: BAdam is modelled by layers");
  }
  for (const char* name : {"galore", "apollo"}) {
    const std::string word = name;
    if (!keys.truthy("use_" + word)) continue;
    if (!keys.copy(word + "_rank", word + "_rank"))
      keys.assume(word + "_rank", of(16), "default (hparams/finetuning_args.py)");
    if (keys.truthy(word + "_layerwise")) keys.copy("optimizer_in_backward", word + "_layerwise");
  }
  keys.copy("max_grad_norm", "max_grad_norm");
  keys.copy("neftune_noise_alpha", "neftune_noise_alpha");
  keys.copy("label_smoothing_factor", "label_smoothing_factor");
}

void read_parallelism(Keys& keys, Facts& facts) {
  const Node* deepspeed = keys["deepspeed"];
  if (deepspeed != nullptr && !deepspeed->text.empty()) {
    facts.deepspeed = true;
    facts.zero = zero_stage_of_name(deepspeed->text);
    state_deepspeed_file(keys, deepspeed, false);
  }
  const Node* fsdp = keys["fsdp"];
  if (fsdp != nullptr) {
    facts.sharded = true;
    keys.state("parallelism.fsdp", of(fsdp_strategy(fsdp->text)), {fsdp});
    state_fsdp1(keys, [](const char*) { return nullptr; });
    keys.touch("fsdp_config");
  }
}

/// What is frozen of a model that sees, and what the images are.
void read_vision(Keys& keys, const Facts& facts) {
  const Node* pixels = keys["image_max_pixels"];
  const Node* tower = keys["freeze_vision_tower"];
  const Node* projector = keys["freeze_multi_modal_projector"];
  const Node* language = keys["freeze_language_model"];
  const std::string words_of = lower_case(facts.model + " " + keys.text("template"));
  const bool sees = pixels != nullptr || keys["video_max_pixels"] != nullptr || contains(words_of, "vl") ||
                    contains(words_of, "llava");
  if (!sees) return;
  if (pixels != nullptr) keys.state("image_max_pixels", to_value(*pixels), {pixels});
  std::vector<Value> frozen;
  if (tower == nullptr || tower->boolean) frozen.push_back(of("vision_tower"));
  if (projector == nullptr || projector->boolean) frozen.push_back(of("multi_modal_projector"));
  if (language != nullptr && language->boolean) frozen.push_back(of("language_model"));
  if (!frozen.empty()) {
    keys.state("freeze", of(std::move(frozen)), {tower, projector, language},
               "freeze_vision_tower and freeze_multi_modal_projector default to true (finetuning_args.py L546-550)");
  }
  if (pixels != nullptr) keys.unknown("images per sample, sizes");
}

// hparams/model_args.py use_kt, get_kt_config_dict; KTransformers 95009ea kt-kernel/python/sft/config.py KTConfig: how
// experts lie in host memory. fp8 weights have as many bytes as int8 ones.
void read_ktransformers(Keys& keys) {
  if (!keys.truthy("use_kt")) return;
  const Node* format = keys["kt_config.kt_expert_weight_format"];
  const Node* backend = keys["kt_config.kt_backend"];
  const std::string words_of = lower_case(format != nullptr ? format->text : keys.text("kt_config.kt_backend"));
  const bool bytes = contains(words_of, "int8") || contains(words_of, "fp8");
  keys.state("moe.implementation", of(bytes ? "ktransformers_int8" : "ktransformers"),
             {keys["use_kt"], format != nullptr ? format : backend});
  if (keys.truthy("kt_use_lora_experts"))
    not_counted(keys.reading, "kt_use_lora_experts", {keys.origin(keys["kt_use_lora_experts"])});
  // Threads, caches and files of the host.
  for (const char* key : {"kt_config", "kt_cpu_activation", "kt_weight_path", "kt_non_expert_weight_path",
                          "kt_expert_checkpoint_path", "kt_lora_expert_num", "kt_lora_expert_intermediate_size"})
    keys.touch(key);
}

void read_task(Keys& keys) {
  const Node* stage = keys["stage"];
  const std::string name = stage == nullptr ? "sft" : stage->text;
  const std::string loss = keys.text("pref_loss");
  std::string task = name == "pt" ? "pretrain" : name == "rm" ? "reward" : name;
  if (name == "dpo" && (loss == "orpo" || loss == "simpo")) task = loss;
  if (task == "sft" && keys["image_max_pixels"] != nullptr) task = "vlm";
  keys.state("task", of(task), {stage, loss.empty() ? nullptr : keys["pref_loss"]},
             stage == nullptr ? "default sft" : "");
  if (task == "dpo" || task == "kto") {
    const bool shared = keys["finetuning_type"] == nullptr || keys.text("finetuning_type") == "lora";
    keys.state("reference_model.present", of(true), {keys["finetuning_type"]},
               "the loss compares with a reference model");
    keys.assume("reference_model.shared_with_adapter", of(shared),
                "create_ref_model returns None for lora (train/trainer_utils.py)");
  }
}

void read_evaluation(Keys& keys) {
  const Node* strategy = keys.any({"eval_strategy", "evaluation_strategy"});
  const Node* batch = keys["per_device_eval_batch_size"];
  if (strategy == nullptr || strategy->text == "no" || strategy->is_bool()) return;
  if (batch != nullptr) return keys.state("evaluation.micro_batch_size", to_value(*batch), {batch});
  keys.state("evaluation.micro_batch_size", of(8), {strategy},
             "per_device_eval_batch_size default 8 (TrainingArguments)");
}

/// What a file does that trains nothing (LLaMA-Factory train/tuner.py: export_model, train/sft/workflow.py: do_train
/// and do_predict, chat/chat_model.py); empty where it trains.
std::string other_work_of(Keys& keys) {
  if (keys.truthy("do_train")) return {};
  if (keys["export_dir"] != nullptr) return work_in_words("export_dir", kConverts);
  if (keys.truthy("do_predict")) return work_in_words("do_predict\" without \"do_train", kEvaluates);
  if (keys["infer_backend"] != nullptr && keys["dataset"] == nullptr) return work_in_words("infer_backend", kServes);
  return {};
}

void read_keys(Keys& keys) {
  Reading& reading = keys.reading;
  if (const std::string work = other_work_of(keys); !work.empty()) return tell_other_work(reading, keys.file, work);
  Facts facts;
  facts.model = keys.text("model_name_or_path");
  keys.copy("model", "model_name_or_path");
  read_framework(keys, facts);
  read_parallelism(keys, facts);
  read_method(keys, facts);
  read_adapter(keys, facts);
  read_batch(keys);
  read_checkpointing(keys, facts);
  read_precision(keys, facts);
  read_attention(keys);
  read_optimizer(keys);
  read_vision(keys, facts);
  read_task(keys);
  read_evaluation(keys);
  read_ktransformers(keys);
  // extras/misc: mixture_of_depths. train/trainer_utils.py: dft_loss_func keeps what the model's own loss keeps.
  keys.touch("use_dft_loss");
  for (const auto& [key, what] : {std::pair{"mixture_of_depths", "mixture_of_depths"},
                                  {"use_eaft_loss", "use_eaft"},
                                  {"use_asft_loss", "the reference model of use_asft_loss"}}) {
    if (keys.truthy(key)) not_counted(keys.reading, what, {keys.origin(keys[key])});
  }
  keys.unknown("gpu");
  if (!keys.has("parallelism.data")) keys.unknown("parallelism.data (launcher)");
  keys.unknown("LLaMA-Factory and transformers versions");
  keys.tell_unread();
}

/// The flags are the YAML's keys (hparams/parser.py: read_args, HfArgumentParser of the same classes).
void read_flags(const Look& look, Reading& reading) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  Args args(reading);
  read_script(args, look, text);
  if (text.launch->launcher == "llamafactory-cli")
    read_llamafactory_processes(args, text, file);
  else
    read_launcher(args, *text.launch, file);
  Node tree;
  tree.kind = Node::Kind::kObject;
  for (Arg& arg : args.all) {
    arg.read = true;
    if (!arg.unresolved.empty()) {
      args.unknown(arg.key + ": " + arg.unresolved + " is not set in the file");
      continue;
    }
    Node value = arg.value;
    value.line = value.last = arg.origins.empty() ? 0 : arg.origins.front().first;
    put_node(tree, arg.key, std::move(value));
  }
  Keys keys(tree, file, reading);
  read_keys(keys);
}

void read_llamafactory(const Look& look, Sources, Reading& reading) {
  if (look.syntax == Look::Syntax::kShell) return read_flags(look, reading);
  Keys keys(look.document.root, look.source.name, reading);
  read_keys(keys);
}

const Format kRows[] = {
    {"llamafactory", "LLaMA-Factory configuration", recognise_llamafactory, read_llamafactory, 50},
};

}  // namespace

extern const FormatRows llamafactory_rows;
const FormatRows llamafactory_rows = kRows;

}  // namespace tidemark::exchange
