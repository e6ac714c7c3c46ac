#include "core/cli/schema.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/options/harmless.hpp"
#include "core/options/options.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

using Members = std::vector<std::pair<std::string_view, Value>>;

Value object(Members members) {
  Value made = empty_object();
  for (auto& [key, value] : members) set(made, key, std::move(value));
  return made;
}

Value array(std::vector<Value> items) {
  Value made = empty_array();
  made.items = std::move(items);
  return made;
}

Value json(std::string_view text) {
  Issues none;
  return parse_json(text, "", none);
}

/// {"type": ["integer", "null"]}: null stands for the default everywhere.
Value or_null(std::vector<std::string_view> types) {
  types.push_back("null");
  Value list = empty_array();
  for (std::string_view type : types) list.items.push_back(to_value(type));
  return object({{"type", std::move(list)}});
}

Value any_of(std::vector<Value> forms) {
  return object({{"anyOf", array(std::move(forms))}});
}

Value gpu_reference() {
  return object({{"$ref", to_value("#/$defs/Gpu")}});
}

Value non_empty_text() {
  return object({{"type", to_value("string")}, {"minLength", to_value(1)}});
}

/// The words of a choice; "true" may be written as the boolean, too.
Value choice_words(const Option& option) {
  Value words = empty_array();
  for (const Choice& choice : option.choices) {
    if (!choice.modelled) continue;
    words.items.push_back(to_value(choice.name));
    if (choice.name == "true" || choice.name == "false") words.items.push_back(to_value(choice.name == "true"));
  }
  return words;
}

Value numbers(const Option& option) {
  const bool integer = option.type == OptionType::kInteger;
  const auto bound = [&](double value) {
    return integer ? to_value(static_cast<std::int64_t>(value)) : to_value(value);
  };
  Value schema = or_null({integer ? "integer" : "number"});
  if (option.minimum == option.maximum) return schema;
  set(schema, "minimum", bound(option.minimum));
  set(schema, "maximum", bound(option.maximum));
  return schema;
}

Value texts(const Option& option) {
  Value schema = option.number_is_text ? or_null({"string", "number"}) : or_null({"string"});
  set(schema, "minLength", 1);
  return schema;
}

Value choices(const Option& option) {
  Value words = choice_words(option);
  Value list = object({{"type", to_value("array")}, {"items", object({{"enum", words}})}});
  words.items.push_back(Value{});
  Value one = object({{"enum", std::move(words)}});
  return option.type == OptionType::kChoice ? one : any_of({std::move(one), std::move(list)});
}

/// Of what is known and not modelled only the default is accepted.
Value only_default(const Option& option) {
  Value standard = json(option.standard);
  if (standard.is_null()) return object({{"type", to_value("null")}});
  return object({{"enum", array({std::move(standard), Value{}})}});
}

/// What may stand where an option's value does.
Value values_of(const Option& option) {
  if (!option.missing.empty()) return only_default(option);
  switch (option.type) {
    case OptionType::kBool:
      return or_null({"boolean"});
    case OptionType::kInteger:
    case OptionType::kReal:
      if (option.automatic == nullptr) return numbers(option);
      return any_of({numbers(option), object({{"enum", array({to_value("auto")})}})});
    case OptionType::kText:
      return texts(option);
    case OptionType::kTextList: {
      Value schema = or_null({"string", "array"});
      set(schema, "minLength", 1);
      set(schema, "items", non_empty_text());
      return schema;
    }
    case OptionType::kChoice:
    case OptionType::kChoiceList:
      return choices(option);
    case OptionType::kDocument:
      return or_null({"object"});
    case OptionType::kGpu:
      return any_of({gpu_reference(), or_null({})});
    case OptionType::kGpuList: {
      Value schema = or_null({"array"});
      set(schema, "items", gpu_reference());
      return schema;
    }
    case OptionType::kAny:
      return empty_object();
  }
  return empty_object();
}

std::string help_of(const Option& option) {
  std::string help{option.help};
  if (!option.unit.empty()) help += " Unit: " + std::string{option.unit} + ".";
  if (!option.missing.empty()) help += " Not modelled: " + std::string{option.missing};
  return help;
}

/// The keys of a request as the tree that they form: "adapter.r" is "r" below "adapter".
struct Key {
  std::string name;
  const Option* option = nullptr;  ///< whose value stands here, if any does
  bool other_name = false;         ///< it is another tool's key for that option
  std::vector<Key> below;

  Key& at(std::string_view path) {
    const std::size_t dot = path.find('.');
    const std::string_view first = path.substr(0, dot);
    Key* found = nullptr;
    for (Key& key : below) {
      if (key.name == first) found = &key;
    }
    if (found == nullptr) found = &below.emplace_back(Key{std::string{first}});
    return dot == std::string_view::npos ? *found : found->at(path.substr(dot + 1));
  }
};

Key all_keys() {
  Key root;
  for (const Option& option : options()) root.at(option.name).option = &option;
  for (const Option& option : options()) {
    for (std::string_view path : words_of(option.also)) {
      Key& key = root.at(path);
      if (key.option == nullptr) key = {key.name, &option, true, std::move(key.below)};
    }
  }
  return root;
}

Value schema_of(const Key& key);

/// An object with these keys and no other.
Value object_of(const std::vector<Key>& keys) {
  Value properties = empty_object();
  for (const Key& key : keys) set(properties, key.name, schema_of(key));
  return object({{"type", json(R"(["object", "null"])")},
                 {"properties", std::move(properties)},
                 {"additionalProperties", to_value(false)}});
}

