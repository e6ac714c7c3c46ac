#include "core/families/read_config.hpp"
#include "core/options/options.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

Value write_choices(const Option& option) {
  Value values = empty_array();
  for (const Choice& choice : option.choices) {
    if (!choice.alias_of.empty()) continue;
    Value row = empty_object();
    set(row, "name", choice.name);
    set(row, "help", choice.help);
    set(row, "modelled", choice.modelled);
    Value aliases = empty_array();
    for (const Choice& other : option.choices) {
      if (other.alias_of == choice.name) aliases.items.push_back(to_value(other.name));
    }
    if (!aliases.items.empty()) set(row, "aliases", std::move(aliases));
    values.items.push_back(std::move(row));
  }
  return values;
}

/// {"method": ["lora", "qlora"]}: any of these words makes it matter.
Value write_relevance(const Relevance& relevant) {
  Value words = empty_array();
  for (std::string_view word : words_of(relevant.words)) words.items.push_back(to_value(word));
  Value rule = empty_object();
  set(rule, relevant.option, std::move(words));
  return rule;
}

Value write_option(const Option& option) {
  Issues none;
  const bool integer = option.type == OptionType::kInteger;
  const auto bound = [&](double value) {
    return integer ? to_value(static_cast<std::int64_t>(value)) : to_value(value);
  };
  Value row = empty_object();
  set(row, "name", option.name);
  set(row, "label", option.label);
  set(row, "path", pointer_of(option.name));
  set(row, "group", option.group);
  set(row, "type", name_of(option.type));
  set(row, "default", parse_json(option.standard, "", none));
  if (!option.choices.empty()) set(row, "values", write_choices(option));
  if (option.minimum != option.maximum) {
    set(row, "minimum", bound(option.minimum));
    set(row, "maximum", bound(option.maximum));
  }
  if (option.usual_minimum != option.usual_maximum) {
    Value usual = empty_array();
    usual.items = {bound(option.usual_minimum), bound(option.usual_maximum)};
    set(row, "usual", std::move(usual));
  }
  if (!option.unit.empty()) set(row, "unit", option.unit);
  if (!option.relevant.option.empty()) set(row, "relevant", write_relevance(option.relevant));
  if (!option.word_key.empty()) {
    set(row, "word_key", option.word_key);
    set(row, "word_default", option.word_standard);
  }
  Value flags = empty_array();
  for (const std::string& flag : flags_of(option)) flags.items.push_back(to_value(flag));
  set(row, "flags", std::move(flags));
  if (!option.also.empty()) {
    Value keys = empty_array();
    for (std::string_view key : words_of(option.also)) keys.items.push_back(to_value(key));
    set(row, "also", std::move(keys));
  }
  set(row, "help", option.help);
  set(row, "advanced", option.advanced);
  set(row, "modelled", option.missing.empty());
  if (!option.missing.empty()) set(row, "missing", option.missing);
  return row;
}

}  // namespace

Value run_describe(const Engine& engine, const Value&) {
  Value groups = empty_array();
  for (const OptionGroup& group : option_groups()) {
    Value row = empty_object();
    set(row, "name", group.name);
    set(row, "title", group.title);
    set(row, "usual", group.usual);
    if (!group.relevant.option.empty()) set(row, "relevant", write_relevance(group.relevant));
    groups.items.push_back(std::move(row));
  }
  Value rows = empty_array();
  for (const Option& option : options()) rows.items.push_back(write_option(option));
  Value verb_rows = empty_array();
  for (const Verb& verb : verbs()) {
    Value row = empty_object();
    set(row, "name", verb.name);
    set(row, "help", verb.help);
    set(row, "modelled", verb.run != nullptr);
    Value keys = empty_array();
    for (const VerbKey& key : verb.keys) {
      Issues none;
      Value line = empty_object();
      set(line, "name", key.name);
      set(line, "type", key.type);
      set(line, "default", parse_json(key.standard, "", none));
      set(line, "help", key.help);
      keys.items.push_back(std::move(line));
    }
    if (!keys.items.empty()) set(row, "keys", std::move(keys));
    verb_rows.items.push_back(std::move(row));
  }
  Value types = empty_array();
  for (std::string_view type : supported_model_types()) types.items.push_back(to_value(type));
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", engine_version());
  set(reply, "catalog", engine.catalog().date());
  set(reply, "verbs", std::move(verb_rows));
  set(reply, "groups", std::move(groups));
  set(reply, "options", std::move(rows));
  set(reply, "model_types", std::move(types));
  return reply;
}

}  // namespace tidemark
