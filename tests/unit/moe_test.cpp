// Mixtures of experts, against what is known of them without this engine: which rows a layer keeps, what moves them,
// what a job is told.
#include <string>

#include "core/step/estimate.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr Count kTokens = 1024, kWidth = 256, kExpert = 384;

Answer ask(int experts_per_token, const std::string& options, int layers = 4) {
  static const Engine engine;
  Issues issues;
  const std::string request =
      R"({"config": {"model_type": "qwen3_moe", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512,
          "moe_intermediate_size": 384, "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 16,
          "num_experts_per_tok": )" +
      std::to_string(experts_per_token) + R"(, "num_hidden_layers": )" + std::to_string(layers) +
      R"(}, "precision": "pure_bf16", "micro_batch_size": 1, "sequence_length": 1024)" + options + "}";
  CAPTURE(request);
  return engine.answer(parse_json(request, "", issues));
}

Bytes kept(int experts_per_token, const std::string& options, int layers) {
  const Answer a = ask(experts_per_token, options, layers);
  REQUIRE(a.estimate);
  const Estimate e = estimate(a.architecture, a.job, {.simulate_allocator = false, .itemise = true});
  Bytes bytes = 0;
  for (const Instant& i : e.timeline) {
    if (i.phase != Phase::kForward) break;
    bytes = i.bytes[static_cast<int>(Category::kActivations)];
  }
  return bytes;
}

Bytes per_layer(int experts_per_token, const std::string& options) {
  return kept(experts_per_token, options, 13) - kept(experts_per_token, options, 12);
}

bool says(const Answer& a, std::string_view code) {
  for (const Issue& issue : a.issues) {
    if (issue.code == code) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("each further expert of a token keeps 2H + 4F in 16 bits, and a few numbers of its place", "[moe]") {
  const Bytes more = per_layer(3, "") - per_layer(2, "");
  const Bytes rows = 2 * kTokens * (2 * kWidth + 4 * kExpert);
  CHECK(more >= rows);
  CHECK(more <= rows + 48 * kTokens);
}

TEST_CASE("routing moves the loop over experts alone", "[moe]") {
  const std::string skewed = R"(, "moe": {"load_imbalance": 4})";
  CHECK(per_layer(2, "") == per_layer(2, skewed));
  const std::string loop = R"(, "moe": {"implementation": "eager"})";
  const std::string skewed_loop = R"(, "moe": {"implementation": "eager", "load_imbalance": 4})";
  // All rows are there whoever has them; lists of other lengths round otherwise.
  const Bytes even = per_layer(2, loop), uneven = per_layer(2, skewed_loop);
  CHECK(even > uneven - 512 * 16 * 16);
  CHECK(even < uneven + 512 * 16 * 16);
}

TEST_CASE("batched products gather the weights of every row", "[moe]") {
  const Bytes gathered = per_layer(2, R"(, "moe": {"implementation": "batched_mm"})");
  CHECK(gathered > 2 * 2 * kTokens * 3 * kWidth * kExpert);
}

TEST_CASE("a token's own parameters are those of its experts and of what all share", "[moe]") {
  const Answer two = ask(2, ""), three = ask(3, "");
  REQUIRE(two.estimate);
  REQUIRE(three.estimate);
  CHECK(two.estimate->parameters.total == three.estimate->parameters.total);
  CHECK(three.estimate->parameters.active - two.estimate->parameters.active == 4 * 3 * kWidth * kExpert);
}

// tencent/Hunyuan-A13B-Instruct's file has a list with a number for every layer.
TEST_CASE("numbers of experts that a file lists layer by layer are read where all are alike", "[moe]") {
  static const Engine engine;
  const auto ask_hunyuan = [](const char* experts) {
    Issues issues;
    return engine.answer(
        parse_json(std::string{R"({"config": {"model_type": "hunyuan_v1_moe", "vocab_size": 1000, "hidden_size": 256,
            "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4, "num_experts": 8,
            "moe_topk": )"} +
                       experts + R"(}, "sequence_length": 256})",
                   "", issues));
  };
  const Answer listed = ask_hunyuan("[2, 2]"), plain = ask_hunyuan("2");
  REQUIRE(listed.estimate);
  REQUIRE(plain.estimate);
  CHECK(listed.estimate->allocated.expected == plain.estimate->allocated.expected);
  const Answer mixed = ask_hunyuan("[2, 4]");
  CHECK_FALSE(mixed.estimate);
  CHECK(mixed.issues.back().path == "/config/moe_topk");
}

TEST_CASE("quantised jobs are told that experts stay in 16 bits", "[moe]") {
  CHECK(says(ask(2, R"(, "method": "qlora")"), "NOT_QUANTISED"));
}

// transformers 4.57 models/qwen3_moe/modeling_qwen3_moe.py: Qwen3MoeSparseMoeBlock.__init__
TEST_CASE("before transformers 5 experts are linear layers: counted alike, packed and adapted like all others",
          "[moe]") {
  const std::string version = R"(, "framework": {"version": "4.57"})";
  const Answer old = ask(2, version), now = ask(2, "");
  REQUIRE(old.estimate);
  REQUIRE(now.estimate);
  CHECK(old.estimate->parameters.total == now.estimate->parameters.total);
  CHECK(old.estimate->parameters.active == now.estimate->parameters.active);
  CHECK(says(old, "ASSUMED_ROUTING"));
  const std::string quantised =
      R"(, "method": "qlora", "adapter": {"r": 8, "lora_dropout": 0, "target_modules": "all-linear"})";
  const Answer packed = ask(2, quantised + version);
  REQUIRE(packed.estimate);
  CHECK_FALSE(says(packed, "NOT_QUANTISED"));
  const Count attention = 4 * 8 * (kWidth + kWidth), gate = 8 * (kWidth + 16), expert = 3 * 8 * (kWidth + kExpert);
  CHECK(packed.estimate->parameters.trainable == 4 * (attention + gate + 16 * expert));
  const std::string few =
      R"(, "method": "qlora", "adapter": {"r": 8, "lora_dropout": 0, "target_modules": ["q_proj"]})";
  const Answer narrow = ask(2, few + version), wide = ask(2, few);
  REQUIRE(narrow.estimate);
  REQUIRE(wide.estimate);
  // 16 bits for 4 of each expert's numbers, in four layers: more than half of it is saved.
  const Bytes experts = 4 * 16 * 3 * kWidth * kExpert;
  CHECK(wide.estimate->allocated.expected - narrow.estimate->allocated.expected > experts);
}

TEST_CASE("adapters on experts have a row of ranks for each expert", "[moe]") {
  const std::string options =
      R"(, "method": "lora", "adapter": {"r": 8, "lora_dropout": 0, "target_modules": ["q_proj"],
          "target_parameters": ["experts.gate_up_proj"]})";
  const Answer a = ask(2, options);
  REQUIRE(a.estimate);
  const Count attention = 8 * (kWidth + kWidth), experts = 8 * 16 * (kWidth + 2 * kExpert);
  CHECK(a.estimate->parameters.trainable == 4 * (attention + experts));
  CHECK_FALSE(ask(2, R"(, "method": "lora", "adapter": {"lora_dropout": 0.1,
          "target_parameters": ["experts.down_proj"]})")
                  .estimate);
}

