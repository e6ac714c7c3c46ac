// Requests that make no sense are answered with a reason: what the frameworks refuse, and what has no effect.
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

/// "error INVALID_VALUE /attention" for each issue of the answer, and its estimate where there is one.
std::string answer_to(const std::string& request) {
  Issues none;
  const Value reply = parse_json(engine().handle(std::string_view{request}), "", none);
  std::string text = reply.find("estimate") != nullptr ? "estimate" : "none";
  for (const Value& issue : reply.find("issues")->items) {
    // What is noted of any answer: which recipe was chosen, and how well it is covered.
    if (issue.find("severity")->string == "note") continue;
    text += "; " + issue.find("severity")->string + " " + issue.find("code")->string + " " + issue.find("path")->string;
    if (!issue.find("suggestion")->string.empty()) text += " -> " + issue.find("suggestion")->string;
  }
  return text;
}

std::string job(const std::string& more) {
  return R"({"model":"llama-3.2-1b","sequence_length":64,)" + more + "}";
}

Value fit_of(const std::string& request) {
  Issues none;
  return parse_json(engine().handle(std::string_view{request}), "", none).find("fits")->items.at(0);
}

TEST_CASE("FlashAttention is refused where it does not run") {
  // flash-attention 2.8, flash_api.cpp: fp16 and bf16, heads of at most 256, Ampere and newer.
  const std::string refused = "none; error INVALID_VALUE /attention -> sdpa";
  CHECK(answer_to(job(R"("attention":"flash_attention_2","precision":"fp32")")) == refused);
  CHECK(answer_to(job(R"("attention":"flash_attention_3","precision":"fp32")")) == refused);
  CHECK(answer_to(job(R"("attention":"flash_attention_2","precision":"amp_bf16")")) == "estimate");
  CHECK(answer_to(job(R"("attention":"flash_attention_2","precision":"pure_fp16")")) == "estimate");
  for (const char* kernel : {"flash_attention_2", "flash_attention_3"}) {
    const std::string attention = R"("precision":"amp_fp16","attention":")" + std::string{kernel} + "\"";
    CHECK(answer_to(job(attention + R"(,"gpu":"T4")")) == refused);
    CHECK(answer_to(job(attention + R"(,"gpu":"A100")")) == "estimate");
    CHECK(answer_to(job(attention + R"(,"gpu":"H100")")) == "estimate");
  }
  CHECK(answer_to(R"({"config":{"model_type":"llama","hidden_size":1024,"intermediate_size":512,"num_hidden_layers":2,)"
                  R"("num_attention_heads":2,"vocab_size":1000},"attention":"flash_attention_2"})") == refused);
}

TEST_CASE("of several cards the old ones are told apart") {
  Issues none;
  const Value reply = parse_json(engine().handle(R"({"verb":"fit","model":"smollm2-135m","sequence_length":64,)"
                                                 R"("attention":"flash_attention_2","gpus":["A100","T4"]})"),
                                 "", none);
  for (const Value& row : reply.find("fits")->items) {
    const bool old = row.find("gpu")->string.find("T4") != std::string::npos;
    CHECK((row.find("verdict")->string == "unknown") == old);
  }
}

TEST_CASE("bf16 on a card without it is emulated, and told") {
  // torch 2.6 cuda/__init__.py: is_bf16_supported(including_emulation=True).
  const std::string told = "estimate; warning EMULATED_DTYPE /precision -> amp_fp16";
  CHECK(answer_to(job(R"("precision":"amp_bf16","gpu":"T4")")) == told);
  CHECK(answer_to(job(R"("precision":"pure_bf16","gpu":"V100")")) == told);
  CHECK(answer_to(job(R"("precision":"amp_fp16","gpu":"T4")")) == "estimate");
  CHECK(answer_to(job(R"("precision":"amp_bf16","gpu":"4090")")) == "estimate");
}

TEST_CASE("a head with an odd number of rotating dimensions has no rotary positions") {
  const std::string config =
      R"({"config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,)"
      R"("num_attention_heads":8,"vocab_size":1000,"head_dim":)";
  CHECK(answer_to(config + "7}}") == "none; error INVALID_VALUE /config/head_dim");
  CHECK(answer_to(config + "6}}") == "estimate");
}

