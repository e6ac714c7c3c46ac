#pragma once

#include <string_view>

#include "core/job/request.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// The modules that PEFT adapts where a configuration names none, separated by commas: peft 0.18 utils/constants.py.
/// Empty: none is known of that model type, and PEFT raises a ValueError.
std::string_view peft_targets(AdapterKind kind, std::string_view model_type);

/// Targets that are left to PEFT become the model's own. LoRA's are all linear layers where the request says nothing.
void settle_targets(const LeftOpen& open, const Value& config, TrainingJob& job, Issues& issues);

}  // namespace tidemark
