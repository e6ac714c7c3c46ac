#include "core/wire/read_request.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/gpu_names.hpp"
#include "core/job/check.hpp"
#include "core/options/harmless.hpp"
#include "core/options/idle.hpp"
#include "core/options/options.hpp"
#include "core/units/bytes.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// Of all names in one list; each is held against every module of a model.
constexpr std::size_t kMostPatternCharacters = 65536;

/// Smaller than any card that CUDA runs on; in GiB or GB.
constexpr double kSmallestCardGib = 0.1;

bool is_card_name(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  return !name.empty() && name.size() <= kLongest && !has_control_characters(name);
}

/// How many unknown keys are told one by one; each is compared with all options.
constexpr Count kMostUnknownKeys = 40;

/// A value as an error message repeats it, never more than a line of it.
std::string shown(const Value& value) {
  if (value.is_array() || value.is_object()) return value.is_array() ? "a list" : "an object";
  if (value.is_number() && !std::isfinite(value.real)) {
    return std::isnan(value.real) ? "NaN" : value.real < 0.0 ? "-Infinity" : "Infinity";
  }
  return excerpt(write_json(value));
}

std::string shown(double bound) {
  if (bound == std::floor(bound) && std::fabs(bound) < 1e15) return format_grouped(static_cast<std::int64_t>(bound));
  return write_json(to_value(bound));
}

std::string listed(const Option& option) {
  std::string text;
  for (const Choice& choice : option.choices) {
    if (!choice.modelled || !choice.alias_of.empty()) continue;
    if (!text.empty()) text += ", ";
    text += choice.name;
  }
  return text;
}

std::string number_range(const Option& option) {
  std::string text = option.type == OptionType::kInteger ? "an integer" : "a number";
  if (option.minimum != option.maximum) text += " from " + shown(option.minimum) + " to " + shown(option.maximum);
  return text;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() || b.is_number()) return a.is_number() && b.is_number() && a.real == b.real;
  return write_json(a) == write_json(b);
}

/// A number as one types it: "100000" rather than "1e+05".
std::string typed(double number) {
  const bool whole = number == std::floor(number) && std::fabs(number) < 1e15;
  return whole ? std::to_string(static_cast<std::int64_t>(number)) : write_json(to_value(number));
}

/// The option under that prefix which the command line knows by the word, too: "rank" for "r" (--rank).
const Option* by_other_name(std::string_view word, std::string_view prefix) {
  for (const Option& option : options()) {
    if (option.name.substr(0, prefix.size()) != prefix) continue;
    for (std::string flag : flags_of(option)) {
      std::replace(flag.begin(), flag.end(), '-', '_');
      if (flag.substr(0, 2) == "__" && flag.substr(2) == word) return &option;
    }
  }
  return nullptr;
}

/// The option's name and other tools' keys for it.
std::vector<std::string_view> keys_of(const Option& option) {
  std::vector<std::string_view> keys = words_of(option.also);
  keys.insert(keys.begin(), option.name);
  return keys;
}

std::span<const std::string_view> all_keys() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> keys;
    for (const Option& option : options()) {
      for (std::string_view key : keys_of(option)) keys.push_back(key);
    }
    return keys;
  }();
  return all;
}

/// Walks one request, option by option.
class Reader {
 public:
  Reader(const Value& root, Issues& issues) : root_(root), issues_(issues) {}

  Request read() {
    if (!root_.is_object()) {
      add("INVALID_VALUE", Severity::kError, "", "A request is a JSON object.");
      return {};
    }
    if (const Value* schema = root_.find("schema");
        schema != nullptr && !(schema->is_number() && schema->real == 1.0)) {
      add("UNSUPPORTED_SCHEMA", Severity::kError, "/schema", "This engine speaks schema 1.", "1");
    }
    look_for_unknown_keys(root_, "");
    if (unknown_keys_ > kMostUnknownKeys) {
      add("UNKNOWN_KEY", Severity::kWarning, "",
          format_grouped(unknown_keys_ - kMostUnknownKeys) + " further keys are not known either; they are ignored.");
    }
    for (const Option& option : options()) read(option);
    check_request(request_, given_, issues_);
    check_idle(request_, changed_, issues_);
    return std::move(request_);
  }

 private:
  void add(std::string_view code, Severity severity, std::string path, std::string message,
           std::string suggestion = "") {
    issues_.push_back({std::string{code}, severity, std::move(path), std::move(message), std::move(suggestion)});
  }