TEST_CASE("options that this model has no use for are told") {
  const std::string encoder = R"({"model":"bert-base-uncased","sequence_length":64,)";
  CHECK(answer_to(encoder + R"("loss":"liger"})") == "estimate; warning IGNORED_OPTION /loss -> default");
  CHECK(answer_to(encoder + R"("loss":"cut_cross_entropy"})") == "estimate; warning IGNORED_OPTION /loss -> default");
  CHECK(answer_to(encoder + R"("packing":true})") == "estimate; warning IGNORED_OPTION /packing");
  CHECK(answer_to(job(R"("decoder_sequence_length":7)")) ==
        "estimate; warning IGNORED_OPTION /decoder_sequence_length");
  CHECK(answer_to(job(R"("gradient_checkpointing":{"every":10000})")) ==
        "estimate; warning IGNORED_OPTION /gradient_checkpointing/every -> 16");
  CHECK(answer_to(job(R"("method":"lora","adapter":{"r":65536})")) == "estimate; warning LARGE_RANK /adapter/r");
  CHECK(answer_to(job(R"("method":"lora","adapter":{"r":2048})")) == "estimate");
}

TEST_CASE("two ways to checkpoint at once are one too many") {
  CHECK(answer_to(job(R"("gradient_checkpointing":{"every":2,"selective":["core_attn"]})")) ==
        "none; error INVALID_VALUE /gradient_checkpointing");
  CHECK(answer_to(job(R"("gradient_checkpointing":{"every":2,"selective":null})")) == "estimate");
}

TEST_CASE("a version is a version") {
  for (const char* version : {"\"-5.1\"", "\"0.0\"", "5e300", "-5.1", "\"\""}) {
    CHECK(answer_to(job(R"("framework":{"version":)" + std::string{version} + "}")).substr(0, 5) == "none;");
  }
}

TEST_CASE("a card is stated in one way") {
  CHECK(answer_to(job(R"("gpu":{"name":"T4","vram_gb":99})")) == "none; error INVALID_VALUE /gpu");
  CHECK(answer_to(job(R"("gpu":{"memory_gib":5,"vram_gb":99})")) == "none; error INVALID_VALUE /gpu");
  CHECK(answer_to(job(R"("gpu":{"memory_gib":1e-300})")) == "none; error INVALID_VALUE /gpu");
  CHECK(answer_to(job(R"("gpu":{"vram_gb":1e300})")) == "none; error INVALID_VALUE /gpu");
  CHECK(answer_to(job(R"("gpu":{"memory_gib":24,"name":"mine"})")) == "estimate");
}

TEST_CASE("a card that is filled from the start has nothing to use, not less than nothing") {
  const Value fit = fit_of(job(R"("gpu":"A100","overrides":{"cuda_context_gib":1000})"));
  CHECK(fit.find("usable_bytes")->integer == 0);
  CHECK(fit.find("verdict")->string == "does_not_fit");
}

TEST_CASE("nothing fits beyond the model's positions") {
  CHECK(fit_of(R"({"model":"gpt2","sequence_length":1024,"gpu":"A100"})").find("verdict")->string == "fits");
  CHECK(fit_of(R"({"model":"gpt2","sequence_length":1025,"gpu":"A100"})").find("verdict")->string == "unknown");
  CHECK(fit_of(R"({"verb":"fit","model":"gpt2","sequence_length":1025,"gpu":"A100"})").find("verdict")->string ==
        "unknown");
  Issues none;
  const Value map = parse_json(
      engine().handle(R"({"verb":"map","model":"gpt2","precision":"amp_bf16","sequence_length":512,"batches":[1],)"
                      R"("sequences":[1024,32768],"gpu":"A100"})"),
      "", none);
  CHECK(map.find("issues")->items.at(0).find("code")->string == "SEQUENCE_TOO_LONG");
  CHECK(write_json(*map.find("verdicts")) == R"([["fits","unknown"]])");
}

TEST_CASE("a key that people know by another name is suggested by its own") {
  const auto suggestion = [](const std::string& more) {
    const std::string text = answer_to(R"({"model":"llama-3.2-1b","sequence_length":64,"method":"lora",)" + more + "}");
    return text.substr(text.find("-> ") + 3);
  };
  CHECK(suggestion(R"("adapter":{"rank":8})") == "r");
  CHECK(suggestion(R"("adapter.r":8)") == "adapter");
  CHECK(suggestion(R"("seq_len":8)") == "sequence_length");
  CHECK(suggestion(R"("max_grad_norm":1e300)") == "1000000000");
}

