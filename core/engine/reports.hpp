#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/answer/estimate.hpp"
#include "core/fit/advice.hpp"
#include "core/fit/cards.hpp"
#include "core/fit/frontier.hpp"
#include "core/fit/map.hpp"
#include "core/fit/mode.hpp"
#include "core/job/request.hpp"
#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What three verbs say of themselves and of the job.
struct FitHeader {
  std::string engine;         ///< version of this engine
  std::string catalog;        ///< date of the catalog
  std::string model;          ///< catalog id, or the class of a pasted config
  Architecture architecture;  ///< of the model
  TrainingJob job;            ///< as read
  Issues issues;              ///< of the request; with an error among them there is nothing else
  StatedAs stated_as;         ///< of the request: what a patch of it takes away
};

/// The answer to `fit`.
struct FitReport {
  FitHeader header;
  bool answered = false;       ///< false when an issue is an error
  Range allocated;             ///< on the first card asked for
  double rule_of_thumb = 0.0;  ///< share of the card that the peak should stay below; 0 when not asked for
  bool whole_catalog = false;  ///< all cards that we know, not only named ones
  std::vector<CardFit> cards;  ///< smallest that fits first
};

/// The answer to `advise`.
struct AdviceReport {
  FitHeader header;
  bool answered = false;
  Advice advice;
  bool changed = false;  ///< what follows is about the job with the combination's changes
  std::vector<Frontier> frontiers;
  std::vector<Tier> tiers;
  std::optional<ModeTable> modes;  ///< of the job as read
};

/// The answer to `map`.
struct MapReport {
  FitHeader header;
  bool answered = false;
  Card card;  ///< its visible memory is what is usable
  FitMap map;
};

}  // namespace tidemark
