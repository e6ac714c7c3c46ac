#include "core/options/options.hpp"

#include <algorithm>
#include <cctype>

#include "core/options/topics.hpp"

namespace tidemark {
namespace {

/// The order in which topics are read and shown.
constexpr const Topic* kTopics[] = {
    &kModelTopic,       &kMethodTopic, &kAdapterTopic,   &kQuantizationTopic, &kPrecisionTopic,
    &kBatchTopic,       &kMemoryTopic, &kOptimizerTopic, &kLossTopic,         &kLoopTopic,
    &kParallelismTopic, &kMoeTopic,    &kOffloadTopic,   &kRuntimeTopic,      &kGpuTopic,
};

std::vector<Option> all_options() {
  std::vector<Option> all;
  for (const Topic* topic : kTopics) {
    for (const Option& option : topic->options) {
      all.push_back(option);
      all.back().group = topic->group.name;
    }
  }
  return all;
}

std::vector<OptionGroup> all_groups() {
  std::vector<OptionGroup> all;
  for (const Topic* topic : kTopics) all.push_back(topic->group);
  return all;
}

char plain(char c) {
  return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool same_letters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "boolean";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kReal:
      return "number";
    case OptionType::kText:
      return "string";
    case OptionType::kTextList:
      return "strings";
    case OptionType::kChoice:
      return "choice";
    case OptionType::kChoiceList:
      return "choices";
    case OptionType::kDocument:
      return "object";
    case OptionType::kGpu:
      return "gpu";
    case OptionType::kGpuList:
      return "gpus";
    case OptionType::kAny:
      return "any";
  }
  return "";
}

bool ReadSoFar::states(std::string_view name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

std::span<const Option> options() {
  static const std::vector<Option> all = all_options();
  return all;
}

std::span<const OptionGroup> option_groups() {
  static const std::vector<OptionGroup> all = all_groups();
  return all;
}

const Option* find_option(std::string_view name) {
  for (const Option& option : options()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string_view choice_word(std::string_view option_name, int value) {
  const Option* option = find_option(option_name);
  if (option == nullptr) return {};
  for (const Choice& choice : option->choices) {
    if (choice.modelled && choice.alias_of.empty() && choice.value == value) return choice.name;
  }
  return {};
}

const Choice* find_choice(const Option& option, std::string_view word) {
  for (const Choice& choice : option.choices) {
    if (same_letters(choice.name, word)) return &choice;
  }
  return nullptr;
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    words.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return words;
}

std::string flag_of(std::string_view key) {
  std::string flag = "--";
  for (char c : key) flag += c == '.' || c == '_' ? '-' : c;
  return flag;
}

std::string flag_of(const Option& option) {
  return flag_of(option.name);
}

std::vector<std::string> flags_of(const Option& option) {
  std::vector<std::string> flags = {flag_of(option)};
  for (std::string_view flag : words_of(option.flags)) flags.emplace_back(flag);
  for (std::string_view key : words_of(option.also)) {
    const std::string flag = flag_of(key);
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
  }
  return flags;
}

std::string pointer_of(std::string_view option_name) {
  std::string pointer = "/";
  for (char c : option_name) pointer += c == '.' ? '/' : c;
  return pointer;
}

}  // namespace tidemark
