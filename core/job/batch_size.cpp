#include "core/job/batch_size.hpp"

#include "core/job/defaults.hpp"

namespace tidemark {

BatchSize Batching::of(BatchSize said) const {
  TrainingJob job = stated;
  job.micro_batch_size = said.batch;
  job.sequence_length = said.sequence;
  Issues told;  // of the request's own sizes, already
  settle_foreign(foreign, job, told);
  return {job.micro_batch_size, job.sequence_length};
}

bool Batching::is_as_stated() const {
  // Two sizes that no sum and no product of the other keeps as they are.
  const BatchSize some{2, 4096}, others{3, 1000000};
  return of(some) == some && of(others) == others;
}

}  // namespace tidemark
