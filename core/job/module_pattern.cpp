#include "core/job/module_pattern.hpp"

#include <algorithm>
#include <utility>

#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether all of `text` fits `pattern`, where `*` stands for any run of characters: a greedy walk that goes back to
/// the last star alone, so its time is bounded by the product of the lengths.
bool fits_stars(std::string_view pattern, std::string_view text) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0, t = 0, star = kNone, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Whether the digits at [begin, end) of a pattern could be those of a layer's number, which stands between dots.
bool could_be_number(std::string_view pattern, std::size_t begin, std::size_t end) {
  const auto open = [](char c) { return c == '.' || c == '*'; };
  return (begin == 0 || open(pattern[begin - 1])) && (end == pattern.size() || open(pattern[end]));
}

}  // namespace

std::optional<NamePattern> NamePattern::compile(std::string_view pattern, std::string& error) {
  NamePattern compiled;
  if (pattern.find_first_of("\\[](){}|+?") != std::string_view::npos) {
    compiled.regex_ = Regex::compile(pattern, error);
    if (!compiled.regex_) return std::nullopt;
    return compiled;
  }
  compiled.from_start_ = !pattern.empty() && pattern.front() == '^';
  if (compiled.from_start_) pattern.remove_prefix(1);
  compiled.to_end_ = !pattern.empty() && pattern.back() == '$';
  if (compiled.to_end_) pattern.remove_suffix(1);
  compiled.text_ = pattern;
  return compiled;
}

bool NamePattern::fits(std::string_view name) const {
  if (regex_) return regex_->occurs_in(name);
  if (text_.empty()) return from_start_ && to_end_ && name.empty();
  if (text_.find('*') == std::string::npos) {
    if (from_start_) return to_end_ ? name == text_ : name.substr(0, text_.size()) == text_;
    if (to_end_) return name.size() >= text_.size() && name.substr(name.size() - text_.size()) == text_;
    return name.find(text_) != std::string_view::npos;
  }
  std::string whole = from_start_ ? "" : "*";
  whole += text_;
  if (!to_end_) whole += '*';
  return fits_stars(whole, name);
}

bool NamePattern::names(std::string_view parameter) const {
  if (fits(parameter)) return true;
  // What fits a module and is not tied to its end fits the parameter's longer name as well.
  if (!to_end_ && !regex_) return false;
  for (std::size_t dot = parameter.find('.'); dot != std::string_view::npos; dot = parameter.find('.', dot + 1)) {
    if (fits(parameter.substr(0, dot))) return true;
  }
  return false;
}

bool NamePattern::tells_layers_apart() const {
  if (regex_) return regex_->tells_digits_apart();
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (!is_digit(text_[i])) continue;
    std::size_t end = i;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (could_be_number(text_, i, end)) return true;
    i = end;
  }
  return false;
}

bool ends_with_parts(std::string_view name, std::string_view suffix) {
  if (suffix.size() > name.size() || name.substr(name.size() - suffix.size()) != suffix) return false;
  return suffix.size() == name.size() || name[name.size() - suffix.size() - 1] == '.';
}

bool has_parts(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

bool is_plain_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  });
}

bool has_number_part(std::string_view name) {
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!part.empty() && std::all_of(part.begin(), part.end(), is_digit)) return true;
    begin = end + 1;
  }
  return false;
}

NameList::NameList(std::vector<std::string> names) {
  for (std::string& name : names) names_.push_back({std::move(name), false});
  sort_list(names_, [](const Name& a, const Name& b) { return a.text < b.text; });
}

bool NameList::find(std::string_view text) {
  const auto first = std::lower_bound(names_.begin(), names_.end(), text,
                                      [](const Name& name, std::string_view wanted) { return name.text < wanted; });
  bool found = false;
  for (auto it = first; it != names_.end() && it->text == text; ++it) found = it->used = true;
  return found;
}

bool NameList::has(std::string_view module) {
  return find(module);
}

bool NameList::names(std::string_view module) {
  bool found = find(module);
  for (std::size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
    if (find(module.substr(dot + 1))) found = true;
  }
  return found;
}

std::vector<std::string> NameList::unused() const {
  std::vector<std::string> left;
  for (const Name& name : names_) {
    if (!name.used) left.push_back(name.text);
  }
  return left;
}

bool NameList::tells_layers_apart() const {
  return std::any_of(names_.begin(), names_.end(), [](const Name& name) { return has_number_part(name.text); });
}

}  // namespace tidemark
