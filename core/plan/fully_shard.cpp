#include "core/plan/fully_shard.hpp"

#include <algorithm>
#include <utility>

#include "core/job/defaults.hpp"
#include "core/job/framework.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/plan/tensor_shards.hpp"

namespace tidemark {
namespace {

constexpr const char* kGroup = "torch 2.14 distributed/fsdp/_fully_shard/_fsdp_param_group.py: FSDPParamGroup";
constexpr const char* kSync = "TRL 1.9 generation/vllm_generation.py: _sync_fsdp2_params_to_vllm";
constexpr const char* kCollectives = "torch 2.14 distributed/fsdp/_fully_shard/_fsdp_collectives.py";

// FSDPCommContext's streams, as far as something is allocated on them.
constexpr Stream kCopyIn = 1;
constexpr Stream kReduceScatter = 2;
constexpr Stream kAllReduce = 3;

constexpr std::size_t kRoot = 0;

// torchtitan's expert parallelism (core/families/torchtitan.cpp).
bool is_experts(const Parameter& p) {
  return std::string_view{p.module} == "mlp.experts";
}

/// What is allocated while one lives is communication's, on a stream of its own.
class Collective {
 public:
  Collective(Tape& tape, const char* name, const char* source, Stream stream)
      : tape_(tape), scope_(tape, name, source), category_(tape.default_category()), stream_(tape.stream()) {
    tape.set_default_category(Category::kCommunication);
    tape.set_stream(stream);
  }
  ~Collective() {
    tape_.set_default_category(category_);
    tape_.set_stream(stream_);
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

 private:
  Tape& tape_;
  Scope scope_;
  Category category_;
  Stream stream_;
};

/// Whether get_output_embeddings of such a class returns something.
bool has_output_embeddings(Head head) {
  for (const Head words :
       {Head::kCausalLm, Head::kMaskedLm, Head::kPreTraining, Head::kDoubleHeads, Head::kSeq2SeqLm}) {
    if (head == words) return true;
  }
  return false;
}

}  // namespace

FullyShard::FullyShard(Tape& tape, const Architecture& architecture, const TrainingJob& job, const LayerPlan* reference)
    : tape_(tape),
      architecture_(architecture),
      job_(job),
      how_(job.data_parallel),
      gathered_(mixed_precision(job).gathered),
      reduced_(mixed_precision(job).reduced),
      on_host_(job.offload.parameters),
      // As many parts as there are GPUs: the usual mesh.
      reshard_to_(how_.fsdp.reshard_to == how_.shards() ? 0 : how_.fsdp.reshard_to),
      reference_(reference),
      root_layers_(unwrapped_layers(architecture, job)),
      leaves_apart_(runs_llama_factory_v1(job) && job.has_adapter()),
      accelerate_(fsdp_groups(job) == FsdpGroups::kAccelerate && !shares_among_units(architecture)) {}

// -- who holds what -------------------------------------------------------------------------------------------------

// _fsdp_param.py FSDPParam._init_sharded_param: torch.chunk along the first dimension, all parts padded to the first's.
void FullyShard::declare(Parameter& p) {
  if (parts_.empty()) first_ = tape_.parameters().size() - 1;
  Part part;
  part.chunk = chunk_;
  part.dtype = p.dtype;
  part.gathered = p.dtype;
  part.shape = p.shape;
  if (p.storage_bytes == kOnHost) {  // kt_kernel's placeholders of experts
    part.ignored = true;
    return parts_.push_back(std::move(part));
  }
  if (p.dtype == Dtype::kUint8) {
    // bitsandbytes' packed weight is a column of quant_storage's dtype.
    part.dtype = part.gathered = job_.quantization.storage.value_or(job_.recipe.weights);
    part.shape = Shape{Dim(p.storage_bytes / size_of(part.dtype)), Dim(1)};
    // accelerate 1.14 utils/fsdp_utils.py fsdp2_prepare_model: incompatible_params4bit are fully_shard's
    // ignored_params.
    part.ignored = part.dtype == Dtype::kUint8 && fsdp_groups(job_) == FsdpGroups::kAccelerate;
    if (part.ignored) return parts_.push_back(std::move(part));
  } else if (gathered_) {
    if (p.dtype == *gathered_) part.dtype = p.is_adapter ? job_.adapter.dtype : job_.recipe.weights;
    p.dtype = part.gathered = *gathered_;
  }
  part.shards = how_.shards();
  std::size_t along = 0;
  if (has_inner() && is_experts(p)) {
    // torchtitan 0.2 models/llama4/infra/parallelize.py apply_fsdp: along the second dimension where GPUs are more than
    // experts.
    part.shards /= job_.expert;
    part.by_columns = part.shards > p.shape.size(0);
    along = part.by_columns ? 1 : 0;
  }
  const Dim first = part.shape.dim(static_cast<int>(along));
  part.shape.dims[along] = Dim((first.n() + part.shards - 1) / part.shards, first.symbol());
  part.shape.make_contiguous();
  // -1: nothing of it stays on the device.
  p.storage_bytes = on_host_ ? -1 : part.elements() * size_of(part.dtype);
  parts_.push_back(std::move(part));
}

// What it returns: a matrix with a row for each token, and its bias.
bool FullyShard::is_head(const Parameter& p) const {
  return p.shape.rank > 0 && p.shape.dim(0).n() == architecture_.vocab_size;
}

void FullyShard::find_outside() {
  const std::vector<Parameter>& parameters = tape_.parameters();  // behind ours are those of a reference
  first_in_layers_ = parts_.size();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.instance >= 0) {
      first_in_layers_ = std::min(first_in_layers_, i);
      last_in_layers_ = i;
    }
    const bool table = p.is_embedding && (!accelerate_ || (is_head(p) && !p.is_adapter));
    if (table && embedding_ < 0) embedding_ = static_cast<std::int32_t>(i);
    // _fsdp_state.py _validate_no_duplicate_params: a tied head stays with its table.
    const bool behind = p.instance < 0 && i > first_in_layers_ && p.shape.rank > 1;
    // The table itself lies behind a tower's layers, where that is declared first.
    const bool reads_out = is_head(p) || job_.tensor.has_dtensors();  // of a head that GPUs divide a part
    if (behind && reads_out && !p.is_embedding) tied_ = false;
  }
  // What no head gives logits of tokens with stands with the rest; accelerate looks for none then.
  if (!has_output_embeddings(architecture_.head)) tied_ = !accelerate_;
}

