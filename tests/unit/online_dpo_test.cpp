// Pairs of generated answers, as TRL 1.9's experimental trainer has them. What is expected follows from
// experimental/online_dpo/online_dpo_trainer.py (_forward, training_step) and online_dpo_config.py.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr Bytes kVocabulary = 32000, kHidden = 1024, kFeedForward = 2816, kLayers = 2;
// Four projections, three of the feed-forward, two norms.
constexpr Bytes kLayer = 4 * kHidden * kHidden + 3 * kHidden * kFeedForward + 2 * kHidden;
constexpr Bytes kBody = kVocabulary * kHidden + kLayers * kLayer + kHidden;
constexpr Bytes kPolicy = kBody + kVocabulary * kHidden, kJudge = kBody + kHidden;

std::string trains(const std::string& rest) {
  return R"({"schema": 1, "task": "online_dpo", "framework": {"name": "transformers", "version": "5.12"},
    "sequence_length": 256, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 16,
    "num_hidden_layers": 2, "max_position_embeddings": 32768, "tie_word_embeddings": false, "vocab_size": 32000}, )" +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

constexpr const char* kFull = R"("precision": "pure_bf16", "micro_batch_size": 2)";
constexpr const char* kLora = R"("precision": "pure_bf16", "micro_batch_size": 2, "method": "lora")";
constexpr const char* kFunctions = R"(, "reward_functions": true)";

TEST_CASE("online DPO has policy, reference and reward model on the card, and trains the policy alone") {
  const Answer answer = ask(trains(kFull));
  REQUIRE(answer.estimate);
  CHECK(held(*answer.estimate, Category::kWeights) == (2 * kPolicy + kJudge) * 2);
  CHECK(answer.estimate->parameters.trainable == kPolicy);
  CHECK(says(answer, "ASSUMED_DEFAULT", "/reward_model"));
  CHECK(answer.job.rollout.answer == 64);
}

TEST_CASE("where functions score online DPO's answers there is no reward model") {
  const Answer answer = ask(trains(std::string{kFull} + kFunctions));
  REQUIRE(answer.estimate);
  CHECK(held(*answer.estimate, Category::kWeights) == 2 * kPolicy * 2);
  CHECK(!says(answer, "ASSUMED_DEFAULT", "/reward_model"));
}

TEST_CASE("with LoRA online DPO's reference is the policy itself") {
  const Estimate full = answered(trains(kFull));
  const Estimate lora = answered(trains(kLora));
  const Bytes adapters = lora.parameters.trainable;
  CHECK(adapters < kPolicy / 10);
  CHECK(held(full, Category::kWeights) - held(lora, Category::kWeights) == kPolicy * 2 - adapters * 4);
}

TEST_CASE("each prompt of online DPO has two rows, whose answers' log-probabilities are kept of all tokens") {
  const auto peak = [](const char* answer) {
    return answered(trains(R"("precision": "pure_bf16", "micro_batch_size": 16, "reward_functions": true,
      "max_completion_length": )" +
                           std::string{answer}))
        .phase_peaks[static_cast<int>(Phase::kBackward)];
  };
  // take_along_dim(logits.log_softmax(dim=-1), …): what was saved of it and both gradients, which are as large. Of
  // short answers the gradient of all tokens' logits is the peak.
  const Bytes row = 2 * 16 * kVocabulary * 2;
  CHECK(peak("224") - peak("160") >= 3 * 64 * row);
}

TEST_CASE("where no record holds online DPO it is refused with the reason") {
  for (const auto& [rest, path] : {std::pair{R"(, "parallelism": {"data": 2})", "/parallelism"},
                                   {R"(, "rollout": {"engine": "vllm"})", "/rollout/engine"},
                                   {R"(, "reference_model": {"precompute": true})", "/reference_model/precompute"}}) {
    const Answer answer = ask(trains(std::string{kFull} + rest));
    CAPTURE(rest);
    CHECK(!answer.estimate);
    CHECK(says(answer, "UNSUPPORTED_VALUE", path));
  }
}

}  // namespace
}  // namespace tidemark
