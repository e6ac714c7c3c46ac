#include "core/engine/calibrate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/engine/calibrate/least_squares.hpp"
#include "core/runtime/nccl.hpp"
#include "core/units/decimal.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kFigures[] = {"allocated", "reserved", "device"};
constexpr std::size_t kFigureCount = 3;
constexpr double kMismatchPercent = 5.0;
constexpr double kLeastFactor = 0.1;
constexpr double kMostFactor = 10.0;

using Figures3 = std::array<double, kFigureCount>;

/// A measurement beside the estimate of its job, as the equations need it. Bytes.
struct Point {
  const Measurement* measured = nullptr;
  std::string model, gpu;
  Range allocated;
  double activations = 0;  ///< of what is allocated at the peak
  double cached = 0;       ///< reserved beyond what is allocated
  double context = 0;      ///< on the card beyond what is reserved: the context, and what the job states
  double nccl = 0;         ///< likewise NCCL's buffers
};

/// What is added to the engine's own figures; nothing where no measurement determines it.
struct Factors {
  std::optional<double> activations, fragmentation, communication;      ///< less 1
  std::vector<std::pair<std::string, std::optional<double>>> contexts;  ///< bytes more, by card
};

double real(Bytes bytes) {
  return static_cast<double>(bytes);
}

Point point_of(const Measurement& measurement, const Answer& answer) {
  const Estimate& estimate = *answer.estimate;
  Point point;
  point.measured = &measurement;
  point.model = answer.model;
  if (!answer.cards.empty()) point.gpu = answer.cards.front().card.name;
  point.allocated = estimate.allocated;
  for (const BreakdownGroup& group : estimate.breakdown) {
    if (group.category == Category::kActivations) point.activations = real(group.bytes);
  }
  point.cached = real(estimate.reserved.expected - estimate.allocated.expected);
  const bool stated = measurement.job.request.overrides.misc_overhead_gib.has_value();
  if (answer.job.data_parallel.is_used() && !stated)
    point.nccl = real(nccl_communicator(answer.job.data_parallel.degree));
  point.context = real(estimate.device.expected - estimate.reserved.expected) - point.nccl;
  return point;
}

/// Allocated, reserved, on the card.
Figures3 predict(const Point& point, const Factors& factors) {
  Figures3 figures;
  figures[0] = real(point.allocated.expected) + factors.activations.value_or(0.0) * point.activations;
  figures[1] = figures[0] + (1.0 + factors.fragmentation.value_or(0.0)) * point.cached;
  figures[2] = figures[1] + point.context + (1.0 + factors.communication.value_or(0.0)) * point.nccl;
  for (const auto& [gpu, more] : factors.contexts) {
    if (gpu == point.gpu) figures[2] += more.value_or(0.0);
  }
  return figures;
}

/// Allocated = ours + f · activations.
void fit_activations(const std::vector<Point>& points, Factors& factors) {
  std::vector<double> column, wanted;
  for (const Point& point : points) {
    if (!point.measured->allocated) continue;
    column.push_back(point.activations);
    wanted.push_back(real(*point.measured->allocated - point.allocated.expected));
  }
  factors.activations = least_squares({column}, wanted).front();
}

/// Reserved − allocated = (1 + f) · ours.
void fit_fragmentation(const std::vector<Point>& points, Factors& factors) {
  std::vector<double> column, wanted;
  for (const Point& point : points) {
    const Measurement& m = *point.measured;
    if (!m.allocated || !m.reserved) continue;
    column.push_back(point.cached);
    wanted.push_back(real(*m.reserved - *m.allocated) - point.cached);
  }
  factors.fragmentation = least_squares({column}, wanted).front();
}

