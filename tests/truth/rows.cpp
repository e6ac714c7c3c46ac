#include "tests/truth/rows.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/wire/json.hpp"

namespace tidemark::truth {
namespace {

std::int64_t integer_at(const Value& v, std::initializer_list<const char*> path) {
  const Value* at = &v;
  for (const char* key : path) {
    at = at->find(key);
    if (at == nullptr) return 0;
  }
  return at->integer;
}

std::string text_at(const Value& v, std::initializer_list<const char*> path) {
  const Value* at = &v;
  for (const char* key : path) {
    at = at->find(key);
    if (at == nullptr) return "";
  }
  return at->string;
}

double relative(Bytes ours, Bytes truth) {
  return truth == 0 ? 0.0 : 100.0 * static_cast<double>(ours - truth) / static_cast<double>(truth);
}

const Range& range_of(const Estimate& e, const std::string& metric) {
  return metric == "reserved" ? e.reserved : metric == "device" ? e.device : e.allocated;
}

std::string regime_of(const Value& request) {
  std::string r = text_at(request, {"method"}) + " " + text_at(request, {"precision"});
  return r;
}

std::string joined_issues(const Issues& issues) {
  std::string s;
  for (const auto& i : issues) {
    if (i.severity == Severity::kError) s += i.code + " " + i.message + "; ";
  }
  return s;
}

Bytes phase_truth(const Value& record, const char* phase) {
  Bytes most = 0;
  const Value* steps = record.find("steps");
  if (steps == nullptr) return 0;
  for (const auto& [n, phases] : steps->members) {
    if (n == "1") continue;
    most = std::max(most, integer_at(phases, {phase, "allocated"}));
  }
  return most;
}

Row oracle_row(const Engine& engine, const Value& line) {
  Row row;
  row.id = text_at(line, {"id"});
  const Value& request = *line.find("request");
  const Value& record = *line.find("record");
  row.regime = regime_of(request);
  const Answer a = engine.answer(request);
  row.family = a.architecture.model_type.empty() ? "?" : a.architecture.model_type;
  const bool hopper = a.job.compute_capability == 90;
  const Bytes workspace = integer_at(record, {"cublas_workspace_bytes", hopper ? "sm90" : "default"});
  row.truth = integer_at(record, {"peak", "allocated"}) + workspace;
  row.true_phase = text_at(record, {"peak", "phase"});
  if (!a.estimate) {
    row.note = joined_issues(a.issues);
    return row;
  }
  const Estimate& e = *a.estimate;
  row.answered = true;
  row.ours = e.allocated.expected;
  row.error = relative(row.ours, row.truth);
  row.low = relative(e.allocated.low, row.truth);
  row.high = relative(e.allocated.high, row.truth);
  const auto phase = [&](Phase p) { return e.phase_peaks[static_cast<int>(p)]; };
  const Bytes forward = std::max(phase(Phase::kForward), phase(Phase::kLoss));
  row.forward = relative(forward, phase_truth(record, "forward") + workspace);
  row.backward = relative(phase(Phase::kBackward), phase_truth(record, "backward") + workspace);
  row.optimizer = relative(phase(Phase::kOptimizer), phase_truth(record, "optimizer") + workspace);
  row.reserved = relative(e.reserved.expected, integer_at(record, {"peak", "reserved"}) + workspace);
  for (const auto& [p, name] : {std::pair{Phase::kBackward, "backward"}, {Phase::kOptimizer, "optimizer"}}) {
    const Bytes requested = integer_at(record, {"steps", "2", name, "requested512"}) + workspace;
    const double d = relative(e.phase_live[static_cast<int>(p)], requested);
    if (std::fabs(d) > std::fabs(row.live)) row.live = d;
  }
  {
    const Bytes live =
        std::max(e.phase_live[static_cast<int>(Phase::kForward)], e.phase_live[static_cast<int>(Phase::kLoss)]);
    const double d = relative(live, integer_at(record, {"steps", "2", "forward", "requested512"}) + workspace);
    if (std::fabs(d) > std::fabs(row.live)) row.live = d;
  }
  row.phase = std::string(name_of(e.peak.phase));
  if (row.phase == "loss") row.phase = "forward";
  const std::int64_t total = integer_at(record, {"parameters", "total"});
  const std::int64_t trainable = integer_at(record, {"parameters", "trainable"});
  if (text_at(request, {"method"}) != "qlora" && total != e.parameters.total) {
    row.note += "parameters " + std::to_string(e.parameters.total - total) + " off; ";
  }
  if (trainable != e.parameters.trainable) {
    row.note += "trainable " + std::to_string(e.parameters.trainable - trainable) + " off; ";
  }
  return row;
}

// A published measurement: in scope when it ran transformers on one GPU without torch.compile, or an implementation
// that the engine has of its own.
bool in_scope(const Value& line, const std::string& implementation) {
  if (text_at(line, {"implementation"}) != implementation) return false;
  if (implementation != "transformers") return true;
  if (text_at(line, {"scope"}) != "single_gpu") return false;
  const Value* extra = line.find("extra");
  return extra == nullptr || extra->find("compile") == nullptr;
}

// What the source of a measurement states beyond its request (tests/measured/conditions.json).
Value with_conditions(Value request, const std::string& id, const Value& conditions) {
  const Value* list = conditions.find("conditions");
  if (list == nullptr) return request;
  for (const Value& condition : list->items) {
    const std::string ids = text_at(condition, {"ids"});
    if (id.compare(0, ids.size(), ids) != 0) continue;
    for (const auto& [key, value] : condition.find("patch")->members) {
      bool found = false;
      for (auto& [name, old] : request.members) {
        if (name == key) {
          old = value;
          found = true;
        }
      }
      if (!found) request.members.push_back({key, value});
    }
  }
  return request;
}

Row measured_row(const Engine& engine, const Value& line, const Value& conditions) {
  Row row;
  row.id = text_at(line, {"id"});
  const Value request = with_conditions(*line.find("request"), row.id, conditions);
  row.regime = regime_of(request);
  row.metric = text_at(line, {"metric"});
  row.completeness = text_at(line, {"completeness"});
  const Answer a = engine.answer(request);
  row.family = a.architecture.model_type.empty() ? "?" : a.architecture.model_type;
  row.truth = integer_at(line, {"value_bytes"});
  if (!a.estimate) {
    row.note = joined_issues(a.issues);
    return row;
  }
  const Estimate& e = *a.estimate;
  row.answered = true;
  const Range& r = range_of(e, row.metric);
  row.ours = r.expected;
  // Reserved memory is then less by as much as what the optimizer's first step makes for good.
  const bool first_step = text_at(line, {"window"}) == "first_step" && row.metric != "device";
  if (first_step) row.ours -= e.allocated.expected - e.first_step_allocated;
  row.error = relative(row.ours, row.truth);
  row.low = relative(r.low - (r.expected - row.ours), row.truth);
  row.high = relative(r.high - (r.expected - row.ours), row.truth);
  row.phase = row.true_phase = std::string(name_of(e.peak.phase));
  return row;
}

// Each line of a file of JSON lines that holds the text.
template <typename Take>
void for_lines(const std::string& path, const std::string& only, Take take) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || (!only.empty() && line.find(only) == std::string::npos)) continue;
    Issues issues;
    take(parse_json(line, "", issues));
  }
}

