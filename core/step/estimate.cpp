#include "core/step/estimate.hpp"

#include <algorithm>

#include "core/job/mixed_precision.hpp"
#include "core/plan/pipeline.hpp"
#include "core/runtime/cublas.hpp"
#include "core/step/device_map.hpp"
#include "core/step/host_load.hpp"
#include "core/step/itemise.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/range.hpp"
#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"

namespace tidemark {
namespace {

ParameterCounts count_parameters(const Simulation& s, const Architecture& architecture) {
  ParameterCounts counts;
  for (std::size_t i = 0; i < s.own_parameters; ++i) {
    const Parameter& p = s.tape->parameters()[i];
    if (p.elsewhere) continue;
    const Count n = p.elements() * s.plan.multiplicity(p.instance);
    counts.total += n;
    if (p.requires_grad) counts.trainable += n;
    if (!p.is_adapter) counts.base += n;
    const Experts& e = architecture.experts;
    counts.active += p.is_expert && e.count > 0 ? n / e.count * e.per_token : n;
  }
  counts.published = architecture.published_parameters;
  counts.adapted_modules = s.adapted_modules;
  counts.saved_modules = s.saved_modules;
  return counts;
}

// A card on which no matrix product runs has no cuBLAS handle.
bool multiplies_here(const TrainingJob& job, const Simulation& s) {
  if (!job.pipeline.is_device_map()) return true;
  const std::vector<Storage>& all = s.tape->storages();
  return std::any_of(all.begin(), all.end(), [&](const Storage& made) {
    const std::string_view op = s.tape->sites()[static_cast<std::size_t>(made.site)].op;
    return made.bytes > 0 && (op == "mm" || op == "bmm" || op == "addmm" || op == "linear");
  });
}

// What recomputing the core of attention gives back are scores and probabilities; fused kernels keep neither.
void note_idle_recomputation(const TrainingJob& job, Estimate& e) {
  const bool fused = e.attention_kernel == "flash" || e.attention_kernel == "efficient";
  if (job.checkpointing != Checkpointing::kSelectiveCoreAttention || !fused) return;
  e.issues.push_back({"NO_EFFECT", Severity::kWarning, "/gradient_checkpointing/selective",
                      "Recomputing \"core_attn\" saves nothing here: the " + e.attention_kernel +
                          " kernel keeps no attention scores. Use \"full\" or {\"every\": 2}.",
                      "full"});
}

// Torch's attention without a kernel that fuses it makes all scores, and the model's name does not tell why. torch
// 2.14 sdp_utils.cpp: less_than_sm80_mem_efficient_dtypes; before it, the efficient kernel shares no keys among heads
// (unsloth 2026.10.9 utils/attention_dispatch.py: _sdpa_gqa_state).
void note_all_scores(const Architecture& architecture, const TrainingJob& job, Estimate& e) {
  if (job.attention != AttentionKernel::kSdpa || e.attention_kernel != "math") return;
  constexpr int kAmpere = 80;
  if (computing_dtype(job) == Dtype::kBf16 && job.compute_capability < kAmpere) {
    e.issues.push_back({"ALL_SCORES", Severity::kNote, "/precision",
                        "Attention in bf16 has no fused kernel on this card and makes all scores; in fp16 autocast "
                        "(\"amp_fp16\") it has one.",
                        "amp_fp16"});
  } else if (architecture.num_kv_heads < architecture.num_heads && !job.padding) {
    e.issues.push_back(
        {"ALL_SCORES", Severity::kNote, "/padding",
         "Heads share keys here, and before torch 2.14 no fused kernel of this card and dtype takes such "
         "keys without a mask: attention makes all scores. Where rows of a batch are filled up "
         "(\"padding\": true) keys are copied for each head, and a fused kernel runs.",
         "true"});
  }
}

// torchao 0.18 float8_linear_utils.py convert_to_float8_training swaps modules of torch.nn.Linear: GPT-2's Conv1D and
// convolutions stay as they are.
void note_idle_float8(const TrainingJob& job, const Simulation& s, Issues& issues) {
  if (job.float8 == Float8::kNone || s.has_float8_products) return;
  issues.push_back({"NO_EFFECT", Severity::kWarning, "/float8",
                    "torchao converts torch.nn.Linear alone, and this model computes none outside its head of a size "
                    "that it takes: \"float8\" changes nothing here.",
                    "none"});
}

// torch 2.14 csrc/distributed/c10d/reducer.cpp: ensure_prior_reduction_finished. transformers 5.12 trainer.py has it
// look for them where nothing is checkpointed, and beside PEFT's models.
void note_unreached(const TrainingJob& job, const Simulation& s, Issues& issues) {
  const std::vector<Parameter>& all = s.tape->parameters();
  const auto waits = [](const Parameter& p) { return p.requires_grad && p.counts && !p.reached && !p.elsewhere; };
  const auto found = std::find_if(all.begin(), all.end(), waits);
  if (!job.data_parallel.is_replicated() || job.is_megatron() || found == all.end()) return;
  issues.push_back({"UNUSED_PARAMETERS", Severity::kWarning, "/parallelism/ddp/find_unused",
                    "Some of what is trained gets no gradient here (" + std::string{found->module} +
                        "), which DistributedDataParallel waits for: without find_unused_parameters its second step "
                        "raises an error.",
                    "true"});
}

// A layer whose weight has another dtype than its input, or BOFT's bias. A trace lacks what code casts that
// asks whether autocast is on (Nemotron's _cast_if_autocast_enabled).
void refuse_mixed_dtypes(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                         Issues& issues) {
  if (!s.has_mixed_dtypes || architecture.trace != nullptr) return;
  if (job.has_adapter() && job.adapter.kind == AdapterKind::kBoft) {
    issues.push_back({"INVALID_COMBINATION", Severity::kError, "/adapter/kind",
                      "Before PEFT 0.20 BOFT puts a cast in the place of a bias whose dtype is not its input's, and "
                      "torch raises a TypeError (\"cannot assign as parameter\"). Go without autocast, or name modules "
                      "without biases.",
                      ""});
    return;
  }
  issues.push_back(of_mixed_dtypes());
}

// lomo-optim 0.1.1 lomo_optim/adalomo.py fuse_update adds means over the last two dimensions to a row and a column of
// shape[0] and shape[1]; __init__ asks a number for its shape[0].
void refuse_odd_shapes(const TrainingJob& job, const Simulation& s, Issues& issues) {
  const std::vector<Parameter>& all = s.tape->parameters();
  const auto fails = [](const Parameter& p) { return p.shape.rank == 0 || (p.reached && p.shape.rank > 2); };
  const auto found = std::find_if(all.begin(), all.end(), fails);
  if (job.optimizer != "adalomo" || found == all.end()) return;
  issues.push_back({"INVALID_COMBINATION", Severity::kError, "/optimizer",
                    "AdaLomo steps vectors and matrices alone: it raises an error on convolutions, experts in one "
                    "tensor and numbers (" +
                        std::string{found->module} + "). Freeze them, or take \"lomo\".",
                    "lomo"});
}

// transformers 5.12 integrations/eetq.py EetqLinearMMFunction.backward makes the input's gradient alone, and returns a
// name that is not bound where only the bias asks for one: in the first layers, whose input has nothing trained before.
void refuse_biases_of_eetq(const TrainingJob& job, const Simulation& s, Issues& issues) {
  const bool asks_for_inputs = job.checkpointing != Checkpointing::kNone || !job.adapter.modules_to_save.empty();
  if (job.method != Method::kQlora || job.quantization.quant_type != QuantType::kEetq || asks_for_inputs) return;
  const std::vector<Parameter>& all = s.tape->parameters();
  const auto is_one = [](const Parameter& p) { return p.instance >= 0 && p.leaf == std::string_view("bias"); };
  if (job.adapter.bias != TrainedBiases::kAll || std::none_of(all.begin(), all.end(), is_one)) return;
  issues.push_back({"INVALID_COMBINATION", Severity::kError, "/adapter/bias",
                    "EETQ's layers fail in backward where a bias is trained and nothing before it (UnboundLocalError). "
                    "Use \"none\", or gradient checkpointing.",
                    "none"});
}

// Weights that a class keeps in fp32 beside 16-bit ones (A_log, a router's).
void refuse_mixed_units(const Simulation& s, Issues& issues) {
  if (!s.mixes_dtypes) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/precision",
                    "Weights of one unit are of two dtypes here, which FSDP refuses (\"uniform original parameter "
                    "dtype\"). Load all of them in fp32, and let the policy gather them in bf16.",
                    "fsdp_bf16"});
}