/// On the card − reserved = ours + the context's difference on this card + f · NCCL's buffers. Where the cards of all
/// measurements talk to as many others, the two cannot be told apart: what is more is then the context's.
void fit_outside(const std::vector<Point>& points, Factors& factors) {
  std::vector<std::vector<double>> columns;
  std::vector<double> wanted;
  std::vector<const Point*> rows;
  for (const Point& point : points) {
    const Measurement& m = *point.measured;
    if (!m.reserved || !m.device) continue;
    rows.push_back(&point);
    wanted.push_back(real(*m.device - *m.reserved) - point.context - point.nccl);
    const auto known = [&point](const auto& context) { return context.first == point.gpu; };
    const bool listed = std::any_of(factors.contexts.begin(), factors.contexts.end(), known);
    if (!listed && !point.gpu.empty()) factors.contexts.emplace_back(point.gpu, std::nullopt);
  }
  for (const auto& context : factors.contexts) {
    std::vector<double>& column = columns.emplace_back();
    for (const Point* row : rows) column.push_back(row->gpu == context.first ? real(kGiB) : 0.0);
  }
  std::vector<double>& nccl = columns.emplace_back();
  for (const Point* row : rows) nccl.push_back(row->nccl);
  const auto unknowns = least_squares(columns, wanted);
  for (std::size_t i = 0; i < factors.contexts.size(); ++i) {
    if (unknowns[i]) factors.contexts[i].second = *unknowns[i] * real(kGiB);
  }
  factors.communication = unknowns.back();
}

Factors fit(const std::vector<Point>& points, bool activations) {
  Factors factors;
  if (activations) fit_activations(points, factors);
  fit_fragmentation(points, factors);
  fit_outside(points, factors);
  return factors;
}

/// A factor of four decimals; none, with a warning, where it says that something else was measured.
double settle(std::optional<double>& more, std::string_view name, Issues& issues) {
  if (!more) return 1.0;
  const double factor = std::round((1.0 + *more) * 1e4) / 1e4;
  if (factor >= kLeastFactor && factor <= kMostFactor) return factor;
  issues.push_back({"UNLIKELY_FACTOR", Severity::kWarning, "/measurements",
                    "The measurements would make " + std::string{name} + " × " + shortest_decimal(factor) +
                        ": something else was measured than what is stated. The factor is left out.",
                    ""});
  more.reset();
  return 1.0;
}

void settle_contexts(const std::vector<Point>& points, Factors& factors, CalibrationReport& report) {
  for (auto& [gpu, more] : factors.contexts) {
    const auto place =
        std::find_if(points.begin(), points.end(), [&, &name = gpu](const Point& point) { return point.gpu == name; });
    if (!more || place == points.end()) continue;
    const double bytes = place->context + *more;
    if (bytes >= 0.0) {
      report.calibration.contexts.push_back({gpu, static_cast<Bytes>(std::llround(bytes))});
      continue;
    }
    more.reset();
    report.issues.push_back({"UNLIKELY_FACTOR", Severity::kWarning, "/measurements",
                             "On " + gpu +
                                 " less was measured on the card than was reserved: the figures are not of "
                                 "one process at one time. The context is the catalog's.",
                             ""});
  }
}

std::optional<Bytes> measured_of(const Measurement& m, std::size_t figure) {
  return figure == 0 ? m.allocated : figure == 1 ? m.reserved : m.device;
}

double percent_of(Bytes said, Bytes measured) {
  return std::fabs(100.0 * real(said - measured) / std::max(real(measured), 1.0));
}

CalibrationError error_of(const CalibrationReport& report, Bytes CalibratedRow::*said) {
  CalibrationError error;
  double sum = 0.0, count = 0.0;
  for (const CalibratedJob& job : report.jobs) {
    for (const CalibratedRow& row : job.rows) {
      const double percent = percent_of(row.*said, row.measured);
      error.worst = std::max(error.worst, percent);
      sum += percent;
      count += 1.0;
    }
  }
  const auto hundredths = [](double value) { return std::round(value * 100.0) / 100.0; };
  error.mean = hundredths(sum / std::max(count, 1.0));
  error.worst = hundredths(error.worst);
  return error;
}

/// What an estimate with the calibration answers.
Figures3 answered(const Estimator& estimator, const Measurement& measurement, const Calibration& calibration) {
  Asked asked = measurement.job;
  asked.request.calibration = calibration;
  asked.request.job.activations_factor = calibration.activations;
  const Answer answer = estimator.answer(asked);
  if (!answer.estimate) return {};
  const Estimate& estimate = *answer.estimate;
  return {real(estimate.allocated.expected), real(estimate.reserved.expected), real(estimate.device.expected)};
}

CalibratedJob beside(const Point& point, const Factors& left_out, const Figures3& calibrated) {
  CalibratedJob job{point.measured->name, point.model, point.gpu, {}};
  const Figures3 estimated = predict(point, {}), others = predict(point, left_out);
  for (std::size_t i = 0; i < kFigureCount; ++i) {
    const std::optional<Bytes> measured = measured_of(*point.measured, i);
    if (!measured) continue;
    job.rows.push_back(
        {kFigures[i], *measured, std::llround(estimated[i]), std::llround(calibrated[i]), std::llround(others[i])});
  }
  return job;
}

