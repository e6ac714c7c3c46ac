// The job that the fields of an import make, in the engine's words.
#include "core/exchange/job.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/exchange/fields.hpp"
#include "core/options/options.hpp"

namespace tidemark::exchange {
namespace {

/// Whether the engine has an option of that name, or one that holds it: an object with keys of its own ("config").
bool is_option(std::string_view path) {
  const auto holds = [&](const Option& option) {
    return path.size() > option.name.size() && path[option.name.size()] == '.' &&
           path.substr(0, option.name.size()) == option.name;
  };
  if (path.starts_with("deepspeed.")) return true;  // requests are read in its own words
  return find_option(path) != nullptr || std::any_of(options().begin(), options().end(), holds);
}

const Value* said(const Import& import, std::string_view path) {
  for (const Finding& field : import.fields) {
    if (field.path == path) return &field.value;
  }
  return nullptr;
}

/// LLaMA-Factory's word for the rank of an optimizer's projections.
bool is_rank(std::string_view path) {
  return path == "galore_rank" || path == "apollo_rank";
}

/// Whether the job says how many GPUs run it, so that counts of those that are there say nothing more.
bool counts_gpus(const Import& import) {
  return said(import, "parallelism.data") != nullptr || said(import, "parallelism.device_map") != nullptr ||
         said(import, "parallelism.gpus_per_node") != nullptr;
}

bool is_read_as(const Import& import, std::string_view format) {
  return std::any_of(import.readings.begin(), import.readings.end(),
                     [&](const Reading& reading) { return reading.format == format; });
}

/// What other fields say to the engine: of Megatron's decoders the model_type, of its states `settle_megatron`, of all
/// GPUs those of each axis.
bool is_said_elsewhere(const Import& import, std::string_view path) {
  constexpr std::string_view kSaid[] = {"config.mlp", "config.norm", "config.bias", "config.position_embedding",
                                        "distributed_optimizer"};
  if (is_rank(path) || (path == "world_size" && is_read_as(import, "swift"))) return true;
  if (path == "world_size" || path == "nodes" || path == "visible_gpus") return counts_gpus(import);
  return std::find(std::begin(kSaid), std::end(kSaid), path) != std::end(kSaid);
}

Count count_said(const Import& import, std::string_view path) {
  const Value* value = said(import, path);
  return value != nullptr && value->is_integer() ? value->integer : 0;
}

/// Megatron-LM core_v0.12.0: the distributed optimizer divides states as ZeRO-1 does (training/arguments.py:
/// --use-distributed-optimizer); a global batch is run in micro-batches (core/num_microbatches_calculator.py). Whether
/// the global batch has been said so.
bool settle_megatron(const Import& import, Value& job) {
  const Value* sharded = said(import, "distributed_optimizer");
  if (sharded != nullptr && sharded->boolean && said(import, "parallelism.zero_stage") == nullptr)
    put(job, "parallelism.zero_stage", of(1));
  const Count once = count_said(import, "micro_batch_size") * count_said(import, "parallelism.data");
  const Count all = count_said(import, "global_batch_size");
  if (once <= 0 || all <= 0 || all % once != 0 || said(import, "gradient_accumulation_steps") != nullptr) return false;
  const bool staged = count_said(import, "parallelism.pipeline") > 1;
  put(job, staged ? "parallelism.num_micro_batches" : "gradient_accumulation_steps", of(all / once));
  return true;
}

/// Axolotl's unfrozen_parameters as patterns of `trainable`: axolotl src/axolotl/utils/freeze.py: LayerNamePattern
/// takes a range of rows off the end ("[:32000]": of a parameter that is trained, gradients of other rows are zeroed,
/// and exist), and re.match begins at the name's start.
Value unfrozen(Value patterns) {
  for (Value& pattern : patterns.items) {
    std::string& text = pattern.string;
    const std::size_t open = text.rfind('[');
    if (!text.empty() && text.back() == ']' && open != std::string::npos &&
        text.find_first_not_of("0123456789:", open + 1) == text.size() - 1)
      text.resize(open);
    if (!text.empty() && text[0] != '^') text.insert(0, "^");
  }
  return patterns;
}

std::int64_t at_least_one(const Import& import, std::string_view path) {
  return std::max<Count>(1, count_said(import, path));
}

/// Whether a request of ours says the field: it is the engine's to judge, known or not.
bool is_said_by_request(const Import& import, std::string_view path) {
  return std::any_of(import.readings.begin(), import.readings.end(), [&](const Reading& reading) {
    return reading.format == "request" && std::any_of(reading.findings.begin(), reading.findings.end(),
                                                      [&](const Finding& finding) { return finding.path == path; });
  });
}

/// Whether nothing but requests of ours says something of the job; logs beside them do not.
bool is_request_alone(const Import& import) {
  return is_read_as(import, "request") &&
         std::all_of(import.readings.begin(), import.readings.end(), [](const Reading& reading) {
           return reading.format == "request" || reading.findings.empty() || !reading.log.is_null();
         });
}

/// Whether a line divides the model among GPUs whose number it does not say.
bool divides(const Import& import) {
  const Value* fsdp = said(import, "parallelism.fsdp");
  return count_said(import, "parallelism.zero_stage") > 0 ||
         (fsdp != nullptr && fsdp->is_string() && fsdp->string != "none");
}

/// ms-swift leaves mixed precision to DeepSpeed where the launcher's own file, not the command, brings it.
void settle_deepspeed(const Import& import, Value& job) {
  const Value* parallelism = job.find("parallelism");
  const Value* stage = parallelism == nullptr ? nullptr : parallelism->find("zero_stage");
  const Value* precision = job.find("precision");
  if (!is_read_as(import, "swift") || stage == nullptr || stage->integer == 0 || precision == nullptr) return;
  const std::string word = precision->string;
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (!word.starts_with("deepspeed") && has("16"))
    put(job, "precision", of(has("bf16") ? "deepspeed_bf16" : "deepspeed_fp16"));
}

/// Half precision that unsloth chooses by the card, as a reader assumes it ("bf16 on Ampere and later"): the engine
/// knows the card.
bool follows_card(const Import& import, const Finding& field) {
  const Value* framework = said(import, "framework.name");
  return field.path == "precision" && framework != nullptr && framework->string == "unsloth" &&
         field.assumed.find("on Ampere and later") != std::string::npos;
}

/// accelerate's launcher hands its mixed precision to what it starts, whose Accelerator or TrainingArguments take it
/// where they say none (accelerate 1.14 state.py: ACCELERATE_MIXED_PRECISION; transformers 5.12 training_args.py).
/// Whether it is in the job.
bool settle_mixed_precision(const Import& import, Value& job) {
  const Value* mixed = said(import, "mixed_precision");
  if (mixed == nullptr || (mixed->string != "bf16" && mixed->string != "fp16")) return mixed != nullptr;
  const std::string& cast = mixed->string;
  const auto own = std::find_if(import.fields.begin(), import.fields.end(),
                                [](const Finding& field) { return field.path == "precision"; });
  const bool is_open = own == import.fields.end();
  if (!is_open && (own->assumed.empty() || !own->value.is_string()))
    return own->value.string.find(cast) != std::string::npos;
  const Value* fsdp = said(import, "parallelism.fsdp");
  if (fsdp != nullptr && fsdp->string != "none") return is_open && cast == "bf16";
  if (count_said(import, "parallelism.zero_stage") > 0) {
    put(job, "precision", of("deepspeed_" + cast));
  } else if (is_open) {
    if (cast == "fp16") put(job, "precision", of("amp_fp16"));
  } else if (own->value.string == "fp32") {
    put(job, "precision", of("amp_" + cast));
  } else if (own->value.string == "pure_" + cast) {
    put(job, "precision", cast == "bf16" ? of("bf16_amp") : precision_of("fp16", "fp16"));
  } else {
    return own->value.string.find(cast) != std::string::npos;
  }
  return true;
}

/// GPUs that are started and that no line gives an axis: each has its part of the data. Megatron-LM's own command says
/// all axes, or says that it leaves them open.
void settle_gpus(const Import& import, Value& job, Issues& issues) {
  if (said(import, "parallelism.data") != nullptr || said(import, "parallelism.device_map") != nullptr) return;
  if (is_read_as(import, "megatron") || is_read_as(import, "torchtitan")) return;
  const Count model = at_least_one(import, "parallelism.tensor") * at_least_one(import, "parallelism.pipeline") *
                      at_least_one(import, "parallelism.context");
  Count world = count_said(import, "world_size");
  if (world == 0) world = count_said(import, "parallelism.gpus_per_node") * at_least_one(import, "nodes");
  // DeepSpeed and FSDP start a process for each GPU in sight.
  if (world == 0 && divides(import)) world = count_said(import, "visible_gpus") * at_least_one(import, "nodes");
  if (world > model && world % model == 0) return put(job, "parallelism.data", of(world / model));
  if (world > 0 || model > 1 || !divides(import)) return;
  put(job, "parallelism.data", of(2));
  issues.push_back({"ASSUMED_GPUS", Severity::kWarning, "/parallelism/data",
                    "The files divide the model among GPUs and do not say among how many: 2 are assumed. Of more each "
                    "needs less: state parallelism.data.",
                    "2"});
}

/// GRPO, RLOO and PPO count prompt and answer. ms-swift's max_length is the prompt's alone
/// (rlhf_trainers/rollout_mixin.py), and TRL's trainer cuts no prompt.
void settle_prompts(const Import& import, Value& job, Issues& issues) {
  const Value* task = said(import, "task");
  if (task == nullptr || said(import, "max_prompt_length") != nullptr) return;
  const Value* share = said(import, "lmbda");
  const bool distils = task->string == "gkd" && is_read_as(import, "swift") && (share == nullptr || share->real > 0.0);
  const bool by_policy = task->string == "ppo" && !is_read_as(import, "swift");
  if (!generates_answers(task->string) && !distils && !by_policy) return;
  const Value* length = said(import, "sequence_length");
  if (length != nullptr && is_read_as(import, "swift")) {
    put(job, "max_prompt_length", *length);
    std::erase_if(job.members, [](const Value::Member& member) { return member.key == "sequence_length"; });
  } else if (length == nullptr) {
    put(job, "max_prompt_length", of(512));
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/max_prompt_length",
                      "No file says how long the prompts are, which are not cut: 512 tokens are assumed. State "
                      "max_prompt_length.",
                      "512"});
  }
}

