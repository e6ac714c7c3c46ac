#include "core/fit/peaks.hpp"

#include "core/job/check.hpp"
#include "core/step/estimate.hpp"
#include "core/step/range.hpp"

namespace tidemark {
/// The job, with what moves no byte of it set to one value.
TrainingJob Peaks::key_of(const TrainingJob& job) {
  TrainingJob key = job;
  // A third micro-step repeats the second, so two stand for all.
  key.gradient_accumulation_steps = job.gradient_accumulation_steps > 1 ? 2 : 1;
  if (job.checkpointing != Checkpointing::kEvery) key.checkpoint_every = 1;
  key.recipe.name.clear();
  return key;
}

Figures Peaks::compute(const TrainingJob& job, const TrainingJob& key, bool allocator) {
  Figures figures;
  Issues issues;
  check_magnitude(architecture_, job, issues);
  if (has_error(issues) || !is_supported(architecture_)) return figures;
  if (last_.tape == nullptr || last_key_ != key) {
    last_ = simulate(architecture_, job);
    last_key_ = key;
  }
  EstimateOptions options;
  options.simulate_allocator = allocator;
  options.itemise = false;
  Estimate e = estimate(architecture_, job, last_, options);
  if (!allocator) widen(e, architecture_, job);
  figures.known = true;
  figures.allocated = e.allocated;
  figures.reserved = e.reserved;
  figures.host = e.host;
  figures.phase = e.peak.phase;
  return figures;
}

const Figures& Peaks::quick(const TrainingJob& job) {
  const TrainingJob key = key_of(job);
  const auto [place, fresh] = quick_.try_emplace(key);
  if (fresh) place->second = compute(job, key, false);
  return place->second;
}

const Figures& Peaks::full(const TrainingJob& job) {
  const TrainingJob key = key_of(job);
  const auto [place, fresh] = full_.try_emplace(key);
  if (fresh) place->second = compute(job, key, true);
  return place->second;
}

}  // namespace tidemark
