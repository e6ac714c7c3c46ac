#pragma once

#include <string>
#include <vector>

namespace tidemark {

enum class Severity { kError, kWarning, kNote };

/// One thing to tell the user about the request. Errors are values: nothing is thrown and nothing is lost silently.
struct Issue {
  Issue() = default;
  // Out of line: hundreds of places make one.
  Issue(const char* code_of, Severity how, const char* where, const char* what, const char* instead);
  Issue(std::string code_of, Severity how, std::string where, std::string what, std::string instead);

  std::string code;                        ///< stable, upper snake case: "UNKNOWN_KEY"
  Severity severity = Severity::kWarning;  ///< an error means that there is no estimate
  std::string path;                        ///< JSON pointer into the request: "/adapter/rank"
  std::string message;                     ///< one sentence that says what is wrong and what to do
  std::string suggestion;                  ///< the nearest valid value or key, or empty
};

using Issues = std::vector<Issue>;

/// Keeps what a person can read and a terminal can show: the gravest fifty, without control characters, none longer
/// than a page. A last one tells how many are missing.
void bound(Issues& issues);

/// Null: there is none.
const Issue* first_error(const Issues& issues);

inline bool has_error(const Issues& issues) {
  return first_error(issues) != nullptr;
}

}  // namespace tidemark