// The units: each layer; the token table, and norm with head, where they stand apart; the root has the rest. Of PEFT's
// model accelerate finds no last norm (fsdp_utils.py: _find_final_norm), which stays with the root then, where the body
// is its "model": that name is one of PEFT's own, of the class with the head; any other leads to the body.
std::size_t FullyShard::unit_of_parameter(std::size_t index) const {
  const Parameter& p = tape_.parameters()[index];
  if (p.instance >= 0) {
    if (p.instance < root_layers_) return kRoot;
    return static_cast<std::size_t>(p.instance) + 1 + (has_inner() && is_experts(p) ? layers_ : 0);
  }
  if (!apart_) return kRoot;
  const std::size_t tail = units_.size() - 1;
  if (!accelerate_) {
    if (static_cast<std::int32_t>(index) == embedding_) return tail - 1;
    if (runs_llama_factory_v1(job_)) return kRoot;
    return index > first_in_layers_ && !p.is_embedding ? tail : kRoot;
  }
  // get_input_embeddings alone: a table beside it (Gemma 4's of each layer) is the root's.
  const bool other = !p.is_adapter && static_cast<std::int32_t>(index) != embedding_;
  if (p.is_embedding && is_head(p) && !other) return tied_ ? tail : tail - 1;
  const std::string_view body = architecture_.body_prefix, module = p.module;
  const bool found = !body.empty() && body != "model." && module.starts_with(body) &&
                     module.find('.', body.size()) == std::string_view::npos;
  const bool norm = p.shape.rank == 1 && (found || !job_.has_adapter());
  return index > last_in_layers_ && (norm || is_head(p)) ? tail : kRoot;
}

