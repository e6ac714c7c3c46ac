#pragma once

#include "core/job/request.hpp"
#include "core/job/training_job.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// How large a micro batch is.
struct BatchSize {
  Count batch = 1;     ///< samples, or rows
  Count sequence = 1;  ///< tokens of each
  bool operator==(const BatchSize&) const = default;
};

/// What a request makes of its batch: samples may be joined into one row, or be several rows each.
struct Batching {
  TrainingJob stated;  ///< as the request has it in the engine's own words
  Foreign foreign;     ///< and what it says in other tools'

  /// Rows and tokens where the request says so many samples of that length.
  BatchSize of(BatchSize said) const;
  /// Whether that is as many of each.
  bool is_as_stated() const;
};

}  // namespace tidemark
