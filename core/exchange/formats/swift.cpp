// ms-swift's commands (ms-swift 3602360a swift/arguments/base_args/*.py, arguments/{tuner,sft,rlhf}_args.py,
// trainers/arguments.py, megatron/arguments/megatron_args.py).
#include <string>
#include <utility>

#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/args.hpp"
#include "core/exchange/deepspeed_keys.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_swift(const Look& look) {
  if (look.syntax != Look::Syntax::kShell) return 0;
  for (const char* word : {"swift sft", "swift pt", "swift rlhf", "megatron sft", "megatron pt", "megatron rlhf",
                           "swift/cli/", "swift.cli."}) {
    if (look.mentions(word)) return 96;
  }
  return 0;
}

struct Facts {
  bool megatron = false;
  std::string verb;    // sft, pt, rlhf
  std::string method;  // tuner_type
  std::string task;
  bool sees = false;
};

void read_verb(const Launch& launch, Facts& facts) {
  const std::string path = lower_case(launch.program);
  facts.megatron = launch.launcher == "megatron" || contains(path, "megatron");
  facts.verb = contains(path, "rlhf") ? "rlhf" : contains(path, "pt") && !contains(path, "sft") ? "pt" : "sft";
}

void read_task(Args& args, Facts& facts) {
  const Arg* kind = args.find("rlhf_type");
  const Arg* type = args.find("task_type");
  const std::string words_of = kind == nullptr ? "dpo" : kind->value.text;
  if (facts.verb == "rlhf") {
    facts.task = words_of == "rm" ? "reward" : words_of;
    args.state("task", of(facts.task), {kind}, kind == nullptr ? "rlhf_type default dpo" : "");
  } else if (type != nullptr && type->value.text != "causal_lm") {
    const std::string word = type->value.text;
    facts.task = word == "seq_cls" ? "classification" : word;
    args.state("task", of(facts.task), {type});
  } else {
    facts.task = facts.verb == "pt" ? "pretrain" : "sft";
    args.assume("task", of(facts.task), "the command");
  }
}

