#pragma once

#include "core/engine/calibrate/calibrate.hpp"
#include "core/report/document.hpp"

namespace tidemark {

/// The answer to `calibrate` as a report.
Document document_of(const CalibrationReport& report);

}  // namespace tidemark