std::string signed_percent(Bytes said, Bytes measured) {
  return (said < measured ? "−" : "+") + shortest_decimal(std::round(percent_of(said, measured) * 10.0) / 10.0) + " %";
}

/// A mismatch is told, whatever the factors make of it.
void tell_mismatches(const Point& point, const CalibratedJob& job, bool activations, Issues& issues) {
  for (const CalibratedRow& row : job.rows) {
    const bool outside =
        row.what == kFigures[0] && (row.measured < point.allocated.low || row.measured > point.allocated.high);
    if (percent_of(row.calibrated, row.measured) <= kMismatchPercent && !outside) continue;
    std::string text = job.name + ": " + format_gib(row.measured) + " were " + std::string{row.what} +
                       (row.what == kFigures[2] ? " memory in use" : "") + ", the estimate is " +
                       format_gib(row.estimated) + " (" + signed_percent(row.estimated, row.measured) +
                       "), calibrated " + format_gib(row.calibrated) + " (" +
                       signed_percent(row.calibrated, row.measured) + ").";
    if (row.what == kFigures[0]) {
      text += " Batch, length, model or precision may be others than those that ran";
      text += activations ? "." : "; where the code is not what is modelled, \"activations\": true fits a factor.";
    }
    issues.push_back({"MISMATCH", Severity::kWarning, "/measurements", std::move(text), ""});
  }
}

/// What is wrong with a job, once: measurements share options.
void take_issues(const Measurement& measurement, const Issues& found, Issues& issues) {
  for (Issue issue : found) {
    if (issue.severity == Severity::kNote || issue.code == "UNCOVERED_COMBINATION") continue;
    const auto told = [&issue](const Issue& other) { return other.code == issue.code && other.path == issue.path; };
    if (std::any_of(issues.begin(), issues.end(), told)) continue;
    issue.message = measurement.name + ": " + issue.message;
    issues.push_back(std::move(issue));
  }
}

/// An estimate of each job without a calibration; false when one has none.
bool estimate_all(const Estimator& estimator, const CalibrationQuestion& question, std::vector<Point>& points,
                  Issues& issues) {
  for (const Measurement& measurement : question.measurements) {
    const Answer answer = estimator.answer(measurement.job);
    take_issues(measurement, answer.issues, issues);
    if (answer.estimate) {
      points.push_back(point_of(measurement, answer));
    } else if (!has_error(issues)) {
      issues.push_back({"MISSING_MODEL", Severity::kError, "/measurements",
                        measurement.name + ": no job stands beside this measurement.", ""});
    }
  }
  return !has_error(issues);
}

}  // namespace

CalibrationReport ask(const Estimator& estimator, const CalibrationQuestion& question) {
  CalibrationReport report;
  report.engine = estimator.version();
  report.catalog = estimator.catalog().date();
  report.issues = question.trouble;
  std::vector<Point> points;
  if (has_error(report.issues) || !estimate_all(estimator, question, points, report.issues)) return report;

  Factors factors = fit(points, question.activations);
  Calibration& calibration = report.calibration;
  calibration.measurements = static_cast<Count>(points.size());
  calibration.activations = settle(factors.activations, "activations", report.issues);
  calibration.fragmentation = settle(factors.fragmentation, "what is cached", report.issues);
  calibration.communication = settle(factors.communication, "NCCL's buffers", report.issues);
  settle_contexts(points, factors, report);
  report.activations = factors.activations.has_value();
  report.fragmentation = factors.fragmentation.has_value();
  report.communication = factors.communication.has_value();

  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<Point> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const Factors without = fit(others, question.activations);
    report.jobs.push_back(beside(points[i], without, answered(estimator, *points[i].measured, calibration)));
    tell_mismatches(points[i], report.jobs.back(), question.activations, report.issues);
  }
  report.estimated = error_of(report, &CalibratedRow::estimated);
  report.calibrated = error_of(report, &CalibratedRow::calibrated);
  report.left_out = error_of(report, &CalibratedRow::left_out);
  calibration.worst_percent = report.calibrated.worst;
  calibration.worst_left_out_percent = report.left_out.worst;
  report.answered = true;
  return report;
}

}  // namespace tidemark
