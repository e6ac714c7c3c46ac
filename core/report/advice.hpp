#pragma once

#include "core/engine/reports.hpp"
#include "core/report/document.hpp"

namespace tidemark {

Document document_of(const FitReport& report);
Document document_of(const AdviceReport& report);
Document document_of(const MapReport& report);

}  // namespace tidemark
