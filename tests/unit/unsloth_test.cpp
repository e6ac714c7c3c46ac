// Jobs of Unsloth. What a layer keeps is summed by hand from unsloth 2026.8.19 unsloth/{kernels, models, utils}.
#include <cmath>
#include <string>
#include <utility>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string with(const std::string& layers, const std::string& rest = "", const std::string& length = "512") {
  return R"({"schema": 1, "config": {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 2048, "max_position_embeddings": 1024,
    "num_hidden_layers": )" +
         layers +
         R"(}, "method": "lora", "adapter": {"target_modules": "all-linear", "lora_dropout": 0}, "gpu": "A100-80GB",
    "framework": {"name": "unsloth"}, "micro_batch_size": 2, "sequence_length": )" +
         length + rest + "}";
}

constexpr Bytes kTokens = 2 * 512, kH = 256, kF = 704, kHeads = 4;
constexpr Bytes kSeed = 512;  // of the attention: a block of the least size

Bytes kept_by_a_layer(const std::string& rest) {
  const auto kept = [&](const char* layers) { return held(answered(with(layers, rest)), Category::kActivations); };
  return kept("13") - kept("12");
}

bool stands_in(const std::string& request) {
  const Answer answer = ask(request);
  REQUIRE(answer.estimate);
  for (const Issue& issue : answer.issues) {
    if (issue.code == "STAND_IN") return true;
  }
  return false;
}

TEST_CASE("a layer of Unsloth keeps no more than its functions' inputs, and every head's keys and values") {
  // In bytes per token: x 2H and its norm 2H, a number 4, twice; q, k, v and the output for all heads 8H, flash's sums
  // 4A; gate and up 4F.
  CHECK(kept_by_a_layer(R"(, "padding": true)") == kTokens * (2 * (4 * kH + 4) + 8 * kH + 4 * kHeads + 4 * kF) + kSeed);
  // flash-attn takes grouped heads as they are: 2H + 2H/2 + 2H/2 + 2H.
  CHECK(kept_by_a_layer(R"(, "padding": true, "attention": "flash_attention_2")") ==
        kTokens * (2 * (4 * kH + 4) + 6 * kH + 4 * kHeads + 4 * kF) + kSeed);
}

TEST_CASE("Unsloth's checkpoints wait in host memory, but for the last layer's and small ones") {
  const auto kept = [](const char* layers, const char* length) {
    return held(answered(with(layers, R"(, "gradient_checkpointing": "unsloth")", length)), Category::kActivations);
  };
  CHECK(kept("13", "4096") == kept("12", "4096"));
  CHECK(kept("13", "512") - kept("12", "512") == kTokens * 2 * kH);  // 2^18 numbers
}

// unsloth_zoo 2026.10.9 fused_losses/fused_linear.py: fused_linear_rows, _tiled_layout; 2026.8.13
// fused_losses/cross_entropy_loss.py: get_chunk_size. Measured: tests/measured/own.jsonl, unsloth-….
TEST_CASE("Unsloth's loss holds a few rows of fp32 logits since 2026.10.9, and those of all tokens before") {
  constexpr Bytes kV = 151936;
  const auto logits = [](const char* rows, const char* version) {
    return held(answered(std::string{R"({"schema": 1, "config": {"model_type": "llama", "hidden_size": 256,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 151936,
    "max_position_embeddings": 4096, "num_hidden_layers": 2}, "method": "lora", "gpu": "A100-80GB",
    "adapter": {"target_modules": "all-linear", "lora_dropout": 0}, "sequence_length": 1024, "micro_batch_size": )"} +
                         rows + R"(, "framework": {"name": "unsloth")" + version + "}}"),
                Category::kLogitsLoss);
  };
  CHECK(logits("2", R"(, "version": "2026.8")") == 2 * 1024 * kV * 2);
  for (const char* newest : {"", R"(, "version": "2026.10.9")", R"(, "version": "2026-11-20")"}) {
    CHECK(logits("2", newest) == 512 * kV * 4);      // 512 × 151936 logits are the fewest at a time
    CHECK(logits("8", newest) == 4096 * 16384 * 4);  // tiles, from 4096 rows with a label on
  }
}

TEST_CASE("Unsloth's own code is of some models with LoRA; elsewhere transformers' stands in, and says so") {
  CHECK_FALSE(stands_in(with("4")));
  CHECK_FALSE(
      stands_in(R"({"schema": 1, "model": "Qwen/Qwen3-0.6B", "method": "qlora", "framework": {"name": "unsloth"},
    "optimizer": "adamw_8bit", "gradient_checkpointing": "unsloth"})"));
  CHECK(stands_in(R"({"schema": 1, "model": "Qwen/Qwen3-0.6B", "framework": {"name": "unsloth"}})"));
  CHECK(stands_in(R"({"schema": 1, "model": "google/gemma-3-4b-it", "method": "qlora",
    "framework": {"name": "unsloth"}})"));
}

