#include "core/wire/ask.hpp"

#include <algorithm>

#include "core/engine/questions.hpp"
#include "core/options/options.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

/// The request without the keys that only the verb reads.
Value without_keys(const Value& request, std::span<const VerbKey> keys) {
  Value rest = empty_object();
  if (!request.is_object()) return request;
  for (const Value::Member& member : request.members) {
    const bool own = std::any_of(keys.begin(), keys.end(), [&](const VerbKey& key) { return key.name == member.key; });
    if (!own) rest.members.push_back(member);
  }
  return rest;
}

void refuse(Issues& issues, std::string_view key, std::string wanted) {
  issues.push_back({"INVALID_VALUE", Severity::kError, "/" + std::string{key},
                    "\"" + std::string{key} + "\" must be " + std::move(wanted) + ".", ""});
}

bool read_flag(const Value& request, std::string_view key, bool standard, Issues& issues) {
  const Value* value = request.find(key);
  if (value == nullptr || value->is_null()) return standard;
  if (!value->is_bool()) refuse(issues, key, "true or false");
  return value->boolean;
}

std::vector<Count> read_counts(const Value& request, std::string_view key, Count most, Issues& issues) {
  std::vector<Count> counts;
  const Value* value = request.find(key);
  if (value == nullptr || value->is_null()) return counts;
  const std::string wanted = "a list of at most 64 whole numbers from 1 to " + format_grouped(most);
  if (!value->is_array() || value->items.empty() || value->items.size() > 64) {
    refuse(issues, key, wanted);
    return counts;
  }
  for (const Value& item : value->items) {
    if (!item.is_integer() || item.integer < 1 || item.integer > most) {
      refuse(issues, key, wanted);
      return counts;
    }
    counts.push_back(item.integer);
  }
  return counts;
}

Asked job_of(const Value& request, std::string_view verb) {
  Asked asked;
  asked.request = read_request(without_keys(request, find_verb(verb)->keys), asked.issues);
  return asked;
}

/// Whether one option stands directly below another: "gradient_checkpointing.every" and "gradient_checkpointing".
bool is_part_of(std::string_view option, std::string_view parent) {
  return option.size() > parent.size() && option[parent.size()] == '.' && option.substr(0, parent.size()) == parent &&
         option.find('.', parent.size() + 1) == std::string_view::npos;
}

/// Where the parts of an option start from a clean state, those that are not set must go: RFC 7396 says so with nulls.
void clear_other_parts(Value& object, std::string_view parent) {
  const Option* whole = find_option(parent);
  if (whole == nullptr || whole->open == nullptr) return;
  for (const Option& part : options()) {
    if (!is_part_of(part.name, parent)) continue;
    const std::string_view key = part.name.substr(parent.size() + 1);
    if (object.find(key) == nullptr) set(object, key, Value{});
  }
}

/// The value under a key of an object, null where there was none.
Value& member_of(Value& object, std::string_view key) {
  for (Value::Member& member : object.members) {
    if (member.key == key) return member.value;
  }
  set(object, key, Value{});
  return object.members.back().value;
}

/// Writes a value under a name like "parallelism.data".
void write_at(std::string_view name, const Value& value, Value& document) {
  Value* object = &document;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    object = &member_of(*object, name.substr(0, dot));
    if (!object->is_object()) *object = empty_object();
    name.remove_prefix(dot + 1);
  }
  set(*object, name, value);
}

/// The job of a request with settings written into it.
Rewrite rewriting(const Value& request, std::string_view verb, const Asked& asked) {
  return [&request, verb, stated_as = asked.request.stated_as](const std::vector<Setting>& settings) {
    Value changed = request;
    patch_with(merge_patch(settings, stated_as), changed);
    return job_of(changed, verb);
  };
}

}  // namespace

FitReport ask_fit(const Engine& engine, const Value& request) {
  FitQuestion question{job_of(request, "fit")};
  question.all_cards = read_flag(request, "all_gpus", false, question.trouble);
  if (const Value* rule = request.find("rule_of_thumb"); rule != nullptr && !rule->is_null()) {
    if (!rule->is_number() || !(rule->real > 0.0 && rule->real <= 1.0)) {
      refuse(question.trouble, "rule_of_thumb", "a share of the card, more than 0 and at most 1");
    }
    question.rule_of_thumb = rule->real;
  }
  question.fewest = read_flag(request, "fewest", true, question.trouble);
  question.rewrite = rewriting(request, "fit", question.job);
  return ask(engine.estimator(), question);
}

AdviceReport ask_advice(const Engine& engine, const Value& request) {
  AdviceQuestion question{job_of(request, "advise")};
  question.frontiers = read_flag(request, "frontiers", true, question.trouble);
  question.tiers = read_flag(request, "tiers", true, question.trouble);
  question.modes = read_flag(request, "modes", true, question.trouble);
  question.rewrite = rewriting(request, "advise", question.job);
  return ask(engine.estimator(), question);
}

MapReport ask_map(const Engine& engine, const Value& request) {
  MapQuestion question{job_of(request, "map")};
  question.batches = read_counts(request, "batches", 1000000, question.trouble);
  question.cards = read_counts(request, "cards", 4096, question.trouble);
  question.sequences = read_counts(request, "sequences", 100000000, question.trouble);
  if (const Value* exact = request.find("exact"); exact != nullptr && !exact->is_null()) {
    question.exact = read_flag(request, "exact", false, question.trouble);
  }
  return ask(engine.estimator(), question);
}

Value merge_patch(const std::vector<Setting>& settings, const StatedAs& stated_as) {
  Value patch = empty_object();
  for (const Setting& setting : merged(settings)) {
    write_at(setting.option, setting.value, patch);
    for (const auto& [option, key] : stated_as) {
      const bool is_it =
          option == setting.option || is_part_of(option, setting.option) || is_part_of(setting.option, option);
      if (is_it) write_at(key, Value{}, patch);
    }
  }
  for (Value::Member& member : patch.members) {
    if (member.value.is_object()) clear_other_parts(member.value, member.key);
  }
  return patch;
}

void patch_with(const Value& patch, Value& target) {
  for (const Value::Member& member : patch.members) {
    if (member.value.is_null()) {
      std::erase_if(target.members, [&](const Value::Member& old) { return old.key == member.key; });
      continue;
    }
    Value& place = member_of(target, member.key);
    if (!member.value.is_object()) {
      place = member.value;
      continue;
    }
    if (!place.is_object()) place = empty_object();
    patch_with(member.value, place);
  }
}

}  // namespace tidemark
