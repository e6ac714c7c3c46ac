// Command lines of programs that take transformers' and PEFT's arguments as flags (HfArgumentParser): examples/ of
// transformers, peft and TRL, FastChat, QLoRA; with or without a SLURM header.
#include <algorithm>
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

bool has_slurm_header(const Look& look) {
  return look.syntax == Look::Syntax::kShell && look.mentions("#SBATCH");
}
int recognise_hf_shell(const Look& look) {
  return look.syntax == Look::Syntax::kShell && !has_slurm_header(look) ? 40 : 0;
}
int recognise_slurm(const Look& look) {
  return has_slurm_header(look) ? 45 : 0;
}

struct Facts {
  bool qlora_program = false;  // artidoro's qlora.py, whose defaults are its own
  bool sharded_by_launcher = false;
  std::string trl;  // what TRL's own command or script trains for ("dpo"); empty: another program
};

/// The task of TRL's commands (`trl sft`) and scripts (trl/scripts, examples/scripts), which are named by it: their
/// defaults are those of TRL's configurations.
std::string trl_task(const Launch& launch) {
  const bool script = contains(launch.program, "trl/scripts/") || contains(launch.program, "examples/scripts/");
  if (launch.launcher != "trl" && !script) return {};
  const std::string_view name = base_name(launch.program);
  if (name.starts_with("dpo_online")) return "online_dpo";  // as TRL's pages call that script
  for (const char* task :
       {"sft",        "dpo",     "kto", "orpo", "cpo", "grpo", "rloo", "reward", "ppo", "gkd",        "gold",
        "online_dpo", "nash_md", "xpo", "bco",  "prm", "sdft", "sdpo", "ssd",    "tpo", "async_grpo", "distillation"}) {
    if (name.starts_with(task)) return task;
  }
  return {};
}

/// peft 5d602fdb examples/sft/utils.py: the dtype of packed words, in which the rest is loaded as well.
const Arg* storage_flag(Args& args) {
  return args.any({"bnb_4bit_quant_storage_dtype", "bnb_4bit_quant_storage"});
}

void read_model(Args& args) {
  args.copy("model", {"model_name_or_path", "model_name", "model_id", "base_model", "model"});
  if (args.told("model") && find(args.reading, "model")->value.kind == Value::Kind::kBool)
    args.reading.findings.pop_back();
}

void read_method(Args& args, const Facts& facts) {
  const Arg* lora = args.any({"use_lora", "use_peft_lora", "use_peft", "lora", "use_lora_peft"});
  const Arg* four = args.any({"use_4bit_quantization", "use_4bit_qunatization", "load_in_4bit", "q_lora", "use_4bit"});
  const Arg* eight = args.any({"use_8bit_quantization", "load_in_8bit", "use_8bit"});
  const Arg* bits = args.find("bits");
  const Arg* rank = args.any({"lora_r", "lora_rank"});
  const auto on = [](const Arg* arg) { return arg != nullptr && (arg->value.is_bool() ? arg->value.boolean : true); };
  const bool full = facts.qlora_program && args.on("full_finetune");
  const bool bits4 = on(four) || (facts.qlora_program && (bits == nullptr || bits->value.integer == 4) && !full);
  const bool bits8 = on(eight) || (bits != nullptr && bits->value.integer == 8);
  const bool adapted = facts.qlora_program ? !full : lora != nullptr ? on(lora) : rank != nullptr || bits4;
  if (!adapted) {
    args.state("method", of("full"), {lora}, lora == nullptr ? "no flag for an adapter" : "");
    return;
  }
  args.state("method", of(bits4 || bits8 ? "qlora" : "lora"), {lora, four, eight, rank},
             facts.qlora_program ? "from the program" : "");
  if (!bits4 && !bits8) return;
  const Arg* node = on(four) ? four : on(eight) ? eight : bits;
  const Arg* kind = args.any({"bnb_4bit_quant_type", "quant_type"});
  const Arg* nested =
      args.any({"use_nested_quant", "double_quant", "bnb_4bit_use_double_quant", "use_bnb_nested_quant"});
  const char* why = node == nullptr ? "qlora.py default" : "";
  args.state("quantization.bits", of(bits4 ? 4 : 8), {node}, why);
  args.state("quantization.quant_type",
             of(!bits4            ? "int8"
                : kind != nullptr ? kind->value.text
                                  : "nf4"),
             {kind, node}, kind == nullptr ? "nf4 in the programs that have this flag" : "");
  if (!bits4) return;
  if (nested != nullptr || facts.qlora_program || !facts.trl.empty()) {
    args.state("quantization.double_quant", of(nested == nullptr ? facts.qlora_program : on(nested)), {nested},
               nested != nullptr     ? ""
               : facts.qlora_program ? "qlora.py default"
                                     : "TRL ModelConfig: use_bnb_nested_quant defaults to false");
  } else {
    args.unknown("double_quant: the script's default");
  }
  if (const Arg* storage = storage_flag(args); storage != nullptr)
    args.state("quantization.quant_storage", to_value(storage->value), {storage});
  if (facts.qlora_program)
    args.assume("quantization.prepare_kbit", of(true), "qlora.py calls prepare_model_for_kbit_training");
}

