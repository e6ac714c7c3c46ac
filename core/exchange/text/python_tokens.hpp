#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::exchange {

/// A word of Python. Indentation is a token of its own, as the end of a line is outside of brackets; magics of
/// notebooks and comments are none.
struct PyToken {
  enum class Type { kName, kNumber, kString, kOperator, kLine, kIndent, kDedent, kEnd };
  Type type = Type::kEnd;
  std::string text;        ///< of strings what they mean, but for what stands in braces of an f-string
  bool formatted = false;  ///< an f-string
  int line = 0;            ///< it begins in
  int last = 0;            ///< it ends in
};

/// Ends with a token of kind kEnd.
std::vector<PyToken> python_tokens(std::string_view text);

}  // namespace tidemark::exchange
