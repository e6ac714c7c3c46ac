#include "core/plan/zero_gather.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/job/defaults.hpp"
#include "core/job/expert_lists.hpp"
#include "core/plan/zero_leaf.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

constexpr const char* kStage3 = "DeepSpeed 0.19.8 runtime/zero/stage3.py: DeepSpeedZeroOptimizer_Stage3";
constexpr const char* kCoordinator =
    "DeepSpeed 0.19.8 runtime/zero/partitioned_param_coordinator.py: PartitionedParameterCoordinator";

constexpr const char* kGathered = "DeepSpeed 0.19.8 runtime/zero/partition_parameters.py: GatheredParameters";
constexpr const char* kSync = "TRL 1.9 generation/vllm_generation.py: sync_weights";

constexpr Count kNormBuffer = 250'000'000;  // _constant_buffered_norm2: elements whose norm is taken at a time

// runtime/swap_tensor/utils.py: MIN_AIO_BYTES, AIO_ALIGNED_BYTES; constants.py: AIO_BLOCK_SIZE_DEFAULT is as much as
// the former, AIO_INTRA_OP_PARALLELISM_DEFAULT is 1.
constexpr Bytes kLeastSwapped = 1 << 20, kSwapAlignment = 1024;

// optimizer_utils.py OptimizerSwapper: is_swappable_tensor, of fp32 elements.
bool is_swapped(Count count) {
  return count * size_of(Dtype::kFp32) >= kLeastSwapped;
}

// _io_aligned_numel, in bytes.
Bytes aligned(Bytes bytes) {
  return (bytes + kSwapAlignment - 1) / kSwapAlignment * kSwapAlignment;
}

constexpr Stream kAllGather = 1;
constexpr Stream kReduceAndPartition = 2;

// TRL makes the reference's engine before accelerate resolves "auto", which DeepSpeed takes for its own defaults
// (runtime/config_utils.py: DeepSpeedConfigModel).
ZeroSizes sizes_of(const Architecture& architecture, TrainingJob job, bool reference) {
  job.data_parallel.zero.hf_auto = job.data_parallel.zero.hf_auto && !reference;
  return zero_sizes(architecture, job);
}

// Whether a product takes experts' stacked weights as they lie, and so saves the parameter itself: transformers 5.12
// models/gpt_oss/modeling_gpt_oss.py, 5.18 models/aria: use_experts_implementation(is_transposed=True), by grouped_mm;
// models/llama4/modeling_llama4.py: Llama4TextExperts.forward, by bmm.
bool multiplies_as_they_lie(const Architecture& architecture, const TrainingJob& job) {
  const std::string_view type = architecture.model_type;
  const bool aria = type == "aria" && job.framework.at_least(5, 18);
  if (type == "gpt_oss" || aria) return job.experts == ExpertsKernel::kGroupedMm;
  return (type == "llama4" || type == "llama4_text") && !is_stood_for(job.framework);
}

}  // namespace

// reset_step, trace_prologue: a forward with adapters and one without them tell of different modules, again and again.
// KTO's own forward for its estimate of the divergence has no backward: what it tells is the forward alone.
Known ZeroGather::known(const TrainingJob& job, bool reference) {
  if (reference) return Known::kForward;
  if (job.generates()) return Known::kStep;
  if (has_reference(job.preference) && job.reference == Reference::kAdapterOff) return Known::kNothing;
  return job.preference == Preference::kKto ? Known::kForward : Known::kStep;
}

ZeroGather::ZeroGather(Tape& tape, const Architecture& architecture, const TrainingJob& job, bool reference)
    : tape_(tape),
      job_(job),
      how_(job.data_parallel),
      sizes_(sizes_of(architecture, job, reference)),
      dtype_(job.recipe.weights),
      parts_on_host_(job.offload.parameters),
      states_on_host_(job.offload.optimizer),
      recomputes_(job.checkpointing == Checkpointing::kFull || job.checkpointing == Checkpointing::kOffload),
      leaves_(has_leaf_modules(architecture.model_type)),
      experts_first_(architecture.model_type == "qwen3_moe" && !lists_experts(architecture, job)),
      saves_experts_whole_(multiplies_as_they_lie(architecture, job)),
      body_has_table_(architecture.model_type == "llama4_text" && !is_stood_for(job.framework)),
      reads_head_(!reference && (job.loss == Loss::kLiger || job.loss == Loss::kCutCrossEntropy)),
      stack_ends_(architecture.head != Head::kCausalLm && architecture.num_decoder_layers == 0),
      reference_(reference),
      known_(known(job, reference)),
      in_rollout_(known_in_rollout(job)) {}

// -- who holds what -------------------------------------------------------------------------------------------------

// partition_parameters.py _partition_param: equal parts, the last one padded. parameter_offload.py
// mark_persistent_parameters: small ones are whole all the time.
void ZeroGather::declare(Parameter& p) {
  if (parts_.empty()) first_ = tape_.parameters().size() - 1;
  Part part;
  part.dtype = dtype_;
  part.count = p.shape.numel();
  if (p.dtype == Dtype::kUint8) {  // bitsandbytes' packed weight: elements of quant_storage
    part.dtype = job_.quantization.storage.value_or(Dtype::kUint8);
    part.count = p.storage_bytes / size_of(part.dtype);
  }
  part.share = (part.count + how_.degree - 1) / how_.degree;
  part.trained = p.requires_grad && !reference_;
  // release_sub_module: without knowledge small ones go, too.
  part.persists = part.count <= sizes_.persistence_threshold && (reference_ || known_ == Known::kStep);
  p.storage_bytes = part.persists ? part.count * size_of(part.dtype) : -1;
  parts_.push_back(std::move(part));
}

