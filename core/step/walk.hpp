#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/caching_allocator.hpp"
#include "core/step/simulation.hpp"
#include "core/units/category.hpp"

namespace tidemark {

/// Peaks of one phase of one training step. Bytes.
struct PhasePeak {
  Bytes live = 0;       ///< sum of live storages, each rounded to 512 B
  Bytes allocated = 0;  ///< as torch counts it: plus what the allocator does not split off
  Bytes reserved = 0;   ///< memory in segments
};

/// A moment of the steady-state step, for the timeline and the breakdown.
struct Moment {
  Phase phase = Phase::kForward;
  std::int16_t instance = -1;    ///< tape layer, −1 outside the layers
  Count layer = -1;              ///< model layer, −1 outside the layers
  std::int32_t site = -1;        ///< whose allocation made it a peak; −1 at a boundary
  bool peak_of_segment = false;  ///< the largest moment of its stretch, not its end
  Bytes total = 0;               ///< live storages plus fixed workspaces and unsplit rests
  Bytes by_category[kCategoryCount] = {};
};

/// What a walk over all steps finds.
struct Walk {
  PhasePeak first[kPhaseCount];    ///< of the first step, by phase
  PhasePeak steady[kPhaseCount];   ///< of the second step on
  Bytes peak = 0;                  ///< largest steady `allocated` (`live` without the allocator)
  Bytes first_peak = 0;            ///< largest `allocated` of the first step
  Bytes reserved = 0;              ///< largest steady `reserved`
  Bytes unsplit = 0;               ///< allocated − live at the peak
  Count unmatched = 0;             ///< frees of what no repeated layer was found to have allocated: 0
  Moment at;                       ///< the peak
  std::vector<Bytes> sites;        ///< live bytes of each site at the peak
  std::vector<Count> site_counts;  ///< live storages of each site at the peak
  std::vector<Moment> moments;     ///< the steady step in time order; very deep models: some layers and the peak's
  Bytes workspaces = 0;            ///< cuBLAS workspaces alive in the steady state
};

struct WalkOptions {
  bool allocator = true;       ///< replay through the caching allocator
  bool expandable = false;     ///< expandable segments
  bool itemise = true;         ///< sites and moments
  Bytes cublas_workspace = 0;  ///< of one handle; two handles are charged
  bool multiplies = true;      ///< products run here even where no layer does (not on every card of a device_map)
};

/// Replays the recorded step: the first one, the second, and once more, each layer as often as the model has it.
Walk walk(const Simulation& simulation, const WalkOptions& options);

}  // namespace tidemark