  void look_for_unknown_keys(const Value& object, const std::string& prefix) {
    for (const Value::Member& member : object.members) {
      if (prefix.empty() && (member.key == "schema" || member.key == "verb")) continue;
      const std::string name = prefix + member.key;
      bool known = false;
      bool parent = false;
      if (member.key.find('.') == std::string::npos) {
        for (std::string_view key : all_keys()) {
          if (key == name) known = true;
          if (key.size() > name.size() && key[name.size()] == '.' && key.substr(0, name.size()) == name) parent = true;
        }
      }
      if (parent && member.value.is_object()) {
        look_for_unknown_keys(member.value, name + ".");
      } else if (parent && !known && !why_refused(name).empty()) {
        if (is_on(member.value)) refuse_foreign(member, prefix, why_refused(name));
      } else if (parent && !known && !member.value.is_null()) {
        add("INVALID_VALUE", Severity::kError, pointer_of(name),
            "\"" + name + "\" is " + shown(member.value) + "; it must be an object.");
      } else if (!known && !parent && ++unknown_keys_ <= kMostUnknownKeys) {
        if (const std::string_view why = why_refused(member.key); is_others(prefix) && !why.empty()) {
          if (is_on(member.value)) refuse_foreign(member, prefix, why);
        } else {
          unknown_key(member.key, prefix);
        }
      }
    }
  }

  /// Whether other tools' keys stand there.
  static bool is_others(std::string_view prefix) { return prefix.empty() || prefix == "deepspeed."; }

  /// Whether a key of another tool asks for something: not null, false, 0 or 1 (of so many GPUs), nor an empty list.
  static bool is_on(const Value& value) {
    if (value.is_bool()) return value.boolean;
    if (value.is_integer()) return value.integer > 1;
    if (value.is_string()) return !value.string.empty() && value.string != "none" && value.string != "no";
    return value.is_number() || !value.items.empty() || !value.members.empty();
  }

  void refuse_foreign(const Value::Member& member, const std::string& prefix, std::string_view why) {
    add("UNSUPPORTED_OPTION", Severity::kError, pointer_of(prefix + member.key),
        "\"" + member.key + "\" is " + shown(member.value) + ": " + std::string{why});
  }

  void unknown_key(const std::string& key, const std::string& prefix) {
    if (const std::string_view why = why_harmless(key); is_others(prefix) && !why.empty()) {
      add("NO_EFFECT", Severity::kNote, pointer_of(prefix + key),
          "\"" + key + "\" moves no memory of the peak: " + std::string{why} + ".");
      return;
    }
    // Words that may stand here: the next part of every option's name below the prefix.
    std::vector<std::string_view> candidates;
    for (const Option& option : options()) {
      if (option.name.substr(0, prefix.size()) != prefix) continue;
      const std::string_view rest = option.name.substr(prefix.size());
      const std::string_view word = rest.substr(0, rest.find('.'));
      if (candidates.empty() || candidates.back() != word) candidates.push_back(word);
    }
    std::string near = nearest(key, candidates);
    std::string path = pointer_of(prefix);
    path += excerpt(key);
    std::string message = in_quotes(key) + " is not a key that we know; it is ignored.";
    if (const Option* other = by_other_name(key, prefix); other != nullptr) near = other->name.substr(prefix.size());
    if (near.empty()) {
      // Perhaps in the wrong place: "r" at the top, "micro_batch_size" under "adapter".
      for (const Option& option : options()) {
        const std::size_t dot = option.name.rfind('.');
        const std::string_view last = dot == std::string_view::npos ? option.name : option.name.substr(dot + 1);
        if (last == key && (near.empty() || option.name.size() < near.size())) near = option.name;
      }
    }
    if (const std::size_t dot = key.find('.'); dot != std::string::npos && find_option(key) != nullptr) {
      near = key.substr(0, dot);
      message += " Write an object within the object: \"" + near + "\": {\"" + key.substr(dot + 1) + "\": ...}.";
    } else if (!near.empty()) {
      message += " Did you mean \"" + near + "\"?";
    }
    add("UNKNOWN_KEY", Severity::kWarning, std::move(path), std::move(message), std::move(near));
  }

  /// The value at "adapter.r"; null where a part of the path is missing.
  const Value* locate(std::string_view name) const {
    const Value* value = &root_;
    while (value != nullptr && !name.empty()) {
      const std::size_t dot = name.find('.');
      value = value->find(name.substr(0, dot));
      name = dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
    }
    return value;
  }

  /// The value under the option's name, or under another tool's key for it.
  const Value* stated(const Option& option) {
    const Value* found = nullptr;
    for (std::string_view key : keys_of(option)) {
      const Value* value = locate(key);
      // null leaves the default, unless it is one of the option's words.
      if (value == nullptr || (value->is_null() && find_choice(option, "null") == nullptr)) continue;
      if (found != nullptr && !equal(*found, *value)) {
        add("INVALID_VALUE", Severity::kError, pointer_of(key),
            "\"" + std::string{key} + "\" and \"" + std::string{option.name} +
                "\" mean the same and say different things; give one of them.",
            std::string{option.name});
      }
      if (found == nullptr) found = value;
      if (key != option.name) request_.stated_as.emplace_back(option.name, key);
    }
    return found;
  }