/// The words that a list has, the first few of many.
std::string listed(const std::vector<std::string>& words, std::string_view between) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t at = 0; at < words.size() && at < kMost; ++at)
    text += (at == 0 ? std::string{} : std::string{between}) + words[at];
  if (words.size() > kMost) text += " and " + std::to_string(words.size() - kMost) + " more";
  return text;
}

/// Texts that are embedded or ranked are cut at a length that few of them reach, in batches of hundreds.
void tell_lengths(const Import& import, Issues& issues) {
  const Value* task = said(import, "task");
  const Value* length = said(import, "sequence_length");
  if (task == nullptr || length == nullptr || (task->string != "embedding" && task->string != "reranker")) return;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/sequence_length",
                    "Every text of a batch is taken to be as long as texts may be here. Of shorter ones state "
                    "\"sequence_length\", the tokens of the longest text in a batch: activations shrink with it.",
                    ""});
}

/// A factor of two, by a release that no file says.
void tell_loading(const Import& import, Issues& issues) {
  if (said(import, "framework.version") != nullptr) return;
  for (const Finding& field : import.fields) {
    if (field.path != "precision" || field.assumed.find(kBefore5) == std::string::npos) continue;
    const std::string since{since_5(field.value.string)};
    issues.push_back({"ASSUMED_DEFAULT", Severity::kWarning, "/precision",
                      "No file says in which dtype weights are loaded, nor which release of transformers loads them: "
                      "fp32 is assumed, as before transformers 5, which loads the checkpoint's own. With that release "
                      "set \"precision\" to \"" +
                          since + "\", or give the requirements.txt as well.",
                      since});
  }
}