// Told whether to let go after forward the root does (_fsdp_state.py: _auto_reshard_after_forward is false then).
void FullyShard::collect_reference() {
  units_.resize(1);
  Unit& unit = units_[kRoot];
  unit.reshards = how_.fsdp.reshard_after_forward;
  Bytes whole = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.times = reference_->multiplicity(tape_.parameters()[first_ + i].instance);
    unit.parameters.push_back(static_cast<std::int32_t>(first_ + i));
    whole += part.elements() * how_.shards() * size_of(part.gathered);
  }
  if (unit.reshards) return;
  unit.gathered = true;
  tape_.resume_parameters_outside_layers();
  tape_.buffer("whole reference", whole, Category::kCommunication);
}

void FullyShard::collect() {
  if (reference_ != nullptr) return collect_reference();
  find_outside();
  std::int16_t last = -1;
  for (std::size_t i = 0; i < parts_.size(); ++i) last = std::max(last, tape_.parameters()[i].instance);
  const bool separate = fsdp_groups(job_) == FsdpGroups::kSeparate;
  // LLaMA-Factory ff6d4d12 src/llamafactory/v1/plugins/trainer_plugins/distributed/fsdp2.py prepare_model: a table that
  // no head shares is a unit of its own; head and norm are the root's.
  const bool table_apart = runs_llama_factory_v1(job_) && !tied_;
  apart_ = accelerate_ || table_apart || (separate && (!tied_ || job_.pipeline.is_used()));  // a stage has one of both
  layers_ = static_cast<std::size_t>(last + 1);
  units_.resize(1 + layers_ * (has_inner() ? 2 : 1) + (apart_ ? 2 : 0));
  for (Unit& unit : units_) unit.reshards = how_.fsdp.reshard_after_forward;
  // _fsdp_state.py _lazy_init: the root stays whole after forward, unless it was told.
  if (fsdp_groups(job_) != FsdpGroups::kReshardedRoot) units_[kRoot].reshards = false;
  // torchtitan 0.2 models/llama3/infra/parallelize.py apply_fsdp: norm and head stay whole, but where
  // reshard_after_forward is "always", which is what lets go in a pipeline.
  if (apart_ && !job_.pipeline.is_used()) tail().reshards = false;
  if (last >= 0 && !how_.fsdp.reshard_last) unit_of(last).reshards = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].ignored) continue;
    parts_[i].unit = unit_of_parameter(i);
    Unit& unit = units_[parts_[i].unit];
    unit.parameters.push_back(static_cast<std::int32_t>(i));
    unit.chunk = parts_[i].chunk;
  }
  if (!apart_ || !accelerate_ || !tied_) return;
  // (final_norm, input_embed, output_embed): the table is the last of them.
  std::vector<std::int32_t>& ours = tail().parameters;
  std::stable_partition(ours.begin(), ours.end(), [&](std::int32_t p) { return p != embedding_; });
}

// _fsdp_param_group.py _init_mp_dtypes: "FSDP expects uniform original parameter dtype", of what is trained. With mixed
// precision accelerate has made all of that fp32 (1.15 utils/fsdp_utils.py: fsdp2_prepare_model).
bool FullyShard::mixes_dtypes() const {
  if (reference_ != nullptr || (fsdp_groups(job_) == FsdpGroups::kAccelerate && gathered_)) return false;
  return std::any_of(units_.begin(), units_.end(), [this](const Unit& unit) {
    std::optional<Dtype> one;
    return std::any_of(unit.parameters.begin(), unit.parameters.end(), [&](std::int32_t p) {
      if (!tape_.parameters()[static_cast<std::size_t>(p)].requires_grad) return false;
      if (!one) one = part_of(p).dtype;
      return *one != part_of(p).dtype;
    });
  });
}

void FullyShard::begin_micro_step(bool last) {
  reduces_ = !job_.pipeline.is_used() && (last || !how_.fsdp.no_sync);
  order_.clear();
  for (Unit& unit : units_) unit.in_backward = unit.done = unit.left_at_end = false;
  // The head's of KTO's own forward for its estimate of the divergence, which the training's finds.
  const bool stays = how_.fsdp.reshard_after_forward && apart_ && !tied_;
  if (job_.preference != Preference::kKto || reference_ != nullptr || !stays) return;
  follows_ = true;
  keep_gathered(tail());
}

