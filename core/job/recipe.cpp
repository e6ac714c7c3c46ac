#include "core/job/recipe.hpp"

#include <string>

namespace tidemark {
namespace {

Recipe plain(Dtype dtype) {
  Recipe recipe;
  recipe.weights = recipe.gradients = recipe.optimizer_states = dtype;
  recipe.autocast.reset();
  return recipe;
}

}  // namespace

std::optional<Recipe> named_recipe(std::string_view name) {
  std::optional<Recipe> recipe;
  if (name == "fp32" || name == "fsdp_bf16") {  // of the latter what each GPU keeps
    recipe = plain(Dtype::kFp32);
  } else if (name == "pure_bf16") {
    recipe = plain(Dtype::kBf16);
  } else if (name == "pure_fp16") {
    recipe = plain(Dtype::kFp16);
  } else if (name == "bf16_amp") {
    recipe = plain(Dtype::kBf16);
    recipe->autocast = Dtype::kBf16;
  } else if (name == "fp16_bf16_amp") {
    recipe = plain(Dtype::kFp16);
    recipe->autocast = Dtype::kBf16;
  } else if (name == "amp_bf16") {
    recipe = plain(Dtype::kFp32);
    recipe->autocast = Dtype::kBf16;
  } else if (name == "amp_fp16") {
    recipe = plain(Dtype::kFp32);
    recipe->autocast = Dtype::kFp16;
  } else if (name == "deepspeed_bf16" || name == "deepspeed_fp16") {
    // DeepSpeed BF16_Optimizer and FP16_Optimizer with grad_accum_dtype unset: gradients stay in the model's dtype.
    recipe = plain(name == "deepspeed_bf16" ? Dtype::kBf16 : Dtype::kFp16);
    recipe->master_weights = recipe->optimizer_states = Dtype::kFp32;
  } else if (name == "megatron_bf16") {
    // Megatron-LM accumulates into an fp32 main_grad: 18 bytes per parameter.
    recipe = plain(Dtype::kBf16);
    recipe->master_weights = recipe->optimizer_states = recipe->gradients = Dtype::kFp32;
  }
  if (recipe) recipe->name = name;
  return recipe;
}

void take_name(Recipe& recipe) {
  for (std::string_view name :
       {"fp32", "pure_bf16", "pure_fp16", "bf16_amp", "fp16_bf16_amp", "amp_bf16", "amp_fp16"}) {
    Recipe named = *named_recipe(name);
    named.name = recipe.name;
    if (!(named == recipe)) continue;
    recipe.name = name;
    return;
  }
}

std::string in_words(const Recipe& recipe) {
  std::string text{name_of(recipe.weights)};
  text += " weights, ";
  if (recipe.autocast) {
    text += name_of(*recipe.autocast);
    text += " autocast, ";
  } else {
    text += "no autocast, ";
  }
  text += name_of(recipe.gradients);
  text += " gradients, ";
  if (recipe.master_weights) {
    text += name_of(*recipe.master_weights);
    text += " master weights, ";
  }
  text += name_of(recipe.optimizer_states);
  text += " optimizer states";
  return text;
}

}  // namespace tidemark
