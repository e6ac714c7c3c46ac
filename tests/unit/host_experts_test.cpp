// KTransformers' experts on the CPU.
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

Answer asked(const std::string& model, const std::string& more) {
  return ask(R"({"model":")" + model +
             R"(","method":"lora","adapter":{"r":8},"sequence_length":512,"gradient_checkpointing":"full",)" +
             R"("use_reentrant":false,"precision":"bf16_amp","moe":{"implementation":"ktransformers"})" + more + "}");
}

}  // namespace

// KTransformers doc/en/SFT/KTransformers-Fine-Tuning_User-Guide.md: "~1.2–1.3 TB CPU RAM", "~30 GB CPU RAM".
TEST_CASE("experts that KTransformers computes lie in host memory") {
  const Answer large = asked("deepseek-ai/DeepSeek-V3", R"(,"gpu":"H100")");
  REQUIRE(large.estimate);
  CHECK(large.estimate->host.expected > 1'200 * Bytes{1'000'000'000});
  CHECK(large.estimate->host.expected < 1'400 * Bytes{1'000'000'000});
  CHECK(large.estimate->allocated.expected < 70 * kGiB);
  const Answer small = asked("deepseek-ai/DeepSeek-V2-Lite", "");
  REQUIRE(small.estimate);
  CHECK(small.estimate->host.expected > 27 * kGiB);
  CHECK(small.estimate->host.expected < 31 * kGiB);
}

// kt-kernel/python/sft/config.py: kt_expert_weight_format.
TEST_CASE("experts of 8 bits take half of the host's memory, and as much of the card's") {
  const Answer wide = asked("Qwen/Qwen3-30B-A3B", "");
  const Answer narrow = ask(
      R"({"model":"Qwen/Qwen3-30B-A3B","method":"lora","adapter":{"r":8},"sequence_length":512,"gradient_checkpointing":"full","use_reentrant":false,"precision":"bf16_amp","moe":{"implementation":"ktransformers_int8"}})");
  REQUIRE((wide.estimate && narrow.estimate));
  CHECK(narrow.estimate->allocated.expected == wide.estimate->allocated.expected);
  CHECK(narrow.estimate->host.expected < wide.estimate->host.expected * 3 / 5);
}

// kt-kernel/python/sft/dist_utils.py: _dist_gather_varlen_to_rank0; fully_shard leaves placeholders alone.
TEST_CASE("under FSDP 2 the host has the experts once") {
  const Answer one = asked("Qwen/Qwen3-30B-A3B", ""),
               four = asked("Qwen/Qwen3-30B-A3B", R"(,"parallelism":{"data":4,"fsdp":"fsdp2"})");
  REQUIRE((one.estimate && four.estimate));
  CHECK(four.estimate->host.expected == one.estimate->host.expected);
  CHECK(four.estimate->allocated.expected < one.estimate->allocated.expected);
}

// kt-kernel/python/sft/arch.py: get_moe_arch_config.
TEST_CASE("models that KTransformers does not know are refused, and what is not modelled") {
  CHECK_FALSE(asked("openai/gpt-oss-20b", "").estimate);
  CHECK_FALSE(asked("meta-llama/Llama-3.2-1B", "").estimate);
  CHECK_FALSE(asked("Qwen/Qwen3-30B-A3B", R"(,"parallelism":{"data":2})").estimate);
  CHECK_FALSE(ask(R"({"model":"Qwen/Qwen3-30B-A3B","moe":{"implementation":"ktransformers"}})").estimate);
}

// Each of its families comes by the same door.
TEST_CASE("no expert stays on the card in any of KTransformers' families") {
  for (const char* model : {"mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen1.5-MoE-A2.7B", "zai-org/GLM-4.5-Air",
                            "Qwen/Qwen3-VL-30B-A3B-Instruct", "Qwen/Qwen3.5-35B-A3B"}) {
    const Answer answer = asked(model, "");
    CAPTURE(model);
    REQUIRE(answer.estimate);
    // Of each of them experts are more than three quarters.
    CHECK(answer.estimate->host.expected > answer.estimate->parameters.base * 3 / 2);
  }
}
