#pragma once

#include <cstdint>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// Events of a step that happen one after the other, as often as the model has the layers that they stand for.
struct Stretch {
  std::uint32_t begin = 0, end = 0;  ///< into Tape::events()
  Count times = 1;
  bool before_peak = false;  ///< optimizer states come to be: they are there when the steady step begins
};

/// The steady step in time order, after what the first one leaves behind.
std::vector<Stretch> stretches_of(const Simulation& simulation);

/// A storage that is there before the first step, and how often the model has it.
struct Lasting {
  std::int32_t storage = 0;
  Count times = 1;
};
std::vector<Lasting> lasting_storages(const Simulation& simulation);

/// cuBLAS workspaces that stay from the first step on, in bytes.
Bytes lasting_workspaces(const TrainingJob& job);

/// The steady peak alone, from each stretch's own extent: its cost does not depend on the number of layers. Without the
/// caching allocator, hence without what it does not split off.
Bytes quick_peak(const Simulation& simulation, Bytes workspaces);

}  // namespace tidemark
