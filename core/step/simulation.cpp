#include "core/step/simulation.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "core/job/framework.hpp"
#include "core/layers/adapter.hpp"
#include "core/layers/encoders.hpp"
#include "core/layers/label_smoothing.hpp"
#include "core/layers/log_probs_loss.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/preferences.hpp"
#include "core/layers/program.hpp"
#include "core/layers/prompts.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/plan/gradient_buckets.hpp"
#include "core/plan/pipeline.hpp"
#include "core/plan/sharded.hpp"
#include "core/step/device_map.hpp"
#include "core/step/host_experts.hpp"
#include "core/step/module_plan.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/record_evaluation.hpp"
#include "core/step/record_pipeline.hpp"
#include "core/step/record_policy.hpp"

namespace tidemark {
namespace {

constexpr const char* kTrainer = "transformers 5.12 trainer.py: training_step";

constexpr const char* kReferenceModel = "ms-swift 3602360a swift/megatron/trainers/rlhf_mixin.py: prepare_model";
constexpr const char* kReducer = "torch 2.14 csrc/distributed/c10d/reducer.cpp: Reducer::initialize_buckets";

void run_micro_step(Net& net, const Program& program, bool is_last, const Placements& placements);

// Gathering what a layer needs before it runs asks for all parameters beforehand: a forward that allocates nothing.
void declare_parameters(Net& net, const Program& program, Sharded& sharded, Sharded* reference) {
  Tape& t = net.tape;
  t.set_placement(&sharded);
  t.rehearse(true);
  run_micro_step(net, program, true, {&sharded, reference});
  t.rehearse(false);
  sharded.collect();
  if (reference != nullptr) reference->collect();
}

void keep_buckets(Tape& t, const LayerPlan& plan, const DataParallel& ddp) {
  Scope in(t, "DistributedDataParallel", kReducer);
  t.resume_parameters_outside_layers();
  const Category category = ddp.gradient_as_bucket_view ? Category::kGradients : Category::kCommunication;
  // A loss in chunks has run again, and begun to count what lies outside the layers anew.
  for (const Bytes bucket : gradient_buckets(t, plan, ddp)) t.further_buffer("gradient bucket", bucket, category);
}

// ms-swift 3602360a megatron/trainers/rlhf_mixin.py: prepare_model: a second GPTModel on the same GPUs. Its forward is
// behind it before the model's own begins, and needs less than that.
void keep_reference(Tape& t) {
  const std::size_t own = t.parameters().size();
  for (std::size_t i = 0; i < own; ++i) {
    const Parameter& p = t.parameters()[i];
    if (!p.counts || p.is_adapter) continue;
    t.resume_parameters_of(p.instance);
    const Scope in(t, p.module, kReferenceModel);
    t.further_buffer("ref_model: weight", p.shape.numel() * size_of(p.dtype), Category::kWeights);
  }
}

void scatter_batch(const Net& net, Placement& placement) {
  std::vector<Tensor> batch = {net.input_ids, net.labels, net.more_labels, net.attention_mask, net.pixel_values};
  batch.insert(batch.end(), net.more_inputs.begin(), net.more_inputs.end());
  placement.scatter(batch);
}

}  // namespace

void take_batch(Net& net, const Program& program) {
  Tape& t = net.tape;
  t.go_to_card(0);
  encode_batch(net);
  Scope in(t, "batch", kTrainer);
  const Category before = t.default_category();
  t.set_default_category(Category::kBuffers);
  program.inputs(net);
  t.set_default_category(before);
}

void let_batch_go(Net& net) {
  net.input_ids.reset();
  net.labels.reset();
  net.more_labels.reset();
  net.attention_mask.reset();
  net.pixel_values.reset();
  net.image_hidden_states.reset();
  net.more_inputs.clear();
}

void record_micro_step(Net& net, const Program& program, bool is_last) {
  run_micro_step(net, program, is_last, {});
}

namespace {

// torch 2.14 _fsdp_state.py FSDPState._pre_forward, _runtime_utils.py _root_pre_forward: what mixed precision makes of
// fp32 pictures is an argument of the call, and goes with it where no weight's gradient wants it.
void let_copies_go(Net& net) {
  const DataParallel& how = net.job.data_parallel;
  if (!how.is_sharded() || !is_fsdp(how.sharding) || net.job.preference != Preference::kNone) return;
  for (Tensor* copy : {&net.input_ids, &net.pixel_values}) {
    const auto is_given = [copy](const Tensor& wide) {
      return wide.dtype() == Dtype::kFp32 && wide.shape().same_sizes(copy->shape());
    };
    if (!copy->defined() || !is_half(copy->dtype())) continue;
    if (std::any_of(net.more_inputs.begin(), net.more_inputs.end(), is_given)) copy->reset();
  }
}

void run_micro_step(Net& net, const Program& program, bool is_last, const Placements& placements) {
  Tape& t = net.tape;
  const TrainingJob& job = net.job;
  t.begin_segment(Phase::kForward, -1);
  t.use_parameters_of(-1);
  take_batch(net, program);
  net.begin_micro_step();
  Placement* const placement = t.placement();
  if (placement != nullptr) {
    scatter_batch(net, *placement);
    placement->enter_model();
  }
  t.set_offloading(job.offload.activations);
  net.holds_outputs = true;
  Outputs outputs = call_model(net, program);
  net.holds_outputs = false;
  let_copies_go(net);
  if (placement != nullptr) placement->join(outputs.rest);
  if (job.preference != Preference::kNone && !job.is_megatron()) {
    outputs.loss = preference_loss(net, program, std::move(outputs.rest.front()), placements);
    outputs.rest.clear();
  } else if (job.label_smoothing > 0.0) {
    outputs.loss = label_smoothed_loss(net, outputs);
  } else if (runs_llama_factory_v1(job)) {
    outputs.loss = log_probs_loss(net, std::move(outputs));
  }
  log_sft_metrics(net, outputs);
  if (!job.keep_outputs) outputs.rest.clear();
  if (!job.keep_outputs) let_prefix_go(net);
  if (!job.keep_outputs) net.let_image_outputs_go();
  Tensor root = std::move(outputs.loss);
  t.backward(std::move(root));
  t.begin_segment(Phase::kBackward, -1);
  t.end_offloading();
  if (job.outputs_stay && !is_last) {
    net.keep_until_next(std::move(outputs.rest));
  } else {
    t.let_graph_go();
  }
  net.end_micro_step();
  let_prefix_go(net);
  outputs.rest.clear();
  net.let_image_outputs_go();
  let_batch_go(net);
}

}  // namespace

std::vector<std::size_t> Simulation::played_in(int step) const {
  std::vector<std::size_t> played = {step > 1 && gradients_stay ? std::size_t{1} : 0};
  for (std::size_t later = 1; accumulates && later < micro_steps.size(); ++later) played.push_back(later);
  return played;
}

Phase Simulation::phase_of(std::size_t segment) const {
  if (segment >= evaluation) return Phase::kEvaluation;
  if (segment < generation || segment >= scored) return tape->segments()[segment].phase;
  return segment < scoring ? Phase::kGeneration : Phase::kScoring;
}

bool is_supported(const Architecture& architecture) {
  const Program* program = architecture.program;
  return program != nullptr && program->heads.find(architecture.head) != nullptr;
}

namespace {

// Whether a stage runs layers like those of the one before it, with as many micro-batches under way or one fewer, and
// so needs no more: of GPipe, and of 1F1B where the one before it, too, comes to a forward behind its first backward.
bool needs_no_more(const Net& net, Count rank) {
  const TrainingJob& job = net.job;
  const Pipeline& how = job.pipeline;
  const bool full = how.schedule == PipelineSchedule::k1F1B && how.micro_batches > how.stages - rank + 1;
  if (rank == 0 || rank + 1 == how.stages || !(full || how.schedule == PipelineSchedule::kGPipe)) return false;
  if (job.runs_deepspeed() || (job.data_parallel.is_sharded() && !job.is_megatron())) return false;
  const ModelStage before = stages_of(net.arch, how, rank - 1).front(), here = stages_of(net.arch, how, rank).front();
  bool alike = before.first == here.first && before.last == here.last && before.norm == here.norm &&
               before.end - before.begin == here.end - here.begin;
  for (Count i = before.begin, k = here.begin; alike && i < before.end; ++i, ++k) {
    alike = layer_kind(net, i) == layer_kind(net, k) && checkpointed(job, i) == checkpointed(job, k);
  }
  return alike;
}

// The ranks of a pipeline among which is the one that needs most.
std::vector<Count> candidates(const Architecture& architecture, const TrainingJob& job) {
  Tape tape;
  Net net(tape, architecture, job);
  const ModulePlan modules = plan_modules(architecture, job);
  if (!modules.trains_everything) net.treatments = &modules.treatments;
  std::vector<Count> ranks;
  for (Count rank = 0; rank < job.pipeline.stages; ++rank) {
    if (!needs_no_more(net, rank)) ranks.push_back(rank);
  }
  return ranks;
}

// The rank of a pipeline that needs most.
Simulation simulate_worst(const Architecture& architecture, const TrainingJob& job) {
  Simulation worst;
  Bytes most = -1;
  TrainingJob of_rank = job;
  for (const Count rank : candidates(architecture, job)) {
    of_rank.pipeline.rank = rank;
    Simulation s = simulate(architecture, of_rank);
    const Bytes peak = quick_peak(s, 0);
    if (peak <= most) continue;
    most = peak;
    worst = std::move(s);
  }
  return worst;
}

// Behind all that the program keeps, whose buffers are known by their order.
void keep_of_adapter(Net& net) {
  const AdapterLayer* adapter = net.job.has_adapter() ? adapter_layer(net.job.adapter.kind) : nullptr;
  if (adapter == nullptr || adapter->keep == nullptr) return;
  net.tape.resume_parameters_outside_layers();
  adapter->keep(net);
}

// `follows`: the step finds what an evaluation has left gathered.
Simulation simulate_step(const Architecture& architecture, const TrainingJob& job, bool follows) {
  const Pipeline& pipeline = job.pipeline;
  Simulation s;
  s.rank = std::max<Count>(0, pipeline.rank);
  s.tape = std::make_unique<Tape>();
  Tape& t = *s.tape;
  t.set_compute_capability(job.compute_capability);
  t.set_convolution_workspaces(job.assumptions.convolution_workspaces);
  const std::unique_ptr<Sharded> sharded = place(t, architecture, job);
  const TrainingJob seen = sharded ? as_modules_see(job) : job;
  Net net(t, architecture, seen);
  const Program& program = *architecture.program;
  const ModulePlan modules = plan_modules(architecture, job);
  if (!modules.trains_everything) net.treatments = &modules.treatments;
  s.adapted_modules = modules.adapted;
  s.saved_modules = modules.saved;
  const Architecture& beside = job.has_teacher() ? *architecture.teacher : architecture;
  const std::unique_ptr<Sharded> reference = place_reference(t, beside, job, net.plan());
  const bool whole = !sharded || (!job.data_parallel.is_sharded() && !job.is_megatron());
  if (whole && job.recipe.gradients == Dtype::kFp32 && is_half(job.recipe.weights)) t.set_gradient_dtype(Dtype::kFp32);
  const DataParallel& ddp = job.data_parallel;
  const bool plain = job.is_megatron() || ddp.is_one_process();
  if (plain) t.set_placement(sharded.get());  // it asks for nothing beforehand
  std::function<void()> pipelined;
  if (pipeline.is_device_map()) {
    t.record_card(static_cast<std::int16_t>(s.rank));
  } else if (pipeline.is_used()) {
    pipelined = pipeline_rank(net, program, architecture, s.rank, sharded.get());
  } else if (job.has_critic()) {
    pipelined = policy_steps(net, program);
  } else if (sharded && !plain) {
    declare_parameters(net, program, *sharded, reference.get());
  }
  t.set_drop_gradients(job.optimizer_in_backward);
  const bool views = ddp.is_replicated() && ddp.gradient_as_bucket_view;
  OptimizerRun optimizer(t, job);
  if (job.optimizer_in_backward) {
    t.set_gradient_hook(
        [&](std::int32_t parameter, Tensor gradient) { optimizer.take_gradient(parameter, std::move(gradient)); });
  }
  // What an iteration leaves to the next one shows in a second one.
  s.accumulates = job.gradient_accumulation_steps > 1 || job.outputs_stay;
  s.gradients_stay = !job.zero_grad_to_none && !job.optimizer_in_backward;
  // A second micro-step finds gradients already there; a third behaves as the second, but where only the last one
  // reduces and lets go of them.
  const bool first_stage = job.runs_deepspeed() && ddp.sharding == Sharding::kZero1 && ddp.zero.overlap;
  const bool only_last = views || first_stage || (ddp.is_sharded() && ddp.fsdp.no_sync);
  const bool third = only_last && job.gradient_accumulation_steps > 2;
  const int recorded = third ? 3 : s.accumulates || s.gradients_stay ? 2 : 1;
  const bool evaluates = job.evaluation.micro_batch_size > 0;
  for (int i = 0; i < recorded; ++i) {
    t.begin_segment(Phase::kForward, -1);
    s.micro_steps.push_back(t.segments().size() - 1);
    if (sharded && i == 0 && job.generates() && !job.is_megatron()) sharded->follow_rollout();
    if (sharded && i == 0 && follows) sharded->follow_evaluation();
    if (sharded) sharded->begin_micro_step(i + 1 == recorded);
    if (reference) reference->begin_micro_step(i + 1 == recorded);
    // As a view of its bucket a gradient is copied there as soon as it is ready, and dies; under no_sync it waits.
    if (views) t.set_drop_gradients(job.gradient_accumulation_steps == 1 || i + 1 == recorded);
    pipelined ? pipelined() : run_micro_step(net, program, i + 1 == recorded, {sharded.get(), reference.get()});
    optimizer.finish_backward();
    t.break_segment();
  }
  // A reference's parameters require gradients, as from_pretrained leaves them, but no optimizer has them.
  s.own_parameters = net.own_parameters > 0 ? net.own_parameters : t.parameters().size();
  for (std::size_t i = 0; i < t.parameters().size(); ++i) {
    Parameter& p = t.parameters()[i];
    if (i < s.own_parameters && !p.elsewhere) continue;
    p.requires_grad = false;
    if (!p.elsewhere) continue;
    p.grad.reset();
    p.reached = false;
  }
  if (net.is_laid()) t.go_to_card(static_cast<std::int16_t>(s.rank));  // whose parameters are stepped
  s.plan = net.plan();
  keep_of_adapter(net);
  if (!job.is_megatron()) keep_buckets(t, s.plan, ddp);
  const bool compares = has_reference(job.preference) && job.reference == Reference::kCopy;
  if (job.is_megatron() && compares) keep_reference(t);
  std::vector<Declared> declared;
  // Beside weights that are divided a teacher's student is not shown while it generates: training needs more.
  // Megatron-Core's answers come from vLLM elsewhere, and scoring them is training's forward without gradients.
  const bool rolls_out =
      !job.is_megatron() && (job.generates() || (job.rolls_out() && !job.data_parallel.is_sharded()));
  const bool divides = divides_weights(job);
  const Divided divided{divides ? sharded.get() : nullptr, divides ? reference.get() : nullptr};
  if (rolls_out || evaluates) declared = declared_in(t);
  if (sharded) sharded->end_micro_steps();
  t.begin_segment(Phase::kOptimizer, -1);
  const std::size_t events = t.events().size();
  if (sharded) sharded->prepare_step();
  if (t.events().size() > events) {
    t.break_segment();
    t.begin_segment(Phase::kOptimizer, -1);
  }
  s.create_states = t.segments().size() - 1;
  sharded ? sharded->create_states(optimizer) : optimizer.create();
  t.break_segment();
  t.begin_segment(Phase::kOptimizer, -1);
  s.optimizer = t.segments().size() - 1;
  sharded ? sharded->step(optimizer) : optimizer.step();
  t.break_segment();
  // Gradients are there where a generation falls between two micro-steps of one step, or where they stay.
  const bool among_gradients = job.generates_every() % job.gradient_accumulation_steps != 0 || s.gradients_stay;
  if (rolls_out && among_gradients) record_rollout(s, net, architecture, seen, program, declared, divided);
  t.begin_segment(Phase::kZeroGrad, -1);
  s.zero_grad = t.segments().size() - 1;
  if (job.zero_grad_to_none) {
    for (Parameter& p : t.parameters()) {
      if (!p.grad.defined()) continue;
      t.begin_segment(Phase::kZeroGrad, p.instance);
      p.grad.reset();
    }
  }
  // Really it goes layer by layer in the next forward, whose peak comes when all of it is gone.
  t.let_modules_go();
  pipelined = nullptr;
  if (rolls_out && !among_gradients) record_rollout(s, net, architecture, seen, program, declared, divided);
  s.evaluation =
      evaluates ? record_evaluation(net, architecture, seen, program, declared, divided) : t.segments().size();
  t.let_last_node_go();  // each micro-step begins with that of the one before
  // What each GPU keeps on its host is there for all that share it; one process has one optimizer (nn.DataParallel).
  const Count processes = std::min(ddp.per_node, job.gpus());
  for (const Parameter& p : t.parameters()) {
    s.on_host.add(optimizer.managed_bytes(p), s.plan.multiplicity(p.instance) * (ddp.is_one_process() ? 1 : processes));
  }
  // Every recorded micro-step offloads the same; only one is under way at a time.
  HostMemory activations;
  for (const auto& [instance, bytes] : t.offloaded()) activations.pin(bytes, s.plan.multiplicity(instance));
  s.on_host.add({activations.bytes / recorded, activations.rounding / recorded}, processes);
  if (sharded) s.on_host.add(sharded->host_memory(s.plan), processes);
  if (sharded) s.further_ranks = sharded->further_ranks();
  s.mixes_dtypes = sharded && sharded->mixes_dtypes();
  if (reference) s.on_host.add(reference->host_memory(s.plan), processes);
  s.on_host.add(experts_on_host(t, s.plan, job), 1);
  s.picture_tokens = net.picture_tokens;
  s.attention_kernel = net.attention_kernel;
  s.has_float8_products = net.has_float8_products;
  s.has_mixed_dtypes = t.has_mixed_dtypes();
  s.has_batch_norm = t.has_batch_norm();
  s.experts_stay_unpacked = net.experts_stay_unpacked;
  s.activations_factor = job.activations_factor;
  if (s.activations_factor != 1.0) t.scale(Category::kActivations, s.activations_factor);
  t.close();
  return s;
}

}  // namespace

Simulation simulate(const Architecture& architecture, const TrainingJob& job) {
  const Pipeline& pipeline = job.pipeline;
  if (pipeline.is_device_map() && pipeline.places.empty()) return simulate(architecture, laid_out(architecture, job));
  if (pipeline.is_used() && pipeline.rank < 0) return simulate_worst(architecture, job);
  const bool follows = job.evaluation.micro_batch_size > 0 && divides_weights(job);
  Simulation s = simulate_step(architecture, job, follows);
  if (!follows || job.data_parallel.sharding != Sharding::kZero3) return s;
  // What lies gathered counts no more for DeepSpeed: a step behind an evaluation may need less than one without.
  Simulation before = simulate_step(architecture, job, false);
  return quick_peak(before, 0) > quick_peak(s, 0) ? std::move(before) : std::move(s);
}

}  // namespace tidemark
