// Jobs of LitGPT. Expected peaks are those of its resource tables and its config hub (tests/measured/requests.jsonl);
// what a block keeps is summed by hand from litgpt 0.4.5 litgpt/{model, lora}.py.
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string with(const std::string& config, const std::string& method, const std::string& rest = "") {
  return R"({"schema": 1, "config": {)" + config + R"(}, "method": ")" + method +
         R"(", "precision": "pure_bf16", "attention": "sdpa", "framework": {"name": "litgpt"}, "gpu": "A100-40GB", )" +
         rest + R"("micro_batch_size": 2, "sequence_length": 512})";
}

const std::string kNeoX = R"("model_type": "gpt_neox", "hidden_size": 256, "num_attention_heads": 4,
  "intermediate_size": 1024, "vocab_size": 2048, "max_position_embeddings": 1024, "rotary_pct": 0.25)";
const std::string kGrouped = R"("model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
  "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 2048, "max_position_embeddings": 1024)";
const std::string kAdapter = R"("adapter": {"r": 8, "lora_dropout": 0.05, "target_modules": [)";

Bytes kept_by_a_block(const std::string& config, const std::string& method, const std::string& rest) {
  const auto kept = [&](const char* layers) {
    return held(answered(with(config + R"(, "num_hidden_layers": )" + layers, method, rest)), Category::kActivations);
  };
  return kept("13") - kept("12");
}

constexpr Bytes kTokens = 2 * 512, kH = 256, kHeads = 4, kRank = 8;
constexpr Bytes kSeed = 2 * 512;  // of flash attention: two blocks of the least size

TEST_CASE("a block of LitGPT's GPT keeps what its LoRA's copy of queries and values adds to it") {
  // In bytes per token: x 2H, its mask H and the dropped copy 2H, after_A 2·2r, the source of index_copy 4H, the sum of
  // both projections 6H, which v is a view of, q and k behind their cat 4H, flash's output 2H and its sums 4A, what
  // gelu keeps 2F; mean and deviation of two norms.
  const Bytes expected = kTokens * (21 * kH + 4 * kRank + 4 * kHeads + 2 * 4 * kH + 16) + kSeed;
  CHECK(kept_by_a_block(kNeoX, "lora", kAdapter + R"("query_key_value"]}, )") == expected);
}

TEST_CASE("grouped queries are copied to all heads, norms keep fp32, and all three parts need no zeros between them") {
  // x in fp32 4H and a scale 4 for each of two norms, mask H, dropped 2H, after_A 2·3r, q, k, v and the output 8H, the
  // sums 4A, three tensors of 2F.
  const Bytes expected = kTokens * (8 * kH + 8 + 3 * kH + 6 * kRank + 8 * kH + 4 * kHeads + 6 * 704) + kSeed;
  const Bytes ours = kept_by_a_block(kGrouped, "lora", kAdapter + R"("q_proj", "k_proj", "v_proj"]}, )");
  // and a norm's weight in fp32, in each block twice
  CHECK(ours == expected + 2 * 4 * kH);
}

TEST_CASE("Gemma 2's scores are capped in the open: their tanh and probabilities wait, and a norm behind each branch") {
  const std::string gemma = R"("model_type": "gemma2", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 704, "vocab_size": 2048, "max_position_embeddings": 1024,
    "sliding_window": 4096, "layer_types": null)";
  // Four norms of 4H + 4, what the adapter keeps as above, q, k, v 6H, per head and key 2 + 4 + 2 bytes, 6F of the
  // feed-forward.
  const Bytes expected = kTokens * (4 * (4 * kH + 4) + 3 * kH + 6 * kRank + 6 * kH + 8 * kHeads * 512 + 6 * 704);
  CHECK(kept_by_a_block(gemma, "lora", kAdapter + R"("q_proj", "k_proj", "v_proj"]}, )") == expected + 4 * 4 * kH);
}

TEST_CASE("with bitsandbytes the products' inputs wait for the next iteration") {
  const std::string qlora = R"("quantization": {"bits": 4}, )" + kAdapter + R"("query_key_value"]}, )";
  const Bytes lora = kept_by_a_block(kNeoX, "lora", kAdapter + R"("query_key_value"]}, )");
  // Both norms' outputs, attention's heads in rows, gelu's output: 6H + 2F, of this iteration and of the one before.
  CHECK(kept_by_a_block(kNeoX, "qlora", qlora) - lora == kTokens * 2 * 14 * kH);
  // The longest sample's batch came first, behind no other, until February 2024.
  const std::string old = with(kNeoX + R"(, "num_hidden_layers": 12)", "qlora", qlora);
  std::string first = old;
  first.replace(first.find(R"("name": "litgpt")"), 16, R"("name": "litgpt", "version": "2023-12")");
  CHECK(answered(first).allocated.expected < answered(old).allocated.expected);
}

TEST_CASE("LitGPT's published peaks are met within a per cent") {
  const auto is_near = [](const std::string& request, Bytes published) {
    return std::llabs(answered(request).allocated.expected - published) <= published / 100;
  };
  const std::string shared = R"(, "attention": "sdpa", "precision": "pure_bf16", "adapter": {"r": )";
  const std::string targets = R"(, "lora_dropout": 0.05, "target_modules": ["q_proj", "v_proj"], "dtype": "bf16"})";
  CHECK(is_near(R"({"schema": 1, "model": "meta-llama/Llama-2-7b-hf", "method": "lora", "micro_batch_size": 2,
    "sequence_length": 1304, "framework": {"name": "litgpt", "version": "2023-12"}, "gpu": "A100-40GB")" +
                    shared + "8" + targets + "}",
                29'070'000'000));  // lit-014
  CHECK(is_near(R"({"schema": 1, "model": "mistralai/Mistral-7B-v0.1", "method": "qlora", "micro_batch_size": 2,
    "sequence_length": 512, "framework": {"name": "litgpt", "version": "2024"}, "gpu": "A10G",
    "quantization": {"bits": 4, "double_quant": false})" +
                    shared + "32" + targets + "}",
                14'290'000'000));  // lithub-025
}

TEST_CASE("where LitGPT's own code is not modelled transformers' stands in, and says so") {
  const auto stands_in = [](const std::string& request) {
    const Answer answer = ask(request);
    REQUIRE(answer.estimate);
    for (const Issue& issue : answer.issues) {
      if (issue.code == "STAND_IN") return true;
    }
    return false;
  };
  const std::string layers = R"(, "num_hidden_layers": 4)";
  CHECK_FALSE(stands_in(with(kNeoX + layers, "full")));
  CHECK(stands_in(with(kNeoX + layers, "full", R"("parallelism": {"data": 2, "fsdp": "full_shard"}, )")));
  CHECK(stands_in(R"({"schema": 1, "model": "mistralai/Mixtral-8x7B-v0.1", "framework": {"name": "litgpt"}})"));
}

}  // namespace
}  // namespace tidemark
