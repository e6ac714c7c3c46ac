#include "core/units/make_value.hpp"

namespace tidemark {
namespace {

Value of_kind(Value::Kind kind) {
  Value value;
  value.kind = kind;
  return value;
}

}  // namespace

Value to_value(bool boolean) {
  Value value = of_kind(Value::Kind::kBool);
  value.boolean = boolean;
  return value;
}

Value to_value(std::int64_t integer) {
  Value value = of_kind(Value::Kind::kInteger);
  value.integer = integer;
  value.real = static_cast<double>(integer);
  return value;
}

Value to_value(double real) {
  Value value = of_kind(Value::Kind::kReal);
  value.real = real;
  return value;
}

Value to_value(std::string_view text) {
  Value value = of_kind(Value::Kind::kString);
  value.string = text;
  return value;
}

Value empty_object() {
  return of_kind(Value::Kind::kObject);
}

Value empty_array() {
  return of_kind(Value::Kind::kArray);
}

}  // namespace tidemark
