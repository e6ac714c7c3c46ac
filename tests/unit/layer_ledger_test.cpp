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

}  // namespace
}  // namespace tidemark