void read_method(Args& args, Facts& facts) {
  const Arg* type = args.any({"tuner_type", "train_type", "sft_type"});
  const bool full = facts.megatron || facts.verb == "pt";
  facts.method = type != nullptr ? lower_case(type->value.text) : full ? "full" : "lora";
  const Arg* bits = args.any({"quant_bits", "quantization_bit"});
  // swift/tuner_plugin/lora_llm.py: LoRA on the language model's linear layers, whose dropout is LoraConfig's own;
  // tower and projector are trained in place.
  const bool beside_towers = facts.method == "lora_llm";
  if (beside_towers) {
    facts.method = "lora";
    args.state("trainable", words({"vision_tower", "projector"}), {type}, "lora_llm trains vision tower and aligner");
    args.state("freeze", words({"vision_tower", "aligner"}), {type}, "lora_llm adapts the language model alone");
  }
  if (facts.method == "llamapro") {
    // swift/tuners/llamapro.py: copies of layers in equal steps, and nothing else is trained.
    facts.method = "freeze";
    if (!args.copy("llama_pro_new_blocks", {"llamapro_num_new_blocks"}))
      args.assume("llama_pro_new_blocks", of(4), "default 4 (tuner_args.py L185)");
  }
  const bool quantised = facts.method == "lora" && bits != nullptr && bits->value.integer > 0;
  args.state("method", of(quantised ? "qlora" : facts.method), {type, bits},
             type != nullptr ? ""
             : full          ? "Megatron-SWIFT and swift pt default to full"
                             : "default lora (base_args.py L93)");
  if (facts.method == "full" && bits != nullptr && bits->value.integer > 0)
    refuse_packed_alone(args.reading, bits->key);
  if (quantised) {
    const Arg* library = args.find("quant_method");
    const Arg* kind = args.find("bnb_4bit_quant_type");
    const bool bnb = library == nullptr || library->value.text == "bnb";
    const std::string name = bits->value.integer == 8 ? "int8" : kind != nullptr ? kind->value.text : "nf4";
    args.state("quantization.bits", to_value(bits->value), {bits});
    args.state("quantization.quant_type", of(bnb ? name : library->value.text), {library, kind, bits});
    const bool nested = !args.has("bnb_4bit_use_double_quant") || args.on("bnb_4bit_use_double_quant");
    if (bnb && bits->value.integer == 4)
      args.state("quantization.double_quant", of(nested), {bits}, "default true (quant_args.py L33-43)");
    args.copy("quantization.quant_storage", {"bnb_4bit_quant_storage"});
    args.find("bnb_4bit_compute_dtype");
  }
  if (facts.method != "lora" && facts.method != "adalora" && facts.method != "longlora") return;
  const auto option = [&](const char* path, const char* key, Value standard, const char* why) {
    if (!args.copy(path, {key})) args.assume(path, std::move(standard), why);
  };
  if (facts.method == "adalora") {
    option("adapter.init_r", "adalora_init_r", of(12), "default 12 (tuner_args.py)");
  } else {
    option("adapter.r", "lora_rank", of(8), "default 8 (tuner_args.py)");
  }
  option("adapter.lora_alpha", "lora_alpha", of(32), "default 32 (tuner_args.py)");
  if (beside_towers) {
    args.assume("adapter.lora_dropout", of(0.0), "lora_llm leaves LoraConfig's default");
  } else {
    option("adapter.lora_dropout", "lora_dropout", of(0.05), "default 0.05 (tuner_args.py)");
  }
  const Arg* modules = args.any({"target_modules", "lora_target_modules"});
  // mcore-bridge tuners: adapters of routers, some KiB each, are left out.
  Value named = modules == nullptr ? of("all-linear") : word_list(modules->value);
  const auto is = [](const char* word) { return [word](const Value& item) { return item.string == word; }; };
  if (named.is_array()) std::erase_if(named.items, is("all-router"));
  if (named.is_array() && named.items.size() == 1 && is("all-linear")(named.items[0])) named = of("all-linear");
  args.state("adapter.target_modules", std::move(named), {modules}, modules == nullptr ? "default all-linear" : "");
  if (const Arg* saved = args.find("modules_to_save");
      saved != nullptr && !(saved->value.is_list() && saved->value.items.empty())) {
    Value list = word_list(saved->value);
    if (list.is_string()) list = of(std::vector<Value>{list});
    // swift/megatron/utils/utils.py: get_modules_to_save.
    for (Value& name : list.items) {
      if (name.string == "all-embedding") name = of("word_embeddings");
    }
    args.state("adapter.modules_to_save", std::move(list), {saved});
  }
  if (args.on("use_dora")) args.state("adapter.use_dora", of(true), {args.find("use_dora")});
}

void read_batch(Args& args, const Facts& facts) {
  if (facts.megatron) {
    if (!args.copy("micro_batch_size", {"micro_batch_size"}))
      args.assume("micro_batch_size", of(1), "default 1 (megatron_args.py)");
    if (!args.copy("global_batch_size", {"global_batch_size"}))
      args.assume("global_batch_size", of(16), "default 16 (megatron_args.py)");
  } else {
    if (!args.copy("micro_batch_size", {"per_device_train_batch_size", "batch_size"}))
      args.assume("micro_batch_size", of(1), "ms-swift default 1 (swift/trainers/arguments.py)");
    if (!args.copy("gradient_accumulation_steps", {"gradient_accumulation_steps"}))
      args.unknown("gradient_accumulation_steps: ms-swift takes 16 / (batch x world size) when unset");
  }
  if (!args.copy("sequence_length", {"max_length"}))
    args.unknown("sequence_length: ms-swift default max_length is None = the model's max_model_len");
  if (args.on("packing")) args.state("packing", of(true), {args.find("packing")});
  const Arg* free = args.find("padding_free");
  if (facts.megatron) {
    args.state("padding_free", of(free == nullptr || args.on("padding_free")), {free},
               free == nullptr ? "default true (megatron_args.py L524)" : "");
  } else if (free != nullptr) {
    args.state("padding_free", of(args.on("padding_free")), {free});
  }
}

