#include "core/job/module_pattern.hpp"

namespace tidemark {
namespace {

// `text` from its start against `pattern`; true when the pattern is used up (and the text too, when `to_end`).
bool matches_here(std::string_view pattern, std::string_view text, bool to_end) {
  if (pattern.empty()) return !to_end || text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip) {
      if (matches_here(pattern.substr(1), text.substr(skip), to_end)) return true;
    }
    return false;
  }
  return !text.empty() && text.front() == pattern.front() && matches_here(pattern.substr(1), text.substr(1), to_end);
}

}  // namespace

bool matches_module(std::string_view pattern, std::string_view module) {
  const bool from_start = !pattern.empty() && pattern.front() == '^';
  if (from_start) pattern.remove_prefix(1);
  const bool to_end = !pattern.empty() && pattern.back() == '$';
  if (to_end) pattern.remove_suffix(1);
  if (pattern.empty()) return from_start && to_end ? module.empty() : false;
  for (std::size_t start = 0; start <= module.size(); ++start) {
    if (matches_here(pattern, module.substr(start), to_end)) return true;
    if (from_start) break;
  }
  return false;
}

bool targets_module(std::string_view target, std::string_view module) {
  if (target.size() > module.size()) return false;
  if (module.substr(module.size() - target.size()) != target) return false;
  return target.size() == module.size() || module[module.size() - target.size() - 1] == '.';
}

}  // namespace tidemark