void read_adapter(Args& args, const Facts& facts) {
  const Finding* method = find(args.reading, "method");
  if (method == nullptr || method->value.string == "full") return;
  const auto option = [&](const char* path, std::initializer_list<std::string_view> keys, Value standard) {
    if (args.copy(path, keys)) return;
    if (facts.qlora_program || !facts.trl.empty()) {
      args.assume(path, std::move(standard), facts.qlora_program ? "qlora.py default" : "TRL ModelConfig's default");
    } else {
      args.unknown(std::string{path} + ": the program's default");
    }
  };
  const bool trl = !facts.trl.empty();
  option("adapter.r", {"lora_r", "lora_rank", "peft_lora_r", "r"}, of(trl ? 16 : 64));
  option("adapter.lora_alpha", {"lora_alpha", "peft_lora_alpha"}, of(trl ? 32 : 16));
  option("adapter.lora_dropout", {"lora_dropout", "peft_lora_dropout"}, of(trl ? 0.05 : 0.0));
  const Arg* modules = args.any({"lora_target_modules", "target_modules", "peft_target_modules"});
  if (modules != nullptr) {
    args.state("adapter.target_modules", word_list(modules->value), {modules});
  } else if (facts.qlora_program) {
    args.assume("adapter.target_modules", of("all-linear"), "qlora.py default");
  } else if (!facts.trl.empty()) {
    args.assume("adapter.target_modules", of("auto"),
                "TRL's ModelConfig: None, which is PEFT's own choice for the model type");
  } else {
    args.unknown("adapter.target_modules: the program's default");
  }
}

void read_lengths(Args& args, const Facts& facts) {
  const Arg* source = args.find("source_max_len");
  const Arg* target = args.find("target_max_len");
  if (source != nullptr && target != nullptr) {
    args.state("sequence_length", of(source->value.integer + target->value.integer), {source, target});
  } else if (!args.copy("sequence_length",
                        {"max_seq_length", "max_seq_len", "model_max_length", "cutoff_len", "max_length", "block_size",
                         "seq_length", "max_source_length", "max_len"})) {
    if (facts.trl.empty() || facts.trl == "ppo" || generates_answers(facts.trl)) {
      args.unknown("sequence_length");
    } else if (facts.trl == "online_dpo") {  // trl 1.9 experimental/online_dpo/online_dpo_config.py
      args.assume("sequence_length", of(512), "OnlineDPOConfig's default");
    } else {
      args.assume("sequence_length", of(1024), "TRL's default (SFTConfig since 0.15, DPOConfig since 0.14)");
    }
  }
  args.copy("max_prompt_length", {"max_prompt_length"});
  for (const OfRollout& one : rollout_numbers()) {
    if (generates_answers(facts.trl) || std::string_view{one.key} != "beta") args.copy(one.path, {one.key});
  }
  // trl 1.9 scripts/{grpo,rloo}.py
  if (generates_answers(facts.trl)) args.copy("reward_model", {"reward_model_name_or_path"});
  if (facts.trl == "ppo") {  // trl 1.9 experimental/ppo/ppo_config.py
    args.copy("max_completion_length", {"response_length"});
    args.copy("local_rollout_forward_batch_size", {"local_rollout_forward_batch_size"});
    args.copy("reward_model", {"reward_model_path"});
    args.assume("padding", of(true), "prompts of a batch are as long as its longest");
  }
  if (facts.trl == "online_dpo") {
    args.copy("max_completion_length", {"max_new_tokens"});
    args.copy("reward_model", {"reward_model_path"});
    args.assume("padding", of(true), "answers end at different lengths");
  }
  if (facts.trl == "gkd") {
    for (const OfRollout& one : distillation_words()) args.copy(one.path, {one.key});
  }
  if (args.on("use_vllm")) {
    args.state("rollout.engine", of("vllm"), {args.find("use_vllm")});
    args.copy("rollout.mode", {"vllm_mode"});
    args.copy("rollout.gpu_memory_utilization", {"vllm_gpu_memory_utilization"});
    args.copy("rollout.sleep", {"vllm_enable_sleep_mode"});
  }
  args.copy("micro_batch_size", {"per_device_train_batch_size", "per_gpu_train_batch_size",
                                 "train_micro_batch_size_per_gpu", "micro_batch_size"});
  if (!facts.trl.empty() && !args.told("micro_batch_size"))
    args.assume("micro_batch_size", of(8), "default 8 (TrainingArguments)");
  if (!args.copy("gradient_accumulation_steps", {"gradient_accumulation_steps"}) && args.told("micro_batch_size")) {
    args.assume("gradient_accumulation_steps", of(1), "default 1");
  }
  if (const Arg* packing = args.find("packing"); packing != nullptr)
    args.state("packing", of(args.on("packing")), {packing});
  for (const char* word : {"padding_free", "activation_offloading"}) {
    if (args.on(word)) args.state(word, of(true), {args.find(word)});
  }
}

