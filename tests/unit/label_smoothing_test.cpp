// transformers' label smoothing, summed by hand from transformers 5.12 trainer_pt_utils.py: LabelSmoother.__call__; a
// whole step is among our card's runs (tests/measured/own.jsonl, lm-qwen05b-labelsmoothing).
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// A head that outweighs everything else.
constexpr Bytes kVocabulary = 65536, kSequence = 1024;

std::string job(const std::string& rest) {
  return R"({"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    "vocab_size": 65536, "torch_dtype": "bfloat16"}, "gpu": "H200", "sequence_length": 1024,
    "label_smoothing_factor": 0.1, )" +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

bool refuses(const std::string& rest) {
  const Answer answer = ask(job(rest));
  return !answer.estimate && (says(answer, "INVALID_COMBINATION", "/label_smoothing_factor") ||
                              says(answer, "UNSUPPORTED_OPTION", "/label_smoothing_factor"));
}

TEST_CASE("label smoothing holds four fp32 tensors as large as the logits") {
  // What accelerate returns, the shifted copy, log_softmax and its negative.
  const Bytes found = held(answered(job(R"("precision": "bf16_amp", "micro_batch_size": 2)")), Category::kLogitsLoss);
  const Bytes expected = 4 * 4 * 2 * kVocabulary * kSequence;
  CHECK(std::llabs(found - expected) <= expected / 100);
}

// cross35422-mixed-004n of tests/oracle/records-multi.jsonl: kept logits, log_softmax, its negative, the gradient of
// the sum in fp32 cast to 16 bits as large as what was summed, and gather's zeros.
TEST_CASE("the gradient of label smoothing's sum in fp32 is cast as large as the logits") {
  const std::string kept = R"("precision": "pure_bf16", "keep_outputs": true, "micro_batch_size": 2)";
  const Bytes expected = 5 * 2 * 2 * kVocabulary * kSequence;
  CHECK(std::llabs(held(answered(job(kept)), Category::kLogitsLoss) - expected) <= expected / 100);
}

TEST_CASE("label smoothing takes a fused loss's place") {
  const Answer fused = ask(job(R"("loss": "liger")"));
  REQUIRE(fused.estimate);
  CHECK(fused.job.loss == Loss::kDefault);
  CHECK(says(fused, "IGNORED_OPTION", "/loss"));
}

// trl 1.9 trainer/sft_trainer.py compute_loss: outputs.num_valid_tokens, and skip_logits of Liger's forward.
TEST_CASE("SFTTrainer's losses without logits fail with label smoothing") {
  const std::string trl = R"("framework": {"name": "trl"})";
  CHECK(says(ask(job(trl)), "INVALID_COMBINATION", "/loss"));
  CHECK(says(ask(job(trl + R"(, "loss": "liger")")), "INVALID_COMBINATION", "/loss"));
  CHECK(ask(job(trl + R"(, "loss": "default")")).estimate);
}

TEST_CASE("label smoothing is refused where nobody reads it") {
  CHECK(refuses(R"("task": "dpo")"));
  CHECK(refuses(R"("framework": {"name": "pytorch"})"));
  CHECK(refuses(R"("architecture": "LlamaForQuestionAnswering")"));
  CHECK_FALSE(refuses(R"("architecture": "LlamaForSequenceClassification")"));
}

}  // namespace
}  // namespace tidemark
