#include "core/fit/frontier.hpp"

#include <algorithm>

namespace tidemark {
namespace {

constexpr Count kMostTokens = Count{1} << 32;  // as check_request allows
constexpr Count kMostScores = Count{1} << 44;

Count& slot(TrainingJob& job, Quantity quantity) {
  switch (quantity) {
    case Quantity::kMicroBatch:
      return job.micro_batch_size;
    case Quantity::kSequence:
      return job.sequence_length;
    case Quantity::kRank:
      return job.adapter.r;
  }
  return job.micro_batch_size;
}

/// The largest value that a request may state.
Count limit_of(const TrainingJob& job, Quantity quantity, const Architecture& architecture) {
  const Count length = std::max({job.sequence_length, job.decoder_sequence_length, Count{1}});
  switch (quantity) {
    case Quantity::kMicroBatch:
      return std::max<Count>(1, std::min({Count{1000000}, kMostTokens / length, kMostScores / length / length}));
    case Quantity::kSequence: {
      Count most = std::min<Count>(100000000, kMostTokens / job.micro_batch_size);
      Count low = 1;
      Count high = most;
      while (low < high) {
        const Count middle = low + (high - low + 1) / 2;
        if (middle <= kMostScores / middle / job.micro_batch_size) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      const Count positions = architecture.learned_positions();
      return positions > 0 ? std::min(low, positions) : low;
    }
    case Quantity::kRank:
      return 65536;
  }
  return 1;
}

class Line {
 public:
  Line(Peaks& peaks, const TrainingJob& job, Quantity quantity, const Card& card)
      : peaks_(peaks), job_(job), quantity_(quantity), card_(card) {}

  bool quick(Count n) { return fits(peaks_.quick(at(n)), card_); }
  bool answered(Count n) { return peaks_.quick(at(n)).known; }
  bool full(Count n) { return fits(peaks_.full(at(n)), card_); }
  Range allocated(Count n) { return peaks_.full(at(n)).allocated; }

 private:
  const TrainingJob& at(Count n) {
    slot(job_, quantity_) = n;
    return job_;
  }

  Peaks& peaks_;
  TrainingJob job_;
  Quantity quantity_;
  const Card& card_;
};

// What is smaller may have no room for its pictures, or for a recording.
Count least_answered(Line& line, Count current) {
  Count refused = 0, answered = line.answered(1) ? 1 : current;
  while (answered - refused > 1) {
    const Count middle = refused + (answered - refused) / 2;
    (line.answered(middle) ? answered : refused) = middle;
  }
  return answered;
}

}  // namespace

std::string_view option_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kMicroBatch:
      return "micro_batch_size";
    case Quantity::kSequence:
      return "sequence_length";
    case Quantity::kRank:
      return "adapter.r";
  }
  return "";
}

Frontier frontier(Peaks& peaks, const TrainingJob& job, Quantity quantity, const Card& card) {
  Frontier result;
  result.quantity = quantity;
  TrainingJob copy = job;
  result.current = slot(copy, quantity);
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  const bool denoises = peaks.architecture().denoiser.latents > 0;
  if ((quantity == Quantity::kRank && !adapters) || (quantity == Quantity::kSequence && denoises)) {
    result.applies = false;
    result.current = 0;
    return result;
  }
  const Count limit = limit_of(job, quantity, peaks.architecture());
  Line line(peaks, job, quantity, card);
  // Quick peaks bound the full ones from below: what does not fit there does not fit at all. `low` fits, `high` does
  // not (least - 1 and limit + 1 stand for themselves).
  const Count least = least_answered(line, result.current);
  Count low = least - 1;
  Count high = least;
  while (high <= limit && line.quick(high)) {
    low = high;
    high = high > limit / 2 ? limit + 1 : 2 * high;
    if (high > limit && low < limit) high = line.quick(limit) ? (low = limit, limit + 1) : limit;
  }
  while (high - low > 1) {
    const Count middle = low + (high - low) / 2;
    (line.quick(middle) ? low : high) = middle;
  }
  // From there down in full, in growing strides, then back up to the exact border.
  for (Count stride = 1; low >= least && !line.full(low); stride *= 2) {
    high = low;
    low = std::max<Count>(least - 1, low - stride);
  }
  while (high - low > 1) {
    const Count middle = low + (high - low) / 2;
    (line.full(middle) ? low : high) = middle;
  }
  result.largest = low < least ? 0 : low;
  result.ends =
      result.largest > 0 && quantity == Quantity::kSequence && low == peaks.architecture().learned_positions();
  result.open = low == limit && !result.ends;
  if (result.largest > 0) result.allocated = line.allocated(low);
  if (low < limit) result.next = line.allocated(low + 1);
  return result;
}

Count preset_batch(double marketed_gb) {
  if (marketed_gb >= 48) return 8;
  if (marketed_gb >= 32) return 6;
  if (marketed_gb >= 24) return 4;
  if (marketed_gb >= 16) return 2;
  return 1;
}

std::span<const int> usual_sizes() {
  static constexpr int kSizes[] = {12, 16, 24, 32, 40, 48, 80, 141};
  return kSizes;
}

std::vector<Tier> tiers(Peaks& peaks, const TrainingJob& job, std::span<const Gpu> catalog,
                        std::span<const int> sizes) {
  std::vector<Tier> table;
  for (int size : sizes) {
    const CardChoice choice = card_of_size(size, catalog);
    Tier tier;
    tier.marketed_gb = size;
    TrainingJob here = job;
    here.compute_capability = choice.compute_capability;
    tier.fit = check_fit(peaks.full(here).allocated, choice.card);
    tier.batch = frontier(peaks, here, Quantity::kMicroBatch, choice.card);
    tier.preset = preset_batch(size);
    table.push_back(std::move(tier));
  }
  return table;
}

}  // namespace tidemark
