// What a framework refuses, or passes over, is not answered in silence.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string job(const std::string& model, const std::string& rest) {
  const std::string length = rest.find("sequence_length") == rest.npos ? R"("sequence_length": 512, )" : "";
  return R"({"schema": 1, "precision": "bf16_amp", "micro_batch_size": 1, "model": ")" + model + "\", " + length +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

// LLaMA-Factory ff6d4d12 model/adapter.py: _setup_freeze_tuning.
TEST_CASE("LLaMA Pro's layers divide those of the model") {
  const auto pro = [](int layers) {
    return ask(job("llama-3.2-1b", R"("method": "freeze", "use_llama_pro": true, "freeze_trainable_layers": )" +
                                       std::to_string(layers)));
  };
  CHECK(pro(4).estimate);
  CHECK(says(pro(3), "INVALID_VALUE", "/freeze_trainable_layers"));
  CHECK(says(pro(-2), "INVALID_VALUE", "/freeze_trainable_layers"));
}

TEST_CASE("a prompt's length that the sequence's contradicts is told") {
  const std::string lengths = R"("max_prompt_length": 512, "max_completion_length": 128, "task": )";
  CHECK(says(ask(job("llama-3.2-1b", lengths + "\"grpo\"")), "IGNORED_OPTION", "/max_prompt_length"));
  CHECK(says(ask(job("llama-3.2-1b", lengths + "\"dpo\"")), "IGNORED_OPTION", "/max_prompt_length"));
  CHECK(!says(ask(job("llama-3.2-1b", R"("max_prompt_length": 384, "max_completion_length": 128, "task": "grpo")")),
              "IGNORED_OPTION", "/max_prompt_length"));
}

// peft 0.18 tuners/tuners_utils.py: check_target_module_exists.
TEST_CASE("numbers of layers that the model has none of are told") {
  const auto lora = [](const std::string& layers) {
    return ask(job("llama-3.2-1b", R"("method": "lora", "adapter": {"target_modules": ["q_proj"],
                                       "layers_to_transform": )" +
                                       layers + "}"));
  };
  CHECK(says(lora("[0, 16]"), "IGNORED_OPTION", "/adapter/layers_to_transform"));
  CHECK(lora("[0, 16]").estimate);
  CHECK(!says(lora("[0, 15]"), "IGNORED_OPTION", "/adapter/layers_to_transform"));
}

TEST_CASE("releases of transformers before 4 are not answered") {
  CHECK(says(ask(job("llama-3.2-1b", R"("framework": {"name": "transformers", "version": "2.0"})")), "INVALID_VALUE",
             "/framework/version"));
  CHECK(ask(job("llama-3.2-1b", R"("framework": {"name": "transformers", "version": "4.40"})")).estimate);
}

// trl 1.9 trainer/sft_trainer.py: __init__.
TEST_CASE("TRL packs no samples with pictures") {
  const std::string rest = R"("packing": true, "images_per_sample": 1, "framework": {"name": "trl"})";
  CHECK(says(ask(job("qwen2.5-vl-3b", rest)), "INVALID_COMBINATION", "/packing"));
}

// transformers 5.12.1 modeling_utils.py: _flex_attn_can_dispatch.
TEST_CASE("flex attention is answered of the classes that have it") {
  const std::string flex = R"("attention": "flex_attention")";
  CHECK(ask(job("llama-3.2-1b", flex)).estimate);
  CHECK(says(ask(job("gpt2", flex)), "UNSUPPORTED_VALUE", "/attention"));
  CHECK(says(ask(job("qwen2.5-vl-3b", flex)), "UNSUPPORTED_VALUE", "/attention"));
}

// transformers 5.12.1 models/gemma3/modeling_gemma3.py, models/qwen3_5/modeling_qwen3_5.py.
TEST_CASE("of models that see Gemma 3 and Qwen 3.5 have a class that scores sequences") {
  const auto judge = [](const std::string& model, const std::string& name) {
    return ask(job(model, "\"architecture\": \"" + name + "\", \"sequence_length\": 1024, \"images_per_sample\": 1"));
  };
  CHECK(judge("gemma-3-4b", "Gemma3ForSequenceClassification").estimate);
  CHECK(judge("qwen3.5-0.8b", "Qwen3_5ForSequenceClassification").estimate);
  CHECK(
      says(judge("qwen2.5-vl-3b", "Qwen2_5_VLForSequenceClassification"), "UNSUPPORTED_ARCHITECTURE", "/architecture"));
}

TEST_CASE("rewards are trained on the texts of a model that sees, not on its pictures") {
  const std::string reward = R"("task": "reward", "images_per_sample": )";
  CHECK(ask(job("gemma-3-4b", reward + "0")).estimate);
  CHECK(says(ask(job("gemma-3-4b", reward + "1")), "UNSUPPORTED_VALUE", "/task"));
}

}  // namespace
}  // namespace tidemark