void ZeroGather::collect() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    // transformers 5.12 integrations/moe.py: products with experts' stacked weights, transposed or one by one, save
    // views. Where they lie as the product takes them, it saves the parameter itself, whose data goes with its release.
    const Parameter& p = tape_.parameters()[first_ + i];
    part.viewed = p.is_expert && p.shape.rank > 2 && !saves_experts_whole_;
    share_ += part.share * size_of(part.dtype);
    trained_share_ += part.trained ? part.share : 0;
  }
  if (leaves_) sort_leaves(experts_first_);
  trace();
  const Scope in(tape_, "ZeRO", kStage3);
  tape_.resume_parameters_outside_layers();
  if (!reference_) {
    tape_.buffer("bucket of gradients", sizes_.reduce_bucket * size_of(dtype_), Category::kCommunication);
  }
  if (!parts_on_host_) tape_.buffer("parts of the weights", share_, Category::kWeights);
  if (reference_ || states_on_host_) return;
  tape_.buffer("parts of the gradients", trained_share_ * size_of(dtype_), Category::kGradients);
  tape_.buffer("master weights", trained_share_ * size_of(Dtype::kFp32), Category::kOptimizerStates);
}

void ZeroGather::end_micro_steps() {
  become_flat(tape_, trained_share_);
}

// _create_fp16_sub_groups: trained elements of each.
std::vector<Count> ZeroGather::sub_groups() const {
  std::vector<Count> groups = {0};
  for (const Part& part : parts_) {
    if (!part.trained) continue;
    if (groups.back() >= sizes_.sub_group) groups.push_back(0);
    groups.back() += part.share;
  }
  return groups;
}

bool ZeroGather::on_disk() const {
  return job_.offload.states_on_disk && is_swapped(std::min(trained_share_, sizes_.sub_group));
}

// stage3.py: offload_param moves the parts (_create_fp16_partitions_with_defragmentation), offload_optimizer what
// follows `self.device`: gradients of the parts in 16 bits (grad_partitions_flat_buffer) and fp32 (those of a group
// that is stepped at once), which are pinned unless pin_memory is false, master weights and states, which are not.
// What the disk has passes through buffers (swap_tensor/utils.py SwapBufferManager, partitioned_param_swapper.py
// AsyncPartitionedParameterSwapper), locked as they are, not in blocks of torch's; weights beyond max_in_cpu through
// one that is as large as a group is before it is divided (reserve_partitioned_swap_space).
HostMemory ZeroGather::host_memory(const LayerPlan&) const {
  const Offload& offload = job_.offload;
  HostMemory sum;
  const auto put = [&](Bytes bytes) { sum.keep(bytes, offload.pinned); };
  if (parts_on_host_) {
    const Bytes most = offload.weights_on_disk ? offload.max_in_cpu * size_of(dtype_) : share_;
    put(std::min(share_, most));
    if (offload.weights_on_disk) sum.add(aligned(offload.weight_buffer_size * size_of(dtype_)), offload.weight_buffers);
    if (share_ > most) sum.add(std::min(share_, sizes_.sub_group * size_of(dtype_)) * how_.degree);
  }
  if (reference_ || !states_on_host_) return sum;
  put(trained_share_ * size_of(dtype_));
  const std::vector<Count> groups = sub_groups();
  if (on_disk()) {
    const Count largest = *std::max_element(groups.begin(), groups.end());
    sum.add(aligned(largest * size_of(Dtype::kFp32)), offload.state_buffers);
    return sum;
  }
  for (const Count group : groups) put(group * size_of(Dtype::kFp32));
  sum.add(trained_share_ * size_of(Dtype::kFp32) + flat_states_on_host(tape_, job_));
  return sum;
}

// -- the order of modules -------------------------------------------------------------------------------------------

Count ZeroGather::elements_of(std::size_t module) const {
  Count count = 0;
  for (const std::int32_t p : forward_[module]) count += parts_[static_cast<std::size_t>(p) - first_].count;
  return count;
}

void ZeroGather::add_event(std::size_t module, bool graph, std::size_t from) {
  Event event;
  event.parameters = forward_[module];
  event.graph = graph;
  event.leaf = is_leaf(first_of(module));
  open_containers(module, from);
  if (const std::int32_t read = std::exchange(read_around_, -1); read >= 0) add_wrapper(read);
  event.counted = event.leaf ? 0 : elements_of(module);
  event.ahead = std::exchange(ahead_, 0);
  deep_ += elements_of(module);
  append(std::move(event));
}

// `foreseen`: the first step's trace has it, so that it is gathered ahead.
void ZeroGather::append(Event event, bool foreseen) {
  if (!events_.empty()) event.before = events_.back().before + events_.back().counted;
  event.layer = layer_;
  event.end = deep_;
  for (const std::int32_t p : event.parameters) {
    part_of(p).uses.push_back(events_.size());
    if (foreseen) queue_.emplace_back(events_.size(), p);
  }
  events_.push_back(std::move(event));
}

