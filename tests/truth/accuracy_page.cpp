#include "tests/truth/accuracy_page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/wire/json.hpp"
#include "tests/truth/statistics.hpp"

namespace tidemark::truth {
namespace {

std::string number(double value, int decimals, bool sign = false) {
  char text[32];
  std::snprintf(text, sizeof text, sign ? "%+.*f" : "%.*f", decimals, value);
  return text;
}

bool deviates(const Row& row, const std::vector<Deviation>& deviations) {
  for (const Deviation& d : deviations) {
    if (row.id.compare(0, d.ids.size(), d.ids) == 0) return true;
  }
  return false;
}

std::string summary_row(const std::string& name, const std::vector<Row>& rows) {
  const Summary s = summarise(rows);
  return "| " + name + " | " + std::to_string(s.n) + " | " + std::to_string(s.unanswered) + " | " +
         number(s.median, 3) + " | " + number(s.p95, 3) + " | " + number(s.worst, 3) + " | " +
         number(share(s.phases_right, s.n), 1) + " | " + number(share(s.contained, s.n), 1) + " | " +
         number(s.width, 1) + " |\n";
}

constexpr const char* kSummaryHead =
    "| set | rows | not modelled | median % | p95 % | worst % | phase right % | truth in range % | range ± % |\n"
    "|---|---|---|---|---|---|---|---|---|\n";

std::vector<Row> worst_first(std::vector<Row> rows, std::size_t most) {
  rows.erase(std::remove_if(rows.begin(), rows.end(), [](const Row& r) { return !r.answered; }), rows.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return std::fabs(a.error) > std::fabs(b.error); });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

/// How many of a hundred are within so many per cent.
double within(const std::vector<Row>& rows, double percent) {
  std::size_t near = 0, answered = 0;
  for (const Row& r : rows) {
    if (!r.answered) continue;
    ++answered;
    if (std::fabs(r.error) <= percent) ++near;
  }
  return share(near, answered);
}

std::string runs_section(const Tables& t) {
  std::string page =
      "## Measured by ourselves\n\n"
      "An NVIDIA H200 (driver 580.159, torch 2.11.0 for CUDA 13.0, cuDNN 9.19, transformers 5.12.1, TRL 1.9.0, PEFT "
      "0.21.0, accelerate 1.15.0,\nbitsandbytes 0.50.2, Liger 0.8.5, DeepSpeed 0.19.8, Unsloth 2026.10.9), 2026-11-26 "
      "and 27: "
      "`tests/measured/own.jsonl`, recorded by `tests/oracle/gpu`. Allocated and\nreserved bytes are torch's own peaks "
      "of the second step and later; the device's are what the driver counts for the process.\n"
      "What runs of several GPUs means there, and what the card showed that the records had not: "
      "[tests/measured](../tests/measured/README.md).\n\n"
      "| runs | figure | rows | median % | within 0.1 % | within 1 % | within 5 % | p95 % | truth in range % |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  std::vector<Row> all;
  for (const Runs& runs : t.runs) {
    for (const char* metric : {"allocated", "reserved", "device"}) {
      const std::vector<Row> rows = part(runs.rows, metric, "");
      const Summary s = summarise(rows);
      page += "| " + runs.title + " | " + metric + " | " + std::to_string(s.n) + " | " + number(s.median, 3) + " | " +
              number(within(rows, 0.1), 1) + " | " + number(within(rows, 1.0), 1) + " | " +
              number(within(rows, 5.0), 1) + " | " + number(s.p95, 2) + " | " + number(share(s.contained, s.n), 1) +
              " |\n";
      if (std::string(metric) == "allocated") all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  page +=
      "\nThe farthest off, of allocated bytes:\n\n| run | family | regime | true bytes | error % "
      "|\n|---|---|---|---|---|\n";
  for (const Row& r : worst_first(all, 40)) {
    page += "| " + r.id + " | " + r.family + " | " + r.regime + " | " + std::to_string(r.truth) + " | " +
            number(r.error, 2, true) + " |\n";
  }
  return page + "\n";
}

}  // namespace

std::vector<Deviation> read_deviations(const std::string& path) {
  Issues issues;
  const Value document = parse_json(read_file(path), "", issues);
  std::vector<Deviation> deviations;
  const Value* list = document.find("deviations");
  if (list == nullptr) return deviations;
  for (const Value& d : list->items) {
    const Value* ids = d.find("ids");
    const Value* reason = d.find("reason");
    if (ids != nullptr && reason != nullptr) deviations.push_back({ids->string, reason->string});
  }
  return deviations;
}

std::vector<Row> without(const std::vector<Row>& rows, const std::vector<Deviation>& deviations) {
  std::vector<Row> kept;
  for (const Row& r : rows) {
    if (!deviates(r, deviations)) kept.push_back(r);
  }
  return kept;
}

std::vector<Row> part(const std::vector<Row>& rows, const std::string& metric, const std::string& completeness) {
  std::vector<Row> some;
  for (const Row& r : rows) {
    if (r.metric == metric && r.completeness == completeness) some.push_back(r);
  }
  return some;
}

std::string accuracy_page(const Tables& t) {
  std::string page =
      "# How true it is\n\n"
      "Written by `build/bin/tidemark_truth --markdown docs/accuracy.md`; `--check` fails when a bound is exceeded.\n"
      "Errors are per cent of the true peak, positive when the engine says more.\n\n"
      "**Records** are runs of real Hugging Face models on fake CUDA tensors (tests/oracle/README.md): the public "
      "set,\n"
      "an extra one that covers further families and options, and one in which each pair of options meets. "
      "**Measurements** are peaks that others published\n"
      "from real GPUs (tests/measured/), in scope when they ran transformers on one GPU without torch.compile, or\n"
      "an implementation that has a program of its own. What the records' fake device does otherwise than a card is "
      "left out where the engine\nis held against them (tests/measured/README.md), and counted in all else.\n\n";
  page += runs_section(t);
  page += "## Summary\n\n";
  page += kSummaryHead;
  page += summary_row("public records", without(t.open, t.deviations));
  page += summary_row("extra records", without(t.extra, t.deviations));
  page += summary_row("records of pairs of options", without(t.pairs, t.deviations));
  page += summary_row("records of further kinds of models", without(t.beyond, t.deviations));
  page += summary_row("records of many GPUs", without(t.multi, t.deviations));
  page += summary_row("records of further loops", without(t.loops, t.deviations));
  page += summary_row("records of further adapters", without(t.adapters, t.deviations));
  page += summary_row("records of further optimizers", without(t.optimizers, t.deviations));
  page += summary_row("records of activations in host memory", without(t.offloaded, t.deviations));
  page += summary_row("records of packed bases", without(t.quantised, t.deviations));
  page += summary_row("records of transformers 5.24", without(t.later, t.deviations));
  page += summary_row("records of Megatron-Core", without(t.megatron, t.deviations));
  page += summary_row("records of Unsloth", without(t.unsloth, t.deviations));
  for (const char* metric : {"allocated", "reserved", "device"}) {
    for (const char* completeness : {"A", "B"}) {
      page += summary_row(std::string("measured, ") + metric + ", completeness " + completeness,
                          without(part(t.measured, metric, completeness), t.deviations));
    }
  }
  for (const Own& own : t.own) {
    for (const char* completeness : {"A", "B"}) {
      page += summary_row("measured under " + own.title + ", " + own.metric + ", completeness " + completeness,
                          without(part(own.rows, own.metric, completeness), t.deviations));
    }
  }
  page +=
      "\nRows that we do not follow are named below and not counted.\n"
      "\nBounds that `--check` holds the sets of records to: median ≤ 0.5, p95 ≤ 2, worst ≤ 5, phase right in ≥ "
      "95,\n"
      "truth in range in ≥ 95, range at most ± 8; measured peaks of completeness A: median ≤ 3, p95 ≤ 10.\n\n"
      "Of a measurement the phase is not known; the column repeats ours.\n";
  std::vector<Row> records = without(t.open, t.deviations);
  for (const auto* set :
       {&t.extra, &t.pairs, &t.beyond, &t.multi, &t.loops, &t.adapters, &t.optimizers, &t.offloaded, &t.quantised}) {
    for (const Row& r : without(*set, t.deviations)) records.push_back(r);
  }
  page += "\n## By family (all records)\n\n";
  page += kSummaryHead;
  for (const auto& [name, rows] : grouped(records, true)) page += summary_row(name, rows);
  page += "\n## By method and precision (all records)\n\n";
  page += kSummaryHead;
  for (const auto& [name, rows] : grouped(records, false)) page += summary_row(name, rows);
  page +=
      "\n## The worst records\n\n| record | family | regime | error % | forward % | backward % | optimizer % | "
      "reserved % |\n|---|---|---|---|---|---|---|---|\n";
  for (const Row& r : worst_first(records, 25)) {
    page += "| " + r.id + " | " + r.family + " | " + r.regime + " | " + number(r.error, 3, true) + " | " +
            number(r.forward, 3, true) + " | " + number(r.backward, 3, true) + " | " + number(r.optimizer, 3, true) +
            " | " + number(r.reserved, 1, true) + " |\n";
  }
  page += "\n## Rows that we do not follow\n\n";
  for (const Deviation& d : t.deviations) page += "* `" + d.ids + "`: " + d.reason + "\n";
  if (t.deviations.empty()) page += "None.\n";
  page +=
      "\n## Measurements\n\nWhat a source states and its request does not is merged over the request "
      "(tests/measured/conditions.json, each with its\nreason).\n\n"
      "| measurement | family | regime | metric | completeness | true bytes | ours | error % |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::vector<Row> measured = t.measured;
  for (const Own& own : t.own) measured.insert(measured.end(), own.rows.begin(), own.rows.end());
  for (const Row& r : measured) {
    if (!r.answered) continue;
    page += "| " + r.id + " | " + r.family + " | " + r.regime + " | " + r.metric + " | " + r.completeness + " | " +
            std::to_string(r.truth) + " | " + std::to_string(r.ours) + " | " + number(r.error, 2, true) + " |\n";
  }
  page += "\nNot answered, and why:\n\n";
  for (const Row& r : measured) {
    if (!r.answered) page += "* " + r.id + ": " + r.note + "\n";
  }
  return page;
}

}  // namespace tidemark::truth
