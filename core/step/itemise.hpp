#pragma once

#include <string>
#include <vector>

#include "core/answer/estimate.hpp"
#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"

namespace tidemark {

/// The peak instant as lines: one for each place of the program whose storages are alive, with formula and source.
/// The lines sum to the peak to the byte.
std::vector<BreakdownGroup> itemise(const Simulation& simulation, const Walk& walk);

/// The steady step as labelled instants, in time order.
std::vector<Instant> timeline(const Simulation& simulation, const Walk& walk);

/// "model.layers.31.mlp.down_proj": where the program was at that moment.
std::string place_name(const Simulation& simulation, const Moment& moment);

}  // namespace tidemark
