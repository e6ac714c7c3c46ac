#include "core/job/lora_targets.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::string_view kTargetsPath = "/adapter/target_modules";
constexpr std::string_view kExclusionsPath = "/adapter/exclude_modules";
constexpr std::string_view kSavedPath = "/adapter/modules_to_save";
constexpr std::string_view kRanksPath = "/adapter/rank_pattern";
constexpr std::string_view kListsPath = "/adapter/layers_pattern";

std::vector<std::string> listed(const ModuleChoice& choice, const std::vector<std::string>& attention) {
  if (choice.kind == ModuleChoice::Kind::kAttention) return attention;
  return choice.kind == ModuleChoice::Kind::kNames ? choice.names : std::vector<std::string>{};
}

void warn(Issues& issues, std::string_view path, const std::string& pattern, std::string_view consequence) {
  issues.push_back({"UNMATCHED_PATTERN", Severity::kWarning, std::string{path},
                    "\"" + pattern.substr(0, 100) + "\" fits no module of this model" + std::string{consequence}, ""});
}

}  // namespace

LoraTargets::LoraTargets(const Adapter& adapter, const std::vector<std::string>& attention,
                         const std::vector<std::string>& added_to_save, Issues& issues)
    : adapter_(adapter),
      targets_(listed(adapter.target_modules, attention)),
      exclusions_(listed(adapter.exclude_modules, attention)) {
  const auto whole = [&](const ModuleChoice& choice, std::string_view path) {
    if (choice.kind != ModuleChoice::Kind::kExpression) return Expression{};
    return read(choice.expression, choice.expression, path, issues);
  };
  target_expression_ = whole(adapter.target_modules, kTargetsPath);
  exclusion_expression_ = whole(adapter.exclude_modules, kExclusionsPath);
  for (const auto* names : {&adapter.modules_to_save, &added_to_save}) {
    for (const std::string& name : *names) {
      saved_.push_back(read(name, "(^|.*\\.)(?:" + name + ")($|\\..*)", kSavedPath, issues));
    }
  }
  for (const PatternRank& rank : adapter.rank_pattern) {
    ranks_.push_back(read(rank.pattern, "(.*\\.)?(" + rank.pattern + ")$", kRanksPath, issues));
  }
  for (const std::string& list : adapter.layers_pattern) {
    layer_lists_.push_back(read(list, ".*\\.(?:" + list + ")", kListsPath, issues));
  }
}

LoraTargets::Expression LoraTargets::read(const std::string& text, const std::string& whole, std::string_view path,
                                          Issues& issues) const {
  Expression expression{text, std::nullopt, false};
  if (is_plain_name(text)) return expression;
  std::string error;
  expression.regex = Regex::compile(whole, error);
  if (!expression.regex) {
    issues.push_back({"INVALID_VALUE", Severity::kError, std::string{path},
                      "\"" + text.substr(0, 100) + "\" cannot be read as a regular expression: " + error + ".", ""});
  }
  return expression;
}

bool LoraTargets::excluded(std::string_view module) {
  Expression& e = exclusion_expression_;
  if (!e.text.empty()) {
    const bool fits = e.regex ? e.regex->matches(module) : module == e.text;
    e.used = e.used || fits;
    return fits;
  }
  return exclusions_.names(module);
}

bool LoraTargets::saved(std::string_view module) const {
  return std::any_of(saved_.begin(), saved_.end(), [&](const Expression& e) {
    return e.regex ? e.regex->matches(module) : has_parts(module, e.text);
  });
}

// re.match(r".*\.{list}\.(\d+)\.", name): the last number that stands behind such a name and before another part.
bool LoraTargets::in_chosen_layer(std::string_view module) const {
  for (std::size_t end = module.rfind('.'); end != std::string_view::npos && end > 0;) {
    const std::size_t begin = module.rfind('.', end - 1);
    if (begin == std::string_view::npos) return false;
    const std::string_view number = module.substr(begin + 1, end - begin - 1);
    const bool is_number = has_number_part(number);
    if (is_number && ends_with_list(module.substr(0, begin))) {
      Count layer = 0;
      for (const char c : number) layer = std::min<Count>(layer * 10 + (c - '0'), 1000000000);
      const std::vector<Count>& chosen = adapter_.layers_to_transform;
      return std::find(chosen.begin(), chosen.end(), layer) != chosen.end();
    }
    end = begin;
  }
  return false;
}

// The list needs a part before it: `.*\.` takes at least the dot.
bool LoraTargets::ends_with_list(std::string_view list) const {
  if (list.find('.') == std::string_view::npos) return false;
  if (layer_lists_.empty()) return true;
  return std::any_of(layer_lists_.begin(), layer_lists_.end(), [&](const Expression& e) {
    return e.regex ? e.regex->matches(list) : list.size() > e.text.size() && ends_with_parts(list, e.text);
  });
}

LoraTargets::Verdict LoraTargets::verdict(std::string_view module, bool counts_as_all_linear) {
  if (excluded(module) || saved(module)) return Verdict::kExcluded;
  bool named = false;
  switch (adapter_.target_modules.kind) {
    case ModuleChoice::Kind::kAllLinear:
      named = counts_as_all_linear;
      break;
    case ModuleChoice::Kind::kExpression:
      named = target_expression_.regex ? target_expression_.regex->matches(module) : module == target_expression_.text;
      break;
    default:
      if (targets_.has(module)) return Verdict::kTargeted;  // a full name needs no layer's number
      named = targets_.names(module) && (adapter_.layers_to_transform.empty() || in_chosen_layer(module));
  }
  return named ? Verdict::kTargeted : Verdict::kNotNamed;
}

Count LoraTargets::rank(std::string_view module) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Expression& e = ranks_[i];
    if (!(e.regex ? e.regex->matches(module) : ends_with_parts(module, e.text))) continue;
    e.used = true;
    return adapter_.rank_pattern[i].rank;
  }
  return adapter_.r;
}

bool LoraTargets::tells_layers_apart() const {
  const auto apart = [](const Expression& e) {
    return e.regex ? e.regex->tells_digits_apart() : has_number_part(e.text);
  };
  return !adapter_.layers_to_transform.empty() || targets_.tells_layers_apart() || exclusions_.tells_layers_apart() ||
         apart(target_expression_) || apart(exclusion_expression_) ||
         std::any_of(saved_.begin(), saved_.end(), apart) || std::any_of(ranks_.begin(), ranks_.end(), apart);
}

std::size_t LoraTargets::work() const {
  std::size_t steps = 1;
  const auto add = [&](const Expression& e) { steps += e.regex ? e.regex->size() : 1; };
  add(target_expression_);
  add(exclusion_expression_);
  for (const auto* list : {&saved_, &ranks_, &layer_lists_}) {
    for (const Expression& e : *list) add(e);
  }
  return steps + adapter_.layers_to_transform.size();
}

void LoraTargets::report_unused(Issues& issues) const {
  if (adapter_.target_modules.kind == ModuleChoice::Kind::kNames) {
    for (const std::string& name : targets_.unused()) warn(issues, kTargetsPath, name, ": it gets no adapter.");
  }
  for (const std::string& name : exclusions_.unused()) warn(issues, kExclusionsPath, name, ": it excludes none.");
  if (!exclusion_expression_.text.empty() && !exclusion_expression_.used) {
    warn(issues, kExclusionsPath, exclusion_expression_.text, ": it excludes none.");
  }
  for (const Expression& e : ranks_) {
    if (!e.used) warn(issues, kRanksPath, e.text, " that is adapted: no rank changes.");
  }
}

}  // namespace tidemark