void FullyShard::enter_chunk(std::size_t chunk) {
  chunk_ = chunk;
  for (Unit& unit : units_) unit.in_backward = unit.done = false;
}

// stage.py backward_maybe_with_nosync: a pipeline's backwards neither reduce nor let weights go; after a chunk's last
// one post_backward of every unit does both, the root's first.
void FullyShard::reduce_chunk() {
  for (Unit& unit : units_) unit.done = false;
  reduces_ = true;
  tape_.begin_segment(Phase::kReduce, -1);
  finish_units(Phase::kReduce);
  reduces_ = false;
}

void FullyShard::end_micro_steps() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Parameter& p = tape_.parameters()[i];
    if (p.whole == 0) p.whole = p.shape.numel();
    p.shape = parts_[i].shape;
    p.dtype = parts_[i].dtype;
  }
}

void FullyShard::create_states(OptimizerRun& optimizer) {
  if (!on_host_) optimizer.create();
}

void FullyShard::step(OptimizerRun& optimizer) {
  if (!on_host_) optimizer.step();
}

// CPUOffloadPolicy: parts in pinned memory (_fsdp_param.py), gradients that come to it (_fsdp_collectives.py:
// to("cpu", non_blocking=True)), and the states of an optimizer that runs there.
HostMemory FullyShard::host_memory(const LayerPlan& plan) const {
  HostMemory sum;
  if (!on_host_) return sum;
  for (const Parameter& p : tape_.parameters()) {
    const Count times = plan.multiplicity(p.instance);
    const Bytes bytes = p.shape.numel() * size_of(p.dtype);
    sum.pin(bytes, times);
    if (!p.reached) continue;
    sum.pin(bytes, times);
    sum.add(states_on_host(p, job_), times);
  }
  return sum;
}

// -- gathering ------------------------------------------------------------------------------------------------------

// _get_param_all_gather_inputs: casts of all parts in one buffer; one by one where they come from the host.
std::vector<Tensor> FullyShard::gather_inputs(const Unit& unit) {
  std::vector<Tensor> inputs;
  Count cast = 0;
  for (const std::int32_t p : unit.parameters) {
    const Part& part = part_of(p);
    const bool casts = part.dtype != part.gathered;
    if (on_host_) {
      Tensor here = tape_.allocate(part.shape, part.dtype, "part from the host");
      inputs.push_back(casts ? tape_.allocate(part.shape, part.gathered, "cast of a part") : std::move(here));
    } else if (casts) {
      const bool cut = !unit.after_forward.empty();
      cast += cut ? part.elements() * how_.shards() / reshard_to_ : part.elements();
    }
  }
  if (cast > 0) inputs.push_back(tape_.allocate(elements(cast), *gathered_, "cast of the parts"));
  return inputs;
}

// wait_for_unshard, of a group of one: each part is cast and copied.
void FullyShard::take_alone(Unit& unit) {
  const Collective in(tape_, "unsharded parameters", kGroup, kMainStream);
  Tensor cast;
  for (const std::int32_t p : unit.parameters) {
    const Part& part = part_of(p);
    if (part.dtype != part.gathered) cast = tape_.allocate(part.shape, part.gathered, "_to_copy");
    unit.whole.push_back(tape_.allocate(elements(part.elements()), part.gathered, "resize_"));
  }
  unit.gathered = true;
}

// foreach_all_gather
void FullyShard::gather(Unit& unit) {
  if (unit.gathered || unit.all_gathered.defined() || unit.parameters.empty()) return;
  if (is_alone(unit)) return;  // _fsdp_param_group.py unshard: nothing to wait for
  const Collective in(tape_, "all-gather", kCollectives, kCopyIn);
  const std::vector<Tensor> inputs = gather_inputs(unit);
  Bytes bytes = 0;
  for (const std::int32_t p : unit.parameters) {
    bytes += part_of(p).elements() * part_of(p).shards * size_of(part_of(p).gathered);
  }
  unit.all_gathered = tape_.allocate(elements(bytes), Dtype::kUint8, "all_gather_output");
}