// parameter_offload.py ZeROOrderedDict: what a module's forward reads of another one's parameters is registered with it
// and gathered as it begins; peft 0.18 tuners/lora/layer.py Linear.forward asks for the dtype of lora_A's weight. What
// is whole all the time is not noticed.
void ZeroGather::add_wrapper(std::int32_t parameter) {
  Event event;
  event.parameters = {parameter};
  event.counted = part_of(parameter).count;
  event.ahead = std::exchange(ahead_, 0) - 1;
  event.stays = true;
  append(std::move(event));
}

// Backward comes to the modules in the opposite order, but to none that is frozen and comes before all that is trained
// (a frozen tower); a checkpointed layer runs forward once more before.
void ZeroGather::trace() {
  events_.clear();
  queue_.clear();
  deep_ = layer_ = ahead_ = 0;
  root_ = -1;
  for (Part& part : parts_) part.uses.clear();
  if (known_ == Known::kNothing) return;
  if (reads_head_) trace_head(HeadRead::kBegins);
  for (std::size_t i = 0; i < forward_.size(); ++i) {
    const bool is_last = i + 1 == forward_.size();
    if (body_has_table_ && is_last) trace_table(false);
    if (reads_head_ && is_last) {
      trace_head(HeadRead::kEnds);
    } else {
      add_event(i, !reference_ && backward_[i] && (!recomputes_ || instances_[i] < 0), i == 0 ? kNone : i - 1);
    }
    if (body_has_table_ && i == 0) events_.back().stays = true;
  }
  root_ = deep_;
  forward_end_ = events_.size();
  for (std::size_t end = known_ == Known::kStep ? forward_.size() : 0; end > 0;) {
    std::size_t begin = end - 1;
    while (instances_[begin] >= 0 && begin > 0 && instances_[begin - 1] == instances_[begin]) --begin;
    if (reads_head_ && end == forward_.size()) {
      trace_head(HeadRead::kBackward);
    } else {
      trace_backward(begin, end);
    }
    if (body_has_table_ && end == forward_.size()) trace_table(true);
    end = begin;
  }
}

// parameter_offload.py ZeROOrderedDict: what a module's forward reads of another one's parameters is registered with
// it, gathered as it begins and let go as it ends, in backward, too: Llama4TextModel.forward asks on which device the
// table's weight lies (transformers 5.12 models/llama4/modeling_llama4.py). `stays`: to the end of all.
void ZeroGather::trace_table(bool stays) {
  Event event;
  event.parameters = forward_.front();
  event.counted = elements_of(0);
  event.ends_late = stays;
  deep_ += event.counted;
  append(std::move(event));
}

// parameter_offload.py ZeROOrderedDict: a fused loss (Liger's lce_forward, cut cross-entropy) calls no head, whose
// weight the model's forward reads itself. It is the model's then: gathered as its forward begins, which the trace of
// the first step did not see, and again as its backward does, whose end is that of all.
void ZeroGather::trace_head(HeadRead read) {
  Event event;
  event.parameters = forward_.back();
  event.counted = read == HeadRead::kEnds ? 0 : elements_of(forward_.size() - 1);
  event.stays = read == HeadRead::kBegins;
  event.ends_late = read == HeadRead::kBackward;
  deep_ += event.counted;
  append(std::move(event), read == HeadRead::kBackward);
}

// Of a layer, or of one module outside of them. Checkpoints that are not re-entrant run the layer again as backward
// first asks for what was saved: the module at its end has begun its backward by then, but for a dropout behind it.
void ZeroGather::trace_backward(std::size_t begin, std::size_t end) {
  const bool again = recomputes_ && instances_[begin] >= 0;
  const bool begun = again && !job_.use_reentrant && backward_[end - 1] && !saves_behind_[end - 1];
  if (begun) {
    add_event(end - 1, false);
    events_.back().stays = true;
  }
  const std::size_t first = events_.size();
  const auto of_layer = [this](std::size_t i) { return backward_.begin() + static_cast<std::ptrdiff_t>(i); };
  const bool runs = again && std::any_of(of_layer(begin), of_layer(end), [](bool comes) { return comes; });
  for (std::size_t i = begin; runs && i < end; ++i) {
    add_event(i, !begun || i + 1 < end, i == begin ? kNone : i - 1);
    events_.back().again = job_.use_reentrant;
    events_.back().owned = begun && how_.zero.keeps_frozen;
  }
  std::size_t recomputed = begun && how_.zero.keeps_frozen ? events_.size() - first : 0;
  for (std::size_t i = begun ? end - 1 : end; i > begin; --i) {
    if (!backward_[i - 1]) continue;
    add_event(i - 1, false, i < end ? i : kNone);
    events_.back().drops = std::exchange(recomputed, 0);
    events_.back().frees = stack_ends_ && instances_[begin] < 0;
    events_.back().ends_late = looks_up(i - 1);
  }
}

