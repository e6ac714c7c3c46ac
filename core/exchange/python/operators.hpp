#pragma once

#include "core/exchange/python/value.hpp"

namespace tidemark::exchange {

/// Python's operators on what is known of both sides; an unknown value where that does not decide it.

/// "+", "-", "*", "/", "//", "%", "**" of numbers, "+" of texts and lists, "/" of paths.
PyValue py_binary(const std::string& op, const PyValue& left, const PyValue& right);
/// "==", "<", "in" and their like of values that are no objects.
PyValue py_compare(const std::string& op, const PyValue& left, const PyValue& right);
/// "and", "or".
PyValue py_logic(const std::string& op, const PyValue& left, const PyValue& right);
/// "not", "-"; any other keeps the value.
PyValue py_unary(const std::string& op, const PyValue& value);

}  // namespace tidemark::exchange
