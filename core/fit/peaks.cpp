#include "core/fit/peaks.hpp"

#include "core/job/check.hpp"
#include "core/layers/program.hpp"
#include "core/plan/pipeline.hpp"
#include "core/plan/sharded.hpp"
#include "core/step/estimate.hpp"
#include "core/step/range.hpp"

namespace tidemark {
namespace {

/// Of what a search changes; jobs that differ elsewhere may share one.
std::uint64_t digest_of(const TrainingJob& job) {
  std::uint64_t digest = 0;
  const auto mix = [&digest](auto part) { digest = digest * 1000003U + static_cast<std::uint64_t>(part); };
  mix(job.method);
  mix(job.adapter.r);
  mix(job.quantization.bits);
  mix(job.recipe.weights);
  mix(job.recipe.optimizer_states);
  mix(job.micro_batch_size);
  mix(job.sequence_length);
  mix(job.gradient_accumulation_steps);
  mix(job.attention);
  mix(job.checkpointing);
  mix(job.checkpoint_every);
  mix(job.optimizer.size());
  mix(job.optimizer_in_backward);
  mix(job.loss);
  mix(job.compute_capability);
  mix(job.data_parallel.degree);
  mix(job.data_parallel.sharding);
  return digest;
}

}  // namespace

/// The job, with what moves no byte of it set to one value.
TrainingJob Peaks::key_of(const TrainingJob& job) {
  TrainingJob key = job;
  // A third micro-step repeats the second, so two stand for all.
  if (!job.generates()) key.gradient_accumulation_steps = job.gradient_accumulation_steps > 1 ? 2 : 1;
  if (job.checkpointing != Checkpointing::kEvery) key.checkpoint_every = 1;
  // FSDP's dtypes follow the recipe by its name.
  if (!job.data_parallel.is_sharded()) key.recipe.name.clear();
  return key;
}

Figures Peaks::compute(const TrainingJob& job, const TrainingJob& key, bool allocator) {
  Figures figures;
  Issues issues;
  check_magnitude(architecture_, job, issues);
  // What a search changes can make a job that the framework refuses.
  check_attention(architecture_, job, issues);
  check_model(architecture_, job, issues);
  check_sharding(architecture_, job, issues);
  check_tensor(architecture_, job, issues);
  check_pipeline(architecture_, job, issues);
  if (has_error(issues) || !is_supported(architecture_)) return figures;
  if (last_.tape == nullptr || last_key_ != key) {
    last_ = simulate(architecture_, job);
    last_key_ = key;
  }
  EstimateOptions options;
  options.simulate_allocator = allocator;
  options.itemise = false;
  Estimate e = estimate(architecture_, job, last_, options);
  if (!allocator) widen(e, coverage_of(architecture_, job), 0);
  if (has_error(e.issues)) return figures;
  figures.known = true;
  figures.refusal = refusal_of_length(architecture_, job.sequence_length);
  figures.allocated = e.allocated;
  figures.reserved = e.reserved;
  figures.host = e.host.expected;
  figures.phase = e.peak.phase;
  return figures;
}

const Figures& Peaks::look_up(Known& known, const TrainingJob& job, bool allocator) {
  const TrainingJob key = key_of(job);
  const Figures* figures = known.find(key);
  return figures != nullptr ? *figures : known.add(key, compute(job, key, allocator));
}

const Figures& Peaks::quick(const TrainingJob& job) {
  return look_up(quick_, job, false);
}

const Figures& Peaks::full(const TrainingJob& job) {
  return look_up(full_, job, true);
}

const Figures* Peaks::Known::find(const TrainingJob& key) const {
  const std::uint64_t digest = digest_of(key);
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    if (digests_[i] == digest && entries_[i]->key == key) return &entries_[i]->figures;
  }
  return nullptr;
}

const Figures& Peaks::Known::add(const TrainingJob& key, const Figures& figures) {
  digests_.push_back(digest_of(key));
  entries_.push_back(std::make_unique<Entry>(Entry{key, figures}));
  return entries_.back()->figures;
}

}  // namespace tidemark
