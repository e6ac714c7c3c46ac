#include "core/fit/peaks.hpp"

#include "core/job/check.hpp"
#include "core/report/uncertainty.hpp"
#include "core/step/estimate.hpp"

namespace tidemark {
namespace {

template <class Enum>
std::int64_t number(Enum value) {
  return static_cast<std::int64_t>(value);
}

std::int64_t number(const std::optional<Dtype>& dtype) {
  return dtype ? static_cast<std::int64_t>(*dtype) : -1;
}

}  // namespace

Peaks::Key Peaks::key_of(const TrainingJob& job) {
  // A third micro-step repeats the second, so two stand for all.
  const Count steps = job.gradient_accumulation_steps > 1 ? 2 : 1;
  return {number(job.method),
          job.adapter.r,
          number(job.adapter.dtype),
          number(job.recipe.weights),
          number(job.recipe.autocast),
          number(job.recipe.gradients),
          number(job.recipe.master_weights),
          number(job.recipe.optimizer_states),
          job.micro_batch_size,
          job.sequence_length,
          job.decoder_sequence_length,
          steps,
          number(job.attention),
          number(job.checkpointing),
          job.checkpointing == Checkpointing::kEvery ? job.checkpoint_every : 0,
          number(job.optimizer),
          number(job.loss),
          std::int64_t{job.expandable_segments},
          job.compute_capability,
          std::int64_t{job.use_reentrant}};
}

Figures Peaks::compute(const TrainingJob& job, const Key& key, bool allocator) {
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
  const Key key = key_of(job);
  const auto [place, fresh] = quick_.try_emplace(key);
  if (fresh) place->second = compute(job, key, false);
  return place->second;
}

const Figures& Peaks::full(const TrainingJob& job) {
  const Key key = key_of(job);
  const auto [place, fresh] = full_.try_emplace(key);
  if (fresh) place->second = compute(job, key, true);
  return place->second;
}

}  // namespace tidemark
