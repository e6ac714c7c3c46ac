#include "core/units/issue.hpp"

#include <utility>

#include "core/units/excerpt.hpp"

namespace tidemark {

Issue::Issue(const char* code_of, Severity how, const char* where, const char* what, const char* instead)
    : code(code_of), severity(how), path(where), message(what), suggestion(instead) {}

Issue::Issue(std::string code_of, Severity how, std::string where, std::string what, std::string instead)
    : code(std::move(code_of)),
      severity(how),
      path(std::move(where)),
      message(std::move(what)),
      suggestion(std::move(instead)) {}
namespace {

constexpr std::size_t kMostIssues = 50;
constexpr std::size_t kLongestPath = 200;
constexpr std::size_t kLongestMessage = 4000;

}  // namespace

const Issue* first_error(const Issues& issues) {
  for (const Issue& issue : issues) {
    if (issue.severity == Severity::kError) return &issue;
  }
  return nullptr;
}

void bound(Issues& issues) {
  // Errors first to survive.
  const std::size_t left_out = issues.size() > kMostIssues ? issues.size() - kMostIssues : 0;
  if (left_out > 0) {
    Issues kept;
    for (Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
      for (Issue& issue : issues) {
        if (issue.severity == severity && kept.size() < kMostIssues) kept.push_back(std::move(issue));
      }
    }
    issues = std::move(kept);
  }
  for (Issue& issue : issues) {
    issue.path = excerpt(issue.path, kLongestPath);
    issue.message = excerpt(issue.message, kLongestMessage);
    issue.suggestion = excerpt(issue.suggestion, kLongestPath);
  }
  if (left_out == 0) return;
  issues.push_back(
      {"MORE_ISSUES", Severity::kWarning, "", std::to_string(left_out) + " further issues are not listed.", ""});
}

}  // namespace tidemark
