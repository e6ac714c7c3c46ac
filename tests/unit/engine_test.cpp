#include "core/wire/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"
#include "tests/unit/member_at.hpp"

namespace tidemark {
namespace {

Value ask(std::string_view request) {
  Issues issues;
  Value reply = parse_json(engine().handle(request), "", issues);
  REQUIRE(issues.empty());
  return reply;
}

bool has_issue(const Value& reply, std::string_view code) {
  for (const Value& issue : at(reply, "issues").items) {
    if (at(issue, "code").string == code) return true;
  }
  return false;
}

TEST_CASE("an estimate has every key of the contract") {
  const Value reply =
      ask(R"({"schema":1,"model":"LLAMA-2-7b","precision":"amp_bf16","gpus":["A100-80GB","4090",{"memory_gib":24}]})");
  for (const char* key : {"schema",
                          "engine",
                          "catalog",
                          "estimate.allocated.low",
                          "estimate.allocated.expected",
                          "estimate.allocated.high",
                          "estimate.reserved.expected",
                          "estimate.device.expected",
                          "estimate.first_step_allocated",
                          "estimate.host.expected",
                          "estimate.peak.phase",
                          "estimate.peak.at",
                          "estimate.peak.rank",
                          "estimate.breakdown.0.category",
                          "estimate.breakdown.0.bytes",
                          "estimate.breakdown.0.entries.0.name",
                          "estimate.breakdown.0.entries.0.bytes",
                          "estimate.breakdown.0.entries.0.formula",
                          "estimate.breakdown.0.entries.0.substituted",
                          "estimate.breakdown.0.entries.0.source",
                          "estimate.breakdown.0.entries.0.confidence",
                          "estimate.timeline.0.instant",
                          "estimate.timeline.0.phase",
                          "estimate.timeline.0.bytes.weights",
                          "estimate.parameters.total",
                          "estimate.parameters.trainable",
                          "estimate.parameters.active",
                          "estimate.parameters.published",
                          "estimate.recipe.weights",
                          "estimate.recipe.gradients",
                          "estimate.recipe.master_weights",
                          "estimate.recipe.optimizer_states",
                          "estimate.recipe.autocast",
                          "fits.0.gpu",
                          "fits.0.usable_bytes",
                          "fits.0.verdict",
                          "fits.0.headroom_bytes",
                          "fits.0.utilization",
                          "fits.2.reason",
                          "issues"}) {
    CAPTURE(key);
    at(reply, key);
  }
  CHECK(at(reply, "estimate.parameters.total").integer == 6738415616);
  CHECK(at(reply, "estimate.recipe.name").string == "amp_bf16");
  CHECK(at(reply, "fits").items.size() == 3);
}

TEST_CASE("the breakdown sums to the peak, to the byte") {
  const Value reply = ask(R"({"model":"llama-3.2-1b","precision":"pure_bf16"})");
  std::int64_t groups = 0;
  for (const Value& group : at(reply, "estimate.breakdown").items) {
    std::int64_t entries = 0;
    for (const Value& entry : at(group, "entries").items) entries += at(entry, "bytes").integer;
    CHECK(entries == at(group, "bytes").integer);
    groups += at(group, "bytes").integer;
  }
  CHECK(groups == at(reply, "estimate.allocated.expected").integer);
}

TEST_CASE("the same request gives the same bytes") {
  const std::string request = R"({"model":"llama-3.2-1b","gpu":"4090"})";
  CHECK(engine().handle(request) == engine().handle(request));
}

TEST_CASE("only a count assumes a published architecture, and says so") {
  const Value reply = ask(R"({"parameters":7e9})");
  CHECK(at(reply, "estimate.architecture").string == "meta-llama/Llama-2-7b-hf");
  CHECK(has_issue(reply, "ASSUMED_ARCHITECTURE"));
  CHECK(at(ask(R"({"parameters":8e9})"), "estimate.architecture").string == "meta-llama/Meta-Llama-3-8B");
  CHECK(at(ask(R"({"parameters":1.1e9})"), "estimate.architecture").string == "TinyLlama/TinyLlama-1.1B-Chat-v1.0");
}

TEST_CASE("a pasted config is a model") {
  const Value reply = ask(R"({"config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,
    "num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000},"sequence_length":128})");
  CHECK(at(reply, "estimate.model").string == "LlamaForCausalLM");
  CHECK(at(reply, "estimate.parameters.total").integer > 0);
}

TEST_CASE("an unknown model is an error with its neighbours") {
  const Value reply = ask(R"({"model":"meta-llama/Llama-2-7b-fh"})");
  CHECK(reply.find("estimate") == nullptr);
  CHECK(at(reply, "issues.0.code").string == "UNKNOWN_MODEL");
  CHECK(at(reply, "issues.0.suggestion").string == "meta-llama/Llama-2-7b-hf");
}

TEST_CASE("an unknown card is an error with its neighbour") {
  const Value reply = ask(R"({"model":"llama-2-7b","gpu":"A10O-80GB"})");
  CHECK(at(reply, "issues.0.code").string == "UNKNOWN_GPU");
  CHECK(!at(reply, "issues.0.suggestion").string.empty());
}

TEST_CASE("an architecture that is not modelled still has its weights") {
  const Value reply = ask(R"({"model":"allenai/Molmo-7B-D-0924","precision":"pure_bf16"})");
  CHECK(reply.find("estimate") == nullptr);
  CHECK(has_issue(reply, "UNSUPPORTED_ARCHITECTURE"));
  CHECK(at(reply, "partial.weights").integer == 2 * at(reply, "partial.parameters").integer);
  CHECK(at(reply, "partial.optimizer_states").integer == 4 * at(reply, "partial.parameters").integer);
}

TEST_CASE("all errors of a request are told at once") {
  const Value reply = ask(R"({"model":"no-such-model-at-all","gpu":"no such card","optimizer":"none such"})");
  CHECK(has_issue(reply, "UNKNOWN_MODEL"));
  CHECK(has_issue(reply, "UNKNOWN_GPU"));
  CHECK(has_issue(reply, "INVALID_VALUE"));
}

TEST_CASE("the card decides about the context on top of reserved memory") {
  const Value reply =
      ask(R"({"model":"llama-3.2-1b","gpu":"T4","overrides":{"cuda_context_gib":1.0,"misc_overhead_gib":0.5}})");
  CHECK(at(reply, "estimate.device.expected").integer - at(reply, "estimate.reserved.expected").integer ==
        kGiB + kGiB / 2);
  CHECK(at(reply, "estimate.overrides.cuda_context_gib").real == 1.0);
}

// torch 2.14 ATen/native/transformers/cuda/sdp_utils.cpp: less_than_sm80_mem_efficient_dtypes, minimum_gemm_alignment,
// check_batch_size_and_num_heads_dense (torch before 2.14).
TEST_CASE("before Ampere attention in bf16 makes its scores, and in fp16 only where keys are shared") {
  const auto kernel = [](const char* model, const char* rest) {
    return at(ask(R"({"sequence_length":256,"model":")" + std::string{model} + "\"," + rest + "}"),
              "estimate.attention_kernel")
        .string;
  };
  CHECK(kernel("openai-community/gpt2", R"("precision":"amp_fp16","gpu":"T4")") == "efficient");
  CHECK(kernel("openai-community/gpt2", R"("precision":"fp32","gpu":"T4")") == "efficient");
  CHECK(kernel("openai-community/gpt2", R"("precision":"amp_bf16","gpu":"T4")") == "math");
  CHECK(kernel("openai-community/gpt2", R"("precision":"amp_bf16","gpu":"A100-40GB")") == "flash");
  CHECK(kernel("llama-3.2-1b", R"("precision":"amp_fp16","gpu":"T4")") == "math");
  CHECK(kernel("llama-3.2-1b", R"("precision":"amp_fp16","gpu":"T4","padding":true,"micro_batch_size":2)") ==
        "efficient");
}

TEST_CASE("verbs: fit, catalog, describe, version, and those to come") {
  const Value fit = ask(R"({"verb":"fit","model":"llama-3.2-1b"})");
  CHECK(at(fit, "fits").items.size() == engine().catalog().gpus().size());
  CHECK(at(ask(R"({"verb":"catalog","pattern":"llama-2-7b"})"), "models").items.size() >= 1);
  CHECK(at(ask(R"({"verb":"describe"})"), "options").items.size() > 50);
  CHECK(at(ask(R"({"verb":"version"})"), "schema").integer == 1);
  for (const char* verb : {"scan", "import", "export", "dance"}) {
    const Value reply = ask("{\"verb\":\"" + std::string{verb} + "\"}");
    CHECK(has_issue(reply, "UNSUPPORTED_VERB"));
  }
}

TEST_CASE("hostile requests are answered, not obeyed") {
  for (
      const std::string& request :
      {std::string{},
       std::string{"null"},
       std::string{"[]"},
       std::string{"7"},
       std::string(100000, '{'),
       std::string(200000, '['),
       std::string{"\xff\xfe"},
       "{\"model\":\"" + std::string(1000000, 'x') + "\"}",
       "{\"" + std::string(100000, 'k') + "\":1}",
       std::string{R"({"model":7})"},
       std::string{R"({"verb":7})"},
       std::string{R"({"verb":{"a":1}})"},
       std::string{R"({"config":{}})"},
       std::string{R"({"config":[]})"},
       std::string{R"({"config":{"model_type":"llama","hidden_size":1e18,"num_hidden_layers":1e18}})"},
       std::string{
           R"({"config":{"model_type":"llama","hidden_size":9223372036854775807,"num_hidden_layers":9223372036854775807,
                        "num_attention_heads":1,"intermediate_size":9223372036854775807,"vocab_size":9223372036854775807}})"},
       std::string{R"({"config":{"model_type":"llama","hidden_size":0,"num_attention_heads":0}})"},
       std::string{R"({"config":{"model_type":"llama","hidden_size":-4,"num_attention_heads":-1}})"},
       std::string{R"({"parameters":1e300})"},
       std::string{R"({"parameters":-1})"}}) {
    const Value reply = ask(request);
    CHECK(reply.find("estimate") == nullptr);
    bool error = false;
    for (const Value& issue : at(reply, "issues").items) error = error || at(issue, "severity").string == "error";
    CHECK(error);
  }
}