// A token table's own module, which layers follow, and no head that is tied to it (behind which a bias may stand).
bool ZeroGather::looks_up(std::size_t module) const {
  const auto from = instances_.begin() + static_cast<std::ptrdiff_t>(module);
  return first_of(module).is_embedding && std::any_of(from, instances_.end(), [](auto layer) { return layer >= 0; });
}

// The first event from there on that wants it.
std::size_t ZeroGather::next_use(const Part& part, std::size_t from) const {
  const auto next = std::lower_bound(part.uses.begin(), part.uses.end(), from);
  return next == part.uses.end() ? events_.size() : *next;
}

void ZeroGather::begin_micro_step(bool last) {
  const bool trains = job_.generates() && !reference_;
  boundary_ = last;
  // The last one recorded stands for all but the first, as which a step's only one is noted, too.
  const bool first = micro_steps_++ == 0 && (!last || job_.generates_every() == 1);
  begin_pass(!trains ? known_ : first ? in_rollout_.first : in_rollout_.later);
}

// reset_step: what was gathered stays so, and counts no more; what was on its way is let go.
void ZeroGather::begin_pass(Known known) {
  if (known != known_) {
    known_ = known;
    trace();
  }
  next_event_ = next_in_queue_ = running_ = 0;
  turn_ = kNone;
  live_ = 0;
  blind_ = known_ == Known::kNothing;
  flights_.clear();
  for (Part& part : parts_) {
    part.fetched_for = 0;
    part.flight = -1;
    if (std::exchange(part.ahead, false)) part.whole.reset();  // _clean_inflight_param_registry
  }
}

// -- gathering and letting go ---------------------------------------------------------------------------------------

// Ahead of the first layer stand the beginnings of several stacks (a token table, a tower's patches), told apart by the
// first part of their names.
void ZeroGather::note_backward(bool same_module, const Parameter& p, std::int16_t instance, bool is_noted) {
  const bool trained = p.requires_grad;
  if (same_module) {
    saves_behind_.back() = false;
    backward_.back() = backward_.back() || trained;
    reached_ = reached_ || trained;
    return;
  }
  if (reached_ && instance < 0 && instances_.back() < 0 && seen_layers_ == 0) {
    const char* const last = tape_.parameters()[static_cast<std::size_t>(forward_.back().front())].module;
    reached_ = std::strncmp(last, p.module, std::strcspn(last, ".") + 1) == 0;
  }
  seen_layers_ += instance < 0 ? 0 : 1;
  // A lookup's ids require no gradient, whatever came before; a tied head is the table's second use.
  const bool looks_up = p.is_embedding && !is_noted;
  const std::optional<bool> told = std::exchange(input_has_gradient_, std::nullopt);
  saves_behind_.push_back(false);
  backward_.push_back(trained || told.value_or(reached_ && !looks_up));
  reached_ = reached_ || trained;
}

// While nothing is recorded yet, the modules and their order are noted.
void ZeroGather::use(std::int32_t parameter) {
  if (whole_ || tape_.declares_alone()) return;
  if (!tape_.stopped()) return fetch(parameter);
  const Parameter& p = tape_.parameters()[static_cast<std::size_t>(parameter)];
  const std::int16_t instance = tape_.instance_of_parameters();
  const bool is_noted = std::exchange(part_of(parameter).is_noted, true);
  if (!forward_.empty() && instances_.back() == instance) {
    const Parameter& last = tape_.parameters()[static_cast<std::size_t>(forward_.back().front())];
    // lora_A and lora_B are modules of their own beside their base, outside of a leaf module.
    const bool same = !p.is_adapter && !last.is_adapter && std::strcmp(last.module, p.module) == 0;
    if (same || (is_leaf(p) && is_leaf(last))) {
      note_backward(true, p, instance, is_noted);
      part_of(parameter).module = forward_.size() - 1;
      return forward_.back().push_back(parameter);
    }
  }
  // peft 0.18 tuners/lora/dora.py DoraLinearLayer.forward reads the base's weight, which is registered with it, too,
  // and so is there in its backward.
  if (p.is_adapter && job_.adapter.use_dora) backward_.back() = true;
  note_backward(false, p, instance, is_noted);
  part_of(parameter).module = forward_.size();
  forward_.push_back({parameter});
  instances_.push_back(instance);
}

std::int32_t ZeroGather::parameter_of(std::int32_t storage) const {
  const std::vector<Parameter>& all = tape_.parameters();
  // A parameter's storage is made with it: they are in one order.
  const auto before = [](const Parameter& p, std::int32_t wanted) { return p.storage < wanted; };
  const auto found = std::lower_bound(all.begin(), all.end(), storage, before);
  const auto at = static_cast<std::size_t>(found - all.begin());
  if (found == all.end() || found->storage != storage) return -1;
  return at < first_ || at >= first_ + parts_.size() ? -1 : static_cast<std::int32_t>(at);
}

void ZeroGather::backward_uses(std::int32_t parameter) {
  return parameter < 0 ? let_left_go() : fetch(parameter);
}

// What is saved within a module around the last one (an MLP, an output with a dropout) comes when that one's backward
// has begun; an adapter's own dropout has its weights asked for before it.
void ZeroGather::rehearse_saved() {
  if (tape_.declares_alone() || forward_.empty()) return;
  const Parameter& last = tape_.parameters()[static_cast<std::size_t>(forward_.back().front())];
  const std::string_view now = tape_.scopes()[static_cast<std::size_t>(tape_.scope())].module;
  const bool within = !now.empty() && std::string_view{last.module}.starts_with(now);
  saves_behind_.back() = saves_behind_.back() || !within;
}