/// A file that holds DeepSpeed's settings, or null.
const Arg* deepspeed_file(Args& args) {
  const Arg* file = args.any({"deepspeed", "deepspeed_config"});
  return file != nullptr && file->value.is_string() ? file : nullptr;
}

/// trl v1.9.0 trainer/base_config.py: bf16 unless fp16 or another word is given; trainer/model_config.py: dtype is
/// float32, earlier none, which transformers 4 took for the same.
void read_trl_precision(Args& args, const Facts& facts) {
  const Arg* dtype = args.any({"dtype", "torch_dtype"});
  const Arg* flag = args.any({"bf16", "fp16"});
  const std::string word = dtype == nullptr ? "float32" : dtype->value.text;
  const std::string_view mixed = args.on("fp16") ? "fp16" : !args.has("bf16") || args.on("bf16") ? "bf16" : "";
  if (facts.sharded_by_launcher || args.has("deepspeed") || args.told("parallelism.zero_stage") ||
      args.told("parallelism.fsdp"))
    return args.unknown("precision recipe: the launcher's config shards the model (flags say " +
                        std::string{mixed.empty() ? "none" : mixed} + ")");
  if (word == "auto") return args.unknown("precision: dtype auto is the checkpoint's dtype");
  const std::string_view loaded = contains(word, "bfloat16") ? "bf16" : contains(word, "float16") ? "fp16" : "fp32";
  // experimental/ppo/ppo_trainer.py: __init__: Accelerator(gradient_accumulation_steps=…).
  if (facts.trl == "ppo") {
    return args.state("precision", precision_of(loaded, ""), {dtype, flag},
                      "PPOTrainer's own Accelerator is not told of bf16 and fp16; TRL's ModelConfig loads weights in "
                      "float32 unless --dtype says otherwise");
  }
  args.state("precision", precision_of(loaded, mixed), {dtype, flag},
             dtype == nullptr  ? "TRL's ModelConfig loads weights in float32 unless --dtype says otherwise; bf16 is "
                                 "its trainers' default"
             : flag == nullptr ? "bf16 is the default of TRL's trainers"
                               : "");
}

