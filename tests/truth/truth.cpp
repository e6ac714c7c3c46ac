// The truth table: every oracle record and every published measurement against the engine, with bounds that fail.
//   tidemark_truth [--root DIR] [--only TEXT] [--family F] [--worst N] [--check] [--markdown FILE] [--coverage FILE]
//   [--ranges FILE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/wire/engine.hpp"
#include "tests/truth/accuracy_page.hpp"
#include "tests/truth/coverage.hpp"
#include "tests/truth/ranges.hpp"
#include "tests/truth/rows.hpp"
#include "tests/truth/statistics.hpp"

namespace tidemark::truth {
namespace {

void print_summary(const std::string& name, const std::vector<Row>& rows) {
  const Summary s = summarise(rows);
  std::printf(
      "%-30s n %4zu  unanswered %3zu  median %6.3f %%  p95 %6.3f %%  worst %7.3f %%  phase %5.1f %%  in range %5.1f %% "
      " "
      "width +-%.2f %%\n",
      name.c_str(), s.n, s.unanswered, s.median, s.p95, s.worst, share(s.phases_right, s.n), share(s.contained, s.n),
      s.width);
}

void print_rows(const std::vector<Row>& rows, std::size_t worst) {
  std::vector<const Row*> sorted;
  std::map<std::string, int> missing;
  for (const Row& r : rows) {
    if (r.answered) {
      sorted.push_back(&r);
    } else {
      ++missing[r.family + ": " + r.note.substr(0, 90)];
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row* a, const Row* b) { return std::fabs(a->error) > std::fabs(b->error); });
  for (std::size_t k = 0; k < sorted.size() && k < worst; ++k) {
    const Row& r = *sorted[k];
    std::printf("%-46s %-12s %-18s err %+7.3f live %+7.3f  fwd %+7.3f bwd %+7.3f opt %+7.3f res %+7.2f  %s/%s %s%s\n",
                r.id.c_str(), r.family.c_str(), r.regime.c_str(), r.error, r.live, r.forward, r.backward, r.optimizer,
                r.reserved, r.phase.c_str(), r.true_phase.c_str(), r.metric.c_str(), r.note.c_str());
  }
  for (const auto& [what, n] : missing) std::printf("   unanswered %3d  %s\n", n, what.c_str());
}

std::vector<Row> of_family(std::vector<Row> rows, const std::string& family) {
  if (family.empty()) return rows;
  std::vector<Row> some;
  for (Row& r : rows) {
    if (r.family == family) some.push_back(std::move(r));
  }
  return some;
}

// One bound of the issue: counted as a test.
struct Check {
  int passed = 0, failed = 0;
  void at_most(const char* set, const char* what, double value, double bound) {
    tell(value <= bound, set, what, value, "<=", bound);
  }
  void at_least(const char* set, const char* what, double value, double bound) {
    tell(value >= bound, set, what, value, ">=", bound);
  }
  void tell(bool ok, const char* set, const char* what, double value, const char* relation, double bound) {
    ++(ok ? passed : failed);
    std::printf("%s  %-22s %-26s %8.3f %s %g\n", ok ? "ok  " : "FAIL", set, what, value, relation, bound);
  }
};

// What holds for a set of records.
struct Bounds {
  double p95 = 1.0, worst = 2.0, phases = 95.0, contained = 95.0, width = 8.0;
};
constexpr Bounds kDense{0.5, 2.0, 98.0, 98.0};
// Among them jobs whose evaluation generates, the peak of which is that of the longest sequence: within 1.6 %, and
// small models that generate answers, where what the allocator does not split off counts: within 2.7 %.
constexpr Bounds kLoops{1.0, 2.7, 98.0, 98.0};
constexpr Bounds kOffloaded{0.9, 2.5, 99.0, 99.0};
// Answers that a model generates where GPUs divide it, and mixtures whose experts ZeRO-3 gathers: within 3.4 %.
constexpr Bounds kMulti{1.0, 2.0, 95.0, 95.0};
// The range is that of an implementation which published figures speak for, too.
constexpr Bounds kMegatron{0.6, 1.0, 98.0, 98.0, 13.0};

// `answered`: how many rows were when this bound was last set; none may be lost. (248 records await their recording.)
void check_oracle(Check& check, const char* name, const std::vector<Row>& rows, int answered,
                  const Bounds& bounds = {}) {
  const Summary s = summarise(rows);
  check.at_least(name, "rows answered", static_cast<double>(s.n), answered);
  check.at_most(name, "median error %", s.median, 0.5);
  check.at_most(name, "p95 error %", s.p95, bounds.p95);
  check.at_most(name, "worst error %", s.worst, bounds.worst);
  check.at_least(name, "phase right %", share(s.phases_right, s.n), bounds.phases);
  check.at_least(name, "truth in range %", share(s.contained, s.n), bounds.contained);
  check.at_most(name, "half-width of range %", s.width, bounds.width);
}

std::string spreads_of(const Tables& t, const std::vector<Recorded>& recorded, const std::string& oracle) {
  std::vector<Row> rows;
  for (const auto* set : {&t.open, &t.extra, &t.pairs, &t.beyond, &t.multi, &t.loops, &t.adapters, &t.optimizers,
                          &t.offloaded, &t.quantised, &t.later}) {
    rows.insert(rows.end(), set->begin(), set->end());
  }
  return range_table(recorded, rows, without(t.measured, t.deviations), oracle + "first-sight.jsonl");
}

/// An implementation with a program of its own.
struct Implementation {
  const char* name;    ///< of the rows
  const char* title;   ///< on pages
  const char* metric;  ///< that is published of it
  double answered;     ///< how many rows of completeness A were when this was last raised
};
constexpr Implementation kImplementations[] = {{"megatron", "Megatron-Core", "allocated", 50},
                                               {"torchtitan", "torchtitan", "reserved", 37},
                                               {"litgpt", "LitGPT", "allocated", 36},
                                               {"torchtune", "torchtune", "allocated", 7}};

// What holds of our own measurements of one kind: peaks of allocated bytes.
struct RunBounds {
  double answered, median, within_1, contained;
};
constexpr RunBounds kRunBounds[] = {{104, 0.03, 87.0, 95.0}, {656, 0.05, 95.0, 96.0}, {61, 0.02, 100.0, 100.0},
                                    {645, 0.15, 94.0, 95.0}, {67, 0.2, 85.0, 91.0},   {31, 0.3, 70.0, 95.0}};

void check_runs(Check& check, const Runs& runs, const RunBounds& bounds) {
  const std::vector<Row> rows = part(runs.rows, "allocated", "");
  const Summary s = summarise(rows);
  std::size_t near = 0;
  for (const Row& r : rows) near += r.answered && std::fabs(r.error) <= 1.0 ? 1 : 0;
  const std::string name = "our card: " + runs.kind;
  check.at_least(name.c_str(), "rows answered", static_cast<double>(s.n), bounds.answered);
  check.at_most(name.c_str(), "median error %", s.median, bounds.median);
  check.at_least(name.c_str(), "within 1 %", share(near, s.n), bounds.within_1);
  check.at_least(name.c_str(), "truth in range %", share(s.contained, s.n), bounds.contained);
}

int run(int argc, char** argv) {
  std::string root = ".", only, family, markdown, coverage, ranges;
  std::size_t worst = 15;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (a == "--root") {
      root = next();
    } else if (a == "--only") {
      only = next();
    } else if (a == "--family") {
      family = next();
    } else if (a == "--worst") {
      worst = static_cast<std::size_t>(std::atoi(next().c_str()));
    } else if (a == "--all") {
      worst = 1000000;
    } else if (a == "--markdown") {
      markdown = next();
    } else if (a == "--coverage") {
      coverage = next();
    } else if (a == "--ranges") {
      ranges = next();
    } else if (a == "--check") {
      check = true;
    } else {
      std::fprintf(stderr, "unknown argument %s\n", a.c_str());
      return 2;
    }
  }
  Engine engine;
  const Issues trouble =
      engine.load_catalog(read_file(root + "/catalog/models.json"), read_file(root + "/catalog/gpus.json"));
  for (const Issue& i : trouble) std::fprintf(stderr, "catalog: %s %s\n", i.code.c_str(), i.message.c_str());
  const std::string oracle = root + "/tests/oracle/";
  Tables t;
  t.deviations = read_deviations(root + "/tests/truth/deviations.json");
  const std::vector<Recorded> recorded = recorded_jobs(
      engine,
      {oracle + "records.jsonl", oracle + "records-extra.jsonl", oracle + "records-pairs.jsonl",
       oracle + "records-beyond.jsonl", oracle + "records-multi.jsonl", oracle + "records-loops.jsonl",
       oracle + "records-adapters.jsonl", oracle + "records-optimizers.jsonl", oracle + "records-offloaded.jsonl",
       oracle + "records-quantised.jsonl", oracle + "records-later.jsonl"},
      t.deviations);
  const std::string table = coverage_table(recorded);
  if (!coverage.empty()) {
    std::ofstream(coverage, std::ios::binary) << table;
    std::printf("wrote %s\n", coverage.c_str());
    return 0;
  }
  t.open = of_family(oracle_rows(engine, oracle + "records.jsonl", only), family);
  t.extra = of_family(oracle_rows(engine, oracle + "records-extra.jsonl", only), family);
  t.pairs = of_family(oracle_rows(engine, oracle + "records-pairs.jsonl", only), family);
  t.beyond = of_family(oracle_rows(engine, oracle + "records-beyond.jsonl", only), family);
  t.multi = of_family(oracle_rows(engine, oracle + "records-multi.jsonl", only), family);
  t.loops = of_family(oracle_rows(engine, oracle + "records-loops.jsonl", only), family);
  t.adapters = of_family(oracle_rows(engine, oracle + "records-adapters.jsonl", only), family);
  t.optimizers = of_family(oracle_rows(engine, oracle + "records-optimizers.jsonl", only), family);
  t.offloaded = of_family(oracle_rows(engine, oracle + "records-offloaded.jsonl", only), family);
  t.quantised = of_family(oracle_rows(engine, oracle + "records-quantised.jsonl", only), family);
  t.later = of_family(oracle_rows(engine, oracle + "records-later.jsonl", only), family);
  // An implementation of its own, whose range is its own: no part of the coverage by records of transformers.
  t.megatron = of_family(oracle_rows(engine, oracle + "records-megatron.jsonl", only), family);
  t.unsloth = of_family(oracle_rows(engine, oracle + "records-unsloth.jsonl", only), family);
  const auto measured = [&](const char* implementation) {
    return of_family(measured_rows(engine, root + "/tests/measured/requests.jsonl",
                                   root + "/tests/measured/conditions.json", implementation, only),
                     family);
  };
  t.measured = measured("transformers");
  for (const auto& [kind, title] : {std::pair{"trainer", "libraries' own trainers"},
                                    {"loop", "loops"},
                                    {"parallel", "one of several GPUs"},
                                    {"drawn", "loops drawn at random, of which there is no record"},
                                    {"drawn_parallel", "one of several GPUs, drawn likewise"},
                                    {"unsloth", "Unsloth's own, as people call it"}}) {
    t.runs.push_back(
        {kind, title, of_family(own_rows(engine, root + "/tests/measured/own.jsonl", kind, only), family)});
  }
  for (const Implementation& i : kImplementations) t.own.push_back({i.title, i.metric, measured(i.name)});
  const std::string spreads = only.empty() && family.empty() ? spreads_of(t, recorded, oracle) : "";
  if (!ranges.empty()) {
    std::ofstream(ranges, std::ios::binary) << spreads;
    std::printf("wrote %s\n", ranges.c_str());
    return 0;
  }
  if (!markdown.empty()) {
    std::ofstream(markdown, std::ios::binary) << accuracy_page(t);
    std::printf("wrote %s\n", markdown.c_str());
  }
  if (!check && markdown.empty()) {
    for (const auto& [file, set] : {std::pair{"records.jsonl", &t.open},
                                    {"records-extra.jsonl", &t.extra},
                                    {"records-pairs.jsonl", &t.pairs},
                                    {"records-beyond.jsonl", &t.beyond},
                                    {"records-multi.jsonl", &t.multi},
                                    {"records-loops.jsonl", &t.loops},
                                    {"records-adapters.jsonl", &t.adapters},
                                    {"records-optimizers.jsonl", &t.optimizers},
                                    {"records-offloaded.jsonl", &t.offloaded},
                                    {"records-quantised.jsonl", &t.quantised},
                                    {"records-later.jsonl", &t.later},
                                    {"records-megatron.jsonl", &t.megatron},
                                    {"records-unsloth.jsonl", &t.unsloth}}) {
      std::printf("== %s\n", file);
      print_rows(*set, worst);
      for (const bool by_family : {true, false}) {
        for (const auto& [name, rows] : grouped(*set, by_family)) print_summary(name, rows);
      }
      print_summary("all", *set);
    }
    std::printf("== measurements\n");
    print_rows(t.measured, worst);
    for (const Own& own : t.own) print_rows(own.rows, worst);
    for (const Runs& runs : t.runs) print_rows(part(runs.rows, "allocated", ""), worst);
  }
  print_summary("public records", without(t.open, t.deviations));
  print_summary("extra records", without(t.extra, t.deviations));
  print_summary("records of pairs", without(t.pairs, t.deviations));
  print_summary("records of further kinds", without(t.beyond, t.deviations));
  print_summary("records of many GPUs", without(t.multi, t.deviations));
  print_summary("records of further loops", without(t.loops, t.deviations));
  print_summary("records of further adapters", without(t.adapters, t.deviations));
  print_summary("records of further optimizers", without(t.optimizers, t.deviations));
  print_summary("activations in host memory", without(t.offloaded, t.deviations));
  print_summary("packed bases", without(t.quantised, t.deviations));
  print_summary("transformers 5.24", without(t.later, t.deviations));
  print_summary("Megatron-Core", without(t.megatron, t.deviations));
  print_summary("Unsloth", without(t.unsloth, t.deviations));
  for (const char* metric : {"allocated", "reserved", "device"}) {
    for (const char* completeness : {"A", "B"}) {
      print_summary(std::string("measured, ") + metric + " " + completeness, part(t.measured, metric, completeness));
    }
  }
  for (const Own& own : t.own) {
    for (const char* completeness : {"A", "B"}) {
      print_summary(own.title + ", " + completeness, without(part(own.rows, own.metric, completeness), t.deviations));
    }
  }
  for (const Runs& runs : t.runs) {
    for (const char* metric : {"allocated", "reserved", "device"}) {
      print_summary("our card: " + runs.title + ", " + metric, part(runs.rows, metric, ""));
    }
  }
  if (!check) return 0;
  Check c;
  check_oracle(c, "public records", without(t.open, t.deviations), 259, kDense);
  check_oracle(c, "extra records", without(t.extra, t.deviations), 597, kDense);
  check_oracle(c, "records of pairs", without(t.pairs, t.deviations), 1162, kDense);
  check_oracle(c, "records of further kinds", without(t.beyond, t.deviations), 3183);
  check_oracle(c, "records of many GPUs", without(t.multi, t.deviations), 3865, kMulti);
  check_oracle(c, "records of loops", without(t.loops, t.deviations), 901, kLoops);
  check_oracle(c, "records of adapters", without(t.adapters, t.deviations), 362);
  check_oracle(c, "records of optimizers", without(t.optimizers, t.deviations), 285);
  check_oracle(c, "activations in host memory", without(t.offloaded, t.deviations), 250, kOffloaded);
  check_oracle(c, "packed bases", without(t.quantised, t.deviations), 113, kDense);
  check_oracle(c, "records of transformers 5.24", without(t.later, t.deviations), 1661, kMulti);
  check_oracle(c, "records of Megatron-Core", without(t.megatron, t.deviations), 150, kMegatron);
  check_oracle(c, "records of Unsloth", without(t.unsloth, t.deviations), 63, kDense);
  c.at_least("coverage", "table is the records'", table == read_file(root + "/core/step/coverage_table.cpp"), 1);
  c.at_least("ranges", "are the residuals'", spreads == read_file(root + "/core/step/range_table.hpp"), 1);
  const Summary a = summarise(without(part(t.measured, "allocated", "A"), t.deviations));
  c.at_least("measured, allocated A", "rows answered", static_cast<double>(a.n), 20);
  c.at_most("measured, allocated A", "median error %", a.median, 3.0);
  c.at_most("measured, allocated A", "p95 error %", a.p95, 10.0);
  c.at_least("measured, allocated A", "truth in range %", share(a.contained, a.n), 95.0);
  for (std::size_t i = 0; i < t.own.size(); ++i) {
    const Own& own = t.own[i];
    const Summary m = summarise(without(part(own.rows, own.metric, "A"), t.deviations));
    const std::string name = own.title + " A";
    c.at_least(name.c_str(), "rows answered", static_cast<double>(m.n), kImplementations[i].answered);
    c.at_most(name.c_str(), "median error %", m.median, 2.0);
    c.at_most(name.c_str(), "p95 error %", m.p95, 8.0);
    c.at_least(name.c_str(), "truth in range %", share(m.contained, m.n), 95.0);
  }
  for (std::size_t i = 0; i < t.runs.size(); ++i) check_runs(c, t.runs[i], kRunBounds[i]);
  std::printf("truth: %d passed, %d failed\n", c.passed, c.failed);
  return c.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::truth

int main(int argc, char** argv) {
  return tidemark::truth::run(argc, argv);
}