TEST_CASE("a request that was damaged anywhere is still answered") {
  const std::string sound = R"({"schema":1,"config":{"model_type":"llama","hidden_size":64,"intermediate_size":128,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1000,"rope_theta":1e4},
    "method":"lora","adapter":{"r":8,"target_modules":["q_proj"]},"precision":{"weights":"bf16","autocast":"none"},
    "micro_batch_size":2,"sequence_length":64,"gradient_checkpointing":{"every":2},"gpu":{"memory_gib":24}})";
  std::uint32_t state = 1;
  const auto draw = [&](std::size_t below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 8U) % below;
  };
  const std::string_view pieces[] = {
      "0",     "-1", "9223372036854775807", "1e308", "null", "\"", "{", "}", "[", "]", ",", ":", "\xff", "\\", "true",
      "1e400", "NaN"};
  for (int round = 0; round < 1500; ++round) {
    std::string text = sound;
    for (std::size_t damage = 0; damage <= draw(3); ++damage) {
      const std::size_t where = draw(text.size());
      const std::string_view piece = pieces[draw(std::size(pieces))];
      if (draw(2) == 0)
        text.insert(where, piece);
      else
        text.replace(where, std::min<std::size_t>(1 + draw(6), text.size() - where), piece);
    }
    CAPTURE(text);
    const std::string reply = engine().handle(text);
    REQUIRE(reply.rfind("{\"schema\":1,", 0) == 0);
  }
}

