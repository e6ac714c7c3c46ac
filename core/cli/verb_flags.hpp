#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/units/value.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {

/// "--all-gpus" for "all_gpus"; what one types of a switch that is on by itself is its negation, "--no-tiers".
std::vector<std::string> flags_of(const VerbKey& key);

/// What stands behind such a flag: " A,B", or nothing.
std::string_view placeholder(const VerbKey& key);

/// The flags of a verb's own keys.
class VerbFlags {
 public:
  void add_to(CLI::App& app, const Verb& verb);

  /// Writes the keys that were typed into the request.
  void write_into(Value& request) const;

 private:
  struct Flag {
    const VerbKey* key = nullptr;
    CLI::Option* parsed = nullptr;  // what CLI11 found
  };
  std::vector<Flag> flags_;
};

}  // namespace tidemark
