#pragma once

#include <string>

#include "core/job/request.hpp"
#include "core/report/estimate.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// What one card can give, as far as it is known.
struct Card {
  std::string name;       ///< catalog name, or "24 GiB" where only the memory is known
  Bytes visible = 0;      ///< what torch sees (total_memory), bytes; 0 when unknown
  Bytes context = 0;      ///< CUDA context with the kernels that a training job loads, bytes
  std::string estimated;  ///< a sentence when a figure above is an estimate; empty when both were measured
};

/// Whether a job that needs `allocated` fits the card. The rule compares what is allocated, not what is reserved: the
/// caching allocator gives its cache back before it fails. Usable is what torch sees, less the CUDA context and what
/// the user states in `overrides`. It fits when even the high end does, is tight when only the expected value does.
Fit check_fit(const Range& allocated, const Card& card, const Overrides& overrides = {});

}  // namespace tidemark
