#include "core/step/surface.hpp"

#include <algorithm>
#include <numeric>

#include "core/job/check.hpp"
#include "core/step/compiled_step.hpp"

namespace tidemark {
namespace {

// A handful of cells is estimated faster than it is compiled.
constexpr std::size_t kTooFewToCompile = kSamples + 1;
// Cells are visited in steps of this many: it shares no factor with usual numbers of rows and columns.
constexpr std::size_t kStride = 769;
// How many triples of cells are tried as samples before a group counts as one that cannot be told apart.
constexpr std::size_t kMostTriples = 32;

class Mapper {
 public:
  Mapper(const Architecture& architecture, const TrainingJob& job, std::span<const Count> batches,
         std::span<const Count> sequences)
      : architecture_(architecture), job_(job), workspaces_(lasting_workspaces(job)), sequences_(sequences) {
    surface_.peaks.assign(batches.size() * sequences.size(), -1);
    grid_.least = {batches[0], sequences[0]};
    grid_.common = {0, 0};
    for (const Count batch : batches) {
      grid_.least.batch = std::min(grid_.least.batch, batch);
      grid_.common.batch = std::gcd(grid_.common.batch, batch);
    }
    for (const Count sequence : sequences) {
      grid_.least.sequence = std::min(grid_.least.sequence, sequence);
      grid_.common.sequence = std::gcd(grid_.common.sequence, sequence);
    }
    for (std::size_t b = 0; b < batches.size(); ++b) {
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        const Cell cell{{batches[b], sequences[s]}, b * sequences.size() + s};
        Issues troubles;
        check_magnitude(architecture, sized(cell.at), troubles);
        if (!has_error(troubles)) pending_.push_back(cell);
      }
    }
  }

  Surface run() {
    while (!pending_.empty()) group();
    for (std::size_t i = 0; i < surface_.peaks.size(); ++i) {
      if (sequences_[i % sequences_.size()] < picture_tokens_) surface_.peaks[i] = -1;
    }
    return std::move(surface_);
  }

 private:
  struct Cell {
    Extents at;
    std::size_t index = 0;
  };

  const TrainingJob& sized(Extents at) {
    job_.micro_batch_size = at.batch;
    job_.sequence_length = at.sequence;
    return job_;
  }

  Recording record(Extents at) {
    ++surface_.recordings;
    Recording recording{simulate(architecture_, sized(at)), at};
    picture_tokens_ = recording.simulation.picture_tokens;
    return recording;
  }

  // Takes the cells whose guards have the outcomes of the one in the middle, and answers them.
  void group() {
    const Extents middle = pending_[pending_.size() / 2].at;
    Recording recording = record(middle);
    std::vector<MovingGuard> guards;
    for (const Guard& guard : recording.simulation.tape->guards()) guards.emplace_back(guard, middle);
    const auto alike = [&](const Cell& cell) {
      // Dimensions of size one have strides and broadcasts of their own.
      if ((cell.at.batch == 1) != (middle.batch == 1) || (cell.at.sequence == 1) != (middle.sequence == 1))
        return false;
      return std::all_of(guards.begin(), guards.end(), [&](const MovingGuard& guard) {
        return guard.kind() == Guard::Kind::kQuotient || guard.at(cell.at).outcome() == guard.at(middle).outcome();
      });
    };
    std::vector<Cell> members, rest;
    for (const Cell& cell : pending_) (alike(cell) ? members : rest).push_back(cell);
    pending_ = std::move(rest);

    for (CompiledStep& step : steps_) {
      if (step.predicts(recording)) return answer(step, members);
    }
    std::array<Extents, kSamples> samples;
    // Of preferences the rows are one by one on the tape.
    const bool alike_in_rows = job_.preference == Preference::kNone;
    if (alike_in_rows && members.size() >= kTooFewToCompile && choose(samples, middle, members, guards)) {
      std::optional<CompiledStep> step =
          CompiledStep::compile({std::move(recording), record(samples[1]), record(samples[2])}, workspaces_, grid_);
      if (step) {
        answer(*step, members);
        // Where all members have one batch size or one length, the step knows nothing of others.
        if (!one_batch(members) && !one_sequence(members)) steps_.push_back(std::move(*step));
        return;
      }
    }
    for (const Cell& cell : members) {
      surface_.peaks[cell.index] = quick_peak(record(cell.at).simulation, workspaces_);
      ++surface_.one_by_one;
    }
  }

