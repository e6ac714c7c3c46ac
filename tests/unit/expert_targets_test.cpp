// Targets of LoRA that PEFT takes for experts' weights: peft 0.19 to 0.21 utils/transformers_weight_conversion.py.
// Whole steps are among our card's runs (tests/measured/own.jsonl, sight1124-020-olmoe and others).
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr Count kWidth = 64, kExpert = 32, kExperts = 8, kLayers = 2, kRank = 4;

Answer of_targets(const std::string& adapter, const std::string& framework = "") {
  return ask(R"({"config": {"model_type": "olmoe", "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2, "num_experts": 8, "num_experts_per_tok": 2,
    "vocab_size": 1024}, "gpu": "H200", "sequence_length": 128, "precision": "pure_bf16", "method": "lora",
    "framework": {"name": "transformers", "version": "5.12")" +
             framework + R"(}, "adapter": {"r": 4, )" + adapter + "}}");
}

Count trained(const std::string& adapter, const std::string& framework = "") {
  const Answer answer = of_targets(adapter, framework);
  for (const Issue& issue : answer.issues) INFO(issue.message);
  REQUIRE(answer.estimate);
  return answer.estimate->parameters.trainable;
}

bool says(const Answer& answer, std::string_view code) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == "/adapter/target_modules"; });
}

constexpr Count kAttention = 4 * kRank * (kWidth + kWidth);
// Twice the rank for what two modules were; then the router.
constexpr Count kGateUp = kExperts * 2 * kRank * (kWidth + 2 * kExpert), kDown = kExperts * kRank * (kWidth + kExpert);
constexpr Count kRouter = kRank * (kWidth + kExperts);

TEST_CASE("all-linear adapts the experts of a mixture from PEFT 0.20 on") {
  const std::string all = R"("target_modules": "all-linear")";
  CHECK(trained(all) == kLayers * (kAttention + kGateUp + kDown + kRouter));
  CHECK(says(of_targets(all), "CONVERTED_TARGETS"));
  CHECK(trained(all, R"(, "peft": "0.18")") == kLayers * kAttention);
  CHECK_FALSE(of_targets(all, R"(, "peft": "0.19")").estimate);
}

TEST_CASE("names of modules that experts had adapt their weights from PEFT 0.19 on") {
  CHECK(trained(R"("target_modules": ["q_proj", "down_proj"])", R"(, "peft": "0.19")") ==
        kLayers * (kAttention / 4 + kDown));
  CHECK(trained(R"j("target_modules": ".*\\.mlp\\.experts\\.(gate_proj|up_proj)")j") == kLayers * kGateUp);
  CHECK(says(of_targets(R"("target_modules": ["gate_proj"])"), "INVALID_VALUE"));
  CHECK(says(of_targets(R"("target_modules": "all-linear", "lora_dropout": 0.1)"), "INVALID_VALUE"));
}

// lora/layer.py: _LoraFactorsProxy adds the factors' product as it is made; _LoraParameterProxy has a delta as large as
// the weight beside their sum.
TEST_CASE("PEFT 0.21 adds experts' adapters to their weights in one step") {
  const auto peak = [](const char* release) {
    return answered(std::string{R"({"config": {"model_type": "olmoe", "hidden_size": 256, "intermediate_size": 512,
      "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "num_experts": 16,
      "num_experts_per_tok": 2, "vocab_size": 64}, "gpu": "H200", "sequence_length": 16, "precision": "pure_bf16",
      "method": "lora", "adapter": {"r": 4, "lora_dropout": 0, "target_modules": ["q_proj"],
      "target_parameters": ["experts.gate_up_proj"]}, "framework": {"peft": ")"} +
                    release + R"("}})")
        .allocated.expected;
  };
  constexpr Bytes kDelta = 2 * 16 * 256 * 2 * 512;
  CHECK(peak("0.18") - peak("0.21") >= kDelta);
}

}  // namespace
}  // namespace tidemark