void read_precision(Args& args, const Facts& facts) {
  const Arg* bf16 = args.find("bf16");
  const Arg* fp16 = args.find("fp16");
  const bool brain = args.on("bf16");
  const bool half = args.on("fp16");
  const bool deepspeed =
      deepspeed_file(args) != nullptr || args.has("deepspeed") || args.told("parallelism.zero_stage");
  const Arg* flag = brain ? bf16 : fp16;
  refuse_both_halves(args.reading, brain, half);
  if (!facts.trl.empty()) return read_trl_precision(args, facts);
  if (!brain && !half && args.told("precision")) return;  // the launcher's flags
  if (!brain && !half)
    return args.unknown(facts.sharded_by_launcher
                            ? "precision recipe: the launcher's config shards the model (flags say none)"
                            : "precision");
  if (deepspeed) return args.state("precision", of(brain ? "deepspeed_bf16" : "deepspeed_fp16"), {flag});
  if (const Arg* storage = storage_flag(args); storage != nullptr && contains(storage->value.text, "float16")) {
    const char* weights = contains(storage->value.text, "bfloat16") ? "bf16" : "fp16";
    return args.state("precision", precision_of(weights, brain ? "bf16" : "fp16"), {storage, flag},
                      "weights in the dtype of the packed words (peft examples/sft/utils.py)");
  }
  if (facts.sharded_by_launcher)
    return args.unknown("precision recipe: the launcher's config shards the model (flags say " +
                        std::string{brain ? "bf16" : "fp16"} + ")");
  const Arg* dtype = args.any({"torch_dtype", "dtype"});
  if (dtype != nullptr && contains(dtype->value.text, "float16") && brain)
    return args.state("precision", precision_of(contains(dtype->value.text, "bfloat16") ? "bf16" : "fp16", "bf16"),
                      {dtype, bf16});
  if (facts.qlora_program) return args.unknown("precision");
  args.state("precision", of(brain ? "amp_bf16" : "amp_fp16"), {flag, dtype},
             "weights as the program loads them, without a dtype: " + std::string{kBefore5});
}

void read_rest(Args& args, const Facts& facts) {
  const Arg* kept = args.any({"activation_checkpointing", "gradient_checkpointing", "use_gradient_checkpointing"});
  const bool on = kept != nullptr && args.on(kept->key);
  if (kept != nullptr) {
    args.state("gradient_checkpointing", of(on ? "full" : "none"), {kept});
  } else if (facts.qlora_program) {
    args.assume("gradient_checkpointing", of("full"), "qlora.py default True");
  } else if (!facts.trl.empty()) {
    args.assume("gradient_checkpointing", of("full"), "on by default since trl 0.22, off before");
  } else if (args.told("micro_batch_size") || args.told("model")) {
    args.assume("gradient_checkpointing", of("none"), "TrainingArguments default; the program may set it itself");
  }
  if (const Arg* reentrant = args.find("use_reentrant"); reentrant != nullptr)
    args.state("use_reentrant", of(args.on("use_reentrant")), {reentrant});
  if (!args.copy("max_grad_norm", {"max_grad_norm"}) && facts.qlora_program)
    args.assume("max_grad_norm", of(0.3), "qlora.py default");
  args.copy("neftune_noise_alpha", {"neftune_noise_alpha"});
  args.copy("label_smoothing_factor", {"label_smoothing_factor"});
  const Arg* flash = args.any({"use_flash_attn", "use_flash_attention_2", "flash_attention", "use_flash_attention"});
  const Arg* named = args.any({"attn_implementation", "attn_impl"});
  if (named != nullptr) args.state("attention", of(named->value.text), {named});
  if (flash != nullptr && flash->value.is_bool() && flash->value.boolean)
    args.state("attention", of("flash_attention_2"), {flash});
  args.copy("optim_args", {"optim_args"});
  if (const Arg* targets = args.find("optim_target_modules"); targets != nullptr)
    args.state("optim_target_modules", word_list(targets->value), {targets});
  if (const Arg* optim = args.any({"optim", "optimizer"}); optim != nullptr) {
    args.state("optimizer", of(optimizer_word(optim->value.text)), {optim});
  } else if (facts.qlora_program) {
    args.assume("optimizer", of("paged_adamw_32bit"), "qlora.py default");
  } else if (!facts.trl.empty()) {
    args.assume("optimizer", of("adamw_torch_fused"), "TrainingArguments' default with torch 2.8 and later");
  } else {
    args.unknown("optimizer: default by version");
  }
  if (args.on("torch_compile")) args.state("compile", of("full"), {args.find("torch_compile")});
  if (args.on("use_liger_kernel")) args.state("loss", of("liger"), {args.find("use_liger_kernel")});
}

/// trl v1.9.0 trainer/sft_config.py: __post_init__.
void read_trl_loss(Args& args, const Facts& facts) {
  const Arg* kind = args.find("loss_type");
  if (facts.trl == "dpo" && kind != nullptr && names_sft(&kind->value))
    not_counted(args.reading, kChosenCrossEntropy, kind->origins);
  if (facts.trl != "sft" || args.told("loss")) return;
  const bool chunked = kind == nullptr || kind->value.text == "chunked_nll";
  args.state("loss", of(chunked ? "chunked" : "default"), {kind},
             kind == nullptr ? "chunked_nll is SFTConfig's default since trl 1.7, nll before" : "");
}

