#pragma once

#include <span>
#include <string_view>

namespace tidemark {

/// A key of a training script that no option has and that moves no memory of the peak.
struct HarmlessKey {
  std::string_view key;  ///< as scripts and launchers write it
  std::string_view why;  ///< "it is a schedule"
};
std::span<const HarmlessKey> harmless_keys();

/// A key of a training script that moves memory and is not modelled: what it says is refused, unless it says "off".
struct ForeignKey {
  std::string_view keys;  ///< comma-separated
  std::string_view why;   ///< a sentence
};

/// Why that key is refused; empty when it is none of them.
std::string_view why_refused(std::string_view key);

/// Why that key moves no memory of the peak; empty when it is not known to.
std::string_view why_harmless(std::string_view key);

}  // namespace tidemark