// parameter_offload.py _post_backward_module_hook: a module lets its parameters go as its input has its gradient,
// before the backward of what lies between it and the next one that has some. What a leaf module holds goes with its
// gradients.
void ZeroGather::let_left_go() {
  if (blind_ || whole_ || next_event_ == 0 || events_[next_event_ - 1].leaf) return;
  const auto first = static_cast<std::size_t>(events_[next_event_ - 1].parameters.front());
  const Parameter& p = tape_.parameters()[first];
  const char* const now = tape_.scopes()[static_cast<std::size_t>(tape_.scope())].module;
  const bool inside = p.instance == tape_.instance() && std::strncmp(now, p.module, std::strlen(p.module)) == 0;
  if (inside) return;
  release();
  if (next_event_ < events_.size()) let_recomputed_go(next_event_);
}

void ZeroGather::before_backward() {
  keeps_ = known_ == Known::kNothing && !job_.generates();
  if (reads_head_ && !blind_ && known_ == Known::kStep && !tape_.stopped()) run_up_to(forward_end_ + 1);
}

// A frozen weight's view goes with the one product that saved it (torch/csrc/autograd/engine.cpp: evaluate_function);
// a trained one's with its gradient: see take_gradient.
Tensor ZeroGather::backward_reads(std::int32_t storage) {
  const std::int32_t parameter = parameter_of(storage);
  if (parameter < 0) return {};
  fetch(parameter);
  Part& part = part_of(parameter);
  return part.trained || job_.experts == ExpertsKernel::kEager ? Tensor() : std::move(part.saved);
}

Tensor ZeroGather::gathered(std::int32_t storage) {
  const std::int32_t parameter = parameter_of(storage);
  return parameter < 0 ? Tensor() : part_of(parameter).whole;
}

// fetch_sub_module, at the first of a module's parameters.
void ZeroGather::fetch(std::int32_t parameter) {
  if (blind_) return fetch_alone(part_of(parameter).module);
  const Part& part = part_of(parameter);
  // The last module, from its end: the model's, or that of a layer that has run again.
  const bool turns = (tape_.phase() == Phase::kBackward && next_event_ == forward_end_) || next_event_ == turn_;
  if (!turns && next_event_ > 0 && next_use(part, next_event_ - 1) == next_event_ - 1) return;
  const std::size_t event = next_use(part, next_event_);
  if (event == events_.size()) {
    if (stack_ends_ && tape_.parameters()[static_cast<std::size_t>(parameter)].instance < 0) let_kept_go();
    gather({parameter});
    return arrive(parameter);
  }
  run_up_to(event + 1);
}

void ZeroGather::let_kept_go() {
  for (Part& part : parts_) {
    if (!std::exchange(part.kept, false) || !part.whole.defined()) continue;
    live_ -= part.count;
    part.whole.reset();
  }
}

// partitioned_param_coordinator.py update_recompute_parameters, release_sub_module: frozen weights that a recomputation
// asked for belong to the module whose backward began last, and go as that ends, however soon they are used again.
void ZeroGather::let_recomputed_go(std::size_t event) {
  for (std::size_t i = event - events_[event].drops; i < event; ++i) {
    for (const std::int32_t p : events_[i].parameters) {
      Part& part = part_of(p);
      if (part.persists || part.trained || !part.whole.defined()) continue;
      let_go(part, events_[i].graph);
    }
  }
}

// Modules run as well whose parameters nothing asks for here: their hooks gather ahead as all others' do.
void ZeroGather::run_up_to(std::size_t end) {
  for (; next_event_ < end; ++next_event_) {
    if (next_event_ > 0) release();
    let_recomputed_go(next_event_);
    if (events_[next_event_].frees) let_kept_go();
    run(next_event_);
  }
}

// fetch_sub_module, of the module and of those around it that have no parameters of their own. What is frozen is left,
// in a recomputation, to the module whose backward began last (update_recompute_parameters). As a re-entrant checkpoint
// runs, that is one whose end nothing tells of: the model's own, which gets ids, or an attention, which gets its input
// by name; what is left to it goes as all of backward has ended (release_backward_leftovers).
void ZeroGather::run(std::size_t event) {
  const Scope in(tape_, "gathered parameters", kCoordinator);
  for (Count i = 0; i < events_[event].ahead; ++i) prefetch();
  gather(events_[event].parameters);
  std::vector<Flight> landed;  // a leaf module's parameters are a set in no order, so that all flights wait for one
  for (const std::int32_t p : events_[event].parameters) {
    arrive(p, events_[event].leaf ? &landed : nullptr);
    part_of(p).kept = part_of(p).kept || events_[event].ends_late ||
                      (events_[event].again && how_.zero.keeps_frozen && !part_of(p).trained);
  }
  while (next_in_queue_ < queue_.size() && queue_[next_in_queue_].first <= event) {
    Part& part = part_of(queue_[next_in_queue_].second);
    part.fetched_for = std::max(part.fetched_for, queue_[next_in_queue_].first + 1);
    ++next_in_queue_;
  }
  prefetch();
}

