#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

/// ZeRO's sizes in elements, as DeepSpeed's configuration comes out.
struct ZeroSizes {
  Count reduce_bucket = 0;
  Count prefetch_bucket = 0;
  Count persistence_threshold = 0;
  Count max_live = 0;
  Count max_reuse_distance = 0;
  Count sub_group = 0;
};

/// Stated ones; else, where sizes are "auto", transformers' (5.12 integrations/deepspeed.py: trainer_config_finalize);
/// else DeepSpeed's own.
ZeroSizes zero_sizes(const Architecture& architecture, const TrainingJob& job);

/// What the optimizer sees from here on: one flat fp32 parameter of so many elements, in the place of all.
void become_flat(Tape& tape, Count elements);
/// Its states, and its step.
void create_flat_states(OptimizerRun& run);
void step_flat(OptimizerRun& run);
/// The bytes of the same states where the optimizer runs on the host.
Bytes flat_states_on_host(const Tape& of, const TrainingJob& job);

}  // namespace tidemark
