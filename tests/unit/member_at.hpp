#pragma once

#include <string>
#include <string_view>

#include "core/units/value.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {

/// What stands at "estimate.allocated.expected", or in a list at "fits.0.gpu".
inline const Value& at(const Value& value, std::string_view path) {
  const Value* here = &value;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string part{path.substr(0, dot)};
    CAPTURE(part);
    here = here->is_array() ? &here->items.at(std::stoul(part)) : here->find(part);
    REQUIRE(here != nullptr);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return *here;
}

}  // namespace tidemark
