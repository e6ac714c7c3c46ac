// torchao's products in 8-bit floats.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

const std::string kJob =
    R"({"config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000},"precision":"pure_bf16","sequence_length":64)";

Bytes peak_of(const std::string& keys) {
  const Answer answer = ask(kJob + keys + "}");
  REQUIRE(answer.estimate);
  return answer.estimate->allocated.expected;
}

}  // namespace

// torchao 0.18 float8_linear.py: what autograd keeps is wide, so that 8-bit copies come on top of what a step needs.
TEST_CASE("float8 products save no memory where nothing is compiled") {
  const std::string card = R"(,"gpu":"H100","micro_batch_size":4,"optimizer":"sgd")";
  CHECK(peak_of(card + R"(,"float8":"tensorwise")") >= peak_of(card));
  CHECK(peak_of(card + R"(,"float8":"rowwise")") >= peak_of(card));
}

TEST_CASE("float8 is refused where torch._scaled_mm does not run, and where it is not modelled") {
  CHECK_FALSE(ask(kJob + R"(,"float8":"rowwise","gpu":"A100-80GB"})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"float8":"rowwise","gpu":"H100","method":"lora"})").estimate);
  CHECK_FALSE(ask(kJob + R"(,"float8":"rowwise","gpu":"H100","parallelism":{"data":2}})").estimate);
}

// torchao 0.18 float8_linear_utils.py convert_to_float8_training swaps torch.nn.Linear; GPT-2 has Conv1D
// (transformers 5.12 pytorch_utils.py).
TEST_CASE("float8 that converts no layer is said to change nothing") {
  const auto changes_nothing = [](const std::string& model) {
    const Issues issues =
        ask(R"({"model":")" + model + R"(","gpu":"H100","sequence_length":512,"float8":"tensorwise"})").issues;
    return std::any_of(issues.begin(), issues.end(), [](const Issue& issue) { return issue.code == "NO_EFFECT"; });
  };
  CHECK(changes_nothing("openai-community/gpt2"));
  CHECK_FALSE(changes_nothing("meta-llama/Llama-3.2-1B"));
}
