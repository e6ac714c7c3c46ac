#pragma once

#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"

namespace tidemark {

/// What the engine says of a request.
inline Answer ask(const std::string& text) {
  Issues issues;
  const Value request = parse_json(text, "", issues);
  REQUIRE(issues.empty());
  return engine().answer(request);
}

/// Its estimate.
inline Estimate answered(const std::string& text) {
  Answer answer = ask(text);
  for (const Issue& issue : answer.issues) INFO(issue.message);
  REQUIRE(answer.estimate);
  return *answer.estimate;
}

/// What a category holds at the peak.
inline Bytes held(const Estimate& estimate, Category category) {
  Bytes sum = 0;
  for (const BreakdownGroup& group : estimate.breakdown) {
    if (group.category == category) sum += group.bytes;
  }
  return sum;
}

}  // namespace tidemark
