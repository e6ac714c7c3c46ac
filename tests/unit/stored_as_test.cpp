// What a model's name says of how its weights are stored.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

Answer of(const std::string& model, const std::string& method, const std::string& keys = "") {
  return ask(R"({"model":")" + model + R"(","method":")" + method + R"(","sequence_length":256)" + keys + "}");
}

bool warns(const Answer& answer, const std::string& code) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.severity == Severity::kWarning && issue.code == code; });
}

Bytes peak_of(const Answer& answer) {
  REQUIRE(answer.estimate);
  return answer.estimate->allocated.expected;
}

}  // namespace

TEST_CASE("LoRA on a base whose name says that it is packed is what the same request of the base says in words") {
  const Bytes nf4 = peak_of(of("meta-llama/Meta-Llama-3-8B", "qlora"));
  CHECK(peak_of(of("unsloth/llama-3-8b-bnb-4bit", "lora")) == nf4);
  CHECK(peak_of(of("unsloth/llama-3-8b-bnb-4bit", "qlora")) == nf4);
  CHECK(peak_of(of("unsloth/llama-3-8b-bnb-8bit", "lora")) ==
        peak_of(of("meta-llama/Meta-Llama-3-8B", "qlora", R"(,"quantization":{"bits":8})")));
  for (const std::string by : {"gptq", "awq"}) {
    const Bytes stated =
        peak_of(of("meta-llama/Llama-2-7b-hf", "qlora",
                   R"(,"quantization":{"quant_type":")" + by + R"(","group_size":128,"double_quant":false})"));
    CHECK(peak_of(of("TheBloke/Llama-2-7B-" + by, "lora")) == stated);
    CHECK(peak_of(of("TheBloke/Llama-2-7B-" + by, "qlora")) == stated);
  }
}

TEST_CASE("a base that is trained itself, or stored as nothing trains beside, is answered with a warning") {
  CHECK(warns(of("unsloth/llama-3-8b-bnb-4bit", "full"), "NOT_QUANTISED"));
  CHECK(warns(of("TheBloke/Llama-2-7B-GGUF", "lora"), "NOT_QUANTISED"));
  CHECK(peak_of(of("unsloth/llama-3-8b-bnb-4bit", "full")) == peak_of(of("meta-llama/Meta-Llama-3-8B", "full")));
  CHECK_FALSE(warns(of("meta-llama/Meta-Llama-3-8B-Instruct", "full"), "NOT_QUANTISED"));
}

TEST_CASE("advice for a base whose name says that it is packed promises no adapter that the name would change") {
  const auto methods = [](const std::string& model) {
    const std::string answer =
        engine().handle(R"({"verb":"advise","method":"full","gpu":"4090","model":")" + model + R"("})");
    const auto offers = [&](const char* word) {
      return answer.find(std::string{R"("method":")"} + word) != answer.npos;
    };
    return std::pair{offers("lora"), offers("qlora")};
  };
  CHECK(methods("meta-llama/Meta-Llama-3-8B") == std::pair{true, true});
  CHECK(methods("unsloth/llama-3-8b-bnb-4bit") == std::pair{false, true});
  CHECK(methods("TheBloke/Llama-2-7B-GPTQ") == std::pair{false, false});
}
