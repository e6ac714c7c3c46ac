#include "core/fit/more_cards.hpp"

namespace tidemark {
namespace {

// Nothing is lost in what is trained; the weight is that of finding the cards, which no scale of harm has.
constexpr Cost kDivided{
    0,
    Harm::kSpeed,
    "each card trains on samples of its own; weights travel between them",
    "as many times the samples in a step as there are cards, unless gradient accumulation is divided",
    "none",
    "Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054; Zhao et al. 2023, PyTorch FSDP, arXiv:2304.11277"};

struct Division {
  std::string_view title;
  std::vector<Setting> settings;
};

// A job that is divided already takes more cards of the same.
std::vector<Division> divisions(const TrainingJob& job) {
  if (job.data_parallel.sharding != Sharding::kNone) return {{"divided as stated", {}}};
  std::vector<Setting> zero = {set_word("precision", "deepspeed_bf16")};
  zero.push_back(set_count("parallelism.zero_stage", 2));
  std::vector<Setting> third = zero;
  third.back() = set_count("parallelism.zero_stage", 3);
  return {
      {"FSDP 2", {set_word("parallelism.fsdp", "fsdp2")}}, {"ZeRO-2", std::move(zero)}, {"ZeRO-3", std::move(third)}};
}

// The smallest number that fits; none of it where not even the largest does.
MoreCards fewest(Peaks& peaks, const TrainingJob& job, const Card& card, const Division& division, Count below) {
  MoreCards found;
  const auto on = [&](Count cards) {
    Step step;
    step.title = std::to_string(cards) + " cards, " + std::string{division.title};
    step.settings = division.settings;
    step.settings.push_back(set_count("parallelism.data", cards));
    step.cost = kDivided;
    return step;
  };
  const auto fits = [&card](const Figures& figures) {
    return figures.known && check_fit(figures.allocated, card).verdict == Verdict::kFits;
  };
  for (Count cards = 2; cards <= below; cards *= 2) {
    if (cards <= job.data_parallel.degree) continue;
    Step step = on(cards);
    const TrainingJob divided = after(step, job);
    if (!fits(peaks.quick(divided)) || !fits(peaks.full(divided))) continue;
    found.cards = cards;
    found.figures = peaks.full(divided);
    found.fit = check_fit(found.figures.allocated, card);
    found.step = std::move(step);
    break;
  }
  return found;
}

}  // namespace

std::vector<MoreCards> more_cards(Peaks& peaks, const TrainingJob& job, const Card& card) {
  std::vector<MoreCards> list;
  if (job.is_megatron() || job.tensor.is_used() || job.pipeline.is_used() || job.context > 1) return list;
  for (const Division& division : divisions(job)) {
    MoreCards plain = fewest(peaks, job, card, division, kMostCards);
    const Count fewer = plain.cards > 0 ? plain.cards / 2 : kMostCards;
    if (job.checkpointing == Checkpointing::kNone) {
      Division saving = division;
      saving.settings.push_back(set_word("gradient_checkpointing", "full"));
      MoreCards saved = fewest(peaks, job, card, saving, fewer);
      saved.step.title += ", every layer checkpointed";
      if (saved.cards > 0) list.push_back(std::move(saved));
    }
    if (plain.cards > 0) list.push_back(std::move(plain));
  }
  return list;
}

}  // namespace tidemark
