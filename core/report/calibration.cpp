#include "core/report/calibration.hpp"

#include "core/units/decimal.hpp"

namespace tidemark {
namespace {

std::string percent(double value) {
  return shortest_decimal(value) + " %";
}

void error_row(const char* of, const CalibrationError& error, Block& table) {
  table.rows.push_back({{of}, {percent(error.mean)}, {percent(error.worst)}});
}

}  // namespace

Document document_of(const CalibrationReport& report) {
  Document document;
  document.title("Calibration");
  document.paragraph(in_words(report.calibration));
  document.heading("What was measured");
  Block& figures = document.table(
      {{"measurement"}, {""}, {"measured", true}, {"estimated", true}, {"calibrated", true}, {"left out", true}});
  for (const CalibratedJob& job : report.jobs) {
    for (const CalibratedRow& row : job.rows) {
      figures.rows.push_back({{&row == job.rows.data() ? job.name : std::string{}},
                              {std::string{row.what}},
                              {format_gib(row.measured)},
                              {format_gib(row.estimated)},
                              {format_gib(row.calibrated)},
                              {format_gib(row.left_out)}});
    }
  }
  document.heading("How far off");
  Block& errors = document.table({{""}, {"mean", true}, {"worst", true}});
  error_row("estimated", report.estimated, errors);
  error_row("calibrated", report.calibrated, errors);
  error_row("each left out", report.left_out, errors);
  document.paragraph("Keep it with --json, and use it with --calibration FILE.", Tone::kDim);
  document.issues = report.issues;
  return document;
}

}  // namespace tidemark
