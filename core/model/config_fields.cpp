#include "core/model/config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/config_vocabulary.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {

namespace {

/// Infinity and NaN, which Python writes and JSON has not, say as little as null.
const Value* without_literal(const Value* value) {
  static const Value kNothing;
  return value != nullptr && value->is_number() && !std::isfinite(value->real) ? &kNothing : value;
}

/// How many keys are told one by one; each is compared with all known ones.
constexpr std::size_t kMostUnreadKeys = 40;

/// No dimension of a published model comes near; products of two such numbers still fit in a Count.
constexpr Count kLargestDimension = (Count{1} << 31) - 1;

bool same_value(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return left.real == right.real;
  return left.kind == right.kind && left.boolean == right.boolean && left.string == right.string;
}

std::string_view kind_name(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return "a truth value";
    case Value::Kind::kInteger:
      return "a whole number";
    case Value::Kind::kReal:
      return "a fraction";
    case Value::Kind::kString:
      return "a string";
    case Value::Kind::kArray:
      return "a list";
    case Value::Kind::kObject:
      return "an object";
  }
  return "";
}

/// Switched off, empty or zero: what a key says when it says nothing.
bool says_nothing(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return true;
    case Value::Kind::kBool:
      return !value.boolean;
    case Value::Kind::kInteger:
    case Value::Kind::kReal:
      return value.real == 0.0;
    case Value::Kind::kString:
      return value.string.empty();
    case Value::Kind::kArray:
      return value.items.empty();
    case Value::Kind::kObject:
      return value.members.empty();
  }
  return false;
}

}  // namespace

ConfigFields::ConfigFields(const Value& object, std::string path, Issues& issues)
    : object_(&object), path_(std::move(path)), issues_(&issues) {}

std::string_view ConfigFields::chosen_key(Spellings keys) const {
  for (const std::string_view key : keys) {
    if (object_->find(key) != nullptr) return key;
  }
  return *keys.begin();
}

const Value* ConfigFields::find(Spellings keys) {
  const Value* chosen = nullptr;
  std::string_view chosen_spelling;
  for (const std::string_view key : keys) {
    const bool asked_before = std::find(asked_.begin(), asked_.end(), key) != asked_.end();
    if (!asked_before) asked_.push_back(key);
    const Value* value = without_literal(object_->find(key));
    if (value == nullptr) continue;
    if (chosen == nullptr) {
      chosen = value;
      chosen_spelling = key;
    } else if (!asked_before && !value->is_null() && !same_value(*chosen, *value)) {
      warning("CONFLICTING_KEYS", key,
              in_quotes(key) + " and \"" + std::string(chosen_spelling) +
                  "\" name the same thing and differ; the latter is used.",
              std::string(chosen_spelling));
    }
  }
  return chosen;
}

bool ConfigFields::has(Spellings keys) {
  const Value* value = find(keys);
  return value != nullptr && !value->is_null();
}

std::optional<Count> ConfigFields::whole_number(const Value& value, std::string_view key, Count minimum) {
  if (!value.is_integer()) {
    const bool whole = value.is_number() && value.real == std::floor(value.real) && std::fabs(value.real) < 1e15;
    if (!whole) {
      error("WRONG_TYPE", key, in_quotes(key) + " must be a whole number, not " + std::string(kind_name(value)) + ".");
      return std::nullopt;
    }
  }
  const Count number = value.is_integer() ? value.integer : static_cast<Count>(value.real);
  if (number < minimum || number > kLargestDimension) {
    error("INVALID_VALUE", key,
          in_quotes(key) + " is " + std::to_string(number) + "; it must lie between " + std::to_string(minimum) +
              " and " + std::to_string(kLargestDimension) + ".");
    return std::nullopt;
  }
  return number;
}

Count ConfigFields::required(Spellings keys) {
  const Value* value = find(keys);
  const std::string_view key = chosen_key(keys);
  if (value == nullptr || value->is_null()) {
    error("MISSING_FIELD", key, "The configuration does not give \"" + std::string(key) + "\"; add it.");
    return 0;
  }
  return whole_number(*value, key, 1).value_or(0);
}

Count ConfigFields::count(Spellings keys, Count fallback, Count minimum) {
  const Value* value = find(keys);
  if (value == nullptr || value->is_null()) return fallback;
  return whole_number(*value, chosen_key(keys), minimum).value_or(fallback);
}