  static bool one_batch(const std::vector<Cell>& members) {
    return std::all_of(members.begin(), members.end(),
                       [&](const Cell& c) { return c.at.batch == members[0].at.batch; });
  }
  static bool one_sequence(const std::vector<Cell>& members) {
    return std::all_of(members.begin(), members.end(),
                       [&](const Cell& c) { return c.at.sequence == members[0].at.sequence; });
  }

  void answer(CompiledStep& step, const std::vector<Cell>& members) {
    for (const Cell& cell : members) surface_.peaks[cell.index] = step.peak(cell.at);
  }

  // Samples at which terms that differ among the members differ, too.
  static bool choose(std::array<Extents, kSamples>& samples, Extents middle, const std::vector<Cell>& members,
                     const std::vector<MovingGuard>& guards) {
    const std::size_t n = members.size();
    samples[0] = middle;
    for (std::size_t i = 0; i < kMostTriples; ++i) {
      samples[1] = members[(i * kStride) % n].at;
      samples[2] = members[(i * kStride * kStride + n / 2) % n].at;
      if (tell_powers_apart(samples, members) && tell_quotients_apart(samples, members, guards)) return true;
    }
    return false;
  }

  static bool tell_powers_apart(const std::array<Extents, kSamples>& samples, const std::vector<Cell>& members) {
    const bool one_row = one_batch(members), one_column = one_sequence(members);
    std::vector<Samples> powers;
    for (const Term& term : terms_of(0)) {
      if ((one_row && term.batch != 0) || (one_column && term.sequence != 0)) continue;
      powers.push_back({term.value(samples[0], {}), term.value(samples[1], {}), term.value(samples[2], {})});
    }
    for (const Samples& x : powers) {
      for (const Samples& y : powers) {
        const auto ratio = [&](std::size_t i) { return static_cast<double>(x[i]) / static_cast<double>(y[i]); };
        if (&x != &y && (ratio(0) == ratio(1) || ratio(0) == ratio(2) || ratio(1) == ratio(2))) return false;
      }
    }
    return true;
  }

  // A quotient is as good as its dividend where all remainders are equal; elsewhere the samples must show that it
  // isn't.
  static bool tell_quotients_apart(const std::array<Extents, kSamples>& samples, const std::vector<Cell>& members,
                                   const std::vector<MovingGuard>& guards) {
    return std::all_of(guards.begin(), guards.end(), [&](const MovingGuard& guard) {
      if (guard.kind() != Guard::Kind::kQuotient) return true;
      const auto remainder = [&](Extents at) {
        const Guard there = guard.at(at);
        return there.quantity % there.parameter;
      };
      const Count usual = remainder(samples[0]);
      if (remainder(samples[1]) != usual || remainder(samples[2]) != usual) return true;
      return std::all_of(members.begin(), members.end(), [&](const Cell& c) { return remainder(c.at) == usual; });
    });
  }

  const Architecture& architecture_;
  TrainingJob job_;
  Bytes workspaces_;
  std::span<const Count> sequences_;
  Grid grid_;
  std::vector<Cell> pending_;
  std::vector<CompiledStep> steps_;
  Surface surface_;
  Count picture_tokens_ = 0;  // of a sample: shorter lengths cannot hold its pictures
};

}  // namespace

Surface peak_surface(const Architecture& architecture, const TrainingJob& job, std::span<const Count> batches,
                     std::span<const Count> sequences) {
  if (batches.empty() || sequences.empty()) return {};
  return Mapper(architecture, job, batches, sequences).run();
}

}  // namespace tidemark
