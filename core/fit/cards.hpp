#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/more_cards.hpp"
#include "core/fit/peaks.hpp"
#include "core/runtime/gpu.hpp"

namespace tidemark {

/// A card of the catalog.
CardChoice choice_of(const Gpu& gpu);

/// A card of which only the size on its box is known ("24 GB" is 24 GiB): torch sees of it the median of what it sees
/// of the catalogued NVIDIA cards of that size, or what is estimated where none was measured; the CUDA context is
/// estimated.
CardChoice card_of_size(double marketed_gb, std::span<const Gpu> catalog);

/// The verdict for one card of several.
struct CardFit {
  Fit fit;
  Range allocated;           ///< on this card: workspaces and kernels differ between generations
  bool within_share = true;  ///< expected peak is at most the asked share of the memory on the box
  MoreCards fewest;          ///< how many of these cards it takes; zero where not told
};

/// The verdict on each card, what people choose by first: those that fit, smallest first; then those where it is
/// tight, and then those where it does not fit, largest first; then those of which we do not know. `share` is the rule
/// of thumb ("keep the peak below 80 %"): told, never the verdict.
std::vector<CardFit> rank_cards(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards,
                                const Overrides& overrides = {}, double share = 1.0);

/// Tells of each row how many such cards it takes; `cards` are those that were ranked.
void count_cards(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards, std::vector<CardFit>& ranked);

/// The smallest card on which the job fits, or nothing.
std::optional<CardFit> smallest_card(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards,
                                     const Overrides& overrides = {});

}  // namespace tidemark