/// An estimate shows neither what was understood in a way of its own, keys that had no effect nor questions that stayed
/// open: each is said in a line.
void tell_left(const Import& import, Issues& issues) {
  if (!import.notes.empty())
    issues.push_back({"AS_READ", Severity::kNote, "", "Of the files: " + listed(import.notes, "; ") + ".", ""});
  std::vector<std::string> keys;
  for (const Reading& reading : import.readings) {
    for (const Unread& unread : reading.unread) {
      if (!unread.harmless) keys.push_back(unread.key);
    }
  }
  if (!keys.empty()) {
    issues.push_back({"NOT_READ", Severity::kNote, "",
                      "In the files, not read, and no part of the figure: " + listed(keys, ", ") + ".", ""});
  }
  std::vector<std::string> open;
  for (const std::string& question : import.unknowns) {
    if (question != "gpu") open.push_back(question);
  }
  if (!open.empty()) {
    issues.push_back({"NOT_SAID", Severity::kNote, "",
                      "No file says, and the job below has the usual: " + listed(open, "; ") + ".", ""});
  }
}

/// The parts of a model that sees, as ms-swift and LLaMA-Factory name what they freeze, whose adapters leave them
/// alone: ms-swift 3602360a swift/utils/transformers_utils.py get_multimodal_target_regex, LLaMA-Factory ff6d4d12
/// model/model_utils/visual.py patch_target_modules. False where another name is among them.
bool put_frozen_parts(const Import& import, const Value& names, Value& job) {
  constexpr std::string_view kParts[][2] = {{"vision_tower", "freeze_vision"},
                                            {"aligner", "freeze_projector"},
                                            {"multi_modal_projector", "freeze_projector"},
                                            {"language_model", "freeze_llm"}};
  if (!is_read_as(import, "swift") && !is_read_as(import, "llamafactory")) return false;
  std::vector<std::string_view> options;
  for (const Value& name : names.items) {
    const auto* const part =
        std::find_if(std::begin(kParts), std::end(kParts), [&](const auto& known) { return known[0] == name.string; });
    if (part == std::end(kParts)) return false;
    options.push_back((*part)[1]);
  }
  for (const std::string_view option : options) put(job, option, of(true));
  return true;
}

}  // namespace

