// Axolotl's LoRA kernels: who has them (axolotl 067b021 src/axolotl/utils/schemas/config.py:
// check_auto_enable_lora_kernels, check_multigpu_lora_kernels; validation.py: check_lora_kernels_8bit;
// monkeypatch/lora_kernels.py). What they hold is the records' part (tests/oracle/lora_kernel_jobs.py).
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

Answer with(const std::string& rest, const std::string& model = "Qwen/Qwen3-0.6B") {
  return ask(R"({"schema": 1, "model": ")" + model + R"(", "gpu": "A100-80GB", "adapter": {"lora_dropout": 0,
    "target_modules": "all-linear"}, "precision": "bf16_amp", "micro_batch_size": 2, "sequence_length": 1024)" +
             rest + "}");
}

bool says(const Answer& answer, std::string_view code, std::string_view path = "/lora_kernels") {
  for (const Issue& issue : answer.issues) {
    if (issue.code == code && issue.path == path) return true;
  }
  return false;
}

bool stands_in(const Answer& answer) {
  return std::any_of(answer.issues.begin(), answer.issues.end(), [](const Issue& i) { return i.code == "STAND_IN"; });
}

bool chosen(const std::string& rest) {
  return says(with(rest), "CHOSEN_KERNELS");
}

constexpr const char* kAxolotl = R"(, "method": "lora", "framework": {"name": "axolotl"})";

TEST_CASE("Axolotl has its LoRA kernels where nothing is said, and says so") {
  CHECK(chosen(kAxolotl));
  CHECK(chosen(R"(, "method": "qlora", "framework": {"name": "axolotl"})"));
  CHECK_FALSE(chosen(R"(, "method": "lora")"));
  CHECK_FALSE(chosen(R"(, "method": "full", "framework": {"name": "axolotl"})"));
  CHECK_FALSE(chosen(std::string{kAxolotl} + R"(, "lora_kernels": "none")"));
  CHECK_FALSE(chosen(std::string{kAxolotl} + R"(, "task": "dpo")"));
  CHECK_FALSE(chosen(std::string{kAxolotl} + R"(, "parallelism": {"data": 2, "fsdp": "full_shard"})"));
}

TEST_CASE("before the day on which they became the default they are off") {
  CHECK_FALSE(chosen(R"(, "method": "lora", "framework": {"name": "axolotl", "version": "2025-03"})"));
  CHECK(chosen(R"(, "method": "lora", "framework": {"name": "axolotl", "version": "2026-07"})"));
}

TEST_CASE("they keep less than PEFT's layers where no layer is checkpointed") {
  const Answer kernels = with(kAxolotl), layers = with(std::string{kAxolotl} + R"(, "lora_kernels": "none")");
  REQUIRE(kernels.estimate);
  REQUIRE(layers.estimate);
  CHECK(held(*kernels.estimate, Category::kActivations) < held(*layers.estimate, Category::kActivations));
  CHECK(kernels.estimate->parameters.trainable == layers.estimate->parameters.trainable);
}

TEST_CASE("of a prepared base Axolotl turns norms, token table and head back, and not biases") {
  const auto weights = [](const char* prepared) {
    const Answer answer = with(
        std::string{R"(, "method": "qlora", "quantization": {"prepare_kbit": )"} + prepared + "}", "Qwen/Qwen2.5-0.5B");
    REQUIRE(answer.estimate);
    return held(*answer.estimate, Category::kWeights);
  };
  // Biases of q (896), k and v (128 each) in each of 24 layers take 4 bytes instead of 2; k's and v's fill 512 B then.
  const Bytes biases = Bytes{24} * (7 * 512 - 4 * 512);
  CHECK(weights(R"("norms_back")") - weights("false") == biases);
}

TEST_CASE("Axolotl's own key is a word of the option") {
  const Answer key = with(R"(, "method": "lora", "lora_mlp_kernel": true)"),
               word = with(R"(, "method": "lora", "lora_kernels": ["mlp"])");
  REQUIRE(key.estimate);
  REQUIRE(word.estimate);
  CHECK(key.estimate->allocated.expected == word.estimate->allocated.expected);
}

TEST_CASE("what Axolotl raises for is refused in words") {
  for (const char* rest :
       {R"(, "method": "full", "lora_kernels": ["mlp"])",
        R"(, "method": "qlora", "quantization": {"bits": 8}, "lora_kernels": ["qkv"])",
        R"(, "method": "lora", "lora_kernels": ["o"], "parallelism": {"data": 2, "fsdp": "full_shard"})"}) {
    CAPTURE(rest);
    const Answer answer = with(rest);
    CHECK(says(answer, "UNSUPPORTED_OPTION"));
    CHECK_FALSE(answer.estimate);
  }
}

