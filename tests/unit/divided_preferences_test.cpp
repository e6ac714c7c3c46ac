// Preferences where GPUs divide the model. Expected bytes are those of tests/oracle/records-multi.jsonl, "pref-…".
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string pairs(const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
    "intermediate_size": 5632, "num_hidden_layers": 8, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": false}, "micro_batch_size": 1,
    "sequence_length": 1024, "optimizer": "adamw_torch_fused", "framework": {"name": "transformers", "version": "5.12"},
    "gpu": "A100-80GB", )" +
         rest + "}";
}

std::string zero(int stage, const std::string& rest) {
  return pairs(
      R"("precision": "deepspeed_bf16", "parallelism": {"data": 8, "zero": {"hf_auto": true}, "zero_stage": )" +
      std::to_string(stage) + "}, " + rest);
}

std::string fsdp(const char* how, const std::string& rest) {
  // The records call fully_shard themselves.
  return pairs(std::string{R"("parallelism": {"data": 8, "fsdp_options": {"groups": "root"}, "fsdp": ")"} + how +
               R"("}, )" + rest);
}

bool near(Bytes a, Bytes b, Bytes by) {
  return std::abs(a - b) <= by;
}

constexpr Bytes kModel = 983'633'920;  // of 16-bit weights
constexpr const char* kDpo = R"("task": "dpo", "method": "full")";
constexpr const char* kFullAmp = R"("task": "dpo", "method": "full", "precision": "amp_bf16")";

TEST_CASE(
    "below ZeRO-3 a reference lies whole on every GPU; under it its parts do, and it is gathered for its forward") {
  CHECK(near(held(answered(zero(1, kDpo)), Category::kWeights), 1'967'269'888, 4096));  // pref-zero1-dpo-copy
  const Estimate third = answered(zero(3, kDpo));                                       // pref-zero3-dpo-copy
  CHECK(near(held(third, Category::kWeights), 245'910'528, 1 << 20));
  CHECK(near(third.allocated.expected, 4'843'602'432 + 17'039'360, 16 << 20));
}

TEST_CASE("TRL makes one unit of a reference under FSDP 2: all of it is gathered at once, twice as it is copied out") {
  const Estimate e = answered(fsdp("fsdp2", kFullAmp));  // pref-fsdp2-dpo-copy
  CHECK(near(held(e, Category::kWeights), 491'819'008, 4096));
  CHECK(near(held(e, Category::kCommunication), 2'229'415'936, 65536));
  CHECK(held(e, Category::kCommunication) > 2 * kModel);
}

TEST_CASE("under FSDP 1 a reference's layers go as they return, but its root stays gathered for good") {
  CHECK(near(held(answered(fsdp("full_shard", kFullAmp)), Category::kCommunication), 524'296'192, 65536));
  // SHARD_GRAD_OP leaves all to a backward that never comes: policy and reference are whole.
  CHECK(near(held(answered(fsdp("shard_grad_op", kFullAmp)), Category::kCommunication), 2 * kModel, 65536));
}

TEST_CASE("the model without its adapters is the reference: nothing is held of a second one") {
  constexpr const char* kLora = R"("task": "dpo", "method": "lora", "adapter": {"r": 16, "dtype": "bf16"})";
  const Estimate e = answered(zero(3, kLora));  // pref-zero3-dpo-lora
  CHECK(near(held(e, Category::kWeights), 124'118'528, 65536));
  CHECK(near(held(e, Category::kCommunication), 8'458'240, 2 << 20));
}

TEST_CASE("behind a forward without adapters ZeRO-3 lets go of nothing until backward ends") {
  constexpr const char* kLora =
      R"("task": "dpo", "method": "lora", "adapter": {"r": 16, "dtype": "bf16"}, "gradient_checkpointing": "full")";
  const Estimate e = answered(zero(3, kLora));  // pref-zero3-dpo-lora-ckpt
  CHECK(e.peak.phase == Phase::kBackward);
  CHECK(near(held(e, Category::kCommunication), 861'130'752, 16 << 20));
  // TRL checkpoints re-entrantly there, whatever is asked for.
  CHECK(answered(zero(3, std::string{kLora} + R"(, "use_reentrant": false)")).allocated.expected ==
        e.allocated.expected);
}

TEST_CASE("FSDP's backward begins behind a loss that is made outside of its module") {
  const Estimate e = answered(fsdp("fsdp2", R"("task": "dpo", "method": "full", "precision": "amp_bf16",
    "gradient_checkpointing": "full", "reference_model": {"precompute": true})"));  // pref-fsdp2-dpo-precomputed
  CHECK(near(held(e, Category::kCommunication), 262'148'096, 65536));  // the root alone, without a layer ahead
}

TEST_CASE("a frozen token table stays gathered under ZeRO-3 where checkpoints make its output require a gradient") {
  constexpr const char* kLora =
      R"("method": "lora", "adapter": {"r": 16, "dtype": "bf16"}, "gradient_checkpointing": "full")";
  CHECK(near(held(answered(zero(3, kLora)), Category::kCommunication), 1'000'996'864, 4 << 20));  // zero3-lora-ck
}

// threes35723-compared-000-fsdp2-granite: 1'690'811'904 bytes and cuBLAS's workspaces.
TEST_CASE("answers are compared in evaluation, too, where GPUs divide the model, by the reference that training has") {
  const Estimate e =
      answered(R"({"schema": 1, "config": {"model_type": "granite", "architectures": ["GraniteForCausalLM"],
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 3, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 16000, "max_position_embeddings": 4096, "tie_word_embeddings": false,
    "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1}, "method": "lora", "precision": "bf16_amp",
    "micro_batch_size": 2, "sequence_length": 512, "gradient_accumulation_steps": 2, "optimizer": "adamw_torch_fused",
    "framework": {"name": "transformers", "version": "5.12"}, "gpu": "A100-80GB", "adapter": {"r": 32, "lora_alpha": 16,
    "target_modules": "all-linear", "dtype": "fp32"}, "task": "dpo", "reference_model": {"shared_with_adapter": true},
    "evaluation": {"micro_batch_size": 8}, "parallelism": {"data": 6, "fsdp": "fsdp2", "reshard_after_forward": true,
    "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"}, "fsdp_options": {"groups": "root"}}})");
  CHECK(e.peak.phase == Phase::kEvaluation);
  CHECK(near(e.allocated.expected, 1'690'811'904 + 17'039'360, 2 << 20));
}

TEST_CASE("evaluation gathers a reference's parts under ZeRO-3 as training does") {
  const std::string evaluated = std::string{kDpo} + R"(, "evaluation": {"micro_batch_size": 8})";
  const Answer answer = ask(zero(3, evaluated));
  REQUIRE(answer.estimate);
  for (const Issue& issue : answer.issues) CHECK(issue.code != "NOT_COUNTED");
  CHECK(answer.estimate->peak.phase == Phase::kEvaluation);
}

TEST_CASE("a divided copy is refused beside offloading, in words") {
  const Answer answer =
      ask(fsdp("fsdp2", std::string{kFullAmp} +
                            R"(, "offload": {"optimizer": "cpu", "parameters": "cpu", "gradients": "cpu"})"));
  CHECK_FALSE(answer.estimate);
  CHECK(has_error(answer.issues));
}

}  // namespace
}  // namespace tidemark