// torch 2.14 distributed/fsdp/_wrap_utils.py _auto_wrap: MixedPrecision._module_classes_to_ignore.
void refuse_batch_norms(const TrainingJob& job, const Simulation& s, Issues& issues) {
  const DataParallel& how = job.data_parallel;
  const bool casts = how.is_sharded() && how.sharding == Sharding::kFsdp1 && mixed_precision(job).gathered.has_value();
  if (!s.has_batch_norm || !casts) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/fsdp",
                    "FSDP 1's mixed precision leaves batch norms in fp32, units of their own, which is not modelled.",
                    "fsdp2"});
}

// bitsandbytes 0.50 nn/parametrize.py: _disable_parametrization_cache is a forward hook, which an exception passes by.
void refuse_leaking_experts(const Simulation& s, Issues& issues) {
  if (!s.experts_stay_unpacked) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/use_reentrant",
                    "A checkpoint that is not re-entrant stops recomputing among the packed experts here, and torch's "
                    "cache then keeps all of them unpacked. Use \"use_reentrant\": true.",
                    "true"});
}

// transformers raises where the features of the pictures and the places that they go to are not as many.
void refuse_too_short(const TrainingJob& job, const Simulation& s, Issues& issues) {
  if (s.picture_tokens <= job.sequence_length) return;
  const std::string tokens = std::to_string(s.picture_tokens);
  issues.push_back({"INVALID_VALUE", Severity::kError, "/sequence_length",
                    "The pictures of a sample take " + tokens +
                        " tokens, and \"sequence_length\", which includes them, is " +
                        std::to_string(job.sequence_length) + ". Make it longer, or the pictures fewer or smaller.",
                    tokens});
}