TEST_CASE("an adapted token table, of which no record is, is told") {
  const Answer answer = ask(R"({"schema": 1, "model": "Qwen/Qwen3-0.6B", "method": "lora", "gpu": "A100-80GB",
    "framework": {"name": "axolotl"}, "adapter": {"lora_dropout": 0, "target_modules": ["q_proj", "embed_tokens"]}})");
  REQUIRE(answer.estimate);
  CHECK(stands_in(answer));
}

TEST_CASE("a model that its patch does not know is told, and answered by PEFT's layers") {
  const std::string lora = R"(, "method": "lora")";
  const Answer asked = with(lora + R"(, "lora_kernels": ["mlp", "qkv", "o"])", "microsoft/Phi-3-mini-4k-instruct");
  const Answer plain = with(lora, "microsoft/Phi-3-mini-4k-instruct");
  CHECK(says(asked, "UNPATCHED_MODEL"));
  REQUIRE(asked.estimate);
  REQUIRE(plain.estimate);
  CHECK(asked.estimate->allocated.expected == plain.estimate->allocated.expected);
  CHECK(stands_in(with(lora + R"(, "lora_kernels": ["mlp"])", "microsoft/Phi-3-mini-4k-instruct")));
}

TEST_CASE("experts have no feed-forward that its patch finds") {
  const std::string lora = R"(, "method": "lora", "lora_kernels": ["mlp"])";
  const Answer asked = with(lora, "MiniMaxAI/MiniMax-M2.5");
  REQUIRE(asked.estimate);
  CHECK_FALSE(stands_in(asked));
}

TEST_CASE("adapters of linear attention have functions of their own in packed rows alone") {
  const std::string all = R"(, "method": "lora", "framework": {"name": "axolotl"})";
  const auto asked = [&](const char* more) { return with(all + more, "Qwen/Qwen3.5-0.8B"); };
  CHECK_FALSE(stands_in(asked("")));
  CHECK(stands_in(asked(R"(, "packing": true, "attention": "flash_attention_2")")));
}

TEST_CASE("Gemma 4's attention is Axolotl's own in full training as well, since the day it came") {
  constexpr const char* kGemma = "google/gemma-4-E2B";
  const std::string full = R"(, "method": "full")";
  const auto under = [&](const char* framework) {
    const Answer answer = with(full + R"(, "framework": )" + framework, kGemma);
    REQUIRE(answer.estimate);
    return held(*answer.estimate, Category::kActivations);
  };
  const Bytes of_transformers = under(R"({"name": "transformers", "version": "5.12"})");
  CHECK(under(R"({"name": "axolotl"})") < of_transformers);
  CHECK(under(R"({"name": "axolotl", "version": "2026-04-11"})") == of_transformers);
  const Answer lora = with(R"(, "method": "lora", "framework": {"name": "axolotl"})", kGemma);
  REQUIRE(lora.estimate);
  CHECK_FALSE(stands_in(lora));
}

TEST_CASE("fused_attn_kernel is nothing to a model for which Axolotl has none") {
  const std::string lora = R"(, "method": "lora", "fused_attn_kernel": )";
  constexpr const char* kPhi = "microsoft/Phi-3-mini-4k-instruct";
  const Answer asked = with(lora + "true", kPhi), plain = with(lora + "false", kPhi);
  CHECK(says(asked, "UNPATCHED_MODEL", "/fused_attn_kernel"));
  REQUIRE(asked.estimate);
  REQUIRE(plain.estimate);
  CHECK(asked.estimate->allocated.expected == plain.estimate->allocated.expected);
}

TEST_CASE("packed rows under sdpa are another attention in Axolotl of today, and are told") {
  const auto packed = [](const char* more) {
    return with(std::string{R"(, "method": "full", "packing": true)"} + more);
  };
  CHECK(stands_in(packed(R"(, "framework": {"name": "axolotl"})")));
  CHECK_FALSE(stands_in(packed(R"(, "framework": {"name": "axolotl", "version": "2026-06-15"})")));
  CHECK_FALSE(stands_in(packed(R"(, "framework": {"name": "axolotl"}, "attention": "flash_attention_2")")));
}

}  // namespace
}  // namespace tidemark
