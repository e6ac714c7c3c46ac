#include "core/step/estimate.hpp"

#include <algorithm>

#include "core/runtime/cublas.hpp"
#include "core/step/itemise.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/range.hpp"
#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"

namespace tidemark {
namespace {

ParameterCounts count_parameters(const Simulation& s, const Architecture& architecture) {
  ParameterCounts counts;
  for (const Parameter& p : s.tape->parameters()) {
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

// What recomputing the core of attention gives back are scores and probabilities; fused kernels keep neither.
void note_idle_recomputation(const TrainingJob& job, Estimate& e) {
  const bool fused = e.attention_kernel == "flash" || e.attention_kernel == "efficient";
  if (job.checkpointing != Checkpointing::kSelectiveCoreAttention || !fused) return;
  e.issues.push_back({"NO_EFFECT", Severity::kWarning, "/gradient_checkpointing/selective",
                      "Recomputing \"core_attn\" saves nothing here: the " + e.attention_kernel +
                          " kernel keeps no attention scores. Use \"full\" or {\"every\": 2}.",
                      "full"});
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
  return estimate(architecture, job, simulate(architecture, job), options);
}

Estimate estimate(const Architecture& architecture, const TrainingJob& job, const Simulation& s,
                  const EstimateOptions& options) {
  Estimate e;
  e.recipe = job.recipe;
  const Bytes workspace = cublas_workspace_bytes(job.compute_capability);
  e.parameters = count_parameters(s, architecture);
  e.attention_kernel = s.attention_kernel;
  note_idle_recomputation(job, e);
  refuse_too_short(job, s, e.issues);
  e.host = s.paged + s.offloaded;
  if (!options.simulate_allocator && !options.itemise) {
    e.allocated.expected = quick_peak(s, lasting_workspaces(job));
    e.allocated.low = e.allocated.high = e.allocated.expected;
    return e;
  }
  WalkOptions how;
  how.allocator = options.simulate_allocator;
  how.expandable = job.expandable_segments;
  how.itemise = options.itemise;
  how.cublas_workspace = workspace;
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
  const Coverage coverage = coverage_of(architecture, job);
  if (options.itemise) {
    e.breakdown = itemise(s, w);
    e.timeline = timeline(s, w);
    note_coverage(e.issues, coverage);
  }
  widen(e, coverage);
  return e;
}

}  // namespace tidemark
