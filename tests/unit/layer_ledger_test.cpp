// What one layer keeps for backward, against sums that are known from recorded steps: checks on the block programs, and
// no formula of theirs. Symbols as in docs/method.md; rotary tables, masks and rounding cancel between two depths.
#include <string>

#include "core/step/estimate.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr Count kB = 2, kS = 512, kH = 512, kF = 1536, kHeads = 8;
constexpr Count kT = kB * kS;
constexpr Count kLogSumExp = 4 * kB * kHeads * kS;
constexpr Count kSeeds = 2 * kMinBlockSize;  // philox seed and offset: 8 bytes each, a block each

Bytes kept_after_forward(const std::string& config, const std::string& options, int layers) {
  static const Engine engine;
  Issues issues;
  const std::string request = "{\"config\": {" + config + std::to_string(layers) + "}, " + options +
                              ", \"micro_batch_size\": 2, \"sequence_length\": 512}";
  CAPTURE(request);
  const Answer a = engine.answer(parse_json(request, "", issues));
  REQUIRE(a.estimate);
  const Estimate e = estimate(a.architecture, a.job, {.simulate_allocator = false, .itemise = true});
  Bytes bytes = 0;
  for (const Instant& i : e.timeline) {
    if (i.phase != Phase::kForward) break;
    // Autocast's copies of weights count as buffers.
    bytes = i.bytes[static_cast<int>(Category::kActivations)];
  }
  return bytes;
}

/// Of a layer in the middle.
Bytes per_layer(const std::string& config, const std::string& options) {
  return kept_after_forward(config, options, 13) - kept_after_forward(config, options, 12);
}

std::string llama(int kv_heads) {
  return R"("model_type": "llama", "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1536,
            "num_attention_heads": 8, "num_key_value_heads": )" +
         std::to_string(kv_heads) + R"(, "num_hidden_layers": )";
}

TEST_CASE("a Llama layer keeps 20H + 8F + 4K in 16 bits") {
  for (const int kv_heads : {8, 2}) {
    const Count k = kH / kHeads * kv_heads;
    const Bytes kept = per_layer(llama(kv_heads), R"("precision": "pure_bf16")");
    // Per token the two norms also keep 1/rms in fp32.
    CHECK(kept == kT * (20 * kH + 8 * kF + 4 * k + 2 * 4) + kLogSumExp + kSeeds);
  }
}

TEST_CASE("a Llama layer keeps 30H + 8F + 4K under autocast, copies of weights apart") {
  const Bytes kept = per_layer(llama(8), R"("precision": "amp_bf16")");
  CHECK(kept == kT * (30 * kH + 8 * kF + 4 * kH + 2 * 4) + kLogSumExp + kSeeds);
}

TEST_CASE("a Llama layer keeps 40H + 16F in 32 bits") {
  const Bytes kept = per_layer(llama(8), R"("precision": "fp32")");
  CHECK(kept == kT * (40 * kH + 16 * kF + 2 * 4) + kLogSumExp);
}

TEST_CASE("a GPT-2 layer keeps 58H in 16 bits, 114H in 32") {
  const std::string gpt2 = R"("model_type": "gpt2", "vocab_size": 1000, "n_embd": 512, "n_head": 8, "n_layer": )";
  // Per token the two norms keep mean and 1/deviation, in the layer's dtype and in fp32.
  CHECK(per_layer(gpt2, R"("precision": "pure_bf16")") / (kT * kH) == 58);
  CHECK(per_layer(gpt2, R"("precision": "amp_bf16")") / (kT * kH) == 86);
  CHECK(per_layer(gpt2, R"("precision": "fp32")") / (kT * kH) == 114);
}

TEST_CASE("checkpointed Llama layers keep their input: 2H in 16 bits, 4H under autocast with 32-bit weights") {
  CHECK(per_layer(llama(8), R"("gradient_checkpointing": "full", "precision": "pure_bf16")") == kT * 2 * kH);
  CHECK(per_layer(llama(8), R"("gradient_checkpointing": "full", "precision": "amp_bf16")") == kT * 4 * kH);
}

// bitsandbytes 0.50 autograd/_functions.py MatMul8bitLt.forward: `ctx.tensors = (CAt, subA, A)`. A is the input of q, k
// and v, of o, of gate and up, and of down.
constexpr Bytes kHeldByInt8 = kT * (3 * 2 * kH + 2 * kF);
constexpr Bytes kCheckpoint = kT * 2 * kH;

std::string checkpointed_int8(const char* options) {
  return std::string(R"("method": "qlora", "quantization": {"bits": 8, "prepare_kbit": false},
                        "precision": "pure_bf16", "gradient_checkpointing": )") +
         options;
}

TEST_CASE("checkpointing does not let go of what LLM.int8's contexts hold") {
  CHECK(per_layer(llama(8), checkpointed_int8(R"("full", "use_reentrant": false)")) == kCheckpoint + kHeldByInt8);
  CHECK(per_layer(llama(8), checkpointed_int8(R"("offload", "use_reentrant": false)")) == kHeldByInt8);
}

TEST_CASE("re-entrant checkpointing makes no graph that could hold LLM.int8's inputs") {
  CHECK(per_layer(llama(8), checkpointed_int8(R"("full", "use_reentrant": true)")) == kCheckpoint);
  CHECK(per_layer(llama(8), checkpointed_int8(R"("offload", "use_reentrant": true)")) == 0);
}

std::string dora(const char* dropout) {
  return std::string(R"("method": "lora", "precision": "pure_bf16", "adapter": {"use_dora": true,
                        "target_modules": ["q_proj"], "lora_dropout": )") +
         dropout + "}";
}

// peft 0.18 tuners/lora/variants.py DoraLinearVariant.forward: with dropout base_result is None, and DoraLinearLayer
// multiplies the input that is left, fp32 as the adapter, by an fp32 copy of the weight, which the product keeps.
TEST_CASE("DoRA with dropout keeps an fp32 copy of the weight, a mask and its base's product in fp32") {
  const Bytes mask = kT * kH, wider_product = kT * kH * (4 - 2), weight = 4 * kH * kH;
  CHECK(per_layer(llama(8), dora("0.1")) - per_layer(llama(8), dora("0.0")) == mask + wider_product + weight);
}

}  // namespace
}  // namespace tidemark