// wait_for_unshard: in forward the output stays until the next unit's has been copied out; a name in this function
// (prev_all_gather_state) holds it as long as it runs.
void FullyShard::copy_out(Unit& unit, bool in_forward) {
  if (unit.gathered || unit.parameters.empty()) return;
  if (!unit.all_gathered.defined() && !is_alone(unit)) return;
  Tensor before;
  if (in_forward) before = std::move(deferred_);
  if (is_alone(unit)) return take_alone(unit);
  {
    const Collective in(tape_, "unsharded parameters", kGroup, kMainStream);
    std::vector<Tensor> rows;  // foreach_all_gather_copy_out: joined along another dimension than the first
    for (const std::int32_t p : unit.parameters) {
      const Part& part = part_of(p);
      unit.whole.push_back(tape_.allocate(elements(part.elements() * part.shards), part.gathered, "resize_"));
      if (part.by_columns) rows.push_back(tape_.allocate(unit.whole.back().shape(), part.gathered, "empty_like"));
    }
  }
  unit.after_forward.clear();
  unit.gathered = true;
  if (in_forward) {
    deferred_ = std::move(unit.all_gathered);
  } else {
    unit.all_gathered.reset();
  }
}

void FullyShard::reshard(Unit& unit) {
  unit.whole.clear();
  unit.gathered = false;
}

// -- forward --------------------------------------------------------------------------------------------------------

void FullyShard::pre_forward(Unit& unit) {
  gather(unit);
  copy_out(unit, true);
}

// torchtitan 0.2 models/llama4/infra/parallelize.py apply_fsdp: what is gathered ahead is stated beside expert
// parallelism, with a layer its experts.
void FullyShard::gather_layer(std::size_t layer) {
  gather(units_[layer]);
  gather(units_[layer + layers_]);
}

void FullyShard::post_forward(Unit& unit) {
  if (unit.parameters.empty()) return;
  if (unit.reshards && reshard_to_ > 0) {
    // to_sharded_post_forward: a copy of what the smaller mesh leaves to this GPU.
    const Collective in(tape_, "parts after forward", kGroup, kMainStream);
    for (const std::int32_t p : unit.parameters) {
      const Part& part = part_of(p);
      unit.after_forward.push_back(
          tape_.allocate(elements(part.elements() * part.shards / reshard_to_), part.gathered, "sharded_post_forward"));
    }
  }
  if (unit.reshards) reshard(unit);
  unit.place = static_cast<std::ptrdiff_t>(order_.size());
  order_.push_back(static_cast<std::size_t>(&unit - units_.data()));
}

void FullyShard::enter_model() {
  inside_ = true;
  units_[kRoot].left_at_end = true;
  if (apart_ && runs(table())) table().place = -1;  // a forward behind another one has gathered it anew
  if (runs(units_[kRoot])) pre_forward(units_[kRoot]);
}

void FullyShard::use(std::int32_t parameter) {
  // What was gathered of the layer goes as the first of its adapters is copied out.
  if (leaves_apart_ && tape_.parameters()[static_cast<std::size_t>(parameter)].is_adapter) deferred_.reset();
  if (!apart_ || tape_.phase() == Phase::kBackward) return;
  const std::size_t at = part_of(parameter).unit;
  if (at + 2 != units_.size()) close_embedding();
  if (at + 2 < units_.size()) return;
  Unit& unit = units_[at];
  if (parameter == embedding_ || &unit == &table()) unit.left_at_end = true;
  if (unit.gathered || unit.place >= 0) return;
  pre_forward(unit);
  if (has_inner() && parameter == embedding_) gather(units_[1]);
}

// Its module returned before anything else was asked for.
void FullyShard::close_embedding() {
  if (!apart_) return;
  if (table().gathered && table().place < 0) post_forward(table());
}

void FullyShard::enter_layer(std::int16_t instance, bool input_needs_grad) {
  if (reference_ != nullptr) return;
  close_embedding();
  // Of a run without gradients no backward is left.
  if (tape_.grad_enabled()) unit_of(instance).left_at_end = !input_needs_grad;
  pre_forward(unit_of(instance));
  if (!has_inner()) return;
  const std::size_t next = static_cast<std::size_t>(instance) + 2;
  if (next <= layers_) {
    gather_layer(next);
  } else if (apart_) {
    gather(units_.back());
  }
}

