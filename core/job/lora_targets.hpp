#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/module_pattern.hpp"
#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// LoraConfig's choice of modules, ready to be asked about each by its full name: peft 0.18 tuners/tuners_utils.py
/// check_target_module_exists, tuners/lora/model.py _create_and_replace, utils/other.py _set_trainable. It remembers
/// which of the names and patterns were of use.
class LoraTargets {
 public:
  enum class Verdict { kNotNamed, kExcluded, kTargeted };

  /// `attention`: the names that stand for the attention's linear layers; `added_to_save`: modules that the task type
  /// saves before targets are chosen. What cannot be read becomes an error.
  LoraTargets(const Adapter& adapter, const std::vector<std::string>& attention,
              const std::vector<std::string>& added_to_save, Issues& issues);

  /// `counts_as_all_linear`: the module is one of those that all-linear means.
  Verdict verdict(std::string_view module, bool counts_as_all_linear);
  /// The rank of a targeted module.
  Count rank(std::string_view module);

  /// Whether layers whose numbers have as many digits may fare differently.
  bool tells_layers_apart() const;
  /// How many steps one name takes at most, for each of its bytes.
  std::size_t work() const;
  /// Warns of each name and pattern that has named nothing. (When nothing at all is adapted, that is an error instead,
  /// and no matter of this function.)
  void report_unused(Issues& issues) const;

 private:
  /// A name, or an expression for a module's name or its end.
  struct Expression {
    std::string text;            // as written
    std::optional<Regex> regex;  // none for a plain name
    bool used = false;
  };

  bool excluded(std::string_view module);
  bool saved(std::string_view module) const;
  bool in_chosen_layer(std::string_view module) const;
  bool ends_with_list(std::string_view list) const;
  Expression read(const std::string& text, const std::string& whole, std::string_view path, Issues& issues) const;

  const Adapter& adapter_;
  NameList targets_;
  Expression target_expression_;
  NameList exclusions_;
  Expression exclusion_expression_;
  std::vector<Expression> saved_;        // modules_to_save, which no adapter touches
  std::vector<Expression> ranks_;        // rank_pattern, in its order
  std::vector<Expression> layer_lists_;  // layers_pattern
};

}  // namespace tidemark