/// swift/arguments/sft_args.py: __post_init__; swift/optimizers: --optimizer and --use_galore take the place of
/// --optim.
void read_optimizer(Args& args) {
  const Arg* optim = args.find("optim");
  const Arg* own = args.any({"optimizer", "use_galore"});
  const bool galore = args.on("use_galore") || (own != nullptr && own->value.text == "galore");
  if (galore) {
    const bool packed = args.on("galore_quantization");
    args.state("optimizer", of(packed ? "q_galore_adamw8bit" : "galore_adamw"), {own});
    if (!args.copy("galore_rank", {"galore_rank"}))
      args.assume("galore_rank", of(128), "default (trainers/arguments.py)");
    for (const char* key : {"galore_optim_per_parameter", "galore_scale", "galore_update_proj_gap"}) args.find(key);
  } else if (own != nullptr && own->value.text.starts_with("muon")) {
    args.state("optimizer", of("muon"), {own});
    if (own->value.text == "muonclip") not_counted(args.reading, "muonclip's clipping", own->origins);
  } else {
    args.state("optimizer", of(optim == nullptr ? "adamw_torch_fused" : optimizer_word(optim->value.text)), {optim},
               optim == nullptr ? "default" : "");
  }
  if (const Arg* lisa = args.find("lisa_activated_layers"); lisa != nullptr && lisa->value.integer > 0)
    args.copy("lisa_layers", {"lisa_activated_layers"});
}

/// swift/megatron/arguments/megatron_args.py L485-505, L594, L638, L665-670.
void read_megatron_memory(Args& args) {
  const Arg* recompute = args.find("recompute_granularity");
  const std::string how = recompute == nullptr ? "selective" : recompute->value.text;
  const Value selective = object({{"selective", words({"core_attn"})}});
  args.state("gradient_checkpointing",
             how == "full"   ? of("full")
             : how == "none" ? of("none")
                             : selective,
             {recompute}, recompute == nullptr ? "default selective [core_attn] (megatron_args.py)" : "");
  const Arg* sharded = args.find("use_distributed_optimizer");
  args.state("distributed_optimizer", of(sharded == nullptr || args.on("use_distributed_optimizer")), {sharded},
             "default true");
  args.state("precision", of("megatron_bf16"), {args.any({"torch_dtype", "bf16"})},
             "Megatron-SWIFT default bf16 with distributed optimizer");
  if (args.on("optimizer_cpu_offload")) {
    args.state("offload.optimizer", of("cpu"), {args.find("optimizer_cpu_offload")});
    args.copy("offload.optimizer_fraction", {"optimizer_offload_fraction"});
  }
  const Arg* fused = args.find("cross_entropy_loss_fusion");
  const Arg* by = args.find("cross_entropy_fusion_impl");
  const bool fuses = fused == nullptr || args.on("cross_entropy_loss_fusion");
  args.state("megatron.cross_entropy_fusion_impl",
             of(!fuses          ? "none"
                : by == nullptr ? "native"
                                : by->value.text),
             {fused, by}, fused == nullptr ? "cross_entropy_loss_fusion default true, native" : "");
  if (args.has("gradient_accumulation_fusion") && !args.on("gradient_accumulation_fusion"))
    args.state("megatron.gradient_accumulation_fusion", of(false), {args.find("gradient_accumulation_fusion")});
  const Arg* method = args.find("recompute_method");
  const Arg* layers = args.find("recompute_num_layers");
  const auto left_out = [&](const std::string& what) { not_counted(args.reading, what); };
  if (const Arg* optimizer = args.find("optimizer"); optimizer != nullptr && optimizer->value.text == "sgd") {
    args.state("optimizer", of("sgd_momentum"), {optimizer});
  } else if (optimizer != nullptr && optimizer->value.text != "adam") {
    left_out("optimizer " + optimizer->value.text);
  }
  const Arg* modules = args.find("recompute_modules");
  const bool more_modules = modules != nullptr && (modules->value.items.empty() ? modules->value.text != "core_attn"
                                                                                : modules->value.items.size() > 1);
  if (how == "selective" && more_modules) left_out("recompute_modules");
  if (args.any({"fp8_format", "fp8_recipe"}) != nullptr) left_out("fp8_format");
  if (method != nullptr && method->value.text == "block") left_out("that some layers are not recomputed");
  if (layers != nullptr && layers->value.integer > 1) left_out("that several layers are recomputed together");
  if (const Arg* more = args.find("mtp_num_layers"); more != nullptr && more->value.integer > 0)
    left_out("the layers of multi-token prediction (mtp_num_layers)");
  if (args.on("use_precision_aware_optimizer")) left_out("what use_precision_aware_optimizer saves");
  if (args.find("moe_expert_capacity_factor") != nullptr)
    left_out("that experts drop what is beyond moe_expert_capacity_factor");
  if (args.on("fp8_param_gather")) left_out("what fp8_param_gather saves");
  if (args.any({"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"}) != nullptr)
    left_out("that a pipeline's ends have other numbers of layers");
}