void read_evaluation(Args& args) {
  const Arg* strategy = args.any({"eval_strategy", "evaluation_strategy"});
  if (strategy == nullptr || strategy->value.is_bool() || strategy->value.text == "no") return;
  if (args.copy("evaluation.micro_batch_size", {"per_device_eval_batch_size"})) return;
  args.state("evaluation.micro_batch_size", of(8), {strategy},
             "per_device_eval_batch_size default 8 (TrainingArguments)");
}

/// What TRL's command and its scripts say by their name.
void read_trl_task(Args& args, const Facts& facts) {
  args.assume("task", of(facts.trl), "TRL's " + facts.trl + " command");
  const Finding* method = find(args.reading, "method");
  if (facts.trl != "dpo" && facts.trl != "kto" && facts.trl != "bco" && facts.trl != "online_dpo") return;
  args.assume("reference_model.present", of(true), "the loss compares with a reference model");
  if (facts.trl == "bco") {
    args.assume("reference_model.shared_with_adapter", of(false), "examples/scripts/bco.py loads a copy in any case");
    return;
  }
  args.assume("reference_model.shared_with_adapter", of(method != nullptr && method->value.string != "full"),
              "with an adapter it is the model without it; else a copy");
}

/// `trl ... --accelerate_config zero3`: trl v1.9.0 trl/accelerate_configs, or a file's name.
void read_trl_launcher(Args& args) {
  if (const Arg* file = args.find("config"); file != nullptr && file->value.is_string())
    args.reading.companions.push_back(file->value.text);
  const Arg* config = args.find("accelerate_config");
  if (config != nullptr && contains(config->value.text, ".y")) {
    args.reading.companions.push_back(config->value.text);
  } else if (config != nullptr) {
    state_trl_config(args, *config);
  }
  if (!args.copy("parallelism.data", {"num_processes"}) && !args.told("parallelism.data"))
    args.unknown("parallelism.data");
}

void read_sharding(Args& args) {
  if (const Arg* file = deepspeed_file(args); file != nullptr) {
    if (const int stage = zero_stage_of_name(file->value.text); stage >= 0) {
      args.state("parallelism.zero_stage", of(stage), {file}, "stage from the file name " + file->value.text);
    } else {
      args.unknown("DeepSpeed JSON: " + file->value.text);
    }
    args.reading.companions.push_back(file->value.text);
  } else if (args.has("deepspeed")) {
    for (const Arg& arg : args.all) {
      if (arg.key == "deepspeed" && !arg.unresolved.empty()) args.unknown("DeepSpeed JSON: " + arg.unresolved);
    }
  }
  const Arg* fsdp = args.find("fsdp");
  if (fsdp != nullptr && (fsdp->value.is_string() || fsdp->value.is_list())) {
    args.state("parallelism.fsdp", of(fsdp_strategy(fsdp->value.text)), {fsdp});
    if (!args.has("fsdp_config"))
      args.assume("parallelism.fsdp_options.backward_prefetch", of("none"), "fsdp_config's default is NO_PREFETCH");
  }
}

/// Whether the program lays its model's layers on all GPUs that it sees: a flag says so, its text, or who wrote it.
bool maps_layers(Args& args, const Facts& facts, const Launch& launch, Sources all) {
  if (args.has("device_map")) return args.text("device_map") == "auto" || args.text("device_map") == "balanced";
  for (const Source& source : all) {
    if (!starts_this(launch.program, source.name)) continue;
    for (const char* word : {"device_map=\"auto\"", "device_map='auto'", "device_map=\"balanced\""}) {
      if (contains(source.bytes, word)) return true;
    }
    return false;
  }
  return facts.qlora_program;  // qlora.py: device_map = "auto" where no launcher sets LOCAL_RANK
}

bool is_trainer_program(Args& args, const Launch& launch, Sources all) {
  if (!args.has("per_device_train_batch_size") || args.has("device_map")) return false;
  return std::none_of(all.begin(), all.end(), [&](const Source& source) {
    return starts_this(launch.program, source.name) &&
           (!contains(source.bytes, "Trainer") || contains(source.bytes, "device_map"));
  });
}

