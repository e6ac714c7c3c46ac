#include "core/cli/verb_flags.hpp"

#include "core/options/options.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// JSON where the word is some, a list where commas part it, else text: the reader says what is wrong.
Value value_from(const VerbKey& key, const std::string& word) {
  Issues issues;
  Value value = parse_json(key.type == "integers" ? "[" + word + "]" : word, "", issues);
  return has_error(issues) ? to_value(word) : value;
}

void put(Value& request, std::string_view name, Value value) {
  for (Value::Member& member : request.members) {
    if (member.key != name) continue;
    member.value = std::move(value);
    return;
  }
  set(request, name, std::move(value));
}

}  // namespace

std::vector<std::string> flags_of(const VerbKey& key) {
  if (!key.has_flag()) return {};
  const std::string flag = flag_of(key.name);
  std::vector<std::string> flags = {key.standard == "true" ? "--no-" + flag.substr(2) : flag};
  for (std::string_view word : words_of(key.flags)) flags.emplace_back(word);
  return flags;
}

std::string_view placeholder(const VerbKey& key) {
  return key.type == "boolean" ? "" : key.type == "integers" ? " A,B" : key.type == "number" ? " X" : " WORD";
}

void VerbFlags::add_to(CLI::App& app, const Verb& verb) {
  const auto not_empty = [](const std::string& word) { return word.empty() ? "its value is empty" : std::string{}; };
  for (const VerbKey& key : verb.keys) {
    if (!key.has_flag()) continue;
    const std::string flag = flag_of(key.name);
    std::string names = flag;
    if (key.type == "boolean") {
      names += ",!--no-" + flag.substr(2);
      for (std::string_view word : words_of(key.flags)) names += ",!" + std::string{word};
      flags_.push_back({&key, app.add_flag(names)->take_last()});
    } else {
      flags_.push_back({&key, app.add_option(names)->check(not_empty)});
    }
  }
}

void VerbFlags::write_into(Value& request) const {
  for (const Flag& flag : flags_) {
    if (flag.parsed->count() > 0) put(request, flag.key->name, value_from(*flag.key, flag.parsed->results().back()));
  }
}

}  // namespace tidemark
