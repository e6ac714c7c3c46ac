#pragma once

#include <span>
#include <string_view>

#include "core/job/request.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Warns of options that the request states and that decide nothing beside its others. `changed`: the names of those
/// that say something else than their defaults.
void check_idle(const Request& request, std::span<const std::string_view> changed, Issues& issues);

}  // namespace tidemark
