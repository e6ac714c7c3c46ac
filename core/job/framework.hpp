#pragma once

#include <string_view>

#include "core/job/training_job.hpp"

namespace tidemark {

/// A release of a framework from free text: "5.12", "4.48.1", "4.36 (ms-swift 2.x)", "2026-07". False when none is in
/// it.
bool read_version(std::string_view text, Framework& framework);

/// Whether that text states a date in place of a release.
bool is_date(std::string_view text);

}  // namespace tidemark
