#include "core/cli/verb_flags.hpp"

#include "core/cli/typed_numbers.hpp"
#include "core/options/options.hpp"
#include "core/units/make_value.hpp"

namespace tidemark {
namespace {

/// JSON where the word is some, a list where commas part it, else text: the reader says what is wrong.
Value value_from(const VerbKey& key, const std::string& word) {
  if (key.type != "integers" || word.find('[') != std::string::npos) return json_or_text(word);
  Value list = empty_array();
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = word.find(',', at);
    list.items.push_back(whole_from(word.substr(at, end == std::string::npos ? end : end - at)));
  }
  return list;
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
