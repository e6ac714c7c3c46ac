#include "core/fit/more_cards.hpp"

#include <algorithm>

#include "core/fit/gpu_levers.hpp"
#include "core/job/recipe.hpp"

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

constexpr Cost kLaidOut{
    0,          Harm::kSpeed, "one card works at a time; hidden states travel between them",
    "the same", "none",       "Hugging Face transformers, device_map=\"auto\": naive model parallelism"};

struct Division {
  std::string_view title;
  std::vector<Setting> settings;
  std::string_view cards = "parallelism.data";  // what counts them
  bool is_device_map() const { return cards == "parallelism.device_map"; }
};

// A job that is divided already takes more cards of the same.
std::vector<Division> divisions(const TrainingJob& job) {
  if (job.pipeline.is_device_map()) return {{"device_map", {}, "parallelism.device_map"}};
  if (job.data_parallel.sharding != Sharding::kNone) return {{"divided as stated", {}}};
  const Setting engine = set_word("precision", "deepspeed_bf16");
  return {{"FSDP 2", to_fsdp2(job)},
          {"ZeRO-2", {engine, set_count("parallelism.zero_stage", 2)}},
          {"ZeRO-3", {engine, set_count("parallelism.zero_stage", 3)}}};
}

Step on_cards(const Division& division, Count cards) {
  Step step;
  step.title = std::to_string(cards) + " cards, " + std::string{division.title};
  step.settings = division.settings;
  step.settings.push_back(set_count(division.cards, cards));
  step.cost = division.is_device_map() ? kLaidOut : kDivided;
  return step;
}

// A recipe on one card: FSDP's own is autocast there.
std::string alone(const std::string& recipe) {
  return recipe.rfind("fsdp_", 0) == 0 ? "amp_" + recipe.substr(5) : recipe;
}

// One card has nobody to share with.
Step on_one_card(const TrainingJob& job) {
  Step step;
  step.title = "1 card, as it is";
  step.cost = kDivided;
  if (job.data_parallel.is_used()) {
    step.settings.push_back(set_count("parallelism.data", 1));
    // Left to the framework it would be another's: what GPUs divide is loaded in fp32.
    const std::string recipe = alone(job.recipe.name);
    if (named_recipe(recipe)) step.settings.push_back(set_word("precision", recipe));
  }
  if (job.pipeline.is_device_map()) step.settings.push_back(set_count("parallelism.device_map", 1));
  return step;
}

bool is_countable(const TrainingJob& job) {
  return !job.is_megatron() && !job.tensor.is_used() && (!job.pipeline.is_used() || job.pipeline.is_device_map()) &&
         job.context == 1 && !job.data_parallel.one_process && job.data_parallel.replicas == 1;
}

/// `step`, where the job then fits in full; else no cards.
MoreCards verified(Peaks& peaks, const TrainingJob& job, const Card& card, Step step, Count cards) {
  MoreCards found;
  found.figures = peaks.afresh(step.settings, after(step, job));
  if (!fits(found.figures, card)) return found;
  found.cards = cards;
  found.fit = check_fit(found.figures, card);
  found.step = std::move(step);
  return found;
}

// The smallest number of more than `few` and up to `most` that fits; zero cards where not even those do. More cards
// never need more on each (docs/many-gpus.md), so halves are searched; but of a device_map, which may lay all layers on
// the last card, and is one process on one host.
MoreCards fewest(Peaks& peaks, const TrainingJob& job, const Card& card, const Division& division, Count few,
                 Count most) {
  const auto may_do = [&](int power) {
    return fits(peaks.quick(after(on_cards(division, Count{1} << power), job)), card);
  };
  int least = 1, largest = 0;
  while ((Count{1} << least) <= few) ++least;
  const bool one_by_one = division.is_device_map();
  if (one_by_one) most = std::min(most, job.data_parallel.per_node);
  while ((Count{2} << largest) <= most) ++largest;
  if (least > largest || !peaks.takes(on_cards(division, Count{1} << largest).settings)) return {};
  if (!one_by_one && !may_do(largest)) return {};
  for (int high = largest; !one_by_one && least < high;) {
    const int middle = (least + high) / 2;
    if (may_do(middle)) {
      high = middle;
    } else {
      least = middle + 1;
    }
  }
  for (int power = least; power <= largest; ++power) {
    const Count cards = Count{1} << power;
    if (one_by_one && !may_do(power)) continue;
    MoreCards found = verified(peaks, job, card, on_cards(division, cards), cards);
    if (found.cards > 0) return found;
  }
  return {};
}

}  // namespace

MoreCards fewest_cards(Peaks& peaks, const TrainingJob& job, const Card& card) {
  if (!is_countable(job)) return {};
  MoreCards best = verified(peaks, job, card, on_one_card(job), 1);
  for (const Division& division : divisions(job)) {
    if (best.cards == 1) break;
    MoreCards found = fewest(peaks, job, card, division, 1, best.cards > 0 ? best.cards / 2 : kMostCards);
    if (found.cards > 0) best = std::move(found);
  }
  return best;
}

std::optional<TrainingJob> job_on_cards(Peaks& peaks, const TrainingJob& job, Count cards) {
  if (!is_countable(job)) return std::nullopt;
  if (cards == 1) return after(on_one_card(job), job);
  for (const Division& division : divisions(job)) {
    TrainingJob divided = after(on_cards(division, cards), job);
    if (peaks.quick(divided).known) return divided;
  }
  return std::nullopt;
}

std::vector<MoreCards> more_cards(Peaks& peaks, const TrainingJob& job, const Card& card) {
  std::vector<MoreCards> list;
  if (!is_countable(job)) return list;
  for (const Division& division : divisions(job)) {
    MoreCards plain = fewest(peaks, job, card, division, job.gpus(), kMostCards);
    const Count fewer = plain.cards > 0 ? plain.cards / 2 : kMostCards;
    if (job.checkpointing == Checkpointing::kNone) {
      Division saving = division;
      saving.settings.push_back(set_word("gradient_checkpointing", "full"));
      MoreCards saved = fewest(peaks, job, card, saving, job.gpus(), fewer);
      saved.step.title += ", every layer checkpointed";
      if (saved.cards > 0) list.push_back(std::move(saved));
    }
    if (plain.cards > 0) list.push_back(std::move(plain));
  }
  return list;
}

}  // namespace tidemark
