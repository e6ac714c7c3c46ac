#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// Rewards by a model that scores sequences (Architecture::judge): one forward of all `answers` that were generated
/// together, whose keys and values last until it returns. It is whole on every GPU.
void score_by_reward_model(Net& trained, Count answers);

}  // namespace tidemark
