#pragma once

#include <span>
#include <string_view>

#include "core/units/value.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {

/// A key of a request that one verb reads beside the options of the job.
struct VerbKey {
  std::string_view name;        ///< as in the request
  std::string_view type;        ///< "boolean", "number", "integers", "string", "measurements"
  std::string_view standard;    ///< default, as JSON text
  std::string_view help;        ///< one sentence
  std::string_view words = {};  ///< of a string: the comma-separated words that it may be; any, where empty
  std::string_view flags = {};  ///< of a boolean: further command-line spellings of false, "--quick"

  /// Whether it can be typed: measurements stand in files.
  bool has_flag() const { return type != "measurements"; }
};

/// What a request can ask for ("verb"). One file each; the table in verbs.cpp names them.
struct Verb {
  std::string_view name;                                ///< as in the request
  std::string_view help;                                ///< one sentence
  Value (*run)(const Engine&, const Value&) = nullptr;  ///< null: known, and answered with UNSUPPORTED_VERB
  std::span<const VerbKey> keys = {};                   ///< what it reads beside the options
  bool of_job = false;                                  ///< whether it reads the options
};
std::span<const Verb> verbs();
/// The verb of that name, or null.
const Verb* find_verb(std::string_view name);

Value run_estimate(const Engine& engine, const Value& request);
Value run_fit(const Engine& engine, const Value& request);
Value run_advise(const Engine& engine, const Value& request);
Value run_map(const Engine& engine, const Value& request);
Value run_calibrate(const Engine& engine, const Value& request);
Value run_catalog(const Engine& engine, const Value& request);
Value run_describe(const Engine& engine, const Value& request);
Value run_version(const Engine& engine, const Value& request);

}  // namespace tidemark