// As a layer is recomputed its experts are gathered as in forward, and stay for their backward; what the gathering made
// goes as they return (_fsdp_state.py: _post_forward of what began it).
void FullyShard::enter_inner() {
  if (has_inner()) pre_forward(inner());
}

void FullyShard::leave_inner() {
  if (!has_inner()) return;
  if (tape_.phase() == Phase::kBackward) {
    deferred_.reset();
  } else {
    post_forward(inner());
  }
}

void FullyShard::backward_enters_inner() {
  if (has_inner()) pre_backward(inner());
}

void FullyShard::backward_leaves_inner() {
  if (has_inner()) post_backward(inner());
}

void FullyShard::leave_layer(std::int16_t instance) {
  if (reference_ == nullptr) post_forward(unit_of(instance));
}

void FullyShard::leave_model() {
  if (!std::exchange(inside_, false)) return;  // before a loss that is made outside of it
  if (apart_ && runs(tail())) post_forward(tail());
  if (runs(units_[kRoot])) post_forward(units_[kRoot]);
  deferred_.reset();
}

// -- GRPO -----------------------------------------------------------------------------------------------------------

// A forward without a backward behind it: what stays whole to the end of backward stays on, and the next one finds it.
void FullyShard::begin_pass() {
  order_.clear();
  for (Unit& unit : units_) unit.place = -1;
}

void FullyShard::begin_scoring(bool) {
  begin_pass();
}

void FullyShard::begin_token() {
  begin_pass();
  enter_model();
  if (embedding_ >= 0) use(embedding_);
}

// state_dict()'s DTensors, each made whole for itself (full_tensor), in the dtype of its parts.
void FullyShard::send_weights() {
  const Collective in(tape_, "weights for vLLM", kSync, kMainStream);
  for (const Part& part : parts_) {
    if (!part.ignored)
      const Tensor one = tape_.allocate(elements(part.elements() * part.shards), part.dtype, "full_tensor");
  }
}

void FullyShard::end_rollout() {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    unit.place = -1;
    if (!unit.gathered && !unit.all_gathered.defined()) continue;
    tape_.begin_segment(Phase::kForward, layer_of(i));
    if (reference_ == nullptr || unit.reshards) reshard(unit);  // else it is there for good
    unit.all_gathered.reset();
  }
  tape_.begin_segment(Phase::kForward, -1);
  deferred_.reset();
}

void FullyShard::keep_gathered(Unit& unit) {
  if (unit.reshards || unit.parameters.empty() || unit.gathered) return;
  const Collective in(tape_, "unsharded parameters", kGroup, kMainStream);
  for (const std::int32_t p : unit.parameters) {
    const Part& part = part_of(p);
    unit.whole.push_back(tape_.allocate(elements(part.elements() * part.shards), part.gathered, "resize_"));
  }
  unit.gathered = true;
}

// What stays whole to the end of a backward, of which none has let go.
void FullyShard::follow_rollout() {
  if (reference_ != nullptr) return;
  follows_ = true;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    tape_.begin_segment(Phase::kForward, layer_of(i));
    keep_gathered(units_[i]);
  }
  tape_.begin_segment(Phase::kForward, -1);
}

// -- backward -------------------------------------------------------------------------------------------------------

// pre_backward, and _backward_prefetch: the unit that comes next in backward.
void FullyShard::pre_backward(Unit& unit) {
  if (unit.in_backward || unit.parameters.empty()) return;
  unit.in_backward = true;
  gather(unit);
  copy_out(unit, false);
  const auto at = static_cast<std::size_t>(&unit - units_.data());
  // Nothing is stated for the root, which has weights where the head is tied.
  if (has_inner() && at != kRoot && (at <= layers_ || at + 1 == units_.size())) {
    const std::size_t before = at <= layers_ ? at - 1 : layers_;
    if (at + 1 == units_.size()) {
      gather(units_[before]);  // the head names the last layer alone
    } else if (before > 0) {
      gather_layer(before);
    } else if (apart_) {
      gather(units_[units_.size() - 2]);
    }
  } else if (unit.place > 0 && (at == kRoot || !leaves_apart_)) {
    gather(units_[order_[static_cast<std::size_t>(unit.place) - 1]]);
  } else if (follows_ && apart_ && units_[kRoot].parameters.empty()) {
    // _record_post_forward: ahead of the first unit's forward stands the last one's of a forward that scored.
    gather(tail());
  }
}

