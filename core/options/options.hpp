#pragma once

#include "core/options/option.hpp"
#include "core/units/word_list.hpp"

namespace tidemark {

/// All options, in the order in which they are read and shown.
std::span<const Option> options();

/// Their headings, in that order.
std::span<const OptionGroup> option_groups();

/// The option of that name ("adapter.r"), or null.
const Option* find_option(std::string_view name);

/// The usual spelling of an enumerator in a request: the modelled choice of that option with this value, or nothing.
std::string_view choice_word(std::string_view option_name, int value);

/// The choice of that spelling, letters' case and hyphens for underscores ignored, or null.
const Choice* find_choice(const Option& option, std::string_view word);

/// "--adapter-r" for "adapter.r".
std::string flag_of(std::string_view key);
std::string flag_of(const Option& option);

/// The same and its further spellings: {"--adapter-r", "--lora-r", "--rank"}.
std::vector<std::string> flags_of(const Option& option);

/// "/adapter/r" for "adapter.r".
std::string pointer_of(std::string_view option_name);

}  // namespace tidemark
