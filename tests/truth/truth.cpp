// The truth table: every oracle record and every published measurement against the engine, with bounds that fail.
//   tidemark_truth --root SOURCE_DIR [--only TEXT] [--family F] [--worst N] [--phases] [--markdown FILE] [--check]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"

namespace {

using tidemark::Bytes;
using tidemark::Value;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

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

struct Row {
  std::string id, family, regime, note, phase, true_phase, metric, completeness;
  double live = 0;  // sum of live storages against the record's, phase by phase the largest deviation
  double error = 0, forward = 0, backward = 0, optimizer = 0, reserved = 0;
  double low = 0, high = 0;  // of the stated range, relative to the truth
  Bytes truth = 0, ours = 0;
  bool answered = false;
};

double relative(Bytes ours, Bytes truth) {
  return truth == 0 ? 0.0 : 100.0 * static_cast<double>(ours - truth) / static_cast<double>(truth);
}

std::string regime_of(const Value& request) {
  std::string r = text_at(request, {"method"}) + " " + text_at(request, {"precision"});
  return r;
}

std::string joined_issues(const tidemark::Issues& issues) {
  std::string s;
  for (const auto& i : issues) {
    if (i.severity == tidemark::Severity::kError) s += i.code + " " + i.message + "; ";
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

Row oracle_row(const tidemark::Engine& engine, const Value& line) {
  Row row;
  row.id = text_at(line, {"id"});
  const Value& request = *line.find("request");
  const Value& record = *line.find("record");
  row.regime = regime_of(request);
  const tidemark::Answer a = engine.answer(request);
  row.family = a.architecture.model_type.empty() ? "?" : a.architecture.model_type;
  const bool hopper = a.job.compute_capability == 90;
  const Bytes workspace = integer_at(record, {"cublas_workspace_bytes", hopper ? "sm90" : "default"});
  row.truth = integer_at(record, {"peak", "allocated"}) + workspace;
  row.true_phase = text_at(record, {"peak", "phase"});
  if (!a.estimate) {
    row.note = joined_issues(a.issues);
    return row;
  }
  const tidemark::Estimate& e = *a.estimate;
  row.answered = true;
  row.ours = e.allocated.expected;
  row.error = relative(row.ours, row.truth);
  row.low = relative(e.allocated.low, row.truth);
  row.high = relative(e.allocated.high, row.truth);
  const auto phase = [&](tidemark::Phase p) { return e.phase_peaks[static_cast<int>(p)]; };
  const Bytes forward = std::max(phase(tidemark::Phase::kForward), phase(tidemark::Phase::kLoss));
  row.forward = relative(forward, phase_truth(record, "forward") + workspace);
  row.backward = relative(phase(tidemark::Phase::kBackward), phase_truth(record, "backward") + workspace);
  row.optimizer = relative(phase(tidemark::Phase::kOptimizer), phase_truth(record, "optimizer") + workspace);
  row.reserved = relative(e.reserved.expected, integer_at(record, {"peak", "reserved"}) + workspace);
  for (const auto& [p, name] : {std::pair{tidemark::Phase::kBackward, "backward"}, {tidemark::Phase::kOptimizer, "optimizer"}}) {
    const Bytes requested = integer_at(record, {"steps", "2", name, "requested512"}) + workspace;
    const double d = relative(e.phase_live[static_cast<int>(p)], requested);
    if (std::fabs(d) > std::fabs(row.live)) row.live = d;
  }
  {
    const Bytes live = std::max(e.phase_live[static_cast<int>(tidemark::Phase::kForward)],
                                e.phase_live[static_cast<int>(tidemark::Phase::kLoss)]);
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

// A published measurement: in scope when it ran transformers on one GPU without torch.compile.
bool in_scope(const Value& line) {
  if (text_at(line, {"scope"}) != "single_gpu" || text_at(line, {"implementation"}) != "transformers") return false;
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
      if (!found) request.members.emplace_back(key, value);
    }
  }
  return request;
}

Row measured_row(const tidemark::Engine& engine, const Value& line, const Value& conditions) {
  Row row;
  row.id = text_at(line, {"id"});
  const Value request = with_conditions(*line.find("request"), row.id, conditions);
  row.regime = regime_of(request);
  row.metric = text_at(line, {"metric"});
  row.completeness = text_at(line, {"completeness"});
  const tidemark::Answer a = engine.answer(request);
  row.family = a.architecture.model_type.empty() ? "?" : a.architecture.model_type;
  row.truth = integer_at(line, {"value_bytes"});
  if (!a.estimate) {
    row.note = joined_issues(a.issues);
    return row;
  }
  const tidemark::Estimate& e = *a.estimate;
  row.answered = true;
  const tidemark::Range& r = row.metric == "reserved" ? e.reserved : row.metric == "device" ? e.device : e.allocated;
  row.ours = r.expected;
  if (row.metric == "allocated" && text_at(line, {"window"}) == "first_step") row.ours = e.first_step_allocated;
  row.error = relative(row.ours, row.truth);
  row.low = relative(r.low, row.truth);
  row.high = relative(r.high, row.truth);
  row.phase = row.true_phase = std::string(name_of(e.peak.phase));
  return row;
}

struct Summary {
  std::size_t n = 0, unanswered = 0, phases_right = 0, contained = 0;
  double median = 0, p95 = 0, worst = 0, width = 0;
};

double quantile(std::vector<double> v, double q) {
  if (v.empty()) return 0.0;
  std::sort(v.begin(), v.end());
  const auto i = static_cast<std::size_t>(std::ceil(q * static_cast<double>(v.size()))) - 1;
  return v[std::min(i, v.size() - 1)];
}

Summary summarise(const std::vector<Row>& rows) {
  Summary s;
  std::vector<double> errors, widths;
  for (const Row& r : rows) {
    if (!r.answered) {
      ++s.unanswered;
      continue;
    }
    ++s.n;
    errors.push_back(std::fabs(r.error));
    widths.push_back((r.high - r.low) / 2);
    s.phases_right += r.phase == r.true_phase;
    s.contained += r.low <= 1e-9 && r.high >= -1e-9;
  }
  s.median = quantile(errors, 0.5);
  s.p95 = quantile(errors, 0.95);
  s.worst = quantile(errors, 1.0);
  s.width = quantile(widths, 0.5);
  return s;
}

void print_summary(const char* name, const std::vector<Row>& rows) {
  const Summary s = summarise(rows);
  std::printf("%-34s n %4zu  unanswered %3zu  median %6.3f %%  p95 %6.3f %%  worst %7.3f %%  phase %5.1f %%  in range %5.1f %%  width +-%.2f %%\n",
              name, s.n, s.unanswered, s.median, s.p95, s.worst,
              s.n ? 100.0 * static_cast<double>(s.phases_right) / static_cast<double>(s.n) : 0.0,
              s.n ? 100.0 * static_cast<double>(s.contained) / static_cast<double>(s.n) : 0.0, s.width);
}

void print_groups(const std::vector<Row>& rows, bool by_family) {
  std::map<std::string, std::vector<Row>> groups;
  for (const Row& r : rows) groups[by_family ? r.family : r.regime].push_back(r);
  for (const auto& [name, members] : groups) print_summary(name.c_str(), members);
}

}  // namespace

int main(int argc, char** argv) {
  std::string root = ".", only, family, markdown;
  int worst = 15;
  bool check = false, all = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (a == "--root") root = next();
    else if (a == "--only") only = next();
    else if (a == "--family") family = next();
    else if (a == "--worst") worst = std::atoi(next().c_str());
    else if (a == "--markdown") markdown = next();
    else if (a == "--check") check = true;
    else if (a == "--all") all = true;
  }
  tidemark::Engine engine;
  const tidemark::Issues trouble =
      engine.load_catalog(read_file(root + "/catalog/models.json"), read_file(root + "/catalog/gpus.json"));
  for (const auto& i : trouble) std::fprintf(stderr, "catalog: %s %s\n", i.code.c_str(), i.message.c_str());
  for (const char* file : {"records.jsonl", "records-extra.jsonl"}) {
    std::ifstream in(root + "/tests/oracle/" + file);
    std::string line;
    std::vector<Row> rows;
    while (std::getline(in, line)) {
      if (line.empty() || (!only.empty() && line.find(only) == std::string::npos)) continue;
      tidemark::Issues issues;
      const Value v = tidemark::parse_json(line, "", issues);
      Row r = oracle_row(engine, v);
      if (!family.empty() && r.family != family) continue;
      rows.push_back(std::move(r));
    }
    std::printf("== %s\n", file);
    std::map<std::string, int> missing;
    for (const Row& r : rows) {
      if (!r.answered) ++missing[r.family + ": " + r.note];
    }
    std::vector<const Row*> sorted;
    for (const Row& r : rows) {
      if (r.answered) sorted.push_back(&r);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Row* a, const Row* b) { return std::fabs(a->error) > std::fabs(b->error); });
    for (std::size_t k = 0; k < sorted.size() && (all || k < static_cast<std::size_t>(worst)); ++k) {
      const Row& r = *sorted[k];
      std::printf("%-46s %-12s %-18s err %+7.3f live %+7.3f  fwd %+7.3f bwd %+7.3f opt %+7.3f res %+7.2f  %s/%s %s\n", r.id.c_str(),
                  r.family.c_str(), r.regime.c_str(), r.error, r.live, r.forward, r.backward, r.optimizer, r.reserved,
                  r.phase.c_str(), r.true_phase.c_str(), r.note.c_str());
    }
    for (const auto& [what, n] : missing) std::printf("   unanswered %3d  %s\n", n, what.substr(0, 110).c_str());
    print_groups(rows, true);
    print_groups(rows, false);
    print_summary("all", rows);
  }
  {
    tidemark::Issues unread;
    const Value conditions = tidemark::parse_json(read_file(root + "/tests/measured/conditions.json"), "", unread);
    std::ifstream in(root + "/tests/measured/requests.jsonl");
    std::string line;
    std::vector<Row> rows;
    while (std::getline(in, line)) {
      if (line.empty() || (!only.empty() && line.find(only) == std::string::npos)) continue;
      tidemark::Issues issues;
      const Value v = tidemark::parse_json(line, "", issues);
      if (!in_scope(v)) continue;
      Row r = measured_row(engine, v, conditions);
      if (!family.empty() && r.family != family) continue;
      rows.push_back(std::move(r));
    }
    std::printf("== measured\n");
    for (const Row& r : rows) {
      if (r.answered) {
        std::printf("%-24s %-12s %-18s %-10s %s err %+8.3f %s\n", r.id.c_str(), r.family.c_str(), r.regime.c_str(), r.metric.c_str(), r.completeness.c_str(), r.error, r.note.c_str());
      } else {
        std::printf("%-24s unanswered %s\n", r.id.c_str(), r.note.substr(0, 90).c_str());
      }
    }
    for (const char* metric : {"allocated", "reserved", "device"}) {
      for (const char* completeness : {"A", "B"}) {
        std::vector<Row> some;
        for (const Row& r : rows) {
          if (r.metric == metric && r.completeness == completeness) some.push_back(r);
        }
        print_summary((std::string(metric) + " " + completeness).c_str(), some);
      }
    }
  }
  (void)check;
  return 0;
}
