#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::exchange {

/// An expression of Python. What the kinds keep where:
///   kName, kNumber, kString        text (a string's value; numbers as written)
///   kAttribute                     text is the attribute, items[0] the object
///   kSubscript                     items[0][items[1]]
///   kCall                          items[0] is called with items[1..]; names beside them: "", "key", "*", "**"
///   kList, kTuple                  items
///   kDict                          items: key, value, key, value; a key of kind kNone without text is `**value`
///   kBinary, kCompare, kBool       text is the operator, items both sides
///   kUnary                         text is the operator, items[0]
///   kChoice                        items: what, test, otherwise
///   kJoined                        an f-string: items are strings and expressions
struct PyExpr {
  enum class Kind {
    kUnknown,
    kNone,
    kTrue,
    kFalse,
    kName,
    kNumber,
    kString,
    kAttribute,
    kSubscript,
    kCall,
    kList,
    kTuple,
    kDict,
    kBinary,
    kCompare,
    kBool,
    kUnary,
    kChoice,
    kJoined
  };
  Kind kind = Kind::kUnknown;
  std::string text;
  std::vector<PyExpr> items;
  std::vector<std::string> names;
  int line = 0;
  int last = 0;
};

struct PyParameter {
  std::string name;
  PyExpr standard;
  bool has_standard = false;
};

/// A statement. kAssign: targets = value (kind kUnknown where there is none: an annotation alone), text "+" for `+=`;
/// kIf: value is the test, body, other; kFor: targets in value; kWith: values as targets pairs; kDef and kClass: text
/// is the name, targets the bases or decorators behind them.
struct PyStatement {
  enum class Kind { kOther, kExpression, kAssign, kIf, kFor, kWhile, kWith, kDef, kClass, kReturn, kImport, kTry };
  Kind kind = Kind::kOther;
  std::string text;  ///< name, operator, module
  std::vector<PyExpr> targets;
  PyExpr value;
  std::vector<PyParameter> parameters;
  std::vector<std::string> names;  ///< of `from x import`: "name", "alias" pairs; of `import x as y` y is in targets
  std::vector<PyExpr> decorators;
  std::vector<PyStatement> body;
  std::vector<PyStatement> other;
  int line = 0;
  int last = 0;
};

/// Reads a module. What is not understood becomes kOther and ends with its line: the rest is still read.
std::vector<PyStatement> parse_python(std::string_view text);

}  // namespace tidemark::exchange
