// Experts that GPUs divide, by transformers and by torchtitan. Expected bytes are those of
// tests/oracle/records-multi.jsonl (ep-…, titan-…).
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string qwen3(const std::string& layers, const std::string& rest, const std::string& type = "qwen3_moe") {
  return R"({"schema": 1, "config": {"model_type": ")" + type + R"(", "head_dim": 128, "hidden_size": 2048,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "num_key_value_heads": 4,
    "num_experts": 128, "num_local_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, )" +
         layers + R"(}, "method": "full", "attention": "sdpa", "optimizer": "adamw_torch_fused", )" + rest + "}";
}

std::string transformers(const std::string& parallelism, const std::string& more = "",
                         const std::string& type = "qwen3_moe") {
  return qwen3(R"("num_hidden_layers": 3, "vocab_size": 151936)",
               R"("precision": "pure_bf16", "sequence_length": 1024, "parallelism": {)" + parallelism + "}" + more,
               type);
}

std::string titan(const std::string& parallelism, const std::string& more = "") {
  return qwen3(R"("num_hidden_layers": 4, "vocab_size": 16384)",
               R"("precision": "fsdp_bf16", "sequence_length": 4096, "framework": {"name": "torchtitan"},
               "parallelism": {"fsdp": "fsdp2", )" +
                   parallelism + "}" + more);
}

bool is_near(const std::string& request, Bytes recorded) {
  return std::llabs(answered(request).allocated.expected - recorded - Bytes{2} * 8'519'680) <= recorded / 500;
}

bool says(const Answer& answer, const std::string& code) {
  for (const Issue& issue : answer.issues) {
    if (issue.code == code) return true;
  }
  return false;
}

TEST_CASE("transformers' expert parallel GPUs have a part of the experts and all of the rest, and of every row") {
  const Estimate e = answered(transformers(R"("expert": 8)"));
  CHECK(e.parameters.total == 906'246'912 + Count{3} * 7 * 16 * 3 * 2048 * 768);
  CHECK(std::llabs(held(e, Category::kWeights) - Bytes{2} * 906'246'912) < 100'000);
  CHECK(is_near(transformers(R"("expert": 8)"), 7'924'512'256));
}

TEST_CASE("what transformers cannot divide, or fails at, is refused") {
  CHECK(ask(transformers(R"("expert": 8)", R"(, "moe": {"implementation": "batched_mm"})")).estimate);
  CHECK_FALSE(ask(transformers(R"("expert": 8)", R"(, "moe": {"implementation": "eager"})")).estimate);
  CHECK_FALSE(ask(transformers(R"("expert": 3)")).estimate);
  CHECK_FALSE(ask(transformers(R"("expert": 8, "data": 2)")).estimate);
  CHECK_FALSE(ask(transformers(R"("expert": 8)", "", "olmoe")).estimate);
  CHECK_FALSE(ask(transformers(R"("expert": 8)", "", "mixtral")).estimate);
}

TEST_CASE("torchtitan's experts are divided among some GPUs, and their parts by FSDP 2 among the others") {
  CHECK(is_near(titan(R"("data": 8, "expert": 8)"), 7'918'421'504));
  CHECK(is_near(titan(R"("data": 64, "expert": 4)"), 4'663'570'432));
  const std::string full = R"(, "gradient_checkpointing": "full")";
  CHECK(is_near(titan(R"("data": 8, "expert": 8)", full), 6'424'130'048));
  CHECK(answered(titan(R"("data": 8, "expert": 8)")).parameters.total == 2'559'593'472);
  // Without the number of GPUs there are as many as divide the experts.
  CHECK(answered(titan(R"("expert": 8)")).allocated.expected ==
        answered(titan(R"("data": 8, "expert": 8)")).allocated.expected);
}

// A tied head leaves its table to the root, for which torchtitan states nothing that is gathered ahead of it.
TEST_CASE("beside expert parallelism a backward that begins with weights of the root's own is recorded") {
  const auto with = [](const char* tied) {
    std::string text = titan(R"("data": 8, "expert": 8, "fsdp_options": {"groups": "separate"})");
    const std::string_view vocabulary = R"("vocab_size": 16384)";
    text.insert(text.find(vocabulary), std::string{R"("tie_word_embeddings": )"} + tied + ", ");
    return answered(text);
  };
  const Count head = Count{16'384} * 2'048;
  CHECK(with("false").parameters.total - with("true").parameters.total == head);
  CHECK(with("true").allocated.expected < with("false").allocated.expected);
}

TEST_CASE("beside expert parallelism torchtitan's routing is an assumption, and an uneven one takes more") {
  const Answer even = ask(titan(R"("data": 8, "expert": 8)"));
  CHECK(says(even, "ASSUMED_ROUTING"));
  const Estimate uneven = answered(titan(R"("data": 8, "expert": 8)", R"(, "moe": {"load_imbalance": 4})"));
  REQUIRE(even.estimate);
  CHECK(uneven.allocated.expected > even.estimate->allocated.expected);
  CHECK_FALSE(ask(titan(R"("data": 8, "expert": 16)")).estimate);
}

TEST_CASE("where torchtitan's own mixture is not known its experts are divided like all weights, and that is said") {
  CHECK(says(ask(titan(R"("data": 8, "expert": 8)", R"(, "padding": true)")), "STAND_IN"));
  const std::string fp32 = R"(, "fsdp_mixed_precision": {"param": "fp32", "reduce": "fp32"})";
  CHECK(says(ask(titan(R"("data": 8, "expert": 8)" + fp32)), "STAND_IN"));
}

}  // namespace
}  // namespace tidemark