/// One process that sees several GPUs. transformers 5.12 trainer.py _wrap_model: the Trainer takes nn.DataParallel,
/// unless the model lies on several of them or is packed. Flags of DeepSpeed and FSDP are for launchers.
void read_one_process(Args& args, const Facts& facts, const Launch& launch, Sources all) {
  Reading& reading = args.reading;
  const Finding* seen = find(reading, "visible_gpus");
  if (seen == nullptr) seen = find(reading, "parallelism.gpus_per_node");
  Finding* data = find(reading, "parallelism.data");
  const bool several = seen != nullptr && seen->value.is_integer() && seen->value.integer > 1;
  if (launch.launcher != "python" || !several || data == nullptr || data->assumed.empty()) return;
  const std::int64_t gpus = seen->value.integer;
  const std::vector<Origin> origins = seen->origins;
  if (maps_layers(args, facts, launch, all)) {
    data->assumed = "device_map lays the model's layers on the GPUs that the one process sees";
    return state(reading, "parallelism.device_map", of(gpus), origins, data->assumed);
  }
  const bool divides = args.told("parallelism.fsdp") || args.told("parallelism.zero_stage") || args.has("deepspeed");
  const Finding* method = find(reading, "method");
  const bool packed = method != nullptr && method->value.string == "qlora";
  if (divides || packed || !is_trainer_program(args, launch, all)) return;
  data->value = of(gpus);
  data->origins = origins;
  data->assumed = "python without a launcher sees these GPUs";
  state(reading, "parallelism.data_parallel", of("dp"), origins,
        "transformers' Trainer takes nn.DataParallel where one process sees several GPUs (trainer.py: _wrap_model)");
  reading.notes.emplace_back(
      "nn.DataParallel: the first GPU needs more than the others, and bf16 and fp16 do nothing; torchrun or accelerate "
      "launch start a process for each GPU");
}