void read_memory(Args& args, const Facts& facts) {
  const Arg* of_tower = args.find("vit_gradient_checkpointing");
  const bool trains_tower = args.has("freeze_vit") && !args.on("freeze_vit");
  if (of_tower != nullptr && !args.on("vit_gradient_checkpointing") && trains_tower)
    not_counted(args.reading, "vit_gradient_checkpointing", of_tower->origins);
  const Arg* attention = args.any({"attn_impl", "attention_backend"});
  const std::string word = attention == nullptr ? std::string{} : attention->value.text;
  const bool flash = contains(word, "flash");
  if (attention != nullptr && facts.megatron && !flash) {
    // megatron_core 0.16.1 transformer/enums.py: AttnBackend. "unfused" and "local" keep the scores, of "fused" and
    // "auto" a kernel of Transformer Engine's choice none.
    args.state("attention", of(word == "unfused" || word == "local" ? "eager" : "sdpa"), {attention});
  } else if (attention != nullptr) {
    args.state("attention", of(flash ? (contains(word, "3") ? "flash_attention_3" : "flash_attention_2") : word),
               {attention});
  } else if (facts.megatron) {
    args.assume("attention", of("flash_attention_2"), "attention_backend default flash (megatron_args.py L499)");
  }
  if (facts.megatron) return read_megatron_memory(args);
  const Arg* kept = args.find("gradient_checkpointing");
  args.state("gradient_checkpointing", of(kept == nullptr || args.on("gradient_checkpointing") ? "full" : "none"),
             {kept}, kept == nullptr ? "default true" : "");
  // trainers/mixin.py: _fix_gradient_checkpointing
  if (const Arg* how = args.find("gradient_checkpointing_kwargs");
      how != nullptr && contains(how->value.text, "use_reentrant"))
    args.state("use_reentrant", of(contains(lower_case(how->value.text), "true")), {how});
  read_optimizer(args);
  if (args.on("use_liger_kernel")) args.state("loss", of("liger"), {args.find("use_liger_kernel")});
  args.copy("moe.implementation", {"experts_impl"});
  args.copy("max_grad_norm", {"max_grad_norm"});
  args.copy("neftune_noise_alpha", {"neftune_noise_alpha"});
  args.copy("label_smoothing_factor", {"label_smoothing_factor"});
}

void read_precision(Args& args, const Facts& facts) {
  if (facts.megatron) return;
  refuse_both_halves(args.reading, args.on("bf16"), args.on("fp16"));
  const Arg* dtype = args.any({"torch_dtype", "dtype"});
  const Arg* deepspeed = args.find("deepspeed");
  const std::string word = dtype != nullptr ? dtype->value.text : args.on("fp16") ? "float16" : "bfloat16";
  const bool half = word == "float16" || args.on("fp16");
  const char* why = dtype == nullptr ? "default: the config.json's dtype, fp32 becomes bf16; bf16=True follows" : "";
  if (deepspeed != nullptr) {
    args.state("precision", of(half ? "deepspeed_fp16" : "deepspeed_bf16"), {dtype, args.find("fp16")}, why);
  } else {
    // swift/llm/argument/base_args/model_args.py _init_torch_dtype, _init_mixed_precision: without a dtype a flag
    // decides on it, and without flags it on them: fp32 weights are under fp16.
    const Arg* bf16 = args.find("bf16");
    const Arg* fp16 = args.find("fp16");
    const std::string_view weights = word == "float32" ? "fp32" : word == "float16" ? "fp16" : "bf16";
    const bool brain = bf16 != nullptr ? args.on("bf16") : weights == "bf16";
    const bool narrow = fp16 != nullptr ? args.on("fp16") : weights != "bf16" && bf16 == nullptr;
    args.state("precision", precision_of(weights, brain ? "bf16" : narrow ? "fp16" : ""), {dtype, bf16, fp16}, why);
  }
}

