#include "core/options/options.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

#include "core/options/topics.hpp"
#include "core/units/bits.hpp"

namespace tidemark {
namespace {

/// The order in which topics are read and shown.
constexpr const Topic* kTopics[] = {
    &kModelTopic,       &kMethodTopic, &kAdapterTopic,   &kQuantizationTopic, &kPrecisionTopic,
    &kBatchTopic,       &kMemoryTopic, &kOptimizerTopic, &kLossTopic,         &kLoopTopic,
    &kParallelismTopic, &kMoeTopic,    &kOffloadTopic,   &kRuntimeTopic,      &kGpuTopic,
};

/// All options, and the choices of those that were packed.
struct Tables {
  std::vector<Option> options;
  std::vector<std::vector<Choice>> choices;
};

/// Reads the fields of a packed text one after another.
class Unpacker {
 public:
  Unpacker(std::string_view text, Tables& tables) : at_(text.data()), tables_(tables) {}

  void operator()(std::string_view& text) {
    text = at_;
    at_ += text.size() + 1;
  }
  void operator()(bool& truth) { truth = bytes(1) != 0; }
  void operator()(OptionType& type) { type = static_cast<OptionType>(bytes(1)); }
  void operator()(int& number) { number = static_cast<int>(static_cast<std::uint32_t>(bytes(4))); }
  void operator()(double& number) { number = bits_as<double>(bytes(8)); }
  void operator()(std::span<const Choice>& choices) {
    int count = 0;
    (*this)(count);
    if (count == 0) return;
    std::vector<Choice>& list = tables_.choices.emplace_back(static_cast<std::size_t>(count));
    for (Choice& choice : list) visit_choice(*this, choice);
    choices = list;  // which stays where it is when the list of lists grows
  }

 private:
  std::uint64_t bytes(int count) {
    std::uint64_t number = 0;
    for (int i = 0; i < count; ++i) number |= std::uint64_t{static_cast<unsigned char>(*at_++)} << 8 * i;
    return number;
  }

  const char* at_;
  Tables& tables_;
};

Tables all_options() {
  Tables all;
  for (const Topic* topic : kTopics) {
    const std::size_t first = all.options.size();
    all.options.insert(all.options.end(), topic->options.rows.begin(), topic->options.rows.end());
    Unpacker unpacker(topic->options.text, all);
    for (const OptionCalls& calls : topic->options.calls) {
      Option option;
      visit_option(unpacker, option);
      option.check = calls.check;
      option.apply = calls.apply;
      option.automatic = calls.automatic;
      option.open = calls.open;
      all.options.push_back(option);
    }
    for (std::size_t i = first; i < all.options.size(); ++i) all.options[i].group = topic->group.name;
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
  static const Tables all = all_options();
  return all.options;
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
