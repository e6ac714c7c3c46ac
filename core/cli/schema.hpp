#pragma once

#include "core/units/value.hpp"

namespace tidemark {

/// What a request may hold, as a JSON Schema (draft 7 and later): every option and every verb's keys with type, words,
/// limits, default and help. Made from the option table and the verb table; docs/request.schema.json is its text.
Value request_schema();

}  // namespace tidemark
