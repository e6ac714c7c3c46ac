// Jobs of LLaMA-Factory's own loop (LLaMA-Factory ff6d4d12 src/llamafactory/v1). Expected bytes are summed by hand from
// core/base_trainer.py: compute_log_probs; whole steps are held to records of its own code (tests/oracle,
// llamafactory-v1-…).
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr Bytes kRows = 2, kLength = 1024, kVocabulary = 65536;

std::string with(const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "qwen3", "hidden_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256, "vocab_size": 65536,
    "max_position_embeddings": 2048, "tie_word_embeddings": true, "dtype": "bfloat16"},
    "framework": {"name": "llama_factory_v1"}, "gpu": "A100-80GB", "micro_batch_size": 2, "sequence_length": 1024)" +
         rest + "}";
}

bool refuses(const std::string& rest, const std::string& path) {
  for (const Issue& issue : ask(with(rest)).issues) {
    if (issue.severity == Severity::kError && issue.path == path) return true;
  }
  return false;
}

TEST_CASE("the model's own loss stays beside the one that the loop makes of the same logits") {
  // Under FSDP 2 logits have 2 bytes; what log_softmax returned to the model's loss, the loop's fp32 copy, that without
  // each row's last token and what log_softmax returns of it have 4 each.
  const Bytes whole = kRows * kLength * kVocabulary, shifted = kRows * (kLength - 1) * kVocabulary;
  const Bytes sharded = held(answered(with(R"(, "parallelism": {"data": 4, "fsdp": "fsdp2"})")), Category::kLogitsLoss);
  CHECK(sharded / 100000 == (2 * whole + 8 * whole + 8 * shifted) / 100000);
  // On one GPU the logits are fp32 themselves, and no copy is made of them.
  const Bytes alone = held(answered(with("")), Category::kLogitsLoss);
  CHECK(alone / 100000 == (8 * whole + 8 * shifted) / 100000);
}

TEST_CASE("without FSDP 2 nobody autocasts, and weights that are trained in full are fp32") {
  for (const Issue& issue : ask(with("")).issues) {
    if (issue.code != "CHOSEN_PRECISION") continue;
    CHECK(issue.message.find("fp32 weights, no autocast") != std::string::npos);
    CHECK(issue.message.find("without FSDP 2") != std::string::npos);
    return;
  }
  FAIL("nothing was said of the precision");
}

// plugins/model_plugins/peft.py get_freeze_model: cast_trainable_params_to_fp32 casts what is trained.
TEST_CASE("what freezing leaves in the checkpoint's dtype is stood for") {
  for (const char* rest : {R"(, "method": "freeze", "freeze_trainable_layers": 1)", R"(, "freeze": ["layers.0"])"}) {
    const Issues issues = ask(with(rest)).issues;
    CHECK(std::any_of(issues.begin(), issues.end(), [](const Issue& issue) { return issue.code == "STAND_IN"; }));
  }
}

TEST_CASE("what LLaMA-Factory's own loop cannot do is refused") {
  CHECK(refuses(R"(, "task": "dpo")", "/task"));
  CHECK(refuses(R"(, "precision": "amp_bf16")", "/precision"));
  CHECK_FALSE(refuses(R"(, "precision": "fp32")", "/precision"));
  CHECK(refuses(R"(, "loss": "liger")", "/loss"));
  CHECK(refuses(R"(, "method": "vera")", "/method"));
  CHECK(refuses(R"(, "packing": true)", "/attention"));
  CHECK(refuses(R"(, "evaluation": {"micro_batch_size": 2})", "/evaluation"));
  CHECK(refuses(R"(, "parallelism": {"data": 2, "fsdp": "full_shard"})", "/parallelism"));
}

}  // namespace
}  // namespace tidemark
