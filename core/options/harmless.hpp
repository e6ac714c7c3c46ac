#pragma once

#include <string_view>

namespace tidemark {

/// Why a key of a training script that no option has moves no memory of the peak ("a schedule"); empty when it is not
/// known to.
std::string_view why_harmless(std::string_view key);

}  // namespace tidemark