void FullyShard::before_backward() {
  if (job_.has_outer_loss() || runs_llama_factory_v1(job_)) return;  // it begins as the gradient of the logits is there
  if (runs(units_[kRoot])) pre_backward(units_[kRoot]);
}

void FullyShard::backward_enters(std::int16_t instance) {
  pre_backward(unit_of(instance));
}

// A re-entrant checkpoint calls the module, with its hooks, as in forward: what the gathering made goes as it returns
// (_fsdp_state.py: _post_forward of what began it), and the next unit is gathered ahead behind that, as a gradient of
// its output comes.
void FullyShard::backward_runs_again(std::int16_t instance) {
  pre_forward(unit_of(instance));
}

void FullyShard::ran_again(std::int16_t instance) {
  deferred_.reset();
  pre_backward(unit_of(instance));
}

void FullyShard::backward_leaves(std::int16_t instance) {
  if (instance >= 0) {
    // Ahead of a layer stand its last adapter's matrices, ahead of its first one's the layer before. Checkpoints run
    // them once more behind all layers, and nothing is gathered ahead then.
    Unit& unit = unit_of(instance);
    if (leaves_apart_ && unit.place > 0 && job_.checkpointing == Checkpointing::kNone)
      gather(units_[order_[static_cast<std::size_t>(unit.place) - 1]]);
    if (!unit.left_at_end) post_backward(unit);
  } else if (apart_ && tail().in_backward && !tail().left_at_end) {
    post_backward(tail());
  }
}

void FullyShard::backward_uses(std::int32_t parameter) {
  if (apart_ && parameter >= 0) pre_backward(units_[part_of(parameter).unit]);
}

// The same of a head that is not trained.
Tensor FullyShard::backward_reads(std::int32_t storage) {
  if (!apart_ || !accelerate_) return {};
  for (const std::int32_t p : tail().parameters) {
    if (tape_.parameters()[static_cast<std::size_t>(p)].storage != storage) continue;
    pre_backward(tail());
    break;
  }
  return {};
}

// _fsdp_state.py _register_pre_backward_hook: on whatever requires a gradient of what the table's module returned. What
// is frozen is made whole for nothing, and let go as backward ends.
void FullyShard::backward_returns(std::int32_t parameter) {
  if (accelerate_) pre_backward(units_[part_of(parameter).unit]);
}

// accumulate_grad.h, with the whole parameter's own `.grad`.
void FullyShard::take_gradient(std::int32_t parameter, Tensor grad) {
  Part& part = part_of(parameter);
  if (!part.grad.defined()) part.grad = std::move(grad);
}

void FullyShard::post_backward(Unit& unit) {
  if (unit.done) return;
  unit.done = true;
  if (unit.parameters.empty()) return;
  if (!reduces_) return keep_whole(unit);
  std::vector<std::int32_t> reduced;
  for (const std::int32_t p : unit.parameters) {
    Part& part = part_of(p);
    if (part.accumulated.defined()) part.grad = std::move(part.accumulated);  // accumulate_unsharded_grad_if_needed
    if (!part.grad.defined()) continue;
    reduced.push_back(p);
    if (job_.tensor.has_dtensors()) lay_out(p);
  }
  reshard(unit);
  if (reduced.empty()) return reducing_.reset();  // of a frozen one, too, the former's buffer is let go of
  reduce(unit, std::move(reduced));
}

// _fsdp_param.py _get_grad_inner_tensor: redistributed to the layout of the parameter.
void FullyShard::lay_out(std::int32_t parameter) {
  const Collective in(tape_, "gradients", kGroup, kMainStream);
  Tensor& grad = part_of(parameter).grad;
  grad = in_layout_of(tape_, tape_.parameters()[static_cast<std::size_t>(parameter)], job_.tensor, grad);
}

