#include "core/fit/advice.hpp"

#include <algorithm>

#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

constexpr Cost kExpandable{0,          Harm::kNothing, "equal",
                           "the same", "none",         "PyTorch documentation, CUDA semantics: expandable_segments"};

Suggestion try_step(Peaks& peaks, const TrainingJob& job, Step step, const Figures& now, const Card& card) {
  Suggestion suggestion;
  suggestion.figures = peaks.afresh(step.settings, after(step, job));
  suggestion.saved = now.allocated.expected - suggestion.figures.allocated.expected;
  suggestion.fit = check_fit(suggestion.figures, card);
  suggestion.step = std::move(step);
  return suggestion;
}

/// "FSDP 2" of "2 cards, FSDP 2".
std::string way_of(const MoreCards& more) {
  const std::size_t comma = more.step.title.find(", ");
  return more.step.title.substr(comma + 2);
}

std::vector<Way> ways_of(Peaks& peaks, const TrainingJob& job, const Advice& advice) {
  std::vector<Way> ways;
  const MoreCards fewest = fewest_cards(peaks, job, advice.card);
  if (fewest.cards > 0) {
    ways.push_back(
        {fewest.cards, advice.card.name, way_of(fewest), fewest.step.settings, fewest.figures.allocated.expected});
  }
  if (advice.fit.verdict == Verdict::kFits) return ways;
  if (advice.combination && advice.combination->found) {
    Way way{job.gpus(), advice.card.name, {}, {}, advice.combination->figures.allocated.expected};
    for (const Step& step : advice.combination->steps) way.how += (way.how.empty() ? "" : "; ") + step.title;
    way.settings = settings_of(advice.combination->steps);
    ways.push_back(std::move(way));
  }
  if (advice.smallest_as_is) {
    const CardFit& larger = *advice.smallest_as_is;
    ways.push_back({job.gpus(), larger.fit.gpu, "as it is", {}, larger.allocated.expected});
  }
  return ways;
}

}  // namespace

Advice advise(Peaks& peaks, const TrainingJob& job, const Card& card, std::span<const CardChoice> cards,
              const Overrides& overrides) {
  Advice advice;
  advice.card = card;
  advice.now = peaks.full(job);
  advice.fit = check_fit(advice.now, card);
  if (!advice.now.known) return advice;
  const Bytes quick_now = peaks.quick(job).allocated.expected;
  std::vector<std::string> refused;  // titles of steps that the request does not take
  int lightest = 0;                  // harm of the least of them; 0: none

  for (int index = 0; index < kLeverCount; ++index) {
    const auto lever = static_cast<Lever>(index);
    // Of a long chain (batch, sequence, rank) the first link and the first that suffices alone say enough.
    const bool chain = lever == Lever::kBatch || lever == Lever::kSequence || lever == Lever::kRank;
    bool first = true;
    bool enough = false;
    for (Step& step : steps_of(lever, job, peaks.architecture())) {
      if (!peaks.takes(step.settings)) {
        refused.push_back(step.title);
        lightest = lightest == 0 ? step.cost.weight : std::min(lightest, step.cost.weight);
        continue;
      }
      const Figures& quick = peaks.quick(after(step, job));
      if (!quick.known || quick.allocated.expected >= quick_now) {
        ++advice.without_effect;
        continue;
      }
      const bool may_do = fits(quick, card);
      if (chain && !first && (enough || !may_do)) continue;
      first = false;
      Suggestion suggestion = try_step(peaks, job, std::move(step), advice.now, card);
      if (!suggestion.figures.known || suggestion.saved <= 0) {
        ++advice.without_effect;
        continue;
      }
      if (suggestion.fit.verdict == Verdict::kFits) enough = true;
      advice.suggestions.push_back(std::move(suggestion));
    }
  }
  sort_list(advice.suggestions, [](const Suggestion& a, const Suggestion& b) {
    if (a.step.cost.weight != b.step.cost.weight) return a.step.cost.weight < b.step.cost.weight;
    return a.saved > b.saved;
  });

  if (!job.expandable_segments) {
    Step step;
    step.title = "Expandable segments";
    step.settings = {set_flag("allocator.expandable_segments", true)};
    step.cost = kExpandable;
    Suggestion suggestion = try_step(peaks, job, std::move(step), advice.now, card);
    const bool saves = suggestion.figures.reserved.expected < advice.now.reserved.expected;
    if (suggestion.figures.known && saves) advice.expandable = std::move(suggestion);
  }

  advice.smallest_as_is = smallest_card(peaks, job, cards, overrides);
  if (advice.fit.verdict != Verdict::kFits) {
    advice.combination = least_harm(peaks, job, card, refused);
    // Behind another step the request may take what it does not take alone.
    Combination& combination = *advice.combination;
    if (lightest > 0 && (!combination.found || lightest < combination.weight)) combination.proven = false;
    advice.more_cards = more_cards(peaks, job, card);
    if (!advice.combination->found) {
      advice.smallest_changed = smallest_card(peaks, advice.combination->job, cards, overrides);
    }
  }
  advice.ways = ways_of(peaks, job, advice);
  return advice;
}

}  // namespace tidemark
