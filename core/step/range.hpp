#pragma once

#include "core/answer/estimate.hpp"
#include "core/step/coverage.hpp"

namespace tidemark {

/// Fills low and high of the three figures from the error distribution on the records and the measurements, by what the
/// records cover of the job. `unsplit`: what blocks have at the peak beyond what was asked for, in bytes.
void widen(Estimate& estimate, const Coverage& coverage, Bytes unsplit);

/// A note that names what no record covers, if anything.
void note_coverage(Issues& issues, const Coverage& coverage);

}  // namespace tidemark
