// Quantisation-aware training by torchao.
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

const std::string kJob =
    R"({"config":{"model_type":"llama","hidden_size":1024,"intermediate_size":2048,"num_hidden_layers":8,"num_attention_heads":8,"vocab_size":1024,"tie_word_embeddings":false},"precision":"pure_bf16","sequence_length":32,"optimizer":"sgd")";

Bytes peak_of(const std::string& keys) {
  const Answer answer = ask(kJob + keys + "}");
  REQUIRE(answer.estimate);
  return answer.estimate->allocated.expected;
}

}  // namespace

// torchao 0.18 fake_quantizer.py _bf16_activations_forward: autograd keeps the fp32 copy, two differences and what is
// clamped, and F.linear the rounded weight.
TEST_CASE("a weight that is rounded to int4 keeps 18 bytes per parameter until backward") {
  // q, k, v and o_proj, three projections of the feed-forward, eight times; the head is there twice as short.
  constexpr Bytes kWeights = 8 * (4 * 1024 * 1024 + 3 * 1024 * 2048) + 1024 * 1024;
  // The peak without it has the gradients, which are not there yet as backward begins.
  constexpr Bytes kGradients = 2 * kWeights;
  const Bytes more = peak_of(R"(,"qat":{"weight_dtype":"int4","activation_dtype":"int8"})") - peak_of("") + kGradients;
  CHECK(more > 18 * kWeights);
  CHECK(more < 20 * kWeights);
}

// torchao 0.18 prototype/qat/mx.py: 4 bits are kept of both, and nothing wide.
TEST_CASE("4-bit floats keep less than wide copies do") {
  CHECK(peak_of(R"(,"qat":{"weight_dtype":"mxfp4","activation_dtype":"mxfp4"})") <
        peak_of(R"(,"qat":{"weight_dtype":"fp8","activation_dtype":"fp8"})"));
}

// axolotl 067b021 utils/quantization.py get_quantization_config.
TEST_CASE("pairs that torchao does not train are refused, and groups that do not fill a row") {
  CHECK_FALSE(ask(kJob + R"(,"qat":{"weight_dtype":"fp8"}})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"qat":{"weight_dtype":"fp8","activation_dtype":"int8"}})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"qat":{"activation_dtype":"int8"}})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"qat":{"weight_dtype":"mxfp4","quantize_embedding":true}})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"qat":{"weight_dtype":"int4","group_size":48}})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"qat":{"weight_dtype":"int4"},"method":"lora"})").estimate);
}