// Without knowledge a module's parameters come as it runs, and go as it returns: here as the next one runs. In backward
// they stay where another forward has run in between: it sets the modules' counts of gradients still to come to zero,
// which then fall below it (parameter_offload.py: _post_backward_module_hook), and what is gathered for a recomputation
// is left to a module around it (update_recompute_parameters) that nothing tells of its end, either.
void ZeroGather::fetch_alone(std::size_t module) {
  if (running_ == module + 1) return;
  let_last_go();
  running_ = module + 1;
  const Scope in(tape_, "gathered parameters", kCoordinator);
  gather(forward_[module]);
  for (const std::int32_t p : forward_[module]) arrive(p);
}

void ZeroGather::let_last_go() {
  reduce_held();
  if (running_ == 0 || keeps_) return;
  for (const std::int32_t p : forward_[running_ - 1]) {
    Part& part = part_of(p);
    live_ -= part.whole.defined() ? part.count : 0;
    if (part.viewed && tape_.grad_enabled() && tape_.phase() != Phase::kBackward) part.saved = part.whole;
    part.whole.reset();
  }
  running_ = 0;
}

void ZeroGather::leave_layer(std::int16_t) {
  if (blind_) let_last_go();
}

// What is known ends with the forward.
void ZeroGather::leave_model() {
  if (whole_) return;
  if ((known_ == Known::kForward || (scores_ && !blind_)) && next_event_ > 0) release();
  blind_ = known_ != Known::kStep;
  let_last_go();
}

// -- GRPO -----------------------------------------------------------------------------------------------------------

// partition_parameters.py GatheredParameters, _allgather_params_coalesced: each in a tensor of its own.
void ZeroGather::gather_all() {
  const Scope in(tape_, "gathered parameters", kGathered);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  for (Part& part : parts_) {
    if (!part.persists) part.whole = tape_.allocate(elements(part.share * how_.degree), part.dtype, "all-gather");
  }
  tape_.set_default_category(before);
}

void ZeroGather::let_all_go() {
  for (Part& part : parts_) {
    part.whole.reset();
    part.saved.reset();
    part.flight = -1;
    part.kept = false;
  }
  flights_.clear();
  running_ = 0;
  live_ = 0;
  scores_ = false;
}

void ZeroGather::begin_generation() {
  scores_ = true;
  if (!job_.rollout.gathers) return begin_pass(in_rollout_.token);
  gather_all();
  whole_ = true;
}

void ZeroGather::end_generation() {
  if (std::exchange(whole_, false)) let_all_go();
}

void ZeroGather::begin_scoring(bool without_adapters) {
  scores_ = true;
  if (reference_) return begin_pass(known_);
  if (without_adapters) return begin_pass(in_rollout_.without_adapters);
  begin_pass(scored_++ == 0 ? in_rollout_.scoring : in_rollout_.scoring_on);
}

// All weights at once where adapters are merged into them, one by one elsewhere. peft 0.18 tuners/lora/layer.py merge,
// get_delta_weight: a product of both factors, and its multiple.
void ZeroGather::send_weights() {
  const Scope in(tape_, "weights for vLLM", kSync);
  if (!job_.has_adapter()) {
    for (const Part& part : parts_) {
      if (!part.persists)
        const Tensor one = tape_.allocate(elements(part.share * how_.degree), part.dtype, "all-gather");
    }
    return;
  }
  gather_all();
  Count widest = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Parameter& p = tape_.parameters()[first_ + i];
    if (p.instance >= 0 && !p.is_adapter) widest = std::max(widest, parts_[i].count);
  }
  const Tensor product = tape_.allocate(elements(widest), dtype_, "mm");
  const Tensor multiple = tape_.allocate(elements(widest), dtype_, "mul");
  let_all_go();
}

// What scoring left gathered for a backward that never came.
void ZeroGather::follow_rollout() {
  if (!reference_ && in_rollout_.leaves_gathered) pass_forward();
}

// The trace is of a forward and its backward: a forward alone is its beginning, and leaves what that backward uses
// soon. A loss of several forwards is known as far as it is in training, and what it gathers goes.
void ZeroGather::begin_evaluation() {
  scores_ = true;
  begin_pass(known(job_, reference_));
}

// Steps that no evaluation came before have decided what goes.
void ZeroGather::follow_evaluation() {
  if (known(job_, reference_) != Known::kStep) return;
  tape_.set_stopped(true);
  begin_pass(Known::kStep);
  run_up_to(events_.size());
  let_all_go();
  tape_.set_stopped(false);
  for (int batch = 0; batch < 2; ++batch) pass_forward();
}

void ZeroGather::pass_forward() {
  begin_pass(Known::kStep);
  scores_ = true;
  run_up_to(forward_end_);
  release();
  scores_ = false;
}

void ZeroGather::enter_layer(std::int16_t instance, bool) {
  if (in_token_) run_token_up_to(instance);
}

void ZeroGather::begin_token() {
  if (whole_) return;
  begin_pass(known_);
  in_token_ = true;
  next_of_token_ = 0;
  run_token_up_to(-1);
}