// unsloth 2026.8.19 models/vision.py get_peft_model hands PEFT the Linear inside of a Gemma4ClippableLinear; mapper.py:
// Gemma 3n has packed checkpoints of Unsloth's own.
TEST_CASE("Unsloth adapts and packs what PEFT and transformers by themselves refuse") {
  const auto job = [](const char* model, const char* method, const char* framework) {
    return std::string{R"({"schema": 1, "model": ")"} + model + R"(", "method": ")" + method +
           R"(", "adapter": {"target_modules": ["q_proj", "v_proj"]}, "framework": {"name": ")" + framework + R"("}})";
  };
  for (const auto& [model, method] :
       {std::pair{"google/gemma-4-E2B-it", "lora"}, {"google/gemma-3n-E4B-it", "qlora"}}) {
    CAPTURE(model);
    CHECK(ask(job(model, method, "unsloth")).estimate);
    CHECK_FALSE(ask(job(model, method, "transformers")).estimate);
  }
  // The towers' layers are among them: 16 of pictures and 12 of sound beside 35 of the language model.
  const Answer wrapped = ask(job("google/gemma-4-E2B-it", "lora", "unsloth"));
  const Answer language = ask(
      R"({"schema": 1, "model": "google/gemma-4-E2B-it", "method": "lora", "framework": {"name": "unsloth"},
        "adapter": {"target_modules": ".*language_model.*[qv]_proj"}})");
  REQUIRE(wrapped.estimate);
  REQUIRE(language.estimate);
  CHECK(wrapped.estimate->parameters.trainable > language.estimate->parameters.trainable);
}

// unslothai/notebooks bdda2efc nb/gpt-oss-(20B)-Fine-tuning.ipynb and gpt-oss-(120B)_A100-Fine-tuning.ipynb print both:
// "Trainable parameters" and "Peak reserved memory" in GiB, the first after 12.811 with the model alone.
TEST_CASE("gpt-oss in 4 bits takes what Unsloth's own notebooks print") {
  struct Printed {
    const char *model, *gpu, *rank, *batch, *length;
    Count trained;
    double reserved;
  };
  for (const Printed& printed : {Printed{"openai/gpt-oss-20b", "T4", "8", "1", "1024", 3981312, 12.975},
                                 Printed{"openai/gpt-oss-120b", "A100-80GB", "16", "4", "4096", 11943936, 67.836}}) {
    INFO(printed.model);
    const Answer answer =
        ask(std::string{R"({"schema": 1, "model": ")"} + printed.model + R"(", "gpu": ")" + printed.gpu +
            R"(", "method": "qlora", "adapter": {"r": )" + printed.rank +
            R"(, "lora_dropout": 0, "target_modules":
          ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]},
        "framework": {"name": "unsloth"}, "micro_batch_size": )" +
            printed.batch + R"(, "sequence_length": )" + printed.length + R"(, "gradient_accumulation_steps": 4,
        "gradient_checkpointing": "offload", "optimizer": "adamw_8bit"})");
    REQUIRE(answer.estimate);
    CHECK(answer.estimate->parameters.trainable == printed.trained);
    const double gib = static_cast<double>(answer.estimate->reserved.expected) / (1 << 30);
    CHECK(std::abs(gib / printed.reserved - 1.0) < 0.06);
    for (const Issue& issue : answer.issues) CHECK(issue.code != "NOT_QUANTISED");
  }
}

// unslothai/notebooks bdda2efc nb/FunctionGemma_(270M)-Mobile-Actions.ipynb prints 10.459 GiB: all logits of its
// evaluation alone, of 8 rows of 4096 tokens and 262144 words, would be 32 in fp32.
TEST_CASE("an evaluation under Unsloth makes no logits") {
  const Answer answer = ask(
      R"({"schema": 1, "model": "google/gemma-3-270m", "gpu": "T4", "method": "lora",
        "adapter": {"r": 16, "lora_dropout": 0, "target_modules":
          ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]},
        "framework": {"name": "unsloth"}, "micro_batch_size": 4, "sequence_length": 4096,
        "gradient_accumulation_steps": 2, "evaluation": {"micro_batch_size": 8},
        "gradient_checkpointing": "offload", "optimizer": "adamw_8bit"})");
  REQUIRE(answer.estimate);
  CHECK(answer.estimate->reserved.low < Bytes{10} * (1 << 30));
  CHECK(answer.estimate->reserved.expected < Bytes{12} * (1 << 30));
}

// unsloth 2026.10.9 models/_utils.py: SUPPORTS_BFLOAT16.
TEST_CASE("Unsloth's half precision follows the card") {
  const auto precision = [](const char* gpu) {
    const Answer answer = ask(std::string{R"({"schema": 1, "model": "llama-3.2-1b", "method": "lora", "gpu": ")"} +
                              gpu + R"(", "framework": {"name": "unsloth"}})");
    return answer.job.recipe.weights;
  };
  CHECK(precision("T4") == Dtype::kFp16);
  CHECK(precision("A100-80GB") == Dtype::kBf16);
}

}  // namespace
}  // namespace tidemark