// DeepSpeed 0.19.8 swap_tensor/partitioned_param_swapper.py get_buffer: a part that is larger than a buffer is asserted
// against.
void refuse_small_buffers(const TrainingJob& job, const Simulation& s, Issues& issues) {
  if (!job.offload.weights_on_disk) return;
  const Count shards = job.data_parallel.shards();
  Count largest = 0;
  for (const Parameter& p : s.tape->parameters()) largest = std::max(largest, (p.elements() + shards - 1) / shards);
  if (largest <= job.offload.weight_buffer_size) return;
  const std::string least = std::to_string(largest);
  issues.push_back({"INVALID_VALUE", Severity::kError, "/offload/parameters_buffer_size",
                    "DeepSpeed fails: a GPU's part of the largest weight has " + least +
                        " elements, a buffer on the way to the disk (offload_param.buffer_size) fewer.",
                    least});
}

// torchtitan 0.2 distributed/activation_checkpoint.py _op_sac_save_list: of a layer products of matrices stay, every
// other one (_get_custom_policy), and what attention makes. Where other code stands in, the range reaches to all of
// them.
void reach_up_to_kept_products(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                               Estimate& e) {
  Count columns = architecture.num_layers * architecture.query_size();
  for (const Parameter& p : s.tape->parameters()) {
    const bool multiplies = p.instance >= 0 && p.shape.rank == 2 && !p.is_expert;
    if (multiplies) columns += p.elements() / p.shape.dim(1).n() * s.plan.multiplicity(p.instance);
  }
  const Bytes kept = job.micro_batch_size * job.sequence_length / job.context * columns * size_of(Dtype::kBf16);
  for (Range* range : {&e.allocated, &e.reserved, &e.device}) {
    range->high = std::max(range->high, range->expected + kept);
  }
}

