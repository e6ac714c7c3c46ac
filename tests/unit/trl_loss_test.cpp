// SFTTrainer's loss. What it holds is summed by hand from trl 1.9 trainer/sft_trainer.py: _chunk; whole steps are among
// the oracle's records (sft-…).
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// A head that outweighs everything else: its fp32 copy makes the peak.
constexpr Bytes kVocabulary = 65536, kHidden = 2048, kChunk = 256;

std::string job(const std::string& rest) {
  return R"({"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
    "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 16, "num_key_value_heads": 2,
    "vocab_size": 65536, "torch_dtype": "bfloat16"}, "gpu": "A100-80GB", "sequence_length": 1024, )" +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

Bytes of_loss(const std::string& rest) {
  return held(answered(job(rest + R"(, "loss": "chunked", "method": "lora")")), Category::kLogitsLoss);
}

bool is_near(Bytes found, Bytes expected) {
  return std::llabs(found - expected) <= expected / 100;
}

TEST_CASE("TRL's loss in chunks copies the head to fp32, and autocast casts it back") {
  // w.float() 4·V·H, its cast 2·V·H and the first logits 2·256·V.
  CHECK(is_near(of_loss(R"("precision": "bf16_amp")"), kVocabulary * (6 * kHidden + 2 * kChunk)));
  // Of an fp32 head the cast alone, which waits for its backward: beside it the logits, 2·256·V, the log-probabilities,
  // the probabilities and their product, 4·256·V each.
  CHECK(is_near(of_loss(R"("precision": "amp_bf16")"), kVocabulary * (2 * kHidden + 14 * kChunk)));
}

TEST_CASE("TRL's loss in chunks does not grow with the sequence") {
  const auto at = [](const std::string& length) {
    return held(answered(job(R"("method": "lora", "loss": "chunked", "precision": "bf16_amp", "attention": "sdpa")")
                             .replace(0, 1, "{\"micro_batch_size\": " + length + ", ")),
                Category::kLogitsLoss);
  };
  CHECK(is_near(at("8"), at("1")));
}

TEST_CASE("SFTTrainer's loss is in chunks since TRL 1.7, where nothing else is said") {
  const auto loss = [](const std::string& rest) { return ask(job(rest)).job.loss; };
  const std::string trl = R"("framework": {"name": "trl"})";
  CHECK(loss(trl) == Loss::kChunked);
  CHECK(says(ask(job(trl)), "CHOSEN_LOSS", "/loss"));
  CHECK(loss(trl + R"(, "loss": "auto")") == Loss::kChunked);
  CHECK(loss(trl + R"(, "loss": "default")") == Loss::kDefault);
  CHECK(loss(trl + R"(, "use_liger_kernel": true)") == Loss::kLiger);
  CHECK(loss(trl + R"(, "task": "dpo")") == Loss::kDefault);
  CHECK(loss(trl + R"(, "architecture": "LlamaForSequenceClassification")") == Loss::kDefault);
  CHECK(loss(R"("framework": {"name": "trl", "version": "2026-06-24"})") == Loss::kDefault);
  CHECK(loss(R"("framework": {"name": "trl", "version": "2026-06-25"})") == Loss::kChunked);
  CHECK(loss(R"("framework": {"name": "trl", "version": "4.57"})") == Loss::kDefault);
  for (const char* name : {"transformers", "axolotl", "llama_factory", "ms_swift"}) {
    CHECK(loss("\"framework\": {\"name\": \"" + std::string{name} + "\"}") == Loss::kDefault);
  }
}

// sft_trainer.py __init__: "`loss_type='chunked_nll'` is not supported when `lm_head` is wrapped by a PEFT adapter".
TEST_CASE("TRL's loss in chunks refuses an adapter on the head") {
  const std::string adapted =
      R"("framework": {"name": "trl"}, "method": "lora", "adapter": {"target_modules": ["q_proj", "lm_head"]})";
  CHECK(says(ask(job(adapted)), "INVALID_COMBINATION", "/loss"));
  CHECK(ask(job(adapted + R"(, "loss": "default")")).estimate);
}

// base_config.py: gradient_checkpointing is True.
TEST_CASE("an answer without checkpoints says that TRL makes them unless told not to") {
  const auto tells = [](const std::string& rest) {
    return says(ask(job(R"("framework": {"name": "trl"})" + rest)), "ASSUMED_DEFAULT", "/gradient_checkpointing");
  };
  CHECK(tells(""));
  CHECK(!tells(R"(, "gradient_checkpointing": "none")"));
  CHECK(!tells(R"(, "gradient_checkpointing": {"every": 2})"));
}

}  // namespace
}  // namespace tidemark
