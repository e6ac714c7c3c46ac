// Jobs of torchtitan. Expected peaks are reserved memory as its commits and benchmarks printed it
// (tests/measured/requests.jsonl); what a layer keeps is counted from distributed/activation_checkpoint.py.
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr const char* kOp = R"({"selective": ["op"]})";

std::string titan(const std::string& date, const std::string& checkpointing, const std::string& rest = "",
                  const std::string& model = R"("model": "meta-llama/Llama-3.1-8B")") {
  return R"({"schema": 1, )" + model + R"(, "method": "full", "precision": "fsdp_bf16", "attention": "sdpa",
    "optimizer": "adamw_torch", "framework": {"name": "torchtitan", "version": ")" +
         date + R"("}, "gradient_checkpointing": )" + checkpointing +
         (rest.find("parallelism") == std::string::npos ? R"(, "parallelism": {"data": 8, "fsdp": "fsdp2"})" : "") +
         (rest.find("sequence_length") == std::string::npos ? R"(, "sequence_length": 8192)" : "") + rest + "}";
}

bool is_near(const std::string& request, Bytes published) {
  return std::llabs(answered(request).reserved.expected - published) <= published / 100;
}

bool says(const Answer& answer, const std::string& code) {
  for (const Issue& issue : answer.issues) {
    if (issue.code == code) return true;
  }
  return false;
}

// What a layer keeps from forward to backward: the difference that two more layers make, by two.
Bytes kept_by_a_layer(const std::string& checkpointing, const std::string& rest = "") {
  const auto held_of = [&](int layers) {
    const std::string config = R"("config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 8, "num_key_value_heads": 2,
      "vocab_size": 128256, "max_position_embeddings": 8192, "num_hidden_layers": )" +
                               std::to_string(layers) + "}";
    return held(answered(titan("2025-02-05", checkpointing, rest, config)), Category::kActivations);
  };
  return (held_of(6) - held_of(4)) / 2;
}

