#include "core/optimizers/rows.hpp"

#include <cstddef>
#include <vector>

namespace tidemark {

void keep_adam_moments(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, run.state_dtype(p), "exp_avg");
  run.keep(p.shape, run.state_dtype(p), "exp_avg_sq");
}

namespace {

/// What each of these parameters' temporaries of one list are, until all of them are done with.
template <typename Takes>
void at_once(OptimizerRun& run, std::initializer_list<const char*> names, Dtype dtype, Takes takes) {
  std::vector<Tensor> temporaries;
  for (const char* name : names) {
    run.for_each_trained([&](const Parameter& p) {
      if (p.dtype != dtype || !takes(p)) return;
      temporaries.push_back(run.tape.allocate(p.shape, dtype, name));
    });
  }
  // Dropped layer by layer, so that each layer's segment frees what it made.
  const std::size_t group = temporaries.size() / names.size();
  std::size_t i = 0;
  run.for_each_trained([&](const Parameter& p) {
    if (p.dtype != dtype || !takes(p)) return;
    for (std::size_t k = i++; k < temporaries.size(); k += group) temporaries[k].reset();
  });
}

constexpr Dtype kDtypes[] = {Dtype::kFp32, Dtype::kBf16, Dtype::kFp16};

}  // namespace

void foreach_temporaries(OptimizerRun& run, std::initializer_list<const char*> names) {
  if (run.job.optimizer_in_backward) {  // an optimizer of its own for each parameter
    run.for_each_trained([&](const Parameter& p) {
      std::vector<Tensor> temporaries;
      for (const char* name : names) temporaries.push_back(run.tape.allocate(p.shape, p.dtype, name));
    });
    return;
  }
  for (const bool decaying : {true, false}) {
    for (const Dtype dtype : kDtypes) {
      at_once(run, names, dtype, [&](const Parameter& p) { return OptimizerRun::decays(p) == decaying; });
    }
  }
}

void foreach_sqrt_of(OptimizerRun& run, bool (*takes)(const Parameter&)) {
  for (const Dtype dtype : kDtypes) at_once(run, {"_foreach_sqrt"}, dtype, takes);
}

void foreach_sqrt(OptimizerRun& run) {
  foreach_temporaries(run, {"_foreach_sqrt"});
}

}  // namespace tidemark
