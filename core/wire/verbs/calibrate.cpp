#include "core/engine/calibrate/calibrate.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

constexpr std::size_t kMostMeasurements = 64;

bool is_own(std::string_view key) {
  return key == "measurements" || key == "activations" || key == "calibration";
}

void refuse(Issues& issues, std::string path, std::string message) {
  issues.push_back({"INVALID_VALUE", Severity::kError, std::move(path), std::move(message), ""});
}

std::optional<Bytes> read_bytes(const Value& row, std::string_view key, const std::string& path, Issues& issues) {
  const Value* value = row.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  constexpr Bytes kMost = Bytes{1} << 50;
  if (value->is_integer() && value->integer > 0 && value->integer <= kMost) return value->integer;
  refuse(issues, path + "/" + std::string{key}, "\"" + std::string{key} + "\" must be a whole number of bytes.");
  return std::nullopt;
}

Measurement read_measurement(const Value& row, const Value& shared, std::size_t number, Issues& issues) {
  const std::string path = "/measurements/" + std::to_string(number);
  Measurement measurement;
  const Value* name = row.find("name");
  measurement.name =
      name != nullptr && name->is_string() ? name->string.substr(0, 200) : "measurement " + std::to_string(number + 1);
  Value job = shared;
  if (const Value* own = row.find("job"); own != nullptr && own->is_object()) patch_with(*own, job);
  for (const Value::Member& member : row.members) {
    if (member.key == "name" || member.key == "job" || member.key == "allocated_bytes" ||
        member.key == "reserved_bytes" || member.key == "device_bytes") {
      continue;
    }
    issues.push_back({"UNKNOWN_KEY", Severity::kWarning, path,
                      "A measurement has \"name\", \"job\", \"allocated_bytes\", \"reserved_bytes\" and "
                      "\"device_bytes\"; what else it says is ignored.",
                      ""});
    break;
  }
  measurement.job.request = read_request(job, measurement.job.issues);
  measurement.allocated = read_bytes(row, "allocated_bytes", path, issues);
  measurement.reserved = read_bytes(row, "reserved_bytes", path, issues);
  measurement.device = read_bytes(row, "device_bytes", path, issues);
  if (!measurement.allocated && !measurement.reserved && !measurement.device) {
    refuse(issues, path,
           "A measurement says \"allocated_bytes\", \"reserved_bytes\" or \"device_bytes\", or several of them.");
  }
  return measurement;
}

CalibrationQuestion read_question(const Value& request) {
  CalibrationQuestion question;
  Issues& issues = question.trouble;
  Value shared = empty_object();
  for (const Value::Member& member : request.members) {
    if (!is_own(member.key)) shared.members.push_back(member);
  }
  if (const Value* key = request.find("activations"); key != nullptr && !key->is_null()) {
    if (!key->is_bool()) refuse(issues, "/activations", "\"activations\" must be true or false.");
    question.activations = key->boolean;
  }
  const Value* list = request.find("measurements");
  if (list == nullptr || !list->is_array() || list->items.empty() || list->items.size() > kMostMeasurements) {
    refuse(issues, "/measurements",
           "\"measurements\" must be a list of 1 to 64: [{\"job\": {...}, \"allocated_bytes\": ...}].");
    return question;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    question.measurements.push_back(read_measurement(list->items[i], shared, i, issues));
  }
  return question;
}

Value factor(bool determined, double value) {
  return determined ? to_value(value) : Value{};
}

Value write_factors(const CalibrationReport& report) {
  const Calibration& calibration = report.calibration;
  Value factors = empty_object();
  set(factors, "activations", factor(report.activations, calibration.activations));
  set(factors, "fragmentation", factor(report.fragmentation, calibration.fragmentation));
  set(factors, "communication", factor(report.communication, calibration.communication));
  Value contexts = empty_array();
  for (const Calibration::Context& context : calibration.contexts) {
    Value row = empty_object();
    set(row, "gpu", context.gpu);
    set(row, "bytes", context.bytes);
    contexts.items.push_back(std::move(row));
  }
  set(factors, "context", std::move(contexts));
  return factors;
}

Value write_error(const CalibrationError& error) {
  Value row = empty_object();
  set(row, "mean_percent", error.mean);
  set(row, "worst_percent", error.worst);
  return row;
}

Value write_job(const CalibratedJob& job) {
  Value value = empty_object();
  set(value, "name", job.name);
  set(value, "model", job.model);
  set(value, "gpu", job.gpu);
  Value rows = empty_array();
  for (const CalibratedRow& row : job.rows) {
    Value figures = empty_object();
    set(figures, "what", row.what);
    set(figures, "measured_bytes", row.measured);
    set(figures, "estimated_bytes", row.estimated);
    set(figures, "calibrated_bytes", row.calibrated);
    set(figures, "left_out_bytes", row.left_out);
    rows.items.push_back(std::move(figures));
  }
  set(value, "rows", std::move(rows));
  return value;
}

}  // namespace

CalibrationReport ask_calibration(const Engine& engine, const Value& request) {
  return ask(engine.estimator(), read_question(request));
}

Value run_calibrate(const Engine& engine, const Value& request) {
  return write_report(ask_calibration(engine, request));
}

Value write_report(const CalibrationReport& report) {
  if (!report.answered) return write_errors(report.issues);
  Value document = empty_object();
  set(document, "factors", write_factors(report));
  Value errors = empty_object();
  set(errors, "estimated", write_error(report.estimated));
  set(errors, "calibrated", write_error(report.calibrated));
  set(errors, "left_out", write_error(report.left_out));
  set(document, "errors", std::move(errors));
  Value jobs = empty_array();
  for (const CalibratedJob& job : report.jobs) jobs.items.push_back(write_job(job));
  set(document, "measurements", std::move(jobs));

  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", report.engine);
  set(reply, "catalog", report.catalog);
  set(reply, "calibration", std::move(document));
  set(reply, "issues", write_issues(report.issues));
  return reply;
}

}  // namespace tidemark