// What our own card said, as a row for each figure.
std::vector<Row> rows_of_run(const Engine& engine, const Value& line) {
  const Value& measured = *line.find("measured");
  const Answer a = engine.answer(*line.find("request"));
  std::vector<Row> rows;
  for (const auto& [metric, key] :
       {std::pair{"allocated", "allocated"}, {"reserved", "reserved"}, {"device", "process"}}) {
    if (measured.find(key) == nullptr) continue;
    // Its process has no NCCL communicator, which the device's figure counts.
    const bool is_whole = text_at(line, {"kind"}).find("parallel") == std::string::npos;
    if (std::string_view(key) == "process" && !is_whole) continue;
    Row& row = rows.emplace_back();
    row.id = text_at(line, {"id"});
    row.regime = regime_of(*line.find("request"));
    row.family = a.architecture.model_type.empty() ? "?" : a.architecture.model_type;
    row.metric = metric;
    row.truth = integer_at(measured, {key});
    row.true_phase = text_at(measured, {"phase"});
    row.note = joined_issues(a.issues);
    if (!a.estimate) continue;
    const Estimate& e = *a.estimate;
    const Range& r = range_of(e, row.metric);
    row.answered = true;
    row.ours = r.expected;
    row.error = relative(row.ours, row.truth);
    row.low = relative(r.low, row.truth);
    row.high = relative(r.high, row.truth);
    row.phase = std::string(name_of(e.peak.phase));
    if (row.phase == "loss") row.phase = "forward";
  }
  return rows;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Row> oracle_rows(const Engine& engine, const std::string& path, const std::string& only) {
  std::vector<Row> rows;
  for_lines(path, only, [&](const Value& line) {
    if (line.find("awaits_recording") == nullptr) rows.push_back(oracle_row(engine, line));
  });
  return rows;
}

std::vector<Row> measured_rows(const Engine& engine, const std::string& path, const std::string& conditions_path,
                               const std::string& implementation, const std::string& only) {
  Issues issues;
  const Value conditions = parse_json(read_file(conditions_path), "", issues);
  std::vector<Row> rows;
  for_lines(path, only, [&](const Value& line) {
    if (in_scope(line, implementation)) rows.push_back(measured_row(engine, line, conditions));
  });
  return rows;
}

std::vector<Row> own_rows(const Engine& engine, const std::string& path, const std::string& kind,
                          const std::string& only) {
  std::vector<Row> rows;
  for_lines(path, only, [&](const Value& line) {
    if (text_at(line, {"kind"}) != kind) return;
    for (Row& row : rows_of_run(engine, line)) rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace tidemark::truth
