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

/// What other fields say to the engine: of Megatron's decoders the model_type, of its states `settle_megatron`, of all
/// GPUs those of each axis.
bool is_said_elsewhere(const Import& import, std::string_view path) {
  constexpr std::string_view kSaid[] = {"config.mlp", "config.norm", "config.bias", "config.position_embedding",
                                        "distributed_optimizer"};
  if (is_rank(path)) return true;
  if (path == "world_size") return said(import, "parallelism.data") != nullptr;
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

}  // namespace

Value job_of(const Import& import, Issues& issues) {
  Value job = empty_object();
  const bool is_axolotl = std::any_of(import.readings.begin(), import.readings.end(),
                                      [](const Reading& reading) { return reading.format == "axolotl"; });
  const bool batched = settle_megatron(import, job);
  for (const Finding& field : import.fields) {
    if (is_rank(field.path) && field.value.is_integer())
      put(job, "optim_args", of("rank=" + std::to_string(field.value.integer)));
    if (is_said_elsewhere(import, field.path) || (batched && field.path == "global_batch_size")) continue;
    if (is_option(field.path)) {
      put(job, field.path, field.path == "trainable" && is_axolotl ? unfrozen(field.value) : field.value);
    } else {
      issues.push_back(
          {"NOT_COUNTED", Severity::kNote, field.path, field.path + " is in the files and not in the estimate.", ""});
    }
  }
  return job;
}

}  // namespace tidemark::exchange