/// swift/template/base.py _reranker_data_collator: a positive document of each sample and as many negative ones as it
/// has, up to a bound.
void read_documents(Args& args, const Facts& facts, const ShellScript& script, const Launch& launch,
                    const std::string& file) {
  constexpr std::int64_t kMostNegative = 7;  // MAX_NEGATIVE_SAMPLES
  if (!contains(facts.task, "reranker")) return;
  const ShellWord* said = environment_of(script, &launch, "MAX_NEGATIVE_SAMPLES");
  const Arg negative = said == nullptr ? Arg{} : arg_of("", *said, file);
  if (said != nullptr && negative.unresolved.empty() && negative.value.is_integer()) {
    args.state("texts_per_sample", of(1 + negative.value.integer), {&negative}, "a positive document of each sample");
  } else {
    args.assume("texts_per_sample", of(1 + kMostNegative), "a positive and seven negative documents of each sample");
  }
}

/// swift/model/utils.py: get_default_device_map: without processes of torchrun the layers lie on all GPUs in sight.
void read_device_map(Args& args, const ShellScript& script, const Launch& launch) {
  const Finding* seen = find(args.reading, "visible_gpus");
  const Finding* processes = find(args.reading, "parallelism.gpus_per_node");
  if (processes != nullptr && seen != nullptr && processes->value.integer < seen->value.integer) {
    args.reading.notes.emplace_back(
        "with fewer processes than GPUs in sight ms-swift lays each process's model over several of them; the figure "
        "is "
        "that of a whole model on each");
  }
  const bool one = environment_of(script, &launch, "NPROC_PER_NODE") == nullptr && launch.launcher == "swift";
  if (!one || seen == nullptr || seen->value.integer < 2 || args.told("parallelism.fsdp")) return;
  const std::vector<Origin> origins = seen->origins;
  const Value gpus = seen->value;
  state(args.reading, "parallelism.device_map", gpus, origins,
        "without NPROC_PER_NODE swift lays the model's layers on all GPUs in sight");
}

void read_parallelism(Args& args, const Facts& facts, const ShellScript& script, const Launch& launch,
                      const std::string& file) {
  if (launch.launcher == "accelerate" || launch.launcher == "torchrun") read_launcher(args, launch, file);
  if (const ShellWord* processes = environment_of(script, &launch, "NPROC_PER_NODE"); processes != nullptr) {
    const Arg count = arg_of("", *processes, file);
    if (count.unresolved.empty() && count.value.is_integer())
      args.state("parallelism.gpus_per_node", to_value(count.value), {&count});
  } else {
    args.copy("parallelism.gpus_per_node", {"gpus", "nproc_per_node"});
    args.copy("world_size", {"global_world_size"});
  }
  if (const ShellWord* hosts = environment_of(script, &launch, "NNODES"); hosts != nullptr) {
    const Arg count = arg_of("", *hosts, file);
    if (count.unresolved.empty() && count.value.is_integer()) args.state("nodes", to_value(count.value), {&count});
  }
  if (facts.megatron) {
    for (const auto& [path, key] : {std::pair{"parallelism.tensor", "tensor_model_parallel_size"},
                                    {"parallelism.pipeline", "pipeline_model_parallel_size"},
                                    {"parallelism.context", "context_parallel_size"},
                                    {"parallelism.expert", "expert_model_parallel_size"},
                                    {"parallelism.expert_tensor", "expert_tensor_parallel_size"},
                                    {"parallelism.virtual_pipeline", "virtual_pipeline_model_parallel_size"}}) {
      args.copy(path, {key});
    }
    if (args.told("parallelism.expert") && !args.told("parallelism.expert_tensor"))
      args.assume("parallelism.expert_tensor", of(1), "default 1 (megatron_args.py L619)");
    if (const Arg* sequence = args.find("sequence_parallel"); sequence != nullptr)
      args.state("parallelism.sequence_parallel", of(args.on("sequence_parallel")), {sequence});
    return;
  }
  args.copy("parallelism.context", {"sequence_parallel_size"});
  // swift/sequence_parallel/sequence_parallel.py: pad: up to a multiple of the GPUs that share a sequence.
  const Finding* const shared = find(args.reading, "parallelism.context");
  Finding* const length = find(args.reading, "sequence_length");
  if (shared != nullptr && shared->value.integer > 1 && length != nullptr) {
    const std::int64_t parts = shared->value.integer, said = length->value.integer;
    const std::int64_t padded = (said + parts - 1) / parts * parts;
    if (padded != said) length->assumed = "padded to a multiple of the GPUs that share a sequence";
    length->value = of(padded);
  }
  // swift/config: fsdp2 is a built-in configuration; other words are TrainingArguments.fsdp's.
  if (const Arg* fsdp = args.find("fsdp"); fsdp != nullptr) {
    const std::string& text = fsdp->value.text;
    const bool second = contains(text, "fsdp2");
    if (second || contains(text, "full_shard")) {
      args.state("parallelism.fsdp", of(second ? "fsdp2" : "full_shard"), {fsdp});
    }
  }
  const Arg* deepspeed = args.find("deepspeed");
  if (deepspeed == nullptr) return read_device_map(args, script, launch);
  if (const int stage = zero_stage_of_name(deepspeed->value.text); stage >= 0) {
    args.state("parallelism.zero_stage", of(stage), {deepspeed});
    if (contains(deepspeed->value.text, "offload")) {
      args.state("offload.optimizer", of("cpu"), {deepspeed});
      if (stage == 3) args.state("offload.parameters", of("cpu"), {deepspeed});
    }
  }
  if (contains(deepspeed->value.text, ".json")) args.reading.companions.push_back(deepspeed->value.text);
}