Value schema_of(const Key& key) {
  if (key.option == nullptr) return object_of(key.below);
  const Option& option = *key.option;
  Value schema = values_of(option);
  if (key.other_name) {
    set(schema, "description", "Another name of \"" + std::string{option.name} + "\".");
    return schema;
  }
  if (!key.below.empty()) schema = any_of({std::move(schema), object_of(key.below)});
  set(schema, "title", option.label);
  set(schema, "description", help_of(option));
  set(schema, "default", json(option.standard));
  return schema;
}

/// What `calibrate` is asked about, as core/wire/verbs/calibrate.cpp reads it.
Value measurements_schema() {
  return json(R"({
    "type": ["array", "null"],
    "items": {
      "type": "object",
      "properties": {
        "name": {"description": "How it is called in the answer.", "type": "string"},
        "job": {"description": "What ran: options, over those of the request.", "type": "object"},
        "allocated_bytes": {"description": "torch.cuda.max_memory_allocated().", "type": ["integer", "null"], "minimum": 1},
        "reserved_bytes": {"description": "torch.cuda.max_memory_reserved().", "type": ["integer", "null"], "minimum": 1},
        "device_bytes": {"description": "Of the process, as nvidia-smi shows it.", "type": ["integer", "null"], "minimum": 1}
      },
      "additionalProperties": false
    },
    "minItems": 1,
    "maxItems": 64
  })");
}

Value schema_of(const VerbKey& key) {
  Value schema = !key.has_flag()          ? measurements_schema()
                 : key.type == "integers" ? or_null({"array"})
                                          : or_null({key.type});
  if (key.type == "integers") {
    set(schema, "items", object({{"type", to_value("integer")}, {"minimum", to_value(1)}}));
    set(schema, "minItems", 1);
    set(schema, "maxItems", 64);
  }
  if (!key.words.empty()) {
    Value words = empty_array();
    for (std::string_view word : words_of(key.words)) words.items.push_back(to_value(word));
    words.items.push_back(Value{});
    schema = object({{"enum", std::move(words)}});
  }
  set(schema, "description", key.help);
  set(schema, "default", json(key.standard));
  return schema;
}

/// What holds of a request of one verb, and of all others: its keys belong to no other, and a verb that is about no job
/// takes no options.
Value rule_of(const Verb& verb) {
  Value own = empty_object();
  Value names = json(R"(["schema", "verb"])");
  for (const VerbKey& key : verb.keys) {
    set(own, key.name, false);
    names.items.push_back(to_value(key.name));
  }
  Value rule = empty_object();
  set(rule, "if",
      object({{"properties", object({{"verb", object({{"const", to_value(verb.name)}})}})},
              {"required", json(R"(["verb"])")}}));
  if (!verb.of_job) set(rule, "then", object({{"propertyNames", object({{"enum", std::move(names)}})}}));
  if (!own.members.empty()) set(rule, "else", object({{"properties", std::move(own)}}));
  return rule;
}

/// A card, as core/wire/read_request.cpp reads one.
Value gpu_schema() {
  return json(R"({
    "description": "A card: a catalog name or alias, or its memory: as torch sees it, or as it is sold.",
    "anyOf": [
      {"type": "string", "minLength": 1, "maxLength": 200},
      {"type": "object", "properties": {
          "vram_gb": {"description": "Memory on the box, where nothing else is known.",
                      "type": "number", "minimum": 0.1, "maximum": 1e6}},
        "required": ["vram_gb"], "additionalProperties": false},
      {"type": "object", "properties": {
          "name": {"description": "A catalog name or alias.", "type": "string", "minLength": 1, "maxLength": 200},
          "memory_gib": {"description": "Memory as torch sees it, GiB.",
                         "type": "number", "minimum": 0.1, "maximum": 1e6},
          "memory_gb": {"description": "The same in units of 10^9 bytes.",
                        "type": "number", "minimum": 0.1, "maximum": 1e6}},
        "minProperties": 1, "additionalProperties": false}
    ]})");
}

}  // namespace

Value request_schema() {
  Value verb_names = empty_array();
  Value rules = empty_array();
  Value keys = empty_object();
  for (const Verb& verb : verbs()) {
    if (verb.run == nullptr) continue;
    verb_names.items.push_back(to_value(verb.name));
    if (!verb.of_job || !verb.keys.empty()) rules.items.push_back(rule_of(verb));
    for (const VerbKey& key : verb.keys) set(keys, key.name, schema_of(key));
  }
  verb_names.items.push_back(Value{});

  Value properties = empty_object();
  set(properties, "schema", json(R"({"const": 1, "description": "Version of this vocabulary."})"));
  set(properties, "verb",
      object({{"enum", std::move(verb_names)},
              {"description", to_value("What is asked for.")},
              {"default", to_value("estimate")}}));
  for (const Key& key : all_keys().below) set(properties, key.name, schema_of(key));
  for (Value::Member& key : keys.members) properties.members.push_back(std::move(key));
  for (const HarmlessKey& key : harmless_keys()) {
    set(properties, key.key,
        object({{"description", to_value("Moves no memory of the peak: " + std::string{key.why} + ".")}}));
  }
  return object(
      {{"$schema", to_value("http://json-schema.org/draft-07/schema#")},
       {"title", to_value("A request to Tidemark")},
       {"description", to_value("Made by `tidemark schema request`. Everything has a default; null stands for it.")},
       {"type", to_value("object")},
       {"properties", std::move(properties)},
       {"additionalProperties", to_value(false)},
       {"allOf", std::move(rules)},
       {"$defs", object({{"Gpu", gpu_schema()}})}});
}

}  // namespace tidemark
