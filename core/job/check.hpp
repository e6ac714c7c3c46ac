#pragma once

#include <string_view>
#include <vector>

#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What no single option can tell: options that contradict each other or have no effect. `given` holds the names of
/// the options that the request states ("adapter.r").
void check_request(const Request& request, const std::vector<std::string_view>& given, Issues& issues);

/// Refuses dimensions whose byte counts could leave 64 bits anywhere downstream.
void check_magnitude(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// Warns of sequences that are longer than the model's learned table of positions.
void check_positions(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
