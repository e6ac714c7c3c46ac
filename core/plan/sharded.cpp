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

using Order = std::vector<std::size_t>;

// "input_layernorm" and the like: of a layer itself.
bool is_norm_of_layer(std::string_view module) {
  return module.find('.') == std::string_view::npos && module.find("layernorm") != std::string_view::npos;
}

using Holds = bool (*)(std::string_view module, std::string_view name);

bool begins(std::string_view module, std::string_view name) {
  return module.starts_with(name);
}

bool ends(std::string_view module, std::string_view name) {
  return module.ends_with(name);
}

constexpr int kAbsent = 255;
// A layer's parameters are sorted by group, run of modules in one, and rank in the run: shared experts behind all that
// is listed or not, norms behind these.
constexpr int kSharedExperts = kAbsent + 1, kNorms = 2 * kSharedExperts, kRanks = 3, kRuns = 1 << 16;

// The place of the first name of a list that holds of a module.
int place_in(std::string_view list, std::string_view module, Holds holds) {
  for (int place = 0; !list.empty(); ++place) {
    const std::string_view name = list.substr(0, list.find(' '));
    if (holds(module, name)) return place;
    list.remove_prefix(std::min(list.size(), name.size() + 1));
  }
  return kAbsent;
}

// Whether one of the names in a list holds of a module outside the layers.
bool is_listed(const Parameter& p, std::string_view list, Holds holds) {
  return p.instance < 0 && place_in(list, p.module, holds) != kAbsent;
}

// Sorts by keys; what has the same keeps its order, and little is far from its place.
void settle(Order& order, std::size_t begin, std::vector<int>& keys) {
  for (std::size_t i = 1; i < keys.size(); ++i) {
    for (std::size_t j = i; j > 0 && keys[j - 1] > keys[j]; --j) {
      std::swap(keys[j - 1], keys[j]);
      std::swap(order[begin + j - 1], order[begin + j]);
    }
  }
}

void move_to(Order& order, std::size_t from, std::size_t to) {
  for (; from > to; --from) std::swap(order[from], order[from - 1]);
  for (; from < to; ++from) std::swap(order[from], order[from + 1]);
}

std::size_t length_of_parent(std::string_view module) {
  return module.find_last_of('.') + 1;  // 0 where there is none
}

// Of one attention's projections. Whose classes write `query` make it first; whose write `out_proj` (`copied`) make it
// behind keys and values, in transformers' copies of BART's and CLIP's; a gate of the output comes last (`gated`:
// beside `o_proj`).
int rank_of_projection(std::string_view name, bool copied, bool gated) {
  if (name == "query" || (copied && (name == "k_proj" || name == "v_proj"))) return 0;
  return gated && name == "gate_proj" ? 2 : 1;
}

// A layer's parameters as its class makes them, in place of the order in which it runs them: its norms behind its other
// modules.
void order_layer(const std::vector<Parameter>& parameters, Order& order, std::size_t begin, std::size_t end,
                 const ClassFacts& facts) {
  std::vector<int> keys;
  int run = 0;  // of modules in one
  for (std::size_t from = begin; from < end; ++run) {
    const std::string_view first = parameters[order[from]].module;
    const std::string_view parent = first.substr(0, length_of_parent(first));
    bool copied = false, gated = false;
    std::size_t behind = from;
    for (; behind < end; ++behind) {
      const std::string_view module = parameters[order[behind]].module;
      if (module.substr(0, length_of_parent(module)) != parent) break;
      copied = copied || module.ends_with(".out_proj");
      gated = gated || module.ends_with(".o_proj");
    }
    for (; from < behind; ++from) {
      const std::string_view module = parameters[order[from]].module;
      int group = place_in(facts.layer_first, module, begins);
      if (module.find(".shared_expert") != std::string_view::npos) group += kSharedExperts;
      if (!facts.norms_first && is_norm_of_layer(module)) group += kNorms;
      keys.push_back(group * kRuns + kRanks * run + rank_of_projection(module.substr(parent.size()), copied, gated));
    }
  }
  settle(order, begin, keys);
}

}  // namespace

// What sees comes before the language model, whose token table runs before it, but for what some models make behind
// that.
std::vector<std::size_t> flat_order(const std::vector<Parameter>& parameters, std::size_t count,
                                    const Architecture& architecture) {
  const ClassFacts& facts = architecture.facts;
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t from = 0, end = 0; from < count; from = end) {
    const std::int16_t instance = parameters[from].instance;
    for (end = from; end < count && parameters[end].instance == instance;) ++end;
    if (instance >= 0) order_layer(parameters, order, from, end, facts);
  }
  const auto at = [&](std::size_t place) -> const Parameter& { return parameters[order[place]]; };
  std::size_t behind_layers = 0, layers_begin = 0;  // where what is made before the layers runs, and belongs
  for (std::size_t i = 0; i < count; ++i) {
    if (at(i).instance >= 0) {
      if (behind_layers != i) layers_begin = i;
      behind_layers = i + 1;
    } else if (i == behind_layers && i > 0 && is_listed(at(i), facts.made_first, ends)) {
      move_to(order, i, layers_begin);
      ++layers_begin;
      ++behind_layers;
    }
  }
  std::vector<int> keys(count);
  if (facts.head_first) {
    for (std::size_t i = 0; i < count; ++i) {
      keys[i] = is_listed(at(i), "lm_head classifier qa_outputs", begins) ? 0 : 1;
    }
    settle(order, 0, keys);
  }
  const auto lies_behind = [&](std::size_t i) { return is_listed(at(i), facts.behind_language, begins); };
  if (architecture.language == nullptr && facts.behind_language.empty()) return order;
  std::size_t begin = count;  // of the layers of the last stack
  while (begin > 0 && parameters[begin - 1].instance < 0) --begin;
  while (begin > 0 && parameters[begin - 1].instance >= 0) --begin;
  if (begin > 0 && parameters.front().is_embedding) move_to(order, 0, begin - 1);
  // A whole tower, with what joins it to the language model, up to that one's table; there may be the tower alone.
  const bool tower = count > 0 && lies_behind(0);
  std::size_t language = 0;
  if (tower) {
    while (language < begin && !(at(language).is_embedding && !lies_behind(language) && at(language).instance < 0)) {
      ++language;
    }
    if (language == begin) language = 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    // A head is made last, by the class around them all.
    const bool behind = tower ? i < language : lies_behind(i);
    keys[i] = std::string_view{at(i).module} == "lm_head" ? 2 : behind ? 1 : 0;
  }
  settle(order, 0, keys);
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