// Which kernels of convolutions cuDNN takes, and with how much beside them, is its choice: the range ends where all
// take the most that was seen.
void reach_up_to_workspaces(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                            Estimate& e) {
  // Kernels run one after another: where the highest point leaves room for the largest, nothing ends the range later.
  const Bytes largest = s.tape->largest_workspace();
  const Bytes end = std::min(e.allocated.high, std::min(e.reserved.high, e.device.high));
  if (largest == 0 || quick_peak(s, lasting_workspaces(job)) + round_to_block(largest) <= end) return;
  TrainingJob taken = job;
  taken.assumptions.convolution_workspaces = true;
  const Bytes most = quick_peak(simulate(architecture, taken), lasting_workspaces(taken));
  if (most > e.allocated.high) {
    e.issues.push_back({"NOT_COUNTED", Severity::kNote, "/model",
                        "What cuDNN takes beside convolutions is its own choice. The figure leaves it out; the upper "
                        "end of the range has the most that was measured.",
                        ""});
  }
  for (Range* range : {&e.allocated, &e.reserved, &e.device}) range->high = std::max(range->high, most);
}

// What is answered is one of the GPUs: the range ends where the one that needs most does.
void reach_up_to_other_gpus(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                            EstimateOptions options, Estimate& e) {
  options.itemise = false;
  const Range answered = e.allocated;
  Bytes most = answered.high;
  TrainingJob of_rank = job;
  Count worst = 0;
  for (const Count rank : s.further_ranks) {
    of_rank.data_parallel.rank = rank;
    const Estimate other = estimate(architecture, of_rank, simulate(architecture, of_rank), options);
    for (Range Estimate::*figure : {&Estimate::allocated, &Estimate::reserved, &Estimate::device}) {
      (e.*figure).high = std::max((e.*figure).high, (other.*figure).expected);
    }
    if (other.allocated.expected <= most) continue;
    most = other.allocated.expected;
    worst = rank;
  }
  if (most == answered.high) return;
  e.issues.push_back({"GPUS_DIFFER", Severity::kNote, "/parallelism/rank",
                      "ZeRO-1 and -2 give each GPU gradients of its own part: GPU " + std::to_string(worst) +
                          " needs " + format_gib(most - answered.expected) +
                          " more than the one that is answered, and the range ends there.",
                      std::to_string(worst)});
}

// Texts of a batch are padded; how much of them is, and whether its pictures are, a request does not say. Only what
// sees or hears asks.
void reach_down_to_other_padding(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                                 Estimate& e) {
  if (!job.padding || architecture.parts.empty()) return;
  TrainingJob other = job;
  other.assumptions.other_padding = true;
  const Bytes workspaces = lasting_workspaces(job);
  const Bytes less = quick_peak(s, workspaces) - quick_peak(simulate(architecture, other), workspaces);
  if (less <= 0) return;
  e.issues.push_back({"ASSUMED_PADDING", Severity::kNote, "/padding",
                      "How much of a batch is padding a request does not say: the figure is of what moves most, and "
                      "the range begins at less.",
                      ""});
  for (Range* range : {&e.allocated, &e.reserved, &e.device}) range->low = std::max<Bytes>(0, range->low - less);
}

}  // namespace

namespace {

// What each GPU of a pipeline needs, alike neighbours together, and the rank that the answer is about.
std::vector<RankFigures> figures_of_ranks(const Architecture& architecture, TrainingJob job, Count& worst) {
  std::vector<RankFigures> ranks;
  Bytes most = -1;
  for (Count rank = 0; rank < job.pipeline.stages; ++rank) {
    job.pipeline.rank = rank;
    EstimateOptions options;
    options.itemise = false;
    const Estimate e = estimate(architecture, job, simulate(architecture, job), options);
    if (e.allocated.expected > most) worst = rank;
    most = std::max(most, e.allocated.expected);
    RankFigures row{rank,
                    rank,
                    layers_in_words(stages_of(architecture, job.pipeline, rank)),
                    e.parameters.total,
                    e.allocated.expected,
                    e.reserved.expected,
                    e.peak.phase};
    const auto alike = [&row](const RankFigures& other) {
      return other.parameters == row.parameters && other.allocated == row.allocated && other.reserved == row.reserved;
    };
    if (!ranks.empty() && alike(ranks.back())) {
      ranks.back().last = rank;
    } else {
      ranks.push_back(std::move(row));
    }
  }
  return ranks;
}

Estimate estimate_pipeline(const Architecture& architecture, TrainingJob job, const EstimateOptions& options) {
  job = laid_out(architecture, job);
  Count worst = 0;
  std::vector<RankFigures> ranks = figures_of_ranks(architecture, job, worst);
  if (job.pipeline.rank < 0) job.pipeline.rank = worst;
  Estimate e = estimate(architecture, job, simulate(architecture, job), options);
  e.ranks = std::move(ranks);
  e.peak.rank = (job.pipeline.is_device_map() ? "GPU " : "pipeline stage ") + std::to_string(job.pipeline.rank);
  return e;
}

}  // namespace