// _fsdp_param.py to_accumulated_grad_if_needed: without a reduction gradients stay whole, in its dtype.
void FullyShard::keep_whole(Unit& unit) {
  if (!job_.pipeline.is_used()) reshard(unit);
  const Scope in(tape_, "accumulated gradients", kGroup);
  for (const std::int32_t p : unit.parameters) {
    Part& part = part_of(p);
    if (!part.grad.defined() || !reduced_ || part.grad.dtype() == *reduced_) continue;
    if (!part.accumulated.defined()) {
      part.accumulated = tape_.allocate(part.grad.shape(), *reduced_, "_to_copy");
      tape_.set_category(part.accumulated, Category::kGradients);
    }
    part.grad.reset();
  }
}

// foreach_reduce
void FullyShard::reduce(Unit& unit, std::vector<std::int32_t> reduced) {
  reducing_.reset();
  Count count = 0;
  const Count shards = part_of(reduced.front()).shards;
  for (const std::int32_t p : reduced) {
    Part& part = part_of(p);
    count += part.elements();
    if (part.by_columns) part.grad = tape_.allocate(part.grad.shape(), part.grad.dtype(), "cat");
  }
  const Dtype from = part_of(reduced.front()).grad.dtype();
  const Dtype dtype = reduced_.value_or(from), own = part_of(reduced.front()).dtype;
  Tensor output, last;
  // The name of its loop (unsharded_grad) holds the last gradient until it returns: of a layer that is a norm's.
  if (tape_.parameters()[static_cast<std::size_t>(reduced.back())].instance < 0) last = part_of(reduced.back()).grad;
  {
    const Collective in(tape_, "reduce-scatter", kCollectives, kMainStream);
    reducing_ = tape_.allocate(elements(count * shards), dtype, "reduce_scatter_input");
    if (from != dtype && dtype != Dtype::kFp32) {
      const Tensor narrowed = tape_.allocate(elements(count * shards), from, "grad_buffer");
    }
    for (const std::int32_t p : reduced) part_of(p).grad.reset();
    tape_.set_stream(kReduceScatter);
    output = tape_.allocate(elements(count), dtype, "reduce_output");
    if (shards == 1) const Tensor divided = tape_.allocate(elements(count), dtype, "div");  // by a factor of one
    const bool replicated = how_.replicas > 1;
    if (replicated) unit.all_reduced = output;
    if (own != dtype) {
      tape_.set_stream(replicated ? kAllReduce : kReduceScatter);
      const Tensor before = std::move(output);
      output = tape_.allocate(elements(count), own, "_to_copy");
    }
  }
  if (on_host_) return;
  tape_.set_category(output, Category::kGradients);
  for (const std::int32_t p : reduced) {
    Tensor& grad = tape_.parameters()[static_cast<std::size_t>(p)].grad;
    if (!grad.defined()) grad = output;
  }
}

// _root_post_backward_final_callback: units whose input has no gradient, the root first.
void FullyShard::after_backward() {
  finish_units(Phase::kBackward);
  follows_ = false;
}

void FullyShard::finish_units(Phase phase) {
  const auto finish = [&](Unit& unit) {
    post_backward(unit);
    unit.all_gathered.reset();
    unit.all_reduced.reset();
    unit.place = -1;
  };
  const auto finish_ours = [&](Unit& unit) {
    if (runs(unit)) finish(unit);
  };
  finish_ours(units_[kRoot]);
  const std::size_t apart = apart_ ? 2 : 0;
  if (apart_) finish_ours(table());
  if (apart_ && tail().left_at_end) finish_ours(tail());
  for (std::size_t i = 1; i + apart < units_.size(); ++i) {
    if (!runs(units_[i])) continue;
    tape_.begin_segment(phase, static_cast<std::int16_t>((i - 1) % layers_));
    finish(units_[i]);
  }
  tape_.begin_segment(phase, -1);
  if (apart_) finish_ours(tail());
  reducing_.reset();
}

}  // namespace tidemark
