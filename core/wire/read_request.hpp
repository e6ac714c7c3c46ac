#pragma once

#include "core/job/request.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// Reads a request by the option table: every key is known, of its type and in its range, or there is an issue.
Request read_request(const Value& root, Issues& issues);

}  // namespace tidemark
