#include "core/answer/estimate.hpp"

namespace tidemark {

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"fits", "tight", "does_not_fit", "unknown"};
  return kNames[static_cast<int>(verdict)];
}

}  // namespace tidemark