/// swift/arguments/rlhf_args.py: TeacherModelArguments, RLHFArguments.
void read_teacher(Args& args, const Facts& facts) {
  // Beside an adapter the model's own name means the model without it (rlhf_args.py: _check_teacher), which a reference
  // is anyhow.
  if (facts.task == "gkd" || facts.method == "full" || args.text("teacher_model") != args.text("model"))
    args.copy("teacher_model", {"teacher_model"});
  if (facts.task == "gkd") {
    for (const OfRollout& one : distillation_words()) args.copy(one.path, {one.key});
  }
  if (args.on("offload_teacher_model"))
    args.state("reference_model.offloaded", of(true), {args.find("offload_teacher_model")});
  args.copy("teacher_model_server", {"teacher_model_server"});
  if (facts.megatron || facts.task != "gkd") return;
  args.reading.notes.push_back(
      "ms-swift's own loss goes over 512 tokens at a time (rlhf_trainers/gkd_loss.py): it is read as TRL's, which "
      "needs "
      "more");
}

void read_reference(Args& args, const Facts& facts) {
  if (facts.verb != "rlhf") return;
  // rlhf_trainers/grpo_trainer.py: __init__: "setting one turns GRPO into OPD-RL".
  if (facts.task == "gkd" || facts.task == "grpo") read_teacher(args, facts);
  const Arg* type = args.any({"tuner_type", "train_type"});
  const Arg* beta = args.find("beta");
  const bool none = (facts.task == "grpo" && beta != nullptr && beta->value.real == 0) || facts.task == "orpo" ||
                    facts.task == "simpo" || facts.task == "cpo" || facts.task == "reward";
  if (facts.task != "gkd") {
    args.state("reference_model.present", of(!none), {beta, args.find("ref_model")},
               "ms-swift builds a reference model for full training");
    args.state("reference_model.shared_with_adapter", of(facts.method != "full"), {type, beta},
               "with an adapter it is the model without it");
  }
  if (const Arg* reward = args.find("reward_model"); reward != nullptr) {
    const std::vector<Node>& several = reward->value.items;
    args.state("reward_model", to_value(several.empty() ? reward->value : several.front()), {reward});
    if (several.size() > 1) not_counted(args.reading, "reward_model, but for the first", reward->origins);
  }
  for (const OfRollout& one : rollout_numbers()) {
    if (facts.task == "grpo" || std::string_view{one.key} != "beta") args.copy(one.path, {one.key});
  }
  const Arg* sft = facts.task == "gkd" ? args.find("sft_alpha") : nullptr;
  if (sft != nullptr && sft->value.real > 0) not_counted(args.reading, "sft_alpha", sft->origins);
  if (args.any({"log_entropy", "top_entropy_quantile"}) != nullptr) not_counted(args.reading, "entropy");
  if (args.any({"chord_sft_dataset", "chord_sft_per_device_train_batch_size"}) != nullptr)
    not_counted(args.reading, "CHORD's samples");
  if ((facts.task == "grpo" || facts.task == "gkd") && !args.told("max_completion_length"))
    args.assume("max_completion_length", of(512), "ms-swift's default");
  if (!args.on("use_vllm")) return;
  args.state("rollout.engine", of("vllm"), {args.find("use_vllm")});
  if (!args.copy("rollout.mode", {"vllm_mode"}) && args.on("use_ray"))
    args.state("rollout.mode", of(args.has("colocate_groups") ? "colocate" : "server"), {args.find("colocate_groups")});
  if (!args.copy("rollout.gpu_memory_utilization", {"vllm_gpu_memory_utilization", "gpu_memory_utilization"}))
    args.assume("rollout.gpu_memory_utilization", of(0.9), "ms-swift's default");
  args.copy("rollout.tensor_parallel", {"vllm_tensor_parallel_size", "tensor_parallel_size"});
  if (const Arg* level = args.find("sleep_level"); level != nullptr)
    args.state("rollout.sleep", of(level->value.integer > 0), {level});
  if (args.on("offload_model") || args.on("offload_optimizer"))
    args.state("rollout_offload", of(true), {args.find("offload_model"), args.find("offload_optimizer")});
}

