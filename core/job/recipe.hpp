#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/job/training_job.hpp"

namespace tidemark {

/// What a precision name stands for ("amp_bf16"), or nothing when we have no such recipe.
std::optional<Recipe> named_recipe(std::string_view name);

/// A recipe stated in parts that is one with a name takes that name.
void take_name(Recipe& recipe);

/// "fp32 weights, bf16 autocast, fp32 gradients, fp32 optimizer states".
std::string in_words(const Recipe& recipe);

}  // namespace tidemark