Estimate estimate(const Architecture& architecture, const TrainingJob& job, const EstimateOptions& options) {
  if (!is_supported(architecture)) {
    Estimate e;
    e.recipe = job.recipe;
    e.issues.push_back({"UNSUPPORTED_ARCHITECTURE", Severity::kError, "/config/model_type",
                        "There is no block program for model type \"" + architecture.model_type +
                            "\" yet, so its activations are unknown.",
                        ""});
    return e;
  }
  if (job.pipeline.is_used() && options.itemise) return estimate_pipeline(architecture, job, options);
  return estimate(architecture, job, simulate(architecture, job), options);
}

Estimate estimate(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                  const EstimateOptions& options) {
  Estimate e;
  e.recipe = job.recipe;
  const Bytes workspace = cublas_workspace_bytes(job.compute_capability, job.deterministic);
  e.parameters = count_parameters(s, architecture);
  e.attention_kernel = s.attention_kernel;
  note_idle_recomputation(job, e);
  note_all_scores(architecture, job, e);
  note_idle_float8(job, s, e.issues);
  note_unreached(job, s, e.issues);
  refuse_too_short(job, s, e.issues);
  refuse_mixed_dtypes(architecture, job, s, e.issues);
  refuse_leaking_experts(s, e.issues);
  refuse_mixed_units(s, e.issues);
  refuse_batch_norms(job, s, e.issues);
  refuse_odd_shapes(job, s, e.issues);
  refuse_biases_of_eetq(job, s, e.issues);
  refuse_small_buffers(job, s, e.issues);
  e.host.expected = s.on_host.bytes;
  e.host.high = s.on_host.bytes + s.on_host.rounding;
  e.host.load = host_at_load(job, e.parameters.total);
  if (!options.simulate_allocator && !options.itemise) {
    e.allocated.expected = quick_peak(s, lasting_workspaces(job));
    e.allocated.low = e.allocated.high = e.allocated.expected;
    return e;
  }
  WalkOptions how;
  how.allocator = options.simulate_allocator;
  how.expandable = job.expandable_segments;
  how.itemise = options.itemise;
  how.multiplies = !job.pipeline.is_used();
  how.cublas_workspace = multiplies_here(job, s) ? workspace : 0;
  const Walk w = walk(s, how);
  e.allocated.expected = w.peak;
  e.reserved.expected = std::max(w.reserved, w.peak);
  e.first_step_allocated = w.first_peak;
  e.peak.phase = w.at.phase;
  e.peak.at = place_name(s, w.at);
  for (int phase = 0; phase < kPhaseCount; ++phase) {
    e.phase_peaks[phase] = w.steady[phase].allocated;
    e.phase_live[phase] = w.steady[phase].live;
  }
  Coverage coverage = coverage_of(architecture, job);
  const Offload& offload = job.offload;
  if (offload.weights_on_disk && e.parameters.total / job.data_parallel.shards() > offload.max_in_cpu) {
    coverage.stand_ins.emplace_back("weights beyond \"max_in_cpu\" on disk, answered as in host memory");
  }
  if (options.itemise) {
    e.breakdown = itemise(s, w);
    e.timeline = timeline(s, w);
    note_coverage(e.issues, coverage);
  }
  widen(e, coverage, w.unsplit);
  if (job.selective_op && !job.stand_ins.empty()) reach_up_to_kept_products(architecture, job, s, e);
  reach_up_to_workspaces(architecture, job, s, e);
  reach_down_to_other_padding(architecture, job, s, e);
  reach_up_to_other_gpus(architecture, job, s, options, e);
  return e;
}

}  // namespace tidemark
