#include "core/step/estimate.hpp"

#include <algorithm>

#include "core/report/itemise.hpp"
#include "core/report/uncertainty.hpp"
#include "core/runtime/cublas.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"

namespace tidemark {
namespace {

ParameterCounts count_parameters(const Simulation& s, const Architecture& architecture) {
  ParameterCounts counts;
  for (const Parameter& p : s.tape->parameters()) {
    const Count n = p.shape.numel() * s.plan.multiplicity(p.instance);
    counts.total += n;
    if (p.requires_grad) counts.trainable += n;
    if (!p.is_adapter) counts.base += n;
  }
  counts.active = counts.total;
  counts.published = architecture.published_parameters;
  return counts;
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
  if (options.itemise) {
    e.breakdown = itemise(s, w);
    e.timeline = timeline(s, w);
  }
  widen(e, architecture, job);
  return e;
}

}  // namespace tidemark
