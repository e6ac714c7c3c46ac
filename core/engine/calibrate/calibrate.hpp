#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/estimator.hpp"
#include "core/job/calibration.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// A job that ran, and what it took.
struct Measurement {
  std::string name;                ///< "probe.json", or its number
  Asked job;                       ///< what ran
  std::optional<Bytes> allocated;  ///< torch.cuda.max_memory_allocated
  std::optional<Bytes> reserved;   ///< torch.cuda.max_memory_reserved
  std::optional<Bytes> device;     ///< of the process, as nvidia-smi shows it
};

struct CalibrationQuestion {
  std::vector<Measurement> measurements;
  bool activations = false;  ///< whether a factor on activations is fitted, too
  Issues trouble;
};

/// A figure that was measured, beside what is said of it. Bytes.
struct CalibratedRow {
  std::string_view what;  ///< "allocated", "reserved", "device"
  Bytes measured = 0;
  Bytes estimated = 0;   ///< without a calibration
  Bytes calibrated = 0;  ///< what an estimate with this calibration answers
  Bytes left_out = 0;    ///< by factors fitted to the other measurements alone
};

struct CalibratedJob {
  std::string name;
  std::string model;
  std::string gpu;  ///< empty where the measurement names none
  std::vector<CalibratedRow> rows;
};

/// Mean and largest relative error, percent.
struct CalibrationError {
  double mean = 0.0;
  double worst = 0.0;
};

struct CalibrationReport {
  std::string engine;
  std::string catalog;
  Issues issues;
  bool answered = false;
  Calibration calibration;
  bool activations = false, fragmentation = false, communication = false;  ///< which factors were determined
  std::vector<CalibratedJob> jobs;
  CalibrationError estimated, calibrated, left_out;
};

/// The factors that the measurements determine, by least squares.
CalibrationReport ask(const Estimator& estimator, const CalibrationQuestion& question);

}  // namespace tidemark
