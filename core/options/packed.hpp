#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/options/option.hpp"
#include "core/units/bits.hpp"

namespace tidemark {

/// What an option calls: addresses, which no text can hold.
struct OptionCalls {
  void (*check)(const OptionValue&, const ReadSoFar&, Issues&) = nullptr;
  void (*apply)(Request&, const OptionValue&) = nullptr;
  void (*automatic)(Request&) = nullptr;
  void (*open)(Request&) = nullptr;
};

/// A topic's options: as rows, or as one text that holds the rows' fields one after another and costs a third, because
/// the address and the length of every word are left out of it. (Of the engine as WebAssembly, that is 10 KB.)
struct OptionTable {
  std::span<const Option> rows;
  std::string_view text;
  std::span<const OptionCalls> calls;  ///< of the text's options

  template <std::size_t kSize>
  constexpr OptionTable(const Option (&options)[kSize]) : rows(options) {}  // NOLINT: a list is one
  constexpr OptionTable(std::string_view packed, std::span<const OptionCalls> called) : text(packed), calls(called) {}
};

/// The fields of a choice, in the order of the text.
template <class Visitor, class AnyChoice>
constexpr void visit_choice(Visitor& visit, AnyChoice& choice) {
  visit(choice.name);
  visit(choice.value);
  visit(choice.help);
  visit(choice.modelled);
  visit(choice.alias_of);
}

/// The fields of an option, but for its group and what it calls.
template <class Visitor, class AnyOption>
constexpr void visit_option(Visitor& visit, AnyOption& option) {
  visit(option.name);
  visit(option.type);
  visit(option.standard);
  visit(option.choices);
  visit(option.label);
  visit(option.help);
  visit(option.minimum);
  visit(option.maximum);
  visit(option.unit);
  visit(option.usual_minimum);
  visit(option.usual_maximum);
  visit(option.flags);
  visit(option.also);
  visit(option.word_key);
  visit(option.word_standard);
  visit(option.catalog);
  visit(option.advanced);
  visit(option.counts);
  visit(option.number_is_text);
  visit(option.relevant.option);
  visit(option.relevant.words);
  visit(option.missing);
}

/// Writes fields to where there is room, or counts their bytes.
class OptionPacker {
 public:
  constexpr explicit OptionPacker(char* to) : to_(to) {}
  constexpr std::size_t size() const { return size_; }

  constexpr void operator()(std::string_view text) {
    for (const char c : text) put(c);
    put('\0');
  }
  constexpr void operator()(bool truth) { put(truth ? '\1' : '\0'); }
  constexpr void operator()(OptionType type) { put(static_cast<char>(type)); }
  constexpr void operator()(int number) { bytes(static_cast<std::uint32_t>(number), 4); }
  constexpr void operator()(double number) { bytes(bits_as<std::uint64_t>(number), 8); }
  constexpr void operator()(std::span<const Choice> choices) {
    (*this)(static_cast<int>(choices.size()));
    for (const Choice& choice : choices) visit_choice(*this, choice);
  }

 private:
  constexpr void put(char c) {
    if (to_ != nullptr) to_[size_] = c;
    ++size_;
  }
  constexpr void bytes(std::uint64_t number, int count) {
    for (int i = 0; i < count; ++i) put(static_cast<char>(number >> 8 * i & 0xFFU));
  }

  char* to_;
  std::size_t size_ = 0;
};

template <const auto& kTable>
consteval std::size_t packed_size() {
  OptionPacker packer(nullptr);
  for (const Option& option : kTable) visit_option(packer, option);
  return packer.size();
}

template <const auto& kTable>
consteval auto packed_text() {
  std::array<char, packed_size<kTable>()> text{};
  OptionPacker packer(text.data());
  for (const Option& option : kTable) visit_option(packer, option);
  return text;
}

template <const auto& kTable>
consteval auto packed_calls() {
  std::array<OptionCalls, std::size(kTable)> calls{};
  for (std::size_t i = 0; i < calls.size(); ++i)
    calls[i] = {kTable[i].check, kTable[i].apply, kTable[i].automatic, kTable[i].open};
  return calls;
}

template <const auto& kTable>
inline constexpr auto kPackedText = packed_text<kTable>();
template <const auto& kTable>
inline constexpr auto kPackedCalls = packed_calls<kTable>();

/// The table of a topic, made into a text by the compiler.
template <const auto& kTable>
inline constexpr OptionTable kPacked{{kPackedText<kTable>.data(), kPackedText<kTable>.size()}, kPackedCalls<kTable>};

}  // namespace tidemark