/// Towers are frozen unless a flag says otherwise; only a model that sees has some.
void read_vision(Args& args, Facts& facts) {
  const std::string model = lower_case(args.text("model") + " " + args.text("model_type"));
  // args.json has every flag, also of models without a tower.
  const bool flags = (args.has("freeze_vit") || args.has("freeze_aligner")) && !args.has("global_world_size");
  // swift/model/models/gemma.py: Gemma3ForCausalLM.
  for (const char* word : {"gemma-3-1b", "gemma-3-270m", "gemma3_text"}) {
    if (contains(model, word)) return;
  }
  facts.sees = flags;
  for (const char* word :
       {"-vl", "vl-", "internvl", "llava", "omni", "qwen3.5", "qwen3_5", "qwen3.6", "gemma-3", "gemma-4", "llama-4",
        "pixtral", "mistral-small-3", "ministral-3", "minicpm-v", "glm-4.1v", "glm-4.5v"})
    facts.sees = facts.sees || contains(model, word);
  if (!facts.sees) return;
  args.unknown("image sizes and counts");
  if (args.told("freeze")) return;
  if (facts.method == "full" || facts.method == "lora") {
    std::vector<Value> frozen;
    if (args.on("freeze_llm")) frozen.push_back(of("language_model"));
    if (!args.has("freeze_vit") || args.on("freeze_vit")) frozen.push_back(of("vision_tower"));
    if (!args.has("freeze_aligner") || args.on("freeze_aligner")) frozen.push_back(of("aligner"));
    if (!frozen.empty())
      args.state("freeze", of(std::move(frozen)), {args.find("freeze_vit"), args.find("freeze_aligner")},
                 flags ? "" : "freeze_vit and freeze_aligner default to true (tuner_args.py L123-124)");
  }
}

void read_evaluation(Args& args) {
  // sft_args.py: without samples to evaluate eval_strategy is "no"; split_dataset_ratio is 0 unless it is said.
  const Arg* share = args.find("split_dataset_ratio");
  const bool split = share != nullptr && share->value.real > 0;
  const Arg* samples = args.any({"val_dataset", "cached_val_dataset"});
  const bool none = samples == nullptr || (samples->value.is_list() && samples->value.items.empty());
  if (args.text("eval_strategy") == "no" || (!split && none)) return;
  args.copy("evaluation.micro_batch_size", {"per_device_eval_batch_size"});
  if (args.on("predict_with_generate")) args.copy("evaluation.generate", {"predict_with_generate"});
}

/// swift/cli/main.py: parse_yaml_args, swift/ray/megatron/pipeline: the keys of a YAML or JSON are flags ahead of the
/// command's own. Ray's groups say theirs; of what several say, as of `gpus`, the trainer's counts.
void add_config(Args& args, const Node& config, const std::string& file) {
  if (const Node* train = config.at("train"); train != nullptr && train->is_map()) add_config(args, *train, file);
  for (std::size_t at = 0; at < config.items.size(); ++at) {
    const std::string& key = config.keys[at];
    const Node& value = config.items[at];
    Arg arg{key, value, {{file, value.line, value.last}}};
    if (key == "deepspeed" && value.is_map()) {  // as args.json has it, where each job keeps what it was started with
      Keys keys(value, file, args.reading);
      const std::size_t open = args.reading.unknowns.size();
      read_deepspeed_keys(keys);
      args.reading.unknowns.resize(open);  // what it leaves to the trainer ("auto") flags say, or their defaults
      const Node* const stage = value.at("zero_optimization.stage");
      arg.value = text_node("zero" + (stage == nullptr ? "0" : stage->text), value.line);
    } else if (value.is_map()) {
      if (key == "rollout" || key == "device_groups" || key == "ENV") add_config(args, value, file);
      continue;
    }
    if (!args.has(key)) args.add(std::move(arg));
  }
}

