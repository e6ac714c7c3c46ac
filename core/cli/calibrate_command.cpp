#include "core/cli/commands.hpp"
#include "core/cli/imported.hpp"
#include "core/cli/terminal.hpp"
#include "core/exchange/job.hpp"
#include "core/exchange/trouble/compare.hpp"
#include "core/report/calibration.hpp"
#include "core/report/markdown.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// The files of a calibration: those that measured something, and those that say what ran.
struct Sorted {
  std::vector<std::string> jobs;
  std::vector<Value> measurements;
};

Value* member(Value& object, std::string_view key) {
  for (Value::Member& each : object.members) {
    if (each.key == key) return &each.value;
  }
  return nullptr;
}

/// The figures of a log as a measurement has them.
Value figures_of(const exchange::Measured& measured) {
  Value figures = empty_object();
  if (measured.allocated) set(figures, "allocated_bytes", *measured.allocated);
  if (measured.reserved) set(figures, "reserved_bytes", *measured.reserved);
  if (measured.device) set(figures, "device_bytes", *measured.device);
  return figures;
}

/// Figures of several kinds about one job are of one run: a summary of the allocator, and what nvidia-smi showed.
bool join(Value& measurement, const Value& figures, const Value& job) {
  const Value* own = measurement.find("job");
  if (own == nullptr || own->find("model") != nullptr || own->find("config") != nullptr) return false;
  for (const Value::Member& figure : figures.members) {
    if (measurement.find(figure.key) != nullptr) return false;
  }
  measurement.members.insert(measurement.members.end(), figures.members.begin(), figures.members.end());
  for (const Value::Member& field : job.members) exchange::put(*member(measurement, "job"), field.key, field.value);
  return true;
}

void refuse_death(const std::string& file, Issues& issues) {
  issues.push_back({"NOT_A_MEASUREMENT", Severity::kError, file,
                    file + " tells of a run that ran out of memory: how much it would have needed is not in it. "
                           "`tidemark import` sets it beside a job.",
                    ""});
}

void sort_file(const std::string& file, Sorted& sorted, Issues& issues) {
  const exchange::Import import = import_files({file}, issues);
  issues.insert(issues.end(), import.issues.begin(), import.issues.end());
  bool measured_any = false;
  for (const exchange::Reading& reading : import.readings) {
    if (!reading.log.is_object()) continue;
    const Value* error = reading.log.find("error");
    if (reading.format == "oom" || (error != nullptr && !error->is_null())) return refuse_death(file, issues);
    const exchange::Measured measured = exchange::measured_in(reading.format, reading.log);
    if (!measured.any()) continue;
    measured_any = true;
    const Value figures = figures_of(measured), job = exchange::job_of(import, issues);
    const bool whole = job.find("model") != nullptr || job.find("config") != nullptr;
    if (!whole && !sorted.measurements.empty() && join(sorted.measurements.back(), figures, job)) continue;
    Value& measurement = sorted.measurements.emplace_back(empty_object());
    set(measurement, "name", file);
    set(measurement, "job", job);
    measurement.members.insert(measurement.members.end(), figures.members.begin(), figures.members.end());
  }
  if (!measured_any) sorted.jobs.push_back(file);
}

/// The request for the verb: the measurements of --request and of the files, over the job that files and flags say.
Value read_calibration_request(const Invocation& typed, Issues& issues) {
  Sorted sorted;
  for (const std::string& file : typed.files) sort_file(file, sorted, issues);
  if (has_error(issues)) return {};
  Invocation job = typed;
  job.files = sorted.jobs;
  Value request = read_job(job, issues);
  if (!request.is_object() || sorted.measurements.empty()) return request;
  Value* list = member(request, "measurements");
  if (list == nullptr) {
    set(request, "measurements", empty_array());
    list = &request.members.back().value;
  }
  list->items.insert(list->items.end(), sorted.measurements.begin(), sorted.measurements.end());
  return request;
}

}  // namespace

int run_calibrate_command(const Invocation& typed) {
  Issues issues;
  if (typed.files.empty() && typed.request_path.empty()) {
    issues.push_back({"BAD_USAGE", Severity::kError, "",
                      "Name files that measured something (`tidemark probe` writes a script that does), or --request "
                      "FILE with \"measurements\".",
                      ""});
  }
  const Value request = has_error(issues) ? Value{} : read_calibration_request(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  CalibrationReport report = ask_calibration(typed.engine, request);
  report.issues.insert(report.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.issues), typed.json);
  if (typed.json) {
    print(write_json(write_report(report), 2) + "\n");
  } else if (typed.markdown) {
    print(render_markdown(document_of(report)));
  } else {
    print(render_text(document_of(report), typed.style));
  }
  return kAnswered;
}

}  // namespace tidemark
