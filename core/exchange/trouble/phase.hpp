#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/trouble/traceback.hpp"

namespace tidemark::exchange {

/// In which part of a job a message was raised, and what shows it.
struct DiedIn {
  std::string_view phase = "unknown";
  std::string evidence;  ///< the frame in words, or empty
  int line = 0;          ///< of the log, 0 without
};

/// From a traceback, outermost frame first. The innermost frame that says something decides; but forward frames below
/// a backward are a checkpoint's recomputation, below an evaluation they are an evaluation's.
DiedIn phase_of(const std::vector<Frame>& frames);

}  // namespace tidemark::exchange