/// Words behind a launcher that go over its file's, in that file's own names (axolotl 067b021c cli/utils/args.py:
/// add_options_from_config; torchtune 0.6 config/_parse.py).
struct Override {
  std::string_view launcher;
  std::string_view key;
  std::string_view path;
};
constexpr Override kOverrides[] = {
    {"axolotl", "base_model", "model"},
    {"axolotl", "micro_batch_size", "micro_batch_size"},
    {"axolotl", "gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"axolotl", "sequence_len", "sequence_length"},
    {"axolotl", "lora_r", "adapter.r"},
    {"axolotl", "lora_alpha", "adapter.lora_alpha"},
    {"tune", "batch_size", "micro_batch_size"},
    {"tune", "gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"tune", "tokenizer.max_seq_len", "sequence_length"},
    {"tune", "model.lora_rank", "adapter.r"},
    {"tune", "model.lora_alpha", "adapter.lora_alpha"},
};

/// A command whose file is the job: `axolotl train c.yml`, `tune run --nproc_per_node 2 RECIPE --config c.yaml a=b`.
void read_file_launcher(Args& args, const Launch& launch) {
  for (const Override& row : kOverrides) {
    if (row.launcher == launch.launcher) args.copy(row.path, {row.key});
  }
  const Arg* config = args.find("config");
  const std::string named = config != nullptr          ? config->value.text
                            : launch.arguments.empty() ? std::string{}
                                                       : launch.arguments.front().word();
  if (contains(named, ".y")) args.reading.companions.push_back(named);
  if (launch.launcher == "tune" && config != nullptr && !contains(named, ".y"))
    args.unknown("the configuration of torchtune's that is called " + named);
  // The recipe stands behind their number.
  const Arg* processes = args.any({"nproc_per_node", "num_processes"});
  const Node* number = processes == nullptr             ? nullptr
                       : processes->value.items.empty() ? &processes->value
                                                        : &processes->value.items.front();
  if (number != nullptr && number->is_integer()) {
    args.state("parallelism.data", to_value(*number), {processes});
  } else {
    args.unknown("parallelism.data");
  }
  if (!args.told("gpu")) args.unknown("gpu");
  args.tell_unread();
}

/// The program and the file of its flags are read as well. Flags beside that file go over it, whoever takes them.
void read_files_of(Args& args, const Launch& launch, const Facts& facts) {
  if (facts.trl.empty() && launch.program.ends_with(".py")) args.reading.companions.push_back(launch.program);
  const std::string file = configuration_of(launch);
  if (file.empty()) return;
  args.find("config");
  args.reading.companions.push_back(file);
  if (!args.told("gradient_accumulation_steps"))
    args.copy("gradient_accumulation_steps", {"gradient_accumulation_steps"});
  if (!args.told("sequence_length")) args.copy("sequence_length", {"max_length", "max_seq_length"});
}

void read_program(const Look& look, Sources all, Reading& reading, bool slurm) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  const Launch* launch = text.launch;
  Args args(reading);
  Facts facts;
  tell_other_launches(reading, text);
  read_slurm_header(reading, look.head, file);
  read_environment(args, text.script, launch, file);
  if (launch != nullptr) {
    state(reading, "program", of(launch->program), {});
    facts.qlora_program = base_name(launch->program) == "qlora.py";
    add_arguments(args, launch->arguments, file);
  } else if (slurm) {
    for (const ShellCommand& command : text.script.commands) {
      const bool calls =
          command.words.size() > 1 && (command.words[0].word() == "sh" || command.words[0].word() == "bash");
      if (calls) reading.companions.push_back(command.words[1].word());
    }
    state(reading, "program", of(""), {}, "no program of a known kind is started");
  }
  if (launch != nullptr && (launch->launcher == "axolotl" || launch->launcher == "tune"))
    return read_file_launcher(args, *launch);
  state(reading, "framework.name", of("transformers"), {}, "flags of transformers' TrainingArguments");
  if (launch != nullptr) {
    facts.trl = trl_task(*launch);
    if (launch->launcher == "trl") {
      read_trl_launcher(args);
    } else if (launch->launcher == "llamafactory-cli") {
      read_llamafactory_processes(args, text, file);
    } else {
      read_launcher(args, *launch, file);
    }
    facts.sharded_by_launcher = std::any_of(reading.companions.begin(), reading.companions.end(),
                                            [](const std::string& name) {
                                              const std::string word = lower_case(name);
                                              return contains(word, "deepspeed") || contains(word, "fsdp") ||
                                                     contains(word, "zero") || contains(word, "ds_");
                                            }) ||
                                args.told("parallelism.fsdp") || args.told("parallelism.zero_stage");
  }
  read_model(args);
  const bool job = std::any_of(args.all.begin(), args.all.end(), [](const Arg& arg) {
    return arg.key == "per_device_train_batch_size" || arg.key == "model_name_or_path" || arg.key == "bits" ||
           arg.key == "lora_r" || arg.key == "model_name";
  });
  if (job) {
    read_method(args, facts);
    read_adapter(args, facts);
    read_lengths(args, facts);
    read_sharding(args);
    read_rest(args, facts);
    read_trl_loss(args, facts);
    read_evaluation(args);
    read_precision(args, facts);
    if (launch != nullptr) read_one_process(args, facts, *launch, all);
  } else {
    for (const char* what : {"sequence_length", "precision", "optimizer: default by version",
                             "model, method, batch, length: in the program started here"})
      args.unknown(what);
    if (launch == nullptr || configuration_of(*launch).empty())
      reading.notes.emplace_back("a launcher only: the training script holds the job");
  }
  if (launch != nullptr) read_files_of(args, *launch, facts);
  if (!facts.trl.empty()) read_trl_task(args, facts);
  if (!args.told("gpu")) args.unknown("gpu");
  const bool read_as_well = launch != nullptr && std::any_of(all.begin(), all.end(), [&](const Source& source) {
                              return starts_this(launch->program, source.name);
                            });
  if (!read_as_well && facts.trl.empty()) args.unknown("what the program itself sets");
  for (const std::string& name : text.script.twice)
    reading.notes.push_back("assigned more than once in the file (last one read): " + name);
  args.tell_unread();
}

void read_hf_shell(const Look& look, Sources all, Reading& reading) {
  read_program(look, all, reading, false);
}
void read_slurm(const Look& look, Sources all, Reading& reading) {
  read_program(look, all, reading, true);
}

const Format kRows[] = {
    {"hf_shell", "launch command", recognise_hf_shell, read_hf_shell, 80},
    {"slurm", "SLURM script", recognise_slurm, read_slurm, 80},
};

}  // namespace

extern const FormatRows hf_shell_rows;
const FormatRows hf_shell_rows = kRows;

}  // namespace tidemark::exchange
