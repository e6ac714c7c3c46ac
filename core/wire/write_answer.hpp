#pragma once

#include "core/answer/answer.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// The contract's response: every key, always in the same order.
Value write_answer(const Answer& answer);

/// {"schema": 1, "issues": […]}: what an error answer consists of.
Value write_errors(const Issues& issues);

// Parts of it, for other verbs.
Value write_range(const Range& range);
Value write_fits(const std::vector<Fit>& fits);
Value write_issues(const Issues& issues);

}  // namespace tidemark
