#include "core/cli/job_flags.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/cli/sentence.hpp"
#include "core/cli/typed_numbers.hpp"
#include "core/options/options.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/letters.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return words;
}

/// The items of a flag that may be repeated and takes several by commas. What is written as JSON is taken as it is:
/// '["a,b"]' is one item with a comma, '"a"' the text that a list of one is not, '{"vram_gb": 24}' a card.
Value list_of(const std::vector<std::string>& words, Value (*make)(const std::string&)) {
  Value list = empty_array();
  for (const std::string& text : words) {
    if (!text.empty() && (text.front() == '[' || text.front() == '"' || text.front() == '{')) {
      Value written = json_or_text(text);
      if (words.size() == 1 && !written.is_object()) return written;
      list.items.push_back(std::move(written));
      continue;
    }
    for (const std::string& word : split(text)) list.items.push_back(make(word));
  }
  return list;
}

Value text_from(const std::string& text) {
  return to_value(text);
}

/// The value that the words of a flag stand for.
Value value_from(const Option& option, const std::vector<std::string>& words, Issues& issues) {
  const std::string& last = words.back();
  switch (option.type) {
    case OptionType::kBool: {
      const std::string word = lower_case(last);
      if (word == "true" || word == "1" || word == "yes" || word == "on") return to_value(true);
      if (word == "false" || word == "0" || word == "no" || word == "off") return to_value(false);
      return to_value(last);
    }
    case OptionType::kInteger:
      return whole_from(last);
    case OptionType::kReal:
      return option.counts ? count_from(last) : json_or_text(last);
    case OptionType::kText:
      return to_value(last);
    case OptionType::kChoice:
      return to_value(last);
    case OptionType::kTextList:
    case OptionType::kChoiceList:
      return list_of(words, text_from);
    case OptionType::kDocument: {
      const std::string text = read_file(last, issues);
      return has_error(issues) ? Value{} : parse_json(text, pointer_of(option.name), issues);
    }
    case OptionType::kGpu:
    case OptionType::kGpuList:
      return list_of(words, text_from);
    case OptionType::kAny:
      return json_or_text(last);
  }
  return {};
}

/// Whether a flag may be given several times.
bool is_list(const Option& option) {
  return option.type == OptionType::kTextList || option.type == OptionType::kChoiceList ||
         option.type == OptionType::kGpu || option.type == OptionType::kGpuList;
}

/// A choice that has "true" among its words: the bare flag means that.
bool is_switch_too(const Option& option) {
  return option.type == OptionType::kChoice && find_choice(option, "true") != nullptr;
}

