#include "core/options/idle.hpp"

#include <algorithm>
#include <string>

#include "core/options/options.hpp"
#include "core/units/word_list.hpp"

namespace tidemark {
namespace {

/// Options that count beside another one alone, where a word of that one (Option::relevant) does not say it.
struct Need {
  std::string_view options;  ///< how their names begin, comma-separated
  std::string_view other;    ///< the option without which they have no effect
  bool (*is_met)(const Request& all);
};

bool is_zero(const Request& r) {
  return r.job.data_parallel.sharding >= Sharding::kZero1;
}
bool is_fsdp(const Request& r) {
  return is_fsdp(r.job.data_parallel.sharding);
}

// Of several that one option has the last that is not met is told.
constexpr Need kNeeds[] = {
    {"parallelism.zero.", "parallelism.zero_stage", is_zero},
    {"parallelism.fsdp_options.use_orig_params,parallelism.fsdp_options.limit_all_gathers,"
     "parallelism.fsdp_options.backward_prefetch,parallelism.fsdp_options.forward_prefetch,parallelism.fsdp_options."
     "wrap",
     "FSDP 1", [](const Request& r) { return r.job.data_parallel.sharding == Sharding::kFsdp1; }},
    {"parallelism.fsdp_options.groups,parallelism.fsdp_options.reshard_last", "FSDP 2",
     [](const Request& r) { return r.job.data_parallel.sharding == Sharding::kFsdp2; }},
    {"parallelism.fsdp_,parallelism.reshard_", "parallelism.fsdp", is_fsdp},
    {"neftune_noise_alpha", "a Trainer", [](const Request& r) { return !r.job.is_megatron(); }},
    {"parallelism.ddp.,parallelism.data_parallel", "parallelism.data",
     [](const Request& r) { return r.job.data_parallel.is_used() && !r.job.data_parallel.is_sharded(); }},
    {"parallelism.pipeline_,parallelism.virtual_", "parallelism.pipeline",
     [](const Request& r) { return r.job.pipeline.is_used(); }},
    {"parallelism.rank", "a pipeline or ZeRO-1 or -2",
     [](const Request& r) {
       return r.job.pipeline.is_used() || (r.job.runs_deepspeed() && r.job.data_parallel.sharding != Sharding::kZero3);
     }},
    {"parallelism.num_micro_batches", "parallelism.pipeline",
     [](const Request& r) { return r.job.pipeline.is_used() || r.job.pipeline.micro_batches == 1; }},
    {"parallelism.sequence_parallel,parallelism.loss_parallel", "parallelism.tensor",
     [](const Request& r) { return r.job.tensor.is_used(); }},
    {"megatron.", "framework.name", [](const Request& r) { return r.job.is_megatron(); }},
    {"evaluation.max_new_tokens,evaluation.num_beams", "evaluation.generate",
     [](const Request& r) { return r.job.evaluation.generates; }},
    {"evaluation.samples", "evaluation.keep_logits", [](const Request& r) { return r.job.evaluation.keeps_logits; }},
    {"use_reentrant", "gradient_checkpointing",
     [](const Request& r) { return r.job.checkpointing != Checkpointing::kNone; }},
    {"offload.optimizer_fraction", "offload.optimizer", [](const Request& r) { return r.job.offload.optimizer; }},
    {"offload.optimizer_buffer_", "offload.optimizer nvme",
     [](const Request& r) { return r.job.offload.states_on_disk; }},
    {"offload.parameters_buffer_,offload.max_in_cpu", "offload.parameters nvme",
     [](const Request& r) { return r.job.offload.weights_on_disk; }},
    {"rollout.gpu_memory_utilization,rollout.sleep,rollout.tensor_parallel", "rollout.mode",
     [](const Request& r) { return r.job.rollout.engine != RolloutEngine::kServer; }},
    {"optim_args", "optimizer",
     [](const Request& r) {
       const std::string_view name = r.job.optimizer;  // of the others none takes memory by its arguments
       return name.find("galore") != name.npos || name.find("apollo") != name.npos;
     }},
    {"rollout.gather_weights", "parallelism.zero_stage", is_zero},
    {"freeze_trainable_layers", "method", [](const Request& r) { return r.job.method == Method::kFreeze; }},
    {"use_llama_pro", "freeze_trainable_layers", [](const Request& r) { return r.foreign.trained_layers != 0; }},
};

/// The word of an option that others look at, as the whole request has it; empty where other checks speak of it.
std::string_view word_in_force(std::string_view option, const Request& r) {
  const TrainingJob& job = r.job;
  if (option == "task") return r.task.empty() ? std::string_view{"sft"} : r.task;
  if (option == "rollout.engine") {
    return job.rollout.engine == RolloutEngine::kTransformers ? "transformers" : "vllm";
  }
  if (option == "adapter.kind" && job.has_adapter()) return choice_word(option, static_cast<int>(job.adapter.kind));
  if (option == "quantization.quant_type" && job.method == Method::kQlora) {
    return choice_word(option, static_cast<int>(job.quantization.quant_type));
  }
  return {};
}

bool begins(std::string_view name, std::string_view beginnings) {
  const auto all = words_of(beginnings);
  return std::any_of(all.begin(), all.end(), [name](std::string_view b) { return name.substr(0, b.size()) == b; });
}

}  // namespace

void check_idle(const Request& request, std::span<const std::string_view> changed, Issues& issues) {
  const auto is_on = [changed](std::string_view name) {
    return std::find(changed.begin(), changed.end(), name) != changed.end();
  };
  // transformers 5.12 utils/quantization_config.py BitsAndBytesConfig.__init__
  if (is_on("load_in_4bit") && is_on("load_in_8bit")) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/load_in_8bit",
                      "\"load_in_4bit\" and \"load_in_8bit\" are both true: transformers raises a ValueError.",
                      "false"});
  }
  if (is_on("parallelism.device_map")) {
    for (std::string_view name : changed) {
      if (!begins(name, "parallelism.pipeline,parallelism.virtual_pipeline")) continue;
      issues.push_back({"INVALID_VALUE",
                        Severity::kError,
                        pointer_of(name),
                        "A device_map has no pipeline: state one of the two.",
                        {}});
    }
  }
  for (std::string_view name : changed) {
    const Relevance& rule = find_option(name)->relevant;
    const std::string_view word = word_in_force(rule.option, request);
    std::string why;
    if (!word.empty() && !has_word(rule.words, word)) {
      why = "it counts where \"" + std::string{rule.option} + "\" is one of " + std::string{rule.words};
    }
    for (const Need& need : kNeeds) {
      if (begins(name, need.options) && !need.is_met(request)) {
        why = "it counts beside \"" + std::string{need.other} + "\" alone";
      }
    }
    if (why.empty()) continue;
    issues.push_back({"IGNORED_OPTION", Severity::kWarning, pointer_of(name),
                      "\"" + std::string{name} + "\" has no effect here: " + why + ".", ""});
  }
}

}  // namespace tidemark