constexpr const char* kSmallT5 =
    R"("config":{"model_type":"t5","d_model":64,"d_ff":128,"d_kv":16,"num_heads":4,"num_layers":2,"vocab_size":1000})";

TEST_CASE("re-entrant checkpointing of T5 is refused with padding, whose garbage nobody can date") {
  const std::string start =
      std::string{"{"} + kSmallT5 + R"(,"sequence_length":64,"gradient_checkpointing":"full","use_reentrant":)";
  CHECK(answer_to(start + R"(true,"padding":true})") == "none; error UNSUPPORTED_VALUE /use_reentrant -> false");
  CHECK(answer_to(start + R"(false,"padding":true})") == "estimate");
  CHECK(answer_to(start + "true}") == "estimate");
}

TEST_CASE("a learned prefix needs a cache: checkpoints are refused, and so is what PEFT fails on") {
  const auto prefix = [](const std::string& model, const std::string& more) {
    const std::string text = answer_to(R"({"model":")" + model + R"(","sequence_length":64,"method":"lora",)" +
                                       R"("adapter":{"kind":"prefix_tuning"})" + more + "}");
    return text.substr(0, text.find(" ->"));
  };
  CHECK(prefix("llama-3.2-1b", "") == "estimate");
  CHECK(prefix("llama-3.2-1b", R"(,"gradient_checkpointing":"full")") ==
        "none; error INVALID_VALUE /gradient_checkpointing");
  CHECK(prefix("google/gemma-2-2b", "") == "none; error INVALID_COMBINATION /adapter/kind");
}

TEST_CASE("a recording has room in the sequence, or there is an error") {
  // processing_qwen2_audio.py: 30 s are 3000 frames of 10 ms, which two halvings make 750 tokens.
  const std::string start = R"({"model":"Qwen/Qwen2-Audio-7B-Instruct","method":"lora","audio_seconds":30,)";
  CHECK(answer_to(start + R"("sequence_length":750})") == "none; error INVALID_VALUE /sequence_length -> 751");
  CHECK(answer_to(start + R"("sequence_length":751})") == "estimate");
}

TEST_CASE("classes that transformers cannot run are refused") {
  // transformers 5.12.1 modeling_xlm_roberta.py XLMRobertaForMultipleChoice: outputs[1] of a body without a pooler.
  const auto choice = [](const std::string& type, const std::string& prefix) {
    return answer_to(R"({"config":{"model_type":")" + type + R"(","architectures":[")" + prefix +
                     R"(ForMultipleChoice"],"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,)"
                     R"("num_attention_heads":4,"vocab_size":1000},"sequence_length":64})");
  };
  CHECK(choice("xlm-roberta", "XLMRoberta").rfind("none; error INVALID_VALUE /config/architectures", 0) == 0);
  CHECK(choice("camembert", "Camembert").rfind("none; error INVALID_VALUE /config/architectures", 0) == 0);
  CHECK(choice("roberta", "Roberta").rfind("estimate", 0) == 0);
}

TEST_CASE("a kernel for experts that the model has not is said to have no effect") {
  const std::string ignored = "estimate; warning IGNORED_OPTION /moe/implementation";
  CHECK(answer_to(job(R"("moe":{"implementation":"eager"})")) == ignored);
  CHECK(answer_to(job(R"("moe":{"implementation":"grouped_mm"})")) == "estimate");
}

TEST_CASE("kernels for states that the model does not keep are said to have no effect") {
  CHECK(answer_to(job(R"("kernels":"torch")")) == "estimate; warning IGNORED_OPTION /kernels -> fused");
  CHECK(answer_to(job(R"("kernels":"fused")")) == "estimate");
}

TEST_CASE("padding of recordings is said not to be counted") {
  const std::string wave =
      R"({"config":{"model_type":"wav2vec2","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"conv_dim":[32,32],"conv_stride":[5,2],"conv_kernel":[10,3],"layerdrop":0.0},)"
      R"("audio_seconds":1.0,"padding":)";
  CHECK(answer_to(wave + "true}") == "estimate; warning IGNORED_OPTION /padding -> false");
  CHECK(answer_to(wave + "false}") == "estimate");
}

}  // namespace
}  // namespace tidemark