  void read(const Option& option) {
    const Value* value = stated(option);
    if (value == nullptr) return;
    if (value->is_object() && option.open != nullptr) {
      if (value != locate(option.name)) {  // its parts are looked for under the option's own name alone
        add("INVALID_VALUE", Severity::kError, pointer_of(option.name),
            "An object stands under another key than \"" + std::string{option.name} + "\"; write it under that one.",
            std::string{option.name});
        return;
      }
      option.open(request_);
      return;
    }
    if (value->is_string() && value->string == "auto" && option.automatic != nullptr) return option.automatic(request_);
    OptionValue read;
    if (!convert(option, *value, read)) return;
    given_.push_back(option.name);
    Issues none;
    const bool changes = !equal(*value, parse_json(option.standard, "", none));
    if (changes) changed_.push_back(option.name);
    if (!option.missing.empty()) {
      if (changes) {
        add("UNSUPPORTED_OPTION", Severity::kError, pointer_of(option.name),
            "\"" + std::string{option.name} + "\" is " + shown(*value) + ": " + std::string{option.missing},
            std::string{option.standard});
      }
      return;
    }
    if (option.check != nullptr) option.check(read, {request_, given_}, issues_);
    if (option.apply != nullptr) option.apply(request_, read);
  }

  bool reject(const Option& option, const Value& value, const std::string& wanted, std::string suggestion = "") {
    std::string message = "\"" + std::string{option.name} + "\" is " + shown(value) + "; it must be " + wanted + ".";
    // A number's suggestion is the bound that the sentence names already.
    if (!suggestion.empty() && value.is_string()) message += " Did you mean \"" + suggestion + "\"?";
    add("INVALID_VALUE", Severity::kError, pointer_of(option.name), std::move(message), std::move(suggestion));
    return false;
  }

  bool convert(const Option& option, const Value& value, OptionValue& read) {
    switch (option.type) {
      case OptionType::kBool:
        if (!value.is_bool()) return reject(option, value, "true or false");
        read.boolean = value.boolean;
        return true;
      case OptionType::kInteger:
      case OptionType::kReal:
        return convert_number(option, value, read);
      case OptionType::kText:
        if (value.is_number() && option.number_is_text) {
          read.text = write_json(value);
          return true;
        }
        if (!value.is_string() || value.string.empty()) return reject(option, value, "text");
        if (value.string.size() > 1000) return reject(option, value, "shorter");
        read.text = value.string;
        return true;
      case OptionType::kTextList:
        return convert_texts(option, value, read);
      case OptionType::kChoice:
        return convert_choice(option, value, read);
      case OptionType::kChoiceList:
        if (value.is_array()) {
          for (const Value& item : value.items) {
            OptionValue one;
            if (!convert_choice(option, item, one)) return false;
            read.choices.push_back(one.choice);
          }
          return true;
        }
        if (!convert_choice(option, value, read)) return false;
        read.choices.push_back(read.choice);
        return true;
      case OptionType::kDocument:
        if (!value.is_object()) {
          return reject(option, value, "an object: the content of a " + std::string{option.name} + ".json");
        }
        read.document = &value;
        return true;
      case OptionType::kGpu:
        return convert_gpu(option, value, read);
      case OptionType::kGpuList:
        if (!value.is_array()) return reject(option, value, "a list of cards");
        if (value.items.size() > 1000) return reject(option, value, "a shorter list");
        for (const Value& item : value.items) {
          if (!convert_gpu(option, item, read)) return false;
        }
        return true;
      case OptionType::kAny:
        read.document = &value;
        return true;
    }
    return false;
  }

  bool convert_number(const Option& option, const Value& value, OptionValue& read) {
    const bool whole = value.is_integer() || (value.is_number() && value.real == std::floor(value.real));
    const bool integer = option.type == OptionType::kInteger;
    if (!value.is_number() || !std::isfinite(value.real) || (integer && !whole)) {
      return reject(option, value, number_range(option));
    }
    if (option.minimum != option.maximum && (value.real < option.minimum || value.real > option.maximum)) {
      return reject(option, value, number_range(option),
                    typed(value.real < option.minimum ? option.minimum : option.maximum));
    }
    read.real = value.real;
    if (integer) read.integer = value.is_integer() ? value.integer : static_cast<std::int64_t>(value.real);
    return true;
  }

