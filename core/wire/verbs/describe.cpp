#include "core/job/options.hpp"
#include "core/model/read_config.hpp"
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

Value write_option(const Option& option) {
  Issues none;
  Value row = empty_object();
  set(row, "name", option.name);
  set(row, "path", pointer_of(option.name));
  set(row, "group", option.group);
  set(row, "type", name_of(option.type));
  set(row, "default", parse_json(option.standard, "", none));
  if (!option.choices.empty()) set(row, "values", write_choices(option));
  if (option.minimum != option.maximum) {
    const bool integer = option.type == OptionType::kInteger;
    const auto bound = [&](double value) {
      return integer ? to_value(static_cast<std::int64_t>(value)) : to_value(value);
    };
    set(row, "minimum", bound(option.minimum));
    set(row, "maximum", bound(option.maximum));
  }
  if (!option.unit.empty()) set(row, "unit", option.unit);
  Value flags = empty_array();
  for (const std::string& flag : flags_of(option)) flags.items.push_back(to_value(flag));
  set(row, "flags", std::move(flags));
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
