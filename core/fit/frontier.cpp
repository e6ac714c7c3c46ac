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

/// The values that a job may have of a quantity, by their number from 0 on.
class Line {
 public:
  Line(Peaks& peaks, const TrainingJob& job, Quantity quantity, const Card& card)
      : peaks_(peaks), job_(job), quantity_(quantity), card_(card) {}

  bool quick(Count n) { return fits(peaks_.quick(at(n)), card_); }
  bool answered(Count n) { return peaks_.quick(at(n)).known; }
  bool full(Count n) { return fits(peaks_.full(at(n)), card_); }
  const Figures& figures(Count n) { return peaks_.full(at(n)); }

  /// GPUs that divide a sequence, or a matrix's columns, demand multiples: every so many values from the present one's
  /// remainder on. False where none of those that they may demand is answered beside `current`.
  bool find_stride(Count current) {
    const Count tensor = job_.tensor.degree, context = 2 * job_.context;
    for (const Count unit : {Count{1}, tensor, context, tensor * context}) {
      unit_ = unit;
      first_ = current % unit;
      if (first_ == 0) first_ = unit;
      const Count now = number_of(current);
      if (answered(now + 1) && answered(now + 2)) return true;
      if (now > 1 && answered(now - 1) && answered(now - 2)) return true;
    }
    return false;
  }
  Count value(Count number) const { return first_ + number * unit_; }
  /// The last one that is no larger; −1: none.
  Count number_of(Count value) const { return value < first_ ? -1 : (value - first_) / unit_; }

 private:
  const TrainingJob& at(Count number) {
    slot(job_, quantity_) = value(number);
    return job_;
  }

  Peaks& peaks_;
  TrainingJob job_;
  Quantity quantity_;
  const Card& card_;
  Count first_ = 1, unit_ = 1;
};

// What is smaller may have no room for its pictures, or for a recording.
Count least_answered(Line& line, Count current) {
  Count refused = -1, answered = line.answered(0) ? 0 : current;
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
  Line line(peaks, job, quantity, card);
  const Count most = limit_of(job, quantity, peaks.architecture());
  if (most > result.current && !line.find_stride(result.current)) {
    result.applies = false;
    return result;
  }
  // Quick peaks bound the full ones from below: what does not fit there does not fit at all. By their numbers `low`
  // fits and `high` does not (least - 1 and limit + 1 stand for themselves).
  const Count limit = line.number_of(most);
  const Count least = least_answered(line, line.number_of(result.current));
  Count low = least - 1;
  Count high = least;
  while (high <= limit && line.quick(high)) {
    low = high;
    high = high > limit / 2 ? limit + 1 : 2 * high + 1;
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
  if (low >= least) {
    result.largest = line.value(low);
    result.allocated = line.figures(low).allocated;
  }
  const bool at_end = low == limit;
  result.ends = result.largest > 0 && quantity == Quantity::kSequence &&
                result.largest == peaks.architecture().learned_positions();
  // What is refused beyond is not computed either.
  const bool is_refused = !at_end && !line.figures(low + 1).known;
  result.open = (at_end || is_refused) && !result.ends;
  if (!at_end && !is_refused) result.next = line.figures(low + 1).allocated;
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
    tier.fit = check_fit(peaks.full(here), choice.card);
    tier.batch = frontier(peaks, here, Quantity::kMicroBatch, choice.card);
    tier.preset = preset_batch(size);
    table.push_back(std::move(tier));
  }
  return table;
}

}  // namespace tidemark
