// PPO, BCO and PRM as TRL 1.9's experimental trainers run them. What is expected follows from experimental/ppo/
// ppo_trainer.py and ppo_config.py, experimental/bco/bco_trainer.py and experimental/prm/prm_trainer.py.
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

std::string trains(const std::string& task, const std::string& rest) {
  return R"({"schema": 1, "task": ")" + task +
         R"(", "framework": {"name": "transformers", "version": "5.12"}, "sequence_length": 256,
    "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 2,
    "max_position_embeddings": 32768, "tie_word_embeddings": false, "vocab_size": 32000}, )" +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

constexpr const char* kFull = R"("precision": "pure_bf16", "micro_batch_size": 2)";
constexpr const char* kLora = R"("precision": "pure_bf16", "micro_batch_size": 2, "method": "lora")";

TEST_CASE("PPO has policy, value model, reference and reward model on the card") {
  const Estimate e = answered(trains("ppo", kFull));
  CHECK(held(e, Category::kWeights) == (2 * kPolicy + 2 * kJudge) * 2);
  // accelerator.prepare(PolicyAndValueWrapper): the optimizer has both.
  CHECK(e.parameters.trainable == kPolicy + kJudge);
}

TEST_CASE("with LoRA the reference is PPO's policy itself, and the value model is trained in full") {
  const Estimate full = answered(trains("ppo", kFull));
  const Estimate lora = answered(trains("ppo", kLora));
  const Bytes adapters = lora.parameters.trainable - kJudge;
  CHECK(adapters > 0);
  CHECK(adapters < kPolicy / 10);
  CHECK(held(full, Category::kWeights) - held(lora, Category::kWeights) == kPolicy * 2 - adapters * 4);
}

TEST_CASE("what reward and value model are is said by reward_config") {
  const auto trained = [](const char* layers) {
    return answered(trains("ppo", std::string{kFull} + R"(, "reward_config": {"model_type": "llama",
      "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16,
      "num_key_value_heads": 16, "tie_word_embeddings": false, "vocab_size": 32000, "num_hidden_layers": )" +
                                      layers + "}"))
        .parameters.trainable;
  };
  CHECK(trained("4") - trained("2") == 2 * kLayer);
}

TEST_CASE("a reward model that the catalog does not have is stood for by one as large as the policy, and said so") {
  const Answer answer = ask(trains("ppo", std::string{kFull} + R"(, "reward_model": "somebody/reward-of-their-own")"));
  REQUIRE(answer.estimate);
  CHECK(answer.estimate->parameters.trainable == kPolicy + kJudge);
  CHECK(std::any_of(answer.issues.begin(), answer.issues.end(),
                    [](const Issue& issue) { return issue.code == "STAND_IN"; }));
}

TEST_CASE("the logits that PPO's answers were drawn from stay, in fp32") {
  const auto buffers = [](const char* accumulated) {
    return held(answered(trains("ppo", std::string{kFull} + R"(, "max_completion_length": 64,
      "gradient_accumulation_steps": )" + accumulated)),
                Category::kBuffers);
  };
  // batch_generation: rows of all micro-batches; ids and masks beside are numbers.
  const Bytes of_answers = Bytes{2} * 4 * 64 * kVocabulary * 4;
  CHECK(buffers("8") - buffers("4") >= of_answers);
  CHECK(buffers("8") - buffers("4") < of_answers + of_answers / 100);
}

TEST_CASE("PPO's loop neither checkpoints, nor clips, nor autocasts where its arguments ask for it") {
  const Answer answer = ask(trains("ppo", R"("bf16": true, "micro_batch_size": 2, "gradient_checkpointing": "full")"));
  REQUIRE(answer.estimate);
  CHECK(says(answer, "IGNORED_OPTION", "/gradient_checkpointing"));
  CHECK(says(answer, "NO_AUTOCAST", "/precision"));
  CHECK(answer.job.checkpointing == Checkpointing::kNone);
  CHECK(!answer.job.recipe.autocast);
  CHECK(answer.job.max_grad_norm == 0.0);
  CHECK(answer.job.rollout.answer == 53);
}

TEST_CASE("where no record holds PPO it is refused with the reason") {
  for (const auto& [rest, path] : {std::pair{R"(, "parallelism": {"data": 2})", "/parallelism"},
                                   {R"(, "method": "qlora")", "/method"},
                                   {R"(, "value_model": {})", "/value_model"}}) {
    const Answer answer = ask(trains("ppo", std::string{kFull} + rest));
    CAPTURE(rest);
    CHECK(!answer.estimate);
    CHECK(says(answer, std::string_view{path} == "/value_model" ? "UNSUPPORTED_OPTION" : "UNSUPPORTED_VALUE", path));
  }
}

TEST_CASE("BCO copies both sides' logits, and the policy's stay through the reference's forward") {
  const auto peak = [](const char* task) {
    return answered(trains(task, R"("precision": "pure_bf16", "micro_batch_size": 4)"))
        .phase_peaks[static_cast<int>(Phase::kLoss)];
  };
  // Against DPO's two rows a sample, KTO's batch is as large: what BCO has more than twice the answers' logits are the
  // copies (bco_trainer.py: forward, chosen_logits and rejected_logits) of policy and reference.
  const Bytes logits = Bytes{4} * 256 * kVocabulary * 2;
  CHECK(peak("bco") > (2 * kPolicy) * 2 + 5 * logits);
}

TEST_CASE("PRM trains a token classifier of two labels without dropout") {
  const Answer prm = ask(trains("prm", R"("precision": "pure_bf16", "method": "lora", "adapter": {"lora_dropout": 0.1,
    "target_modules": ["q_proj"]})"));
  REQUIRE(prm.estimate);
  CHECK(prm.architecture.head == Head::kTokenClassification);
  CHECK(prm.architecture.num_labels == 2);
  CHECK(prm.job.adapter.lora_dropout == 0.0);
}

}  // namespace
}  // namespace tidemark
