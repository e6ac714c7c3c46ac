#include "core/fit/setting.hpp"

#include <algorithm>

#include "core/options/options.hpp"
#include "core/units/make_value.hpp"

namespace tidemark {
namespace {

bool read(const Option& option, const Value& value, OptionValue& out) {
  switch (option.type) {
    case OptionType::kBool:
      out.boolean = value.boolean;
      return value.is_bool();
    case OptionType::kInteger:
      out.integer = value.integer;
      out.real = value.real;
      return value.is_integer() &&
             (option.minimum == option.maximum || (value.real >= option.minimum && value.real <= option.maximum));
    case OptionType::kChoice: {
      const Choice* choice = value.is_string() ? find_choice(option, value.string) : nullptr;
      if (choice == nullptr || !choice->modelled) return false;
      out.choice = choice->value;
      out.text = choice->alias_of.empty() ? choice->name : choice->alias_of;
      return true;
    }
    case OptionType::kAny:
      out.document = &value;
      return value.is_bool() || value.is_integer();
    default:
      return false;
  }
}

bool below(std::string_view option, std::string_view parent) {
  return option.size() > parent.size() && option[parent.size()] == '.' && option.substr(0, parent.size()) == parent;
}

}  // namespace

Setting set_word(std::string_view option, std::string_view word) {
  return {std::string{option}, to_value(word)};
}

Setting set_count(std::string_view option, Count count) {
  return {std::string{option}, to_value(std::int64_t{count})};
}

Setting set_flag(std::string_view option, bool flag) {
  return {std::string{option}, to_value(flag)};
}

bool apply(const Setting& setting, TrainingJob& job) {
  const Option* option = find_option(setting.option);
  OptionValue value;
  if (option == nullptr || option->apply == nullptr || !option->missing.empty()) return false;
  if (!read(*option, setting.value, value)) return false;
  Request request;
  request.job = std::move(job);
  // {"every": 2} where a word stood: the object form starts from its own clean state.
  const std::size_t dot = setting.option.rfind('.');
  if (dot != std::string::npos) {
    const Option* parent = find_option(std::string_view{setting.option}.substr(0, dot));
    if (parent != nullptr && parent->open != nullptr) parent->open(request);
  }
  option->apply(request, value);
  job = std::move(request.job);
  if (job.label_smoothing > 0.0) job.loss = Loss::kDefault;  // core/job/default_loss.cpp: settle_smoothed
  return true;
}

std::vector<Setting> merged(const std::vector<Setting>& settings) {
  std::vector<Setting> result;
  for (const Setting& setting : settings) {
    result.erase(std::remove_if(result.begin(), result.end(),
                                [&](const Setting& earlier) {
                                  return below(earlier.option, setting.option) || below(setting.option, earlier.option);
                                }),
                 result.end());
    bool found = false;
    for (Setting& earlier : result) {
      if (earlier.option != setting.option) continue;
      earlier.value = setting.value;
      found = true;
    }
    if (!found) result.push_back(setting);
  }
  return result;
}

}  // namespace tidemark