TEST_CASE("flash attention runs where the family's classes have it, and is refused where they do not") {
  const auto asked = [](const std::string& model, const std::string& attention) {
    return ask(R"({"precision":"pure_bf16","sequence_length":256,"model":")" + model + R"(","attention":")" +
               attention + "\"}");
  };
  // FALCON_ATTENTION_CLASSES, transformers 5.12 models/falcon/modeling_falcon.py
  CHECK(at(asked("tiiuae/falcon-7b", "flash_attention_2"), "estimate.attention_kernel").string == "flash");
  CHECK(has_issue(asked("tiiuae/falcon-7b", "flash_attention_3"), "UNSUPPORTED_VALUE"));
  CHECK(has_issue(asked("tiiuae/falcon-rw-1b", "flash_attention_2"), "UNSUPPORTED_VALUE"));  // raises on alibi
  // GPTJ_ATTENTION_CLASSES
  CHECK(at(asked("EleutherAI/gpt-j-6b", "flash_attention_2"), "estimate.attention_kernel").string == "flash");
  CHECK(has_issue(asked("EleutherAI/gpt-j-6b", "flash_attention_3"), "UNSUPPORTED_VALUE"));
  // Neither BloomPreTrainedModel nor MptPreTrainedModel sets _supports_flash_attn.
  CHECK(has_issue(asked("bigscience/bloom-560m", "flash_attention_2"), "UNSUPPORTED_VALUE"));
  CHECK(has_issue(asked("mosaicml/mpt-7b", "flash_attention_2"), "UNSUPPORTED_VALUE"));
}

TEST_CASE("recomputing the core of attention is said to save nothing where a fused kernel runs") {
  const auto asked = [](const std::string& attention) {
    return ask(R"({"model":"llama-3.2-1b","gradient_checkpointing":{"selective":["core_attn"]},"attention":")" +
               attention + "\"}");
  };
  CHECK(has_issue(asked("sdpa"), "NO_EFFECT"));
  CHECK(has_issue(asked("flash_attention_2"), "NO_EFFECT"));
  CHECK_FALSE(has_issue(asked("eager"), "NO_EFFECT"));
}

TEST_CASE("without a catalog a config can still be estimated") {
  const Engine bare;
  const std::string reply = bare.handle(R"({"config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,
    "num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000},"sequence_length":128})");
  CHECK(reply.find("\"allocated\"") != std::string::npos);
  CHECK(bare.handle(R"({"model":"llama-2-7b"})").find("UNKNOWN_MODEL") != std::string::npos);
  Engine broken;
  CHECK(has_error(broken.load_catalog("{", "[]")));
}

}  // namespace
}  // namespace tidemark
