#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// One object of a config.json while it is being read. It knows every key that was asked for, so that the keys nobody
/// asked for can be reported at the end, and it turns what is missing or makes no sense into issues with their path.
class ConfigFields {
 public:
  /// The family's own spelling first, then the ones that transformers' `attribute_map` accepts for it.
  using Spellings = std::initializer_list<std::string_view>;

  ConfigFields(const Value& object, std::string path, Issues& issues);

  /// The value under the first spelling that is present, null values included; null pointer where there is none.
  const Value* find(Spellings keys);
  /// True where a spelling is present with a value other than null.
  bool has(Spellings keys);

  /// A whole number of at least one; MISSING_FIELD where absent or null.
  Count required(Spellings keys);
  /// A whole number of at least `minimum`; `fallback` where absent or null.
  Count count(Spellings keys, Count fallback, Count minimum = 1);
  /// The same where an explicit null has a meaning of its own: absent gives `fallback`, null gives nothing.
  std::optional<Count> nullable(Spellings keys, std::optional<Count> fallback, Count minimum = 1);
  double number(Spellings keys, double fallback);
  /// A number from 0 to 1.
  double probability(Spellings keys, double fallback);
  /// What a size is multiplied by: above 0, and no more than 1024.
  double multiplier(Spellings keys, double fallback);
  bool flag(Spellings keys, bool fallback);
  std::string text(Spellings keys, std::string_view fallback);

  /// Keys that the family's class knows and that move no memory.
  void accept(Spellings keys);

  void error(std::string_view code, std::string_view key, std::string message, std::string suggestion = {});
  void warning(std::string_view code, std::string_view key, std::string message, std::string suggestion = {});
  void note(std::string_view code, std::string_view key, std::string message, std::string suggestion = {});

  /// Reports the keys that nobody asked for: near misses and keys of other families as warnings, the rest as notes.
  void report_unread(std::string_view model_type);

  const Value& object() const { return *object_; }
  const std::string& path() const { return path_; }
  Issues& issues() { return *issues_; }

 private:
  std::string_view chosen_key(Spellings keys) const;
  std::optional<Count> whole_number(const Value& value, std::string_view key, Count minimum);
  void report(std::string_view code, Severity severity, std::string_view key, std::string message,
              std::string suggestion);

  const Value* object_;
  std::string path_;
  Issues* issues_;
  std::vector<std::string_view> asked_;
};

}  // namespace tidemark
