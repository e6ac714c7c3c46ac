#include "core/fit/map.hpp"

#include <algorithm>

#include "core/fit/more_cards.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

/// A row: the job at each length.
void add_row(FitMap& map, Peaks& peaks, TrainingJob here, Count batch, const Card& card, const Resize& resize) {
  for (Count sequence : map.sequences) {
    const BatchSize cell{batch, sequence}, size = resize ? resize(cell) : cell;
    here.micro_batch_size = size.batch;
    here.sequence_length = size.sequence;
    const Figures& figures = map.exact ? peaks.full(here) : peaks.quick(here);
    map.cells.push_back(figures);
    map.verdicts.push_back(check_fit(figures, card).verdict);
  }
}

}  // namespace

FitMap fit_map(Peaks& peaks, const TrainingJob& job, std::span<const Count> batches, std::span<const Count> sequences,
               const Card& card, bool exact, const Resize& resize) {
  FitMap map;
  map.batches = ascending(std::vector<Count>{batches.begin(), batches.end()});
  map.sequences = ascending(std::vector<Count>{sequences.begin(), sequences.end()});
  map.exact = exact;
  for (Count batch : map.batches) add_row(map, peaks, job, batch, card, resize);
  return map;
}

FitMap fit_map_of_cards(Peaks& peaks, const TrainingJob& job, std::span<const Count> cards,
                        std::span<const Count> sequences, const Card& card, bool exact, const Resize& resize) {
  FitMap map;
  map.batches = {job.micro_batch_size};
  map.cards = ascending(std::vector<Count>{cards.begin(), cards.end()});
  map.sequences = ascending(std::vector<Count>{sequences.begin(), sequences.end()});
  map.exact = exact;
  for (Count count : map.cards) {
    if (const std::optional<TrainingJob> divided = job_on_cards(peaks, job, count)) {
      add_row(map, peaks, *divided, job.micro_batch_size, card, resize);
      continue;
    }
    map.cells.resize(map.cells.size() + map.sequences.size());
    map.verdicts.resize(map.cells.size(), Verdict::kUnknown);
  }
  return map;
}

std::vector<Count> usual_batches(const TrainingJob& job) {
  std::vector<Count> values = {job.micro_batch_size};
  const Count top = std::max<Count>(64, std::min<Count>(2 * job.micro_batch_size, 1000000));
  for (Count batch = 1; batch <= top; batch *= 2) values.push_back(batch);
  return ascending(std::move(values));
}

std::vector<Count> usual_sequences(const TrainingJob& job) {
  std::vector<Count> values = {job.sequence_length};
  for (Count length = 512; length <= 32768; length *= 2) values.push_back(length);
  return ascending(std::move(values));
}

}  // namespace tidemark