Value job_of(const Import& import, Issues& issues) {
  Value job = empty_object();
  const bool is_axolotl = is_read_as(import, "axolotl");
  const bool batched = settle_megatron(import, job);
  Value mixed = empty_object();
  const bool mixes = settle_mixed_precision(import, mixed);
  for (const Finding& field : import.fields) {
    if (is_rank(field.path) && field.value.is_integer())
      put(job, "optim_args", of("rank=" + std::to_string(field.value.integer)));
    if ((field.path == "mixed_precision" && mixes) || follows_card(import, field)) continue;
    if (is_said_elsewhere(import, field.path) || (batched && field.path == "global_batch_size")) continue;
    if (field.path == "freeze" && put_frozen_parts(import, field.value, job)) continue;
    if (is_option(field.path) || is_said_by_request(import, field.path)) {
      put(job, field.path, field.path == "trainable" && is_axolotl ? unfrozen(field.value) : field.value);
    } else if (field.path == "fp8" && field.value.is_bool() && field.value.boolean) {
      // tests/measured: titan-003, -028 and -032 compiled, titan-031 not.
      issues.push_back(
          {"NOT_COUNTED", Severity::kWarning, field.path,
           "Products in 8-bit floats are not counted: with torch.compile they change less than 1 %; without "
           "it each linear layer makes fp32 copies of its input and weight besides. \"float8\" counts them "
           "for full training on one GPU.",
           ""});
    } else {
      issues.push_back(
          {"NOT_COUNTED", Severity::kNote, field.path, field.path + " is in the files and not in the estimate.", ""});
    }
  }
  // What trains is transformers' Trainer, and who starts it decides what its words mean: all linear layers are a list
  // of those that the model has, in place of PEFT's word (axolotl loaders/adapter.py: find_all_linear_names,
  // LLaMA-Factory model/model_utils/misc.py: find_all_linear_modules, ms-swift utils/torch_utils.py: find_all_linears).
  const Value* name = said(import, "framework.name");
  if (name != nullptr && name->string == "transformers") {
    for (const auto& [format, launcher] :
         {std::pair{"axolotl", "axolotl"}, {"llamafactory", "llama_factory"}, {"swift", "ms_swift"}}) {
      if (is_read_as(import, format)) put(job, "framework.name", of(launcher));
    }
  }
  // A request leaves nothing open that the engine would not fill in itself.
  if (!is_request_alone(import)) {
    settle_gpus(import, job, issues);
    if (const Value* precision = mixed.find("precision"); precision != nullptr) put(job, "precision", *precision);
    settle_deepspeed(import, job);
    settle_prompts(import, job, issues);
  }
  tell_loading(import, issues);
  tell_lengths(import, issues);
  tell_left(import, issues);
  return job;
}

}  // namespace tidemark::exchange