std::optional<Count> ConfigFields::nullable(Spellings keys, std::optional<Count> fallback, Count minimum) {
  const Value* value = find(keys);
  if (value == nullptr) return fallback;
  if (value->is_null()) return std::nullopt;
  const std::optional<Count> number = whole_number(*value, chosen_key(keys), minimum);
  return number.has_value() ? number : fallback;
}

double ConfigFields::number(Spellings keys, double fallback) {
  const Value* value = find(keys);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_number()) {
    const std::string_view key = chosen_key(keys);
    error("WRONG_TYPE", key, in_quotes(key) + " must be a number, not " + std::string(kind_name(*value)) + ".");
    return fallback;
  }
  return value->real;
}

double ConfigFields::probability(Spellings keys, double fallback) {
  const double value = number(keys, fallback);
  if (value >= 0.0 && value <= 1.0) return value;
  const std::string_view key = chosen_key(keys);
  error("INVALID_VALUE", key, in_quotes(key) + " is a probability; it must lie between 0 and 1.");
  return fallback;
}

double ConfigFields::multiplier(Spellings keys, double fallback) {
  constexpr double kMost = 1024.0;
  const double value = number(keys, fallback);
  if (value > 0.0 && value <= kMost) return value;
  const std::string_view key = chosen_key(keys);
  error("INVALID_VALUE", key, in_quotes(key) + " multiplies a size; it must lie above 0, and be 1024 at most.");
  return fallback;
}

bool ConfigFields::flag(Spellings keys, bool fallback) {
  const Value* value = find(keys);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_bool()) {
    const std::string_view key = chosen_key(keys);
    error("WRONG_TYPE", key, in_quotes(key) + " must be true or false, not " + std::string(kind_name(*value)) + ".");
    return fallback;
  }
  return value->boolean;
}

std::string ConfigFields::text(Spellings keys, std::string_view fallback) {
  const Value* value = find(keys);
  if (value == nullptr || value->is_null()) return std::string(fallback);
  if (!value->is_string()) {
    const std::string_view key = chosen_key(keys);
    error("WRONG_TYPE", key, in_quotes(key) + " must be a string, not " + std::string(kind_name(*value)) + ".");
    return std::string(fallback);
  }
  return value->string;
}

void ConfigFields::accept(Spellings keys) {
  for (const std::string_view key : keys) asked_.push_back(key);
}

void ConfigFields::report(std::string_view code, Severity severity, std::string_view key, std::string message,
                          std::string suggestion) {
  issues_->push_back(
      Issue{std::string(code), severity, path_ + "/" + std::string(key), std::move(message), std::move(suggestion)});
}

void ConfigFields::error(std::string_view code, std::string_view key, std::string message, std::string suggestion) {
  report(code, Severity::kError, key, std::move(message), std::move(suggestion));
}

void ConfigFields::warning(std::string_view code, std::string_view key, std::string message, std::string suggestion) {
  report(code, Severity::kWarning, key, std::move(message), std::move(suggestion));
}

void ConfigFields::note(std::string_view code, std::string_view key, std::string message, std::string suggestion) {
  report(code, Severity::kNote, key, std::move(message), std::move(suggestion));
}

void ConfigFields::report_unread(std::string_view model_type) {
  // Only a key that is not there itself can be what somebody meant.
  std::vector<std::string_view> missing;
  for (const std::string_view key : asked_) {
    if (object_->find(key) == nullptr) missing.push_back(key);
  }
  const std::size_t before = issues_->size();
  for (const auto& [key, value] : object_->members) {
    if (issues_->size() == before + kMostUnreadKeys) {
      return warning("UNKNOWN_KEY", "", "There are more keys that nothing is known about; they are ignored.");
    }
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    if (key.empty() || key.front() == '_' || moves_no_memory(key)) continue;
    const std::string name = in_quotes(key);
    if (shapes_some_model(key)) {
      // "attention_bias": false in a Mistral file says what the code does anyway.
      if (says_nothing(value)) continue;
      warning("UNKNOWN_KEY", key,
              "Models of type " + in_quotes(model_type) + " do not read " + name + "; it is ignored.");
      continue;
    }
    std::string meant = nearest(key, missing);
    if (!meant.empty()) {
      warning("UNKNOWN_KEY", key, "Models of type " + in_quotes(model_type) + " have no key " + name + ".",
              std::move(meant));
      continue;
    }
    if (value.is_null()) continue;
    note("UNKNOWN_KEY", key, "Nothing is known about the key " + name + "; it is ignored.");
  }
}

}  // namespace tidemark
