#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/fit/cards.hpp"
#include "core/fit/combination.hpp"
#include "core/fit/frontier.hpp"
#include "core/fit/lever.hpp"
#include "core/fit/mode.hpp"
#include "core/fit/more_cards.hpp"

namespace tidemark {

/// One change by itself.
struct Suggestion {
  Step step;
  Figures figures;  ///< of the job with this change and no other, from the full estimate
  Bytes saved = 0;  ///< expected peak now, less that
  Fit fit;
};

/// One way to run a job that fits.
struct Way {
  Count cards = 1;
  std::string gpu;
  std::string how;                ///< "FSDP 2", "as it is", titles of changes
  std::vector<Setting> settings;  ///< beside the card
  Bytes allocated = 0;            ///< expected, on each card
};

/// Whether a job fits a card, and what would make it fit.
struct Advice {
  Card card;
  Figures now;                          ///< of the job as it is
  Fit fit;                              ///< of the job as it is
  std::vector<Suggestion> suggestions;  ///< those that save something, least harm first, then most saved
  Count without_effect = 0;             ///< steps left out because they save nothing here
  /// With expandable segments: what is reserved comes closer to what is allocated. It moves no allocated byte, so it
  /// stands beside the suggestions. Absent when it saves nothing or is on already.
  std::optional<Suggestion> expandable;
  std::optional<Combination> combination;  ///< absent when the job fits as it is
  std::optional<CardFit> smallest_as_is;   ///< smallest card for the unchanged job
  std::vector<MoreCards> more_cards;       ///< where the job does not fit: how many such cards it would, divided
  std::vector<Way>
      ways;  ///< the fewest of these cards, as many as there are with least harm, the smallest card as it is
  std::optional<CardFit> smallest_changed;  ///< where no combination fits `card`: smallest for the smallest job tried
};

/// `cards` are those that may be named; overrides are the user's, for them (`card` carries its own already).
Advice advise(Peaks& peaks, const TrainingJob& job, const Card& card, std::span<const CardChoice> cards,
              const Overrides& overrides = {});

}  // namespace tidemark
