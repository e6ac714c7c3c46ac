#include "core/step/quick_peak.hpp"

#include <algorithm>

#include "core/runtime/cublas.hpp"

namespace tidemark {
namespace {

// Net change and highest point of a stretch, relative to its start.
struct Extent {
  Bytes net = 0;
  Bytes high = 0;
};

Extent extent_of(const Tape& tape, const Stretch& stretch) {
  Extent x;
  for (std::uint32_t e = stretch.begin; e < stretch.end; ++e) {
    const Event& event = tape.events()[e];
    if (event.kind == Event::Kind::kStreamDone) continue;
    const Bytes rounded = round_to_block(tape.storages()[static_cast<std::size_t>(event.subject)].bytes);
    x.net += event.allocates() ? rounded : -rounded;
    x.high = std::max(x.high, x.net);
  }
  return x;
}

}  // namespace

std::vector<Stretch> stretches_of(const Simulation& s) {
  const auto& segments = s.tape->segments();
  std::vector<Stretch> all;
  const auto run_of = [&](std::size_t g) { return s.plan.run_of(segments[g].instance); };
  const auto add = [&](std::size_t begin, std::size_t end, bool before_peak) {
    for (std::size_t g = begin; g < end;) {
      std::size_t stop = g + 1;
      const LayerPlan::Run* const run = run_of(g);
      while (run != nullptr && stop < end && run_of(stop) == run) ++stop;
      all.push_back({segments[g].begin, segments[stop - 1].end, run != nullptr ? run->repeats : 1, before_peak});
      g = stop;
    }
  };
  add(s.create_states, s.optimizer, true);
  const std::size_t steady = s.micro_steps[s.played_in(2).front()];
  add(s.micro_steps.front(), steady, true);  // what the first step alone makes and leaves
  add(steady, s.create_states, false);
  add(s.optimizer, segments.size(), false);
  return all;
}

std::vector<Lasting> lasting_storages(const Simulation& s) {
  const Tape& tape = *s.tape;
  std::vector<Lasting> all;
  const auto add = [&](std::int32_t storage, Count times) {
    if (tape.storages()[static_cast<std::size_t>(storage)].bytes > 0) all.push_back({storage, times});
  };
  for (const Parameter& p : tape.parameters()) add(p.storage, s.plan.multiplicity(p.instance));
  for (std::size_t i = 0; i < tape.buffers().size(); ++i) {
    add(tape.buffers()[i], s.plan.multiplicity(tape.buffer_instances()[i]));
  }
  return all;
}

Bytes lasting_workspaces(const TrainingJob& job) {
  return kCublasHandles * round_to_block(cublas_workspace_bytes(job.compute_capability, job.deterministic));
}

Bytes quick_peak(const Simulation& s, Bytes workspaces) {
  const Tape& tape = *s.tape;
  Bytes live = workspaces;
  for (const Lasting& l : lasting_storages(s)) {
    live += round_to_block(tape.storages()[static_cast<std::size_t>(l.storage)].bytes) * l.times;
  }
  Bytes peak = 0;
  for (const Stretch& stretch : stretches_of(s)) {
    const Extent x = extent_of(tape, stretch);
    // Linear in the repetition: the highest is at the first or at the last.
    if (!stretch.before_peak) peak = std::max({peak, live + x.high, live + (stretch.times - 1) * x.net + x.high});
    live += stretch.times * x.net;
  }
  return peak;
}

}  // namespace tidemark