TEST_CASE("packed experts hold a half byte for each number, and a scale for each 64", "[moe]") {
  const std::string few =
      R"(, "method": "qlora", "adapter": {"r": 8, "lora_dropout": 0, "target_modules": ["q_proj"]})";
  const std::string reentrant = R"(, "gradient_checkpointing": "full", "use_reentrant": )";
  const Answer plain = ask(2, few + reentrant + "true");
  const std::string packs = few + R"(, "quantize_moe_experts": true)";
  const Answer packed = ask(2, packs + reentrant + "true");
  REQUIRE(plain.estimate);
  REQUIRE(packed.estimate);
  CHECK_FALSE(says(packed, "NOT_QUANTISED"));
  const Bytes numbers = 4 * 16 * 3 * kWidth * kExpert;
  const auto weights = [](const Answer& a) { return held(*a.estimate, Category::kWeights); };
  // bitsandbytes functional.py quantize_4bit: a byte for two numbers and for each 64, and a float for each 256 of
  // those.
  const Bytes saved = 2 * numbers - (numbers / 2 + numbers / 64 + numbers / 64 / 256 * 4);
  CHECK(weights(plain) - weights(packed) <= saved);
  CHECK(weights(plain) - weights(packed) > saved - 64 * 1024);
  CHECK(packed.estimate->parameters.total == plain.estimate->parameters.total);
  // torch's cache of parametrizations is not emptied where an exception ends a recomputation among them.
  CHECK_FALSE(ask(2, packs + reentrant + "false").estimate);
  // Behind DeepSeek's there are shared ones.
  const std::string shared = R"({"model": "zai-org/GLM-4.5-Air", "precision": "pure_bf16", "method": "qlora",
      "gradient_checkpointing": "full", "use_reentrant": false, "quantize_moe_experts": true,
      "adapter": {"target_modules": ["q_proj"]})";
  CHECK(ask(shared + "}").estimate);
  // No record holds what FSDP makes of them.
  CHECK_FALSE(ask(shared + R"(, "parallelism": {"data": 2, "fsdp": "full_shard", "fsdp_version": 2}})").estimate);
}

TEST_CASE("adapters that reach packed experts by the names of their modules have the same sizes", "[moe]") {
  // PEFT 0.19 takes names of experts' modules for parameters.
  const std::string named = R"(, "framework": {"version": "5.12", "peft": "0.19"}, "gradient_checkpointing": "full",
      "use_reentrant": true, "method": "qlora", "adapter": {"r": 8, "lora_dropout": 0,
      "target_modules": ["q_proj", "gate_proj", "up_proj", "down_proj"]})";
  const Answer plain = ask(2, named), packed = ask(2, named + R"(, "quantize_moe_experts": true)");
  REQUIRE(plain.estimate);
  REQUIRE(packed.estimate);
  CHECK(packed.estimate->parameters.trainable == plain.estimate->parameters.trainable);
  CHECK(packed.estimate->parameters.trainable > 4 * 8 * 16 * (kWidth + 2 * kExpert));
}

}  // namespace tidemark