void read_words(Args& args, const TrainingScript& text, const Launch& launch, const std::string& file) {
  Reading& reading = args.reading;
  Facts facts;
  read_verb(launch, facts);
  if (contains(lower_case(args.text("PYTORCH_CUDA_ALLOC_CONF")), "expandable_segments:true"))
    args.state("allocator.expandable_segments", of(true), {args.find("PYTORCH_CUDA_ALLOC_CONF")});
  if (!facts.megatron && args.text("tuner_backend") == "unsloth") {
    args.state("framework.name", of("unsloth"), {args.find("tuner_backend")});
  } else if (const Arg* lisa = args.find("lisa_activated_layers"); lisa != nullptr && lisa->value.integer > 0) {
    args.state("framework.name", of("ms_swift"), {lisa}, "whose LISA leaves most layers out of its optimizer");
  } else {
    state(reading, "framework.name", of(facts.megatron ? "megatron" : "transformers"), {}, "the command");
  }
  args.copy("model", {"model", "model_id_or_path", "model_type", "load", "mcore_model"});
  read_task(args, facts);
  read_documents(args, facts, text.script, launch, file);
  read_method(args, facts);
  read_batch(args, facts);
  read_memory(args, facts);
  read_precision(args, facts);
  read_parallelism(args, facts, text.script, launch, file);
  read_reference(args, facts);
  read_vision(args, facts);
  read_evaluation(args);
  args.find("model_name");  // what the model calls itself
  if (!args.told("gpu")) args.unknown("gpu");
  args.tell_unread();
}

/// The file that a command names for its flags, as its first word or by --config; empty where it names none.
std::string config_of(const Launch& launch) {
  std::string before = "--config";
  for (const ShellWord& argument : launch.arguments) {
    const std::string word = argument.word();
    if (before == "--config" && !word.starts_with('-') && contains(word, ".")) return std::string{base_name(word)};
    before = word;
  }
  return {};
}

void read_swift(const Look& look, Sources all, Reading& reading) {
  const TrainingScript text = training_script(look);
  if (text.launch == nullptr) return tell_no_launch(reading, look);
  Args args(reading);
  read_script(args, look, text);
  if (const std::string config = config_of(*text.launch); !config.empty()) {
    reading.companions.push_back(config);
    for (const Source& source : all) {
      if (base_name(source.name) == config) add_config(args, look_at(source).document.root, source.name);
    }
  }
  read_words(args, text, *text.launch, look.source.name);
}

int recognise_config(const Look& look) {
  const bool tells = look.has("tuner_type") || look.has("train_type") || look.has("rlhf_type");
  return tells && look.has("model") ? 85 : 0;
}

/// What a command beside it names is read with that.
void read_config(const Look& look, Sources all, Reading& reading) {
  for (const Source& source : all) {
    if (source.bytes.find(base_name(look.source.name)) != std::string::npos && recognise_swift(look_at(source)) > 0)
      return;
  }
  reading.format = "swift";  // whose rules hold for the job
  Args args(reading);
  add_config(args, look.document.root, look.source.name);
  const ShellCommand command;
  Launch launch;
  launch.command = &command;
  launch.launcher = args.has("global_batch_size") ? "megatron" : "swift";
  launch.program = args.find("rlhf_type") != nullptr ? "rlhf" : "sft";
  read_words(args, {{}, {}, nullptr}, launch, look.source.name);
}

const Format kRows[] = {
    {"swift", "ms-swift command", recognise_swift, read_swift, 80},
    {"swift_config", "ms-swift configuration", recognise_config, read_config, 70},
};

}  // namespace

extern const FormatRows swift_rows;
const FormatRows swift_rows = kRows;

}  // namespace tidemark::exchange
