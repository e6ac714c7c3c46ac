#include "core/plan/sharded.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/job/mixed_precision.hpp"
#include "core/plan/flat_units.hpp"
#include "core/plan/fully_shard.hpp"
#include "core/plan/main_grads.hpp"
#include "core/plan/replicas.hpp"
#include "core/plan/tensor_shards.hpp"
#include "core/plan/zero_gather.hpp"
#include "core/plan/zero_partition.hpp"

namespace tidemark {

bool divides_weights(const TrainingJob& job) {
  const Sharding how = job.data_parallel.sharding;
  return job.data_parallel.is_sharded() && !job.is_megatron() && how != Sharding::kZero1 && how != Sharding::kZero2;
}

Bytes states_on_host(const Parameter& p, const TrainingJob& job) {
  Tape host;
  OptimizerRun states(host, job);
  host.parameters().push_back(p);
  host.parameters().back().grad = {};
  states.create();
  Bytes sum = 0;
  for (const Storage& storage : host.storages()) sum += storage.bytes;
  return sum;
}

TrainingJob as_modules_see(const TrainingJob& job) {
  TrainingJob seen = job;
  if (!job.data_parallel.is_sharded() || job.is_megatron()) return seen;
  if (job.data_parallel.sharding >= Sharding::kZero1) {
    // DeepSpeed 0.19.8 runtime/engine.py _configure_distributed_model turns the whole module into its dtype, what k-bit
    // preparation made fp32 included; packed weights are no floats, and stay.
    seen.adapter.dtype = job.recipe.weights;
    seen.quantization.prepare_kbit = PrepareKbit::kOff;
    return seen;
  }
  const MixedPrecision how = mixed_precision(job);
  if (how.gathered) {
    // fully_shard's policy speaks of parameters; FullyShardedDataParallel's has a buffer_dtype, which accelerate sets.
    if (job.data_parallel.sharding == Sharding::kFsdp2) seen.recipe.buffers = job.recipe.weights;
    seen.recipe.weights = seen.recipe.gradients = *how.gathered;
    seen.adapter.dtype = *how.gathered;
  }
  return seen;
}

namespace {

// "input_layernorm" and the like: of a layer itself.
bool is_norm_of_layer(const Parameter& p) {
  const std::string_view module = p.module;
  return module.find('.') == std::string_view::npos && module.find("layernorm") != std::string_view::npos;
}

// How many names of a list stand before the first that holds of a module, or all of them.
template <typename Holds>
std::size_t place_in(std::string_view list, const Parameter& p, Holds holds) {
  std::size_t place = 0;
  for (; !list.empty(); ++place) {
    const std::string_view name = list.substr(0, list.find(' '));
    if (holds(std::string_view{p.module}, name)) return place;
    list.remove_prefix(std::min(list.size(), name.size() + 1));
  }
  return static_cast<std::size_t>(-1);
}

// Whether one of the names in a list holds of a module outside the layers.
template <typename Holds>
bool is_listed(const Parameter& p, std::string_view list, Holds holds) {
  return p.instance < 0 && place_in(list, p, holds) != static_cast<std::size_t>(-1);
}

bool begins(std::string_view module, std::string_view name) {
  return module.starts_with(name);
}

std::string_view last_part(const Parameter& p) {
  const std::string_view module = p.module;
  return module.substr(module.find_last_of('.') + 1);
}

// The projections of one attention. Whose classes write `query` make it first; whose write `out_proj` make it behind
// keys and values, in transformers' copies of BART's and CLIP's; a gate of the output comes last.
void order_projections(const std::vector<Parameter>& parameters, std::vector<std::size_t>::iterator begin,
                       std::vector<std::size_t>::iterator end) {
  const bool copied = std::any_of(begin, end, [&](std::size_t i) { return last_part(parameters[i]) == "out_proj"; });
  const bool gated = std::any_of(begin, end, [&](std::size_t i) { return last_part(parameters[i]) == "o_proj"; });
  const auto rank = [&](std::size_t i) {
    const std::string_view name = last_part(parameters[i]);
    if (name == "query") return 0;
    if (copied && (name == "k_proj" || name == "v_proj")) return 0;
    return gated && name == "gate_proj" ? 2 : 1;
  };
  std::stable_sort(begin, end, [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
}

// A layer's parameters as its class makes them, in place of the order in which it runs them.
void order_layer(const std::vector<Parameter>& parameters, std::vector<std::size_t>::iterator begin,
                 std::vector<std::size_t>::iterator end, const ClassFacts& facts) {
  const auto parent = [&](std::size_t i) {
    const std::string_view module = parameters[i].module;
    return module.substr(0, module.size() - last_part(parameters[i]).size());
  };
  for (auto run = begin; run != end;) {
    const auto behind = std::find_if(run, end, [&](std::size_t i) { return parent(i) != parent(*run); });
    order_projections(parameters, run, behind);
    run = behind;
  }
  const auto place = [&](std::size_t i) { return place_in(facts.layer_first, parameters[i], begins); };
  std::stable_sort(begin, end, [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::stable_partition(begin, end, [&](std::size_t i) {
    return std::string_view{parameters[i].module}.find(".shared_expert") == std::string_view::npos;
  });
  if (facts.norms_first) return;
  std::stable_partition(begin, end, [&](std::size_t i) { return !is_norm_of_layer(parameters[i]); });
}

}  // namespace

// A layer makes its norms behind its other modules. What sees comes before the language model, whose token table runs
// before it, but for what some models make behind that.
std::vector<std::size_t> flat_order(const std::vector<Parameter>& parameters, std::size_t count,
                                    const Architecture& architecture) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (auto layer = order.begin(); layer != order.end();) {
    const std::int16_t instance = parameters[*layer].instance;
    const auto end =
        std::find_if(layer, order.end(), [&](std::size_t i) { return parameters[i].instance != instance; });
    if (instance >= 0) order_layer(parameters, layer, end, architecture.facts);
    layer = end;
  }
  const auto in_layers = [&](std::size_t i) { return parameters[i].instance >= 0; };
  const auto made_first = [&](std::size_t i) {
    return is_listed(parameters[i], architecture.facts.made_first,
                     [](std::string_view module, std::string_view name) { return module.ends_with(name); });
  };
  for (auto one = order.begin(); one != order.end(); ++one) {
    if (!made_first(*one)) continue;
    const auto behind_layers = std::find_if(std::make_reverse_iterator(one), order.rend(), in_layers);
    const auto before = std::find_if_not(behind_layers, order.rend(), in_layers);
    if (std::any_of(behind_layers.base(), one, [&](std::size_t i) { return !made_first(i); })) continue;
    std::rotate(before.base(), one, one + 1);
  }
  if (architecture.facts.head_first) {
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
      return is_listed(parameters[i], "lm_head classifier qa_outputs", begins);
    });
  }
  const std::string_view behind = architecture.facts.behind_language;
  if (architecture.language == nullptr && behind.empty()) return order;
  const auto lies_behind = [&](std::size_t i) { return is_listed(parameters[i], behind, begins); };
  std::size_t begin = count;  // of the layers of the last stack
  while (begin > 0 && parameters[begin - 1].instance < 0) --begin;
  while (begin > 0 && parameters[begin - 1].instance >= 0) --begin;
  const auto first = order.begin(), layers = first + static_cast<std::ptrdiff_t>(begin);
  if (begin > 0 && parameters.front().is_embedding) std::rotate(first, first + 1, layers);
  // A head is made last, by the class around them all.
  const auto is_head = [&](std::size_t i) { return std::string_view{parameters[i].module} == "lm_head"; };
  const auto heads = std::stable_partition(first, order.end(), [&](std::size_t i) { return !is_head(i); });
  if (lies_behind(order.front())) {  // a whole tower, with what joins it to the language model
    const auto language = std::find_if(first, layers, [&](std::size_t i) {
      return parameters[i].is_embedding && !lies_behind(i) && parameters[i].instance < 0;
    });
    if (language != layers) std::rotate(first, language, heads);  // else there is the tower alone
  } else {
    std::stable_partition(first, heads, [&](std::size_t i) { return !lies_behind(i); });
  }
  return order;
}

namespace {

std::string_view in_words(const DataParallel& how) {
  if (how.one_process) return "nn.DataParallel gathers all outputs on it and adds all gradients up there";
  if (!how.is_sharded()) return "DistributedDataParallel keeps the whole model on every one";
  if (how.sharding == Sharding::kZero1) return "they divide master weights and optimizer states among them";
  if (how.sharding == Sharding::kZero2) return "they divide gradients, master weights and optimizer states among them";
  return "they divide weights, gradients and optimizer states among them";
}

}  // namespace

std::string in_words(const TrainingJob& job) {
  std::string words;
  const auto add = [&words](std::string_view more) {
    if (!words.empty()) words += "; ";
    words += more;
  };
  if (job.pipeline.is_used()) add("each has some of the layers, and of those that need most the figures are");
  if (job.tensor.is_used()) add(std::to_string(job.tensor.degree) + " of them divide every layer's matrices");
  if (job.divides_experts_alone()) add("each has some of the experts, and all of them see the same batch");
  if (job.context > 1) add(std::to_string(job.context) + " of them have a part of every sequence each");
  if (job.data_parallel.is_used()) add(in_words(job.data_parallel));
  return words;
}

std::unique_ptr<Sharded> place(Tape& tape, const Architecture& architecture, const TrainingJob& job) {
  if (job.is_megatron()) return std::make_unique<MainGrads>(tape, job);
  if (job.data_parallel.is_one_process()) return std::make_unique<Replicas>(tape, job);
  if (!job.data_parallel.is_sharded()) {
    return job.tensor.has_dtensors() ? std::make_unique<TensorShards>(tape, job) : nullptr;
  }
  switch (job.data_parallel.sharding) {
    case Sharding::kZero1:
    case Sharding::kZero2:
      return std::make_unique<ZeroPartition>(tape, architecture, job);
    case Sharding::kZero3:
      return std::make_unique<ZeroGather>(tape, architecture, job);
    case Sharding::kFsdp1:
      return std::make_unique<FlatUnits>(tape, architecture, job);
    default:
      return std::make_unique<FullyShard>(tape, architecture, job);
  }
}

namespace {

// TRL 1.9 models/utils.py prepare_deepspeed: below stage 3 a reference is DeepSpeed's with stage 0.
class Whole : public Sharded {
 public:
  void collect() override {}
  void take_gradient(std::int32_t, Tensor) override {}
};

}  // namespace

std::unique_ptr<Sharded> place_reference(Tape& tape, const Architecture& architecture, const TrainingJob& job,
                                         const LayerPlan& plan) {
  const bool copied = job.has_teacher() || (has_reference(job.preference) && job.reference == Reference::kCopy);
  if (!copied || !job.data_parallel.is_sharded() || job.is_megatron()) return nullptr;
  switch (job.data_parallel.sharding) {
    case Sharding::kZero1:
    case Sharding::kZero2:
      return std::make_unique<Whole>();
    case Sharding::kZero3:
      return std::make_unique<ZeroGather>(tape, architecture, job, true);
    case Sharding::kFsdp1:
      return std::make_unique<FlatUnits>(tape, architecture, job, true);
    default:
      return std::make_unique<FullyShard>(tape, architecture, job, &plan);
  }
}

}  // namespace tidemark