TEST_CASE("torchtitan's published peaks are met within a per cent") {
  CHECK(is_near(titan("2025-02-05", kOp), 53'246'857'052));                                       // titan-023
  CHECK(is_near(titan("2025-08-22", kOp), 50'873'887'621));                                       // titan-036
  CHECK(is_near(titan("2025-02-27", kOp, R"(, "compile": "per_block")"), 51'163'797'914));        // titan-027
  CHECK(is_near(titan("2025-03-20", kOp, R"(, "loss": "chunked")"), 45'376'329'482));             // titan-022
  CHECK(is_near(titan("2025-01", R"("none")", R"(, "sequence_length": 4096)"), 57'037'165'691));  // titan-101
  // titan-009: of several hosts, whose launcher leaves the allocator as it is
  CHECK(is_near(titan("2024-12", kOp, R"(, "compile": "per_block", "micro_batch_size": 2,
    "parallelism": {"data": 128, "fsdp": "fsdp2"})"),
                66'571'993'088));
}

TEST_CASE("a loss outside of the model finds nothing more of the head's gathering, and Qwen 3 has its cache") {
  const auto qwen3 = [](const std::string& rest) {
    return answered(R"({"schema": 1, "config": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
      "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": false, )" +
                    rest)
        .allocated.expected;
  };
  const Bytes few = qwen3(R"("vocab_size": 151936}, "method": "full", "precision": "fsdp_bf16", "sequence_length": 512,
    "gpu": "H100", "optimizer": "adamw_torch_fused", "framework": {"name": "torchtitan"}, "parallelism": {"data": 4,
    "fsdp": "fsdp2", "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"}, "reshard_after_forward": false}})");
  constexpr Bytes kRests = 5 * kMiB;                                        // of blocks that are not split
  CHECK(std::llabs(few - 2'917'060'096 - Bytes{2} * 33'554'432) < kRests);  // cross35521-titan-000, and cuBLAS
}

// models/llama3/infra/parallelize.py: seq_len_divisor.
TEST_CASE("torchtitan takes no odd length") {
  CHECK(ask(titan("2025-08-22", kOp, R"(, "sequence_length": 4098)")).estimate);
  CHECK_FALSE(ask(titan("2025-08-22", kOp, R"(, "sequence_length": 4097)")).estimate);
}

TEST_CASE("the policy per operation keeps every other matrix product and attention") {
  constexpr Bytes kTokens = 8192, kH = 1024, kQ = 1024, kK = 256, kF = 2816, kHeads = 8;
  // Input, q, v, gate, down and attention in bf16; a logarithm per head and token, and two blocks for the kernel's
  // seed.
  const Bytes policy = kTokens * (2 * (kH + kQ + kK + kF + kH + kQ) + 4 * kHeads) + 2 * 512;
  CHECK(kept_by_a_layer(kOp) == policy);
  // Compiled, the last product is not kept.
  CHECK(kept_by_a_layer(kOp, R"(, "compile": "per_block")") == policy - 2 * kTokens * kH);
  CHECK(kept_by_a_layer(R"("full")") == 2 * kTokens * kH);
}

TEST_CASE("where torchtitan's own code is not known another stands in, and the answer says so") {
  const Answer own = ask(titan("0.2.0", kOp));
  CHECK(own.estimate.has_value());
  CHECK_FALSE(says(own, "STAND_IN"));
  CHECK(says(ask(titan("0.2.0", kOp, "", R"("model": "mistralai/Mistral-7B-v0.1")")), "STAND_IN"));
  std::string lora = titan("0.2.0", R"("full")");
  lora.replace(lora.find(R"("method": "full")"), 16, R"("method": "lora")");
  CHECK(ask(lora).estimate.has_value());
  CHECK(says(ask(lora), "STAND_IN"));
  CHECK(says(ask(titan("0.2.0", R"("full")", R"(, "liger": ["rms_norm"])")), "STAND_IN"));
  CHECK(says(ask(titan("0.2.0", R"("full")", R"(, "padding": true)")), "STAND_IN"));
  CHECK(says(ask(titan("0.2.0", R"("full")", R"(, "parallelism": {"data": 4, "context": 2, "fsdp": "fsdp2"})")),
             "STAND_IN"));
}

// Of a layer no more than its products and attention are kept (distributed/activation_checkpoint.py:
// _op_sac_save_list): Mistral's 53248 columns of 8192 tokens in bf16, of which the policy leaves every other product.
TEST_CASE("where other code stands in, the policy per operation reaches to a layer's products and no further") {
  const std::string mistral = R"("model": "mistralai/Mistral-7B-v0.1")";
  const std::string wide = R"(, "sequence_length": 8192, "parallelism": {"data": 64, "fsdp": "fsdp2"})";
  const Estimate kept = answered(titan("0.2.0", kOp, wide, mistral));
  constexpr Bytes kColumns = 4096 + (4096 + 2 * 1024 + 4096) + (2 * 14336 + 4096);
  CHECK(kept.allocated.high >= kept.allocated.expected + 32 * Bytes{8192} * 2 * kColumns);
  CHECK(kept.allocated.high < answered(titan("0.2.0", R"("none")", wide, mistral)).allocated.expected);
}

TEST_CASE("a mixture of torchtitan's with biases is its own code's, too") {
  const std::string mixture = R"("config": {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": true, "head_dim": 128, "hidden_size": 1024, "intermediate_size": 3072, "moe_intermediate_size": 512,
    "num_attention_heads": 8, "num_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "vocab_size": 32000, "decoder_sparse_step": 1, "mlp_only_layers": []})";
  const std::string divided = R"(, "parallelism": {"data": 4, "expert": 4, "fsdp": "fsdp2"})";
  CHECK_FALSE(says(ask(titan("0.2.2", kOp, divided, mixture)), "STAND_IN"));
}

TEST_CASE("GPUs that share a sequence divide the weights, too") {
  const Estimate shared =
      answered(titan("0.2.0", R"("full")", R"(, "parallelism": {"data": 2, "context": 4, "fsdp": "fsdp2"})"));
  const Estimate all = answered(titan("0.2.0", R"("full")"));
  CHECK(held(shared, Category::kWeights) == held(all, Category::kWeights));
}

}  // namespace
}  // namespace tidemark