Value* member_of(Value& object, std::string_view key) {
  for (Value::Member& member : object.members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

/// Writes `value` at "adapter.r", making the objects on the way.
void put(Value& object, std::string_view name, Value value, Issues& issues) {
  const std::size_t dot = name.find('.');
  const std::string_view key = name.substr(0, dot);
  Value* member = member_of(object, key);
  if (dot == std::string_view::npos) {
    if (member != nullptr)
      *member = std::move(value);
    else
      set(object, key, std::move(value));
    return;
  }
  if (member == nullptr) {
    set(object, key, empty_object());
    member = &object.members.back().value;
  } else if (!member->is_object()) {
    // A word stands where an object is needed: --precision pure_bf16 --precision-optimizer-states fp32.
    Value moved = empty_object();
    const Option* whole = find_option(key);
    if (whole != nullptr && !whole->word_key.empty() && member->is_string()) {
      set(moved, whole->word_key, *member);
    } else if (!member->is_null()) {
      issues.push_back({"INVALID_VALUE", Severity::kError, pointer_of(key),
                        "\"" + std::string{key} + "\" is given both as a word and by its parts (" + std::string{name} +
                            "); give one of them.",
                        ""});
    }
    *member = std::move(moved);
  }
  put(*member, name.substr(dot + 1), std::move(value), issues);
}

/// No model is called like that: files that are there have been read before a word is taken for a model.
bool names_file(std::string_view word) {
  constexpr std::string_view kEndings[] = {".py", ".ipynb", ".yaml", ".yml", ".json", ".jsonl",       ".toml",
                                           ".sh", ".log",   ".txt",  ".out", ".err",  ".safetensors", ".gguf"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

std::string in_words(std::string_view option) {
  return option == "gpu" ? "card" : option == "sequence_length" ? "sequence length" : std::string{option};
}

}  // namespace

std::string read_file(const std::string& path, Issues& issues, std::size_t limit) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  if (file == nullptr) {
    issues.push_back({"UNREADABLE_FILE", Severity::kError, "", path + ": " + std::strerror(errno) + ".", ""});
    return text;
  }
  char buffer[65536];
  bool complete = true;
  while (complete) {
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, file);
    text.append(buffer, count);
    if (count < sizeof buffer) break;
    // One byte more than the limit is enough to be told that it is too much.
    complete = text.size() <= limit;
  }
  if (std::ferror(file) != 0) {
    issues.push_back({"UNREADABLE_FILE", Severity::kError, "", path + ": " + std::strerror(errno) + ".", ""});
  }
  if (file != stdin) std::fclose(file);
  return text;
}

std::string flag_for_pointer(const std::string& pointer) {
  for (const Option& option : options()) {
    if (pointer_of(option.name) == pointer) return flag_of(option);
  }
  return {};
}

void JobFlags::add_to(CLI::App& app) {
  flags_.resize(options().size());
  std::size_t index = 0;
  for (const Option& option : options()) {
    Flag& flag = flags_[index];
    flag.option = index++;
    std::string names;
    for (const std::string& name : flags_of(option)) {
      names += names.empty() ? "" : ",";
      names += name;
    }
    if (option.type == OptionType::kBool) {
      for (const std::string& name : flags_of(option)) names += ",!--no-" + name.substr(2);
      flag.parsed = app.add_flag(names)->take_all();
    } else {
      flag.parsed = app.add_option(names, flag.words)->allow_extra_args(false);
      if (is_switch_too(option)) flag.parsed->expected(0, 1);
    }
  }
  app.add_option("--vram-gb,--vram", sizes_)->allow_extra_args(false);
  constexpr int kWords = 16;  // a whole sentence, and some to spare
  app.add_option("MODEL", sentence_)->expected(0, kWords);
}

bool JobFlags::states(std::string_view option) const {
  if (option == "gpu" && !sizes_.empty()) return true;
  return std::any_of(flags_.begin(), flags_.end(), [&](const Flag& flag) {
    const std::string_view name = options()[flag.option].name;
    const bool same = option == "model" ? name == "config" || name == "parameters" : option == "gpu" && name == "gpus";
    return (same || name == option) && flag.parsed->count() > 0;
  });
}

void JobFlags::check(Issues& issues) const {
  const auto refuse = [&](std::string path, std::string message) {
    issues.push_back({"BAD_USAGE", Severity::kError, std::move(path), std::move(message), ""});
  };
  for (const Flag& flag : flags_) {
    const Option& option = options()[flag.option];
    if (flag.parsed->count() > 1 && !is_list(option)) {
      refuse(flag_of(option), "The flag " + flag_of(option) + " is given more than once.");
    }
  }
  const std::vector<Said> said = read_sentence(sentence_);
  for (const Said& one : said) {
    const auto is_same = [&](const Said& other) { return other.option == one.option; };
    const bool is_first = &*std::find_if(said.begin(), said.end(), is_same) == &one;
    if (one.word == "true" || one.word == "false") {
      refuse("", "A switch takes no word behind it: write --no-padding or --padding=false, not --padding false.");
    } else if (names_file(one.word)) {
      refuse("", "There is no file " + in_quotes(one.word) + " that can be read.");
    } else if (!is_first || states(one.option)) {
      refuse("", in_quotes(one.word) + " belongs to no flag, and the " + in_words(one.option) + " is stated already.");
    }
  }
}

Value JobFlags::request(Value base, Issues& issues) const {
  Value request = base.is_null() ? empty_object() : std::move(base);
  if (!request.is_object()) return request;
  Value cards = empty_array();
  for (const Said& one : read_sentence(sentence_)) {
    if (one.option == "gpu") {
      cards.items.push_back(to_value(one.word));
    } else {
      put(request, one.option, value_from(*find_option(one.option), {one.word}, issues), issues);
    }
  }
  for (const Flag& flag : flags_) {
    if (flag.parsed->count() == 0) continue;
    const Option& option = options()[flag.option];
    std::vector<std::string> words =
        option.type == OptionType::kBool || flag.words.empty() ? flag.parsed->results() : flag.words;
    if (is_switch_too(option) && (words.empty() || words.back().empty())) words = {"true"};
    if (words.empty()) continue;
    Value value = value_from(option, words, issues);
    if (option.type == OptionType::kGpu || option.type == OptionType::kGpuList) {
      if (!value.is_array()) cards.items.push_back(std::move(value));
      for (Value& card : value.items) cards.items.push_back(std::move(card));
      continue;
    }
    put(request, option.name, std::move(value), issues);
  }
  for (double size : sizes_) {
    Value card = empty_object();
    set(card, "vram_gb", size);
    cards.items.push_back(std::move(card));
  }
  if (!cards.items.empty()) {
    // Cards on the command line take the place of those in the file.
    put(request, "gpu", Value{}, issues);
    put(request, "gpus", std::move(cards), issues);
  }
  return request;
}

}  // namespace tidemark
