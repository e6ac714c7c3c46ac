#pragma once

#include <optional>

#include "core/options/option.hpp"

namespace tidemark {

/// The choice that stands for "no dtype" where a dtype is optional.
constexpr int kNoDtype = -1;

template <class Enum>
constexpr int number(Enum value) {
  return static_cast<int>(value);
}

// --- options by type

constexpr Option flag(std::string_view name, bool standard, std::string_view label, std::string_view help) {
  return {name, OptionType::kBool, standard ? "true" : "false", {}, label, help};
}

/// A switch that the framework sets where the request does not.
constexpr Option open_flag(std::string_view name, std::string_view label, std::string_view help) {
  return {name, OptionType::kBool, "null", {}, label, help};
}

/// A key of the contract that is not modelled yet: whatever it says is refused with the reason.
constexpr Option refused(std::string_view name, std::string_view label, std::string_view help, std::string_view why) {
  Option option{name, OptionType::kAny, "null", {}, label, help};
  option.advanced = true;
  option.missing = why;
  return option;
}

constexpr Option integer(std::string_view name, std::string_view standard, std::string_view label,
                         std::string_view help) {
  return {name, OptionType::kInteger, standard, {}, label, help};
}

constexpr Option real(std::string_view name, std::string_view standard, std::string_view label, std::string_view help) {
  return {name, OptionType::kReal, standard, {}, label, help};
}

constexpr Option text(std::string_view name, std::string_view standard, std::string_view label, std::string_view help) {
  return {name, OptionType::kText, standard, {}, label, help};
}

constexpr Option texts(std::string_view name, std::string_view standard, std::string_view label,
                       std::string_view help) {
  return {name, OptionType::kTextList, standard, {}, label, help};
}

constexpr Option choice(std::string_view name, std::string_view standard, std::span<const Choice> choices,
                        std::string_view label, std::string_view help) {
  return {name, OptionType::kChoice, standard, choices, label, help};
}

constexpr Option several(std::string_view name, std::string_view standard, std::span<const Choice> choices,
                         std::string_view label, std::string_view help) {
  return {name, OptionType::kChoiceList, standard, choices, label, help};
}

constexpr Option of_type(OptionType type, std::string_view name, std::string_view standard, std::string_view label,
                         std::string_view help) {
  return {name, type, standard, {}, label, help};
}

// --- what else may be said about one

constexpr Option Option::spelled(std::string_view words) const {
  Option option = *this;
  option.flags = words;
  return option;
}

constexpr Option Option::known_as(std::string_view keys) const {
  Option option = *this;
  option.also = keys;
  return option;
}

constexpr Option Option::within(double low, double high, std::string_view of) const {
  Option option = *this;
  option.minimum = low;
  option.maximum = high;
  option.unit = of;
  return option;
}

constexpr Option Option::usually(double low, double high) const {
  Option option = *this;
  option.usual_minimum = low;
  option.usual_maximum = high;
  return option;
}

constexpr Option Option::further() const {
  Option option = *this;
  option.advanced = true;
  return option;
}

constexpr Option Option::counted() const {
  Option option = *this;
  option.counts = true;
  return option;
}

constexpr Option Option::digits() const {
  Option option = *this;
  option.number_is_text = true;
  return option;
}

constexpr Option Option::from(std::string_view list) const {
  Option option = *this;
  option.catalog = list;
  return option;
}

constexpr Option Option::when(std::string_view other, std::string_view words) const {
  Option option = *this;
  option.relevant = {other, words};
  return option;
}

constexpr Option Option::refused(std::string_view why) const {
  Option option = *this;
  option.missing = why;
  return option;
}

constexpr Option Option::checked(void (*by)(const OptionValue&, const ReadSoFar&, Issues&)) const {
  Option option = *this;
  option.check = by;
  return option;
}

constexpr Option Option::sets(void (*by)(Request&, const OptionValue&)) const {
  Option option = *this;
  option.apply = by;
  return option;
}

constexpr Option Option::opens(std::string_view key, std::string_view word, void (*by)(Request&)) const {
  Option option = *this;
  option.word_key = key;
  option.word_standard = word;
  option.open = by;
  return option;
}

// --- how a value gets into a field

inline void store(bool& field, const OptionValue& value) {
  field = value.boolean || value.choice == 1;
}
inline void store(Count& field, const OptionValue& value) {
  field = value.integer;
}
inline void store(double& field, const OptionValue& value) {
  field = value.real;
}
inline void store(std::string& field, const OptionValue& value) {
  field = value.text;
}
inline void store(std::vector<std::string>& field, const OptionValue& value) {
  field = value.list;
}
inline void store(std::optional<Dtype>& field, const OptionValue& value) {
  field.reset();
  if (value.choice != kNoDtype) field = static_cast<Dtype>(value.choice);
}
template <class Enum>
requires std::is_enum_v<Enum>
void store(Enum& field, const OptionValue& value) {
  field = static_cast<Enum>(value.choice);
}

template <auto... path>
constexpr Option Option::into() const {
  return sets([](Request& request, const OptionValue& value) { store((request.job.*....*path), value); });
}

}  // namespace tidemark