// Modules outside of the layers, or those of a layer, in their order.
void ZeroGather::run_token_up_to(std::int16_t instance) {
  for (; next_of_token_ < forward_.size() && instances_[next_of_token_] == instance; ++next_of_token_) {
    fetch(forward_[next_of_token_].front());
  }
}

void ZeroGather::end_token() {
  if (!std::exchange(in_token_, false)) return;
  run_token_up_to(-1);
  leave_model();
}

// -- gathering ------------------------------------------------------------------------------------------------------

// all_gather_coalesced: several travel in one tensor, from which they are copied as the first of them is waited for.
void ZeroGather::gather(const std::vector<std::int32_t>& parameters) {
  std::vector<std::int32_t> missing;
  for (const std::int32_t p : parameters) {
    const Part& part = part_of(p);
    if (part.persists || part.whole.defined() || part.flight >= 0) continue;
    missing.push_back(p);
    live_ += part.count;
  }
  if (missing.empty()) return;
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  tape_.set_stream(kAllGather);
  gather_together(missing);
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

// _all_gather_sequential of one; _all_gather_coalesced: a tensor for each dtype.
void ZeroGather::gather_together(const std::vector<std::int32_t>& missing) {
  const auto fly = [&](Dtype dtype) {
    Count count = 0;
    for (const std::int32_t p : missing) count += part_of(p).dtype == dtype ? part_of(p).share * how_.degree : 0;
    return count == 0 ? Tensor() : tape_.allocate(elements(count), dtype, "all-gather");
  };
  if (missing.size() == 1) {
    part_of(missing.front()).whole = fly(part_of(missing.front()).dtype);
    part_of(missing.front()).ahead = true;
    return;
  }
  for (const std::int32_t p : missing) part_of(p).flight = static_cast<std::int32_t>(flights_.size());
  const Dtype packed = job_.quantization.storage.value_or(Dtype::kUint8);
  Flight flight;
  flight.waiting = static_cast<Count>(missing.size());
  flight.parameters = missing;
  sort_list(flight.parameters, [](std::int32_t a, std::int32_t b) { return a < b; });
  flight.weights = fly(dtype_);
  if (packed != dtype_) flight.packed = fly(packed);
  flights_.push_back(std::move(flight));
}

// AllGatherCoalescedHandle.wait: all that travelled together is copied out as the first of it is waited for; the
// handle, and with it what they travelled in, stays until the last one has been.
void ZeroGather::arrive(std::int32_t parameter, std::vector<Flight>* landed) {
  part_of(parameter).ahead = false;
  const std::int32_t flight = std::exchange(part_of(parameter).flight, -1);
  if (flight < 0) return;
  Flight& together = flights_[static_cast<std::size_t>(flight)];
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  tape_.set_stream(kAllGather);
  for (const std::int32_t p : together.parameters) {
    Part& part = part_of(p);
    if ((part.flight != flight && p != parameter) || part.whole.defined()) continue;
    part.whole = tape_.allocate(elements(part.count), part.dtype, "cat");
  }
  if (--together.waiting == 0) {
    if (landed != nullptr) landed->push_back(std::move(together));
    together = {};
  }
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

void ZeroGather::prefetch() {
  const Count most = std::min(sizes_.max_live - live_, sizes_.prefetch_bucket);
  std::vector<std::int32_t> ahead;
  Count count = 0;
  while (next_in_queue_ < queue_.size() && count < most) {
    const auto [event, p] = queue_[next_in_queue_++];
    Part& part = part_of(p);
    part.fetched_for = std::max(part.fetched_for, event + 1);
    const bool here = part.persists || part.whole.defined() || part.flight >= 0;
    if (here || std::find(ahead.begin(), ahead.end(), p) != ahead.end()) continue;
    ahead.push_back(p);
    count += part.count;
  }
  if (!ahead.empty()) gather(ahead);
}

// How many elements modules want until one wants it again: -1, none does. A leaf module's are wanted by all modules
// around it, too.
Count ZeroGather::until_again(const Event& event, const Part& part) const {
  const std::size_t again = next_use(part, next_event_);
  if (again == events_.size()) return -1;
  if (forgets_backward() && again >= forward_end_) return -1;
  if (!event.leaf) return events_[again].before - events_[next_event_].before;
  return (event.end <= root_ ? std::min(root_, events_[again].layer) : events_[again].layer) - event.end;
}

void ZeroGather::let_go(Part& part, bool graph) {
  live_ -= part.count;
  Tensor whole = std::move(part.whole);
  part.saved.reset();
  if (part.viewed && graph) part.saved = std::move(whole);
}

// __params_to_release: what is used again within max_reuse_distance elements stays.
bool ZeroGather::is_done_with(const Part& part, const Event& event) const {
  const Count distance = until_again(event, part);
  if (part.fetched_for > next_event_ && (distance >= 0 || !forgets_backward())) return false;
  return distance < 0 || distance >= sizes_.max_reuse_distance;
}

// release_sub_module. What goes is found as a module first runs in its place of the step, and remembered for good
// (functools.lru_cache); GRPO's passes say themselves what of it they remember.
void ZeroGather::release() {
  reduce_held();
  Event& event = events_[next_event_ - 1];
  if (event.stays) return;
  if (job_.generates()) event.goes.clear();
  if (event.goes.empty()) {
    for (const std::int32_t p : event.parameters) event.goes.push_back(is_done_with(part_of(p), event));
  }
  for (std::size_t i = 0; i < event.parameters.size(); ++i) {
    Part& part = part_of(event.parameters[i]);
    if (event.owned && !part.trained) continue;  // __release_param: another module wants it
    if (event.goes[i] && !part.persists && !part.kept && part.whole.defined()) let_go(part, event.graph);
  }
}

// -- gradients ------------------------------------------------------------------------------------------------------

// reduce_independent_p_g_buckets_and_remove_grads, __add_grad_to_ipg_bucket: the bucket is there for good. All nodes
// that the gradient comes from have run by then, and let the views go that they had saved
// (torch/csrc/autograd/engine.cpp: evaluate_function).
void ZeroGather::take_gradient(std::int32_t parameter, Tensor grad) {
  part_of(parameter).saved.reset();
  if (!is_leaf(tape_.parameters()[static_cast<std::size_t>(parameter)])) {
    return add_to_bucket(parameter, std::move(grad));
  }
  part_of(parameter).grad = std::move(grad);
  held_.push_back(parameter);
}

void ZeroGather::add_to_bucket(std::int32_t parameter, Tensor grad) {
  Part& part = part_of(parameter);
  if (filled_ + part.count > sizes_.reduce_bucket && filled_ > 0) reduce_bucket();
  if (filled_ + part.count > sizes_.reduce_bucket) part.grad = std::move(grad);  // else copied, and dropped
  filled_ += part.count;
  in_bucket_.push_back(parameter);
}

// __avg_scatter_grads, coalesced_collectives.py reduce_scatter_coalesced: one tensor unless it is one already.
void ZeroGather::reduce_bucket() {
  const Scope in(tape_, "reduce-scatter", kStage3);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  tape_.set_stream(kReduceAndPartition);
  Count count = 0;
  for (const std::int32_t p : in_bucket_) count += part_of(p).share * how_.degree;
  const bool direct = in_bucket_.size() == 1 && count == part_of(in_bucket_.front()).count;
  Tensor flat;
  if (!direct && count > 0) flat = tape_.allocate(elements(count), dtype_, "cat");
  Tensor last;
  std::vector<Tensor> wide;
  for (const std::int32_t p : in_bucket_) {
    if (states_on_host_) send_to_host(part_of(p).share, last, wide);
    part_of(p).grad.reset();
  }
  swap_out(std::move(wide));
  in_bucket_.clear();
  filled_ = 0;
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

// partition_grads with the optimizer on the host: the part is taken from there, or added to, and before a step its norm
// is that of fp64. A name of the loop holds the last one that was added to.
void ZeroGather::send_to_host(Count share, Tensor& last, std::vector<Tensor>& wide) {
  Tensor part = tape_.allocate(elements(share), dtype_, "part of the gradient");
  if (job_.gradient_accumulation_steps > 1) last = part;
  if (!boundary_) return;
  { const Tensor norm = tape_.allocate(elements(std::min(share, kNormBuffer) * 2), Dtype::kFp32, "to fp64 (norm)"); }
  Tensor copy = tape_.allocate(elements(share), Dtype::kFp32, "to fp32");
  if (on_disk()) wide.push_back(std::move(copy));
}

// optimizer_utils.py _swap_out_gradients: the disk gets a bucket's gradients together. What is small stays until the
// step has read it, as does a last piece that is no multiple of the alignment: a view, and with it the whole
// (_adjust_for_misaligned_lengths).
void ZeroGather::swap_out(std::vector<Tensor>&& wide) {
  for (Tensor& gradient : wide) {
    const Count count = gradient.shape().numel();
    const Bytes bytes = count * size_of(Dtype::kFp32);
    if (!is_swapped(count) || aligned(bytes) != bytes) unswapped_.push_back(std::move(gradient));
  }
}

void ZeroGather::after_backward() {
  run_up_to(blind_ ? 0 : events_.size());
  reduce_held();
  reduce_bucket();
  let_all_go();
  keeps_ = false;
}

// -- the optimizer --------------------------------------------------------------------------------------------------

void ZeroGather::create_states(OptimizerRun& optimizer) {
  if (!states_on_host_) create_flat_states(optimizer);
}

// step: norms in fp64 of each part, then one flat fp32 gradient (_prepare_fp32_grad_for_sub_group).
void ZeroGather::step(OptimizerRun& optimizer) {
  unswapped_.clear();
  if (states_on_host_) return;
  const Scope in(tape_, "ZeRO", kStage3);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kWorkspace);
  for (const Part& part : parts_) {
    if (part.trained) const Tensor wide = tape_.allocate(elements(part.share * 2), Dtype::kFp32, "to fp64 (norm)");
  }
  Count left = trained_share_;
  for (const Count group : sub_groups()) {
    if (group == 0) continue;
    Tensor flat = tape_.allocate(elements(group), dtype_, "flatten");
    const Tensor gradient = tape_.allocate(elements(group), Dtype::kFp32, "gradient of the part");
    flat.reset();
    left -= group;
    if (left == 0) step_flat(optimizer);
  }
  tape_.set_default_category(before);
}

}  // namespace tidemark
