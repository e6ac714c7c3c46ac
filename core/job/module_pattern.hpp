#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/regex.hpp"

namespace tidemark {

/// A pattern of `freeze`. It names a parameter when it fits the parameter's full name ("model.norm.weight") or that of
/// a module that holds it ("model.norm", "model"): freezing a module freezes all that is in it.
///
/// The pattern's text occurs in the name; `*` stands for any run of characters, `^` and `$` anchor the ends
/// ("^model.embed_tokens", "layers.0.", "vision_tower"). No module's name has a backslash, a bracket, a brace, `|`, `+`
/// or `?` in it: a pattern that does is a regular expression, for re.search.
class NamePattern {
 public:
  /// Nothing, with `error` a clause for a sentence, when the pattern cannot be read.
  static std::optional<NamePattern> compile(std::string_view pattern, std::string& error);

  bool names(std::string_view parameter) const;
  /// Whether layers whose numbers have as many digits may fare differently.
  bool tells_layers_apart() const;
  /// How many steps a byte of a name takes at most.
  std::size_t work() const {
    return regex_ ? regex_->size() * kParts : text_.find('*') == std::string::npos ? 1 : text_.size();
  }

 private:
  static constexpr std::size_t kParts = 8;  // of a long name: an expression is tried on each beginning
  bool fits(std::string_view name) const;

  std::string text_;            // without anchors
  bool from_start_ = false;     // ^
  bool to_end_ = false;         // $
  std::optional<Regex> regex_;  // instead of the text
};

/// Whether `name` is `suffix` or ends with it behind a dot: how PEFT's lists name modules.
bool ends_with_parts(std::string_view name, std::string_view suffix);

/// Whether `part` stands in `name` between dots or ends: "mlp" in "model.layers.0.mlp.up_proj".
bool has_parts(std::string_view name, std::string_view part);

/// Whether the name is one of identifiers and dots, which a regular expression and plain text read alike.
bool is_plain_name(std::string_view text);

/// Whether one of the name's parts is a number: "layers.0".
bool has_number_part(std::string_view name);

/// Names as PEFT takes them in a list: a module is named by its full name or its last parts.
class NameList {
 public:
  explicit NameList(std::vector<std::string> names = {});

  bool empty() const { return names_.empty(); }
  /// Full name among them: `key in target_modules`.
  bool has(std::string_view module);
  /// One of them is the module's name or its last parts.
  bool names(std::string_view module);
  /// Those that have named nothing so far.
  std::vector<std::string> unused() const;
  /// Whether layers whose numbers have as many digits may fare differently.
  bool tells_layers_apart() const;

 private:
  struct Name {
    std::string text;   // as written
    bool used = false;  // it has named a module
  };
  bool find(std::string_view text);

  std::vector<Name> names_;  // sorted
};

}  // namespace tidemark