  bool convert_texts(const Option& option, const Value& value, OptionValue& read) {
    if (value.is_string() && !value.string.empty()) {
      if (value.string.size() > kMostPatternCharacters) return reject(option, value, "shorter");
      read.text = value.string;
      read.list.push_back(value.string);
      return true;
    }
    if (!value.is_array()) return reject(option, value, "a list of names");
    std::size_t characters = 0;
    for (const Value& item : value.items) {
      if (!item.is_string() || item.string.empty() || item.string.size() > 1000) {
        return reject(option, item, "a list of names");
      }
      characters += item.string.size();
      if (characters > kMostPatternCharacters) return reject(option, value, "a shorter list");
      read.list.push_back(item.string);
    }
    return true;
  }

  bool convert_choice(const Option& option, const Value& value, OptionValue& read) {
    std::string word = value.string;
    if (value.is_bool()) word = value.boolean ? "true" : "false";
    if (value.is_null()) word = "null";
    const Choice* choice =
        value.is_string() || value.is_bool() || value.is_null() ? find_choice(option, word) : nullptr;
    if (choice == nullptr) {
      std::vector<std::string_view> names;
      for (const Choice& candidate : option.choices) {
        if (candidate.modelled) names.push_back(candidate.name);
      }
      return reject(option, value, "one of " + listed(option), value.is_string() ? nearest(word, names) : "");
    }
    if (!choice->modelled && option.missing.empty()) {
      std::string message = "\"" + std::string{option.name} + "\" is \"" + std::string{choice->name} + "\"";
      if (!choice->help.empty()) message += " (" + std::string{choice->help} + ")";
      add("UNSUPPORTED_OPTION", Severity::kError, pointer_of(option.name),
          message + ", which is not modelled yet. Modelled are " + listed(option) + ".");
      return false;
    }
    read.choice = choice->value;
    read.text = choice->alias_of.empty() ? choice->name : choice->alias_of;
    return true;
  }

  bool convert_gpu(const Option& option, const Value& value, OptionValue& read) {
    const std::string wanted = "a catalog name such as \"A100-80GB\", or {\"memory_gib\": 24}";
    GpuQuery query;
    if (value.is_string()) {
      if (!is_card_name(value.string)) return reject(option, value, wanted);
      const std::optional<MemoryText> memory = read_memory_text(value.string);
      if (memory && memory->vram_gb + memory->memory_gib < kSmallestCardGib) return reject(option, value, wanted);
      if (memory) {
        query.vram_gb = memory->vram_gb;
        query.memory_gib = memory->memory_gib;
      } else {
        query.name = value.string;
      }
    } else if (value.is_object()) {
      for (const Value::Member& member : value.members) {
        const bool positive =
            member.value.is_number() && member.value.real >= kSmallestCardGib && member.value.real <= 1e6;
        if (member.key == "memory_gib" && positive) {
          query.memory_gib = member.value.real;
        } else if (member.key == "memory_gb" && positive) {
          query.memory_gib = member.value.real * 1e9 / static_cast<double>(kGiB);
        } else if (member.key == "vram_gb" && positive) {
          query.vram_gb = member.value.real;
        } else if (member.key == "name" && member.value.is_string() && is_card_name(member.value.string)) {
          query.name = member.value.string;
        } else if (member.key == "memory_gib" || member.key == "memory_gb" || member.key == "vram_gb" ||
                   member.key == "name") {
          return reject(option, member.value, wanted);
        } else {
          constexpr std::string_view kKeys[] = {"memory_gib", "memory_gb", "vram_gb", "name"};
          add("UNKNOWN_KEY", Severity::kWarning, pointer_of(option.name) + "/" + excerpt(member.key),
              in_quotes(member.key) + " is not a key that we know; it is ignored.", nearest(member.key, kKeys));
        }
      }
      if (query.name.empty() && query.memory_gib == 0.0 && query.vram_gb == 0.0) return reject(option, value, wanted);
      if ((query.memory_gib > 0.0 || !query.name.empty()) && query.vram_gb > 0.0) {
        add("INVALID_VALUE", Severity::kError, pointer_of(option.name),
            "\"vram_gb\" is for a card of which nothing else is known: leave it out beside \"name\" and "
            "\"memory_gib\".");
        return false;
      }
    } else {
      return reject(option, value, wanted);
    }
    read.gpus.push_back(std::move(query));
    return true;
  }

  const Value& root_;
  Issues& issues_;
  Request request_;
  std::vector<std::string_view> given_;
  std::vector<std::string_view> changed_;  ///< those of them that say something else than their defaults
  Count unknown_keys_ = 0;
};

}  // namespace

Request read_request(const Value& root, Issues& issues) {
  return Reader(root, issues).read();
}

}  // namespace tidemark
