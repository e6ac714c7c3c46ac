#include "core/fit/cards.hpp"

#include <algorithm>

#include "core/job/check.hpp"
#include "core/runtime/cuda_context.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

int group_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return 0;
    case Verdict::kTight:
      return 1;
    case Verdict::kDoesNotFit:
      return 2;
    case Verdict::kUnknown:
      return 3;
  }
  return 3;
}

bool before(const CardFit& a, const CardFit& b) {
  const int group = group_of(a.fit.verdict);
  if (group != group_of(b.fit.verdict)) return group < group_of(b.fit.verdict);
  if (a.fit.usable != b.fit.usable) return group < 1 ? a.fit.usable < b.fit.usable : a.fit.usable > b.fit.usable;
  return a.fit.gpu < b.fit.gpu;
}

/// The median of what torch sees of the cards of that size; 0 where none was measured.
Bytes usual_visible(std::span<const Gpu> catalog, Bytes marketed) {
  std::vector<Bytes> seen;
  for (const Gpu& gpu : catalog) {
    const bool counts = gpu.vendor == "NVIDIA" && !gpu.unified && gpu.marketed_bytes == marketed;
    if (counts && !gpu.usable_is_estimated()) seen.push_back(gpu.usable_bytes());
  }
  if (seen.empty()) return 0;
  sort_list(seen, [](Bytes a, Bytes b) { return a < b; });
  return seen[(seen.size() - 1) / 2];
}

}  // namespace

CardChoice choice_of(const Gpu& gpu) {
  CardChoice choice;
  choice.compute_capability = gpu.compute_capability > 0 ? gpu.compute_capability : TrainingJob{}.compute_capability;
  choice.sold_as = gpu.marketed_bytes;
  choice.card.name = gpu.name;
  choice.card.visible = gpu.usable_bytes();
  choice.card.context = cuda_context(gpu).expected;
  if (gpu.vendor != "NVIDIA") {
    choice.card.estimated = "Kernels and overheads are those of NVIDIA cards.";
  } else if (gpu.usable_is_estimated()) {
    choice.card.estimated = "What torch sees of this card was not measured; it is estimated from its size.";
  }
  return choice;
}

CardChoice card_of_size(double marketed_gb, std::span<const Gpu> catalog) {
  Gpu gpu;
  gpu.vendor = "NVIDIA";
  gpu.marketed_bytes = static_cast<Bytes>(marketed_gb * static_cast<double>(kGiB));
  gpu.torch_visible_bytes = usual_visible(catalog, gpu.marketed_bytes);
  gpu.compute_capability = 80;
  CardChoice choice = choice_of(gpu);
  const auto tenths = static_cast<std::int64_t>(marketed_gb * 10.0 + 0.5);
  choice.card.name = std::to_string(tenths / 10);
  if (tenths % 10 != 0) choice.card.name += "." + std::to_string(tenths % 10);
  choice.card.name += " GB card";
  choice.card.estimated =
      "Only the size on the box is known: what torch sees of it and the CUDA context are estimated.";
  return choice;
}

std::vector<CardFit> rank_cards(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards,
                                const Overrides& overrides, double share) {
  std::vector<CardFit> ranked;
  for (const CardChoice& choice : cards) {
    TrainingJob here = job;
    here.compute_capability = choice.compute_capability;
    take_share(choice.card, here);
    const Figures& figures = peaks.full(here);
    CardFit row;
    row.allocated = figures.allocated;
    row.fit = check_fit(figures.allocated, choice.card, overrides);
    if (!figures.known) row.fit.verdict = Verdict::kUnknown;
    cannot_run(row.fit, refusal_of_card(here).why);
    cannot_run(row.fit, refusal_of_length(peaks.architecture(), here.sequence_length));
    const Bytes memory = choice.sold_as > 0 ? choice.sold_as : choice.card.visible;
    row.within_share = static_cast<double>(figures.allocated.expected) <= share * static_cast<double>(memory);
    ranked.push_back(std::move(row));
  }
  sort_list(ranked, before);
  return ranked;
}

void count_cards(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards,
                 std::vector<CardFit>& ranked) {
  for (CardFit& row : ranked) {
    const auto named = [&](const CardChoice& choice) { return choice.card.name == row.fit.gpu; };
    const auto choice = std::find_if(cards.begin(), cards.end(), named);
    if (choice == cards.end() || row.fit.verdict == Verdict::kUnknown) continue;
    TrainingJob here = job;
    here.compute_capability = choice->compute_capability;
    take_share(choice->card, here);
    row.fewest = fewest_cards(peaks, here, choice->card);
  }
}

std::optional<CardFit> smallest_card(Peaks& peaks, const TrainingJob& job, std::span<const CardChoice> cards,
                                     const Overrides& overrides) {
  std::vector<const CardChoice*> ascending;
  for (const CardChoice& choice : cards) ascending.push_back(&choice);
  const auto usable = [](const CardChoice& choice) { return choice.card.visible - choice.card.context; };
  sort_list(ascending, [&](const CardChoice* a, const CardChoice* b) {
    if (usable(*a) != usable(*b)) return usable(*a) < usable(*b);
    return a->card.name < b->card.name;
  });
  TrainingJob here = job;
  for (const CardChoice* choice : ascending) {
    here.compute_capability = choice->compute_capability;
    take_share(choice->card, here);
    // What does not fit by the quick path does not fit at all.
    const Figures& quick = peaks.quick(here);
    if (!quick.known || check_fit(quick.allocated, choice->card, overrides).verdict != Verdict::kFits) continue;
    const std::vector<CardFit> one = rank_cards(peaks, job, std::span{choice, 1}, overrides);
    if (one.front().fit.verdict == Verdict::kFits) return one.front();
  }
  return std::nullopt;
}

}  // namespace tidemark
