#include "core/step/range.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/step/range_table.hpp"
#include "core/units/excerpt.hpp"

namespace tidemark {
namespace {

/// A range around the expected figure, in thousandths of it.
struct Spread {
  Bytes below = 0;
  Bytes above = 0;
};

// Reserved memory depends on what ran before the first step (loading, evaluation): measured runs reserved 2 % less to
// 23 % more than the replay (tests/measured, reserved).
constexpr Spread kReserved = {50, 230};

// Where other code stands in for what ran: chosen so that it holds what was published of litgpt, torchtune and
// torchtitan (tests/measured/stand_ins.py prints how many of how many).
constexpr Spread kStandIn = {400, 600};

/// Of an implementation: most are held by published peaks alone.
struct Published {
  std::string_view implementation;
  Spread spread;
};

// torchtune's ladder of flags: within 2 %, adapters up to 16 % below, reserved memory, too; what is compiled is an
// assumption.
constexpr std::string_view kTorchtune = "torchtune";
constexpr Spread kTorchtuneSpread = {170, 80};

// All published rows (tests/measured) but those of settings that a request cannot state lie within.
constexpr Published kPublished[] = {
    {"megatron", {100, 150}},  // Megatron-LM's golden values, SimuMax's and others' tables
    // torchtitan's benchmarks and commits: rows of compiled losses and several rows of a batch are up to 11 % higher
    {"torchtitan", {60, 130}},
    // Its records lie within 1 %, its runs on a card (tests/measured, unsloth-…) within 4 %. How much is free on the
    // card decides how many chunks its loss had before 2026.10.9, and whether its checkpoints come back into two
    // buffers.
    {"unsloth", {60, 60}},
    {"litgpt", {60, 60}},  // LitGPT's resource tables and its config hub
    {kTorchtune, kTorchtuneSpread},
};

Spread published_spread(std::string_view implementation) {
  for (const Published& row : kPublished) {
    if (row.implementation == implementation) return row.spread;
  }
  return kStandIn;
}

// An evaluation that generates is as long as its longest sample: within 1.6 % of generate() under the recorder
// (tests/oracle/records-loops.jsonl, generate-*).
constexpr Spread kGenerationSpread = {20, 20};

// torch adds the mask to the math kernel's scores in place, the recorder's tensors beside: measured steps of a T4,
// which has no other kernel for them, lie within 1.5 % (tests/measured, tpf-*).
constexpr Spread kMathSpread = {16, 16};

Spread spread_apart(std::string_view option) {
  if (option == kGenerates) return kGenerationSpread;
  if (option == kDividedRollout) return {kDividedRolloutSpread, kDividedRolloutSpread};
  if (option == kActivationOffloading) return {kOffloadedActivationsSpread, kOffloadedActivationsSpread};
  return {};
}

Spread wider(const Spread& a, const Spread& b) {
  return {std::max(a.below, b.below), std::max(a.above, b.above)};
}

Spread spread_for(const Coverage& coverage) {
  if (!coverage.stand_ins.empty() || !coverage.not_counted.empty()) return kStandIn;
  if (!coverage.implementation.empty()) return published_spread(coverage.implementation);
  const Bytes both = !coverage.unmet.empty() ? kFromSourceOnlySpread
                     : coverage.family_met   ? kRecordedSpread
                                             : kOtherFamiliesSpread;
  Spread all = {both, both};
  for (std::string_view option : coverage.apart) all = wider(all, spread_apart(option));
  return all;
}

void spread(Range& range, const Spread& by) {
  range.low = range.expected - range.expected / 1000 * by.below;
  range.high = range.expected + range.expected / 1000 * by.above;
}

// What a block has beyond what was asked for is not split off up to a mebibyte (c10/cuda/CUDACachingAllocator.cpp:
// should_split, kSmallSize). Which free block a request finds depends on all that ran before, also where each storage
// is known: of small jobs drawn at random the peak's rests were others, and nothing else was (tests/oracle,
// varied91128-…, small91128-…).
constexpr Bytes kSmallSize = Bytes{1} << 20;

void keep_rests(Range& range, Bytes unsplit) {
  range.low = std::max<Bytes>(0, std::min(range.low, range.expected - unsplit - kSmallSize));
  range.high = std::max(range.high, range.expected + unsplit + kSmallSize);
}

constexpr std::size_t kUnmetNamed = 3, kNotCountedNamed = 8;

/// The first so many of a list, whose texts may be a person's, and how many more there are.
std::string first_of(const std::vector<std::string>& all, std::size_t most) {
  constexpr std::size_t kLongest = 200;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) text += (i == 0 ? "" : "; ") + excerpt(all[i], kLongest);
  if (all.size() > most) text += "; and " + std::to_string(all.size() - most) + " more";
  return text;
}

}  // namespace

void widen(Estimate& e, const Coverage& coverage, Bytes unsplit) {
  spread(e.allocated, wider(spread_for(coverage), e.attention_kernel == "math" ? kMathSpread : Spread{}));
  keep_rests(e.allocated, unsplit);
  spread(e.reserved, kReserved);
  if (coverage.implementation == kTorchtune) spread(e.reserved, {kTorchtuneSpread.below, kReserved.above});
  if (!coverage.stand_ins.empty() || !coverage.not_counted.empty()) {
    spread(e.reserved, {kStandIn.below, kStandIn.above});
    e.reserved.high += e.reserved.high / 1000 * kReserved.above;
  }
  if (e.reserved.low < e.allocated.low) e.reserved.low = e.allocated.low;
  e.device = e.reserved;
}

void note_coverage(Issues& issues, const Coverage& coverage) {
  for (const std::string& stand_in : coverage.stand_ins) {
    issues.push_back({"STAND_IN", Severity::kWarning, "",
                      "Not modelled itself: " + stand_in +
                          ". The figure is that one's, and its range is wide enough "
                          "for what was published of such jobs.",
                      ""});
  }
  if (!coverage.not_counted.empty()) {
    issues.push_back({"NOT_COUNTED", Severity::kWarning, "/not_counted",
                      "Moves memory and is not modelled: " + first_of(coverage.not_counted, kNotCountedNamed) +
                          ". The figure is that of the job without it, and its range is as wide as where other code "
                          "answers.",
                      ""});
  }
  if (coverage.unmet.empty()) return;
  std::string text = "No record covers " + first_of(coverage.unmet, kUnmetNamed);
  text += ". The figure follows the sources read, and its range is wider.";
  issues.push_back({"UNCOVERED_COMBINATION", Severity::kNote, "", std::move(text), ""});
}

}  // namespace tidemark
