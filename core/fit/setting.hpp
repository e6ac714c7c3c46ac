#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// One option of a request and the value to write there: a change that can be shown, undone and sent back.
struct Setting {
  std::string option;  ///< name in the option table: "gradient_checkpointing.every"
  Value value;         ///< a word, a whole number or a truth value
};

Setting set_word(std::string_view option, std::string_view word);
Setting set_count(std::string_view option, Count count);
Setting set_flag(std::string_view option, bool flag);

/// Writes the setting into `job` as reading a request with it would: by the option table. False, with the job
/// unchanged, when the table does not accept it.
bool apply(const Setting& setting, TrainingJob& job);

/// The settings with the last one of each option kept, in the order of their first mention. A word replaces what
/// stands below its option ("gradient_checkpointing" after "gradient_checkpointing.every").
std::vector<Setting> merged(const std::vector<Setting>& settings);

}  // namespace tidemark
