#include "core/wire/engine.hpp"

#include "core/units/excerpt.hpp"
#include "core/units/joined.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

std::vector<std::string_view> answered_verbs() {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) {
    if (verb.run != nullptr) names.push_back(verb.name);
  }
  return names;
}

Asked asked_by(const Value& request) {
  Asked asked;
  asked.request = read_request(request, asked.issues);
  return asked;
}

}  // namespace

std::string_view engine_version() {
  return TIDEMARK_VERSION;
}

Issues Engine::load_catalog(std::string_view models_json, std::string_view gpus_json) {
  Issues issues;
  const Value models = parse_json(models_json, "/models", issues);
  const Value gpus = parse_json(gpus_json, "/gpus", issues);
  const Issues trouble = estimator_.load_catalog(models, gpus);
  if (!has_error(issues)) issues.insert(issues.end(), trouble.begin(), trouble.end());
  return issues;
}

Answer Engine::answer(const Value& request) const {
  return estimator_.answer(asked_by(request));
}

Understood Engine::read(const Value& request) const {
  return estimator_.understand(asked_by(request));
}

std::string Engine::handle(std::string_view text) const {
  Issues issues;
  const Value request = parse_json(text, "", issues);
  if (has_error(issues)) return write_json(write_errors(issues));
  // Warnings of the parser (a key twice) belong to the answer.
  return handle_parsed(request, issues, 0);
}

std::string Engine::handle(const Value& request, int indent) const {
  return handle_parsed(request, {}, indent);
}

std::string Engine::handle_parsed(const Value& request, const Issues& before, int indent) const {
  std::string_view name = "estimate";
  if (const Value* value = request.find("verb"); value != nullptr && !value->is_null()) {
    if (!value->is_string() || value->string.empty()) {
      return write_json(write_errors({{"INVALID_VALUE", Severity::kError, "/verb",
                                       "\"verb\" must be a word: " + joined(answered_verbs()) + ".", "estimate"}}),
                        indent);
    }
    name = value->string;
  }
  const Verb* chosen = nullptr;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) chosen = &verb;
  }
  if (chosen == nullptr || chosen->run == nullptr) {
    return write_json(write_errors({{"UNSUPPORTED_VERB", Severity::kError, "/verb",
                                     in_quotes(name) + " is not something that this engine does yet; it does " +
                                         joined(answered_verbs()) + ".",
                                     nearest(name, answered_verbs())}}),
                      indent);
  }
  Value reply = chosen->run(*this, request);
  if (!before.empty()) {
    Value list = write_issues(before);
    for (Value::Member& member : reply.members) {
      if (member.key != "issues") continue;
      for (Value& issue : list.items) member.value.items.push_back(std::move(issue));
    }
  }
  return write_json(reply, indent);
}

}  // namespace tidemark
