#pragma once

#include <vector>

#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// What several files say together: a script, its DeepSpeed JSON and the launcher's YAML are one job.
struct Import {
  std::vector<Reading> readings;      ///< one per source, in their order; without a format where none was recognised
  std::vector<Finding> fields;        ///< of the job: each path once, with whose word counted
  Value request;                      ///< the fields as one object
  std::vector<std::string> unknowns;  ///< what no file told, as questions
  std::vector<std::string> notes;
  Issues issues;
};

/// Reads all of them. Nothing is executed, and what is refused is told in words.
Import import_sources(Sources sources);

/// Puts the value at a dotted path of an object, making the objects on the way.
void put(Value& object, std::string_view dotted, Value value);

}  // namespace tidemark::exchange
