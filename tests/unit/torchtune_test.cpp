// Jobs of torchtune. Expected peaks are those of its README's ladder of flags (tests/measured/requests.jsonl); what a
// layer keeps is summed by hand from torchtune 0.4.0 modules/{transformer, attention, rms_norm, feed_forward}.py.
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string with(const std::string& layers, const std::string& rest = "") {
  return R"({"schema": 1, "config": {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 2048, "max_position_embeddings": 1024,
    "num_hidden_layers": )" +
         layers +
         R"(}, "precision": "pure_bf16", "attention": "sdpa", "optimizer": "adamw_torch_fused", "max_grad_norm": 0,
    "gpu": "A100-80GB", "framework": {"name": "torchtune"}, )" +
         rest + R"("micro_batch_size": 2, "sequence_length": 512})";
}

constexpr Bytes kTokens = 2 * 512, kH = 256, kF = 704, kHeads = 4;
constexpr Bytes kSeed = 2 * 512;  // of flash attention: two blocks of the least size

Bytes kept_by_a_layer(const std::string& rest) {
  const auto kept = [&](const char* layers) { return held(answered(with(layers, rest)), Category::kActivations); };
  return kept("13") - kept("12");
}

TEST_CASE("a layer of torchtune's decoder keeps its norms in fp32 and heads repeated") {
  // In bytes per token: x in fp32 4H, a number 4, x_normed 2H and the norm's output 2H, twice; q, k, v and the output
  // for all heads 8H, flash's sums 4A; gate, its silu, up and their product 8F.
  CHECK(kept_by_a_layer("") == kTokens * (2 * (8 * kH + 4) + 8 * kH + 4 * kHeads + 8 * kF) + kSeed);
}

TEST_CASE("compiled, a layer keeps inputs of products and of the kernels between them") {
  // x 2H, a number 4 and the output 2H of each norm; attention as before; gate, up and the product 6F.
  CHECK(kept_by_a_layer(R"("compile": "per_block", )") ==
        kTokens * (2 * (4 * kH + 4) + 8 * kH + 4 * kHeads + 6 * kF) + kSeed);
}

TEST_CASE("torchtune's published peaks are met within two per cent") {
  const auto is_near = [](const std::string& rest, double published_gib) {
    const std::string request = R"({"schema": 1, "model": "meta-llama/Llama-3.2-3B", "precision": "pure_bf16",
      "micro_batch_size": 2, "sequence_length": 4096, "packing": true, "attention": "sdpa", "max_grad_norm": 0,
      "framework": {"name": "torchtune", "version": "2024-11"}, "gpu": "A100-80GB", )" +
                                rest + "}";
    const auto published = static_cast<Bytes>(published_gib * 1073741824.0);
    return std::llabs(answered(request).allocated.expected - published) <= published / 50;
  };
  const std::string fused = R"("optimizer": "adamw_torch_fused")", compiled = R"(, "compile": "per_block")";
  const std::string chunked = compiled + R"(, "loss": "chunked")";
  const std::string full = chunked + R"(, "gradient_checkpointing": "full")";
  CHECK(is_near(fused, 60.0));
  CHECK(is_near(fused + compiled, 51.0));
  CHECK(is_near(fused + chunked, 42.9));
  CHECK(is_near(fused + full, 24.9));
  CHECK(is_near(R"("optimizer": "adamw_torch", "optimizer_in_backward": true)" + full, 23.1));
}

TEST_CASE("an optimizer for each parameter has the temporaries of one at a time") {
  const auto highest = [](const char* in_backward) {
    const std::string rest =
        std::string{R"("optimizer": "adamw_torch", "max_grad_norm": 0, "micro_batch_size": 1, "sequence_length": 8,
          "optimizer_in_backward": )"} +
        in_backward;
    return answered(R"({"schema": 1, "model": "meta-llama/Llama-3.2-1B", "precision": "pure_bf16", )" + rest + "}")
        .allocated.expected;
  };
  // Neither gradients nor square roots of all parameters: 4 bytes of each, but for the token table's, whose gradient,
  // the head's and their sum are there at once.
  CHECK(highest("false") - highest("true") > 3'300'000'000);
}

TEST_CASE("where torchtune's own code is not modelled transformers' stands in, and says so") {
  const auto stands_in = [](const std::string& request) {
    const Answer answer = ask(request);
    REQUIRE(answer.estimate);
    for (const Issue& issue : answer.issues) {
      if (issue.code == "STAND_IN") return true;
    }
    return false;
  };
  CHECK_FALSE(stands_in(with("4", R"("gradient_checkpointing": "offload", )")));
  CHECK(stands_in(with("4", R"("parallelism": {"data": 2, "fsdp": "fsdp2"}, )")));
  CHECK(stands_in(R"({"schema": 1, "model": "google/gemma-2-2b", "framework": {"name": "torchtune"}})"));
}

}  // namespace
}  // namespace tidemark
