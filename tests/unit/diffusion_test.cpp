// Diffusion models, against what is known of them without this engine: public counts, and what diffusers' scripts do.
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Answer ask(const std::string& model, const std::string& options = "") {
  Issues issues;
  const std::string request = R"({"model": ")" + model + R"(", "precision": "bf16_amp")" + options + "}";
  CAPTURE(request);
  return engine().answer(parse_json(request, "", issues));
}

bool says(const Answer& a, std::string_view code, std::string_view path) {
  for (const Issue& issue : a.issues) {
    if (issue.code == code && issue.path == path) return true;
  }
  return false;
}

constexpr const char* kLora =
    R"(, "method": "lora", "adapter": {"r": 4, "lora_dropout": 0, "target_modules": ["to_k", "to_q", "to_v", "to_out.0"]})";

}  // namespace

// diffusers 0.42.1 models/modeling_utils.py: the example of num_parameters; the others as public logs have them.
TEST_CASE("denoisers have the published numbers of parameters", "[diffusion]") {
  for (const auto& [model, count] :
       {std::pair{"sd-1.5", Count{859520964}}, std::pair{"sdxl", Count{2567463684}},
        std::pair{"sd3-medium", Count{2028328000}}, std::pair{"flux.1-dev", Count{11901408320}}}) {
    const Answer a = ask(model, kLora);
    REQUIRE(a.estimate);
    CHECK(a.estimate->parameters.total - a.estimate->parameters.trainable == count);
  }
}

TEST_CASE("adapters of rank 4 on Stable Diffusion 1.5 are as large as public files of them", "[diffusion]") {
  // Their files have 3.19 MB: 4 (8 + 2) 2 C + 2 (768 - C) 4 numbers for each of 16 transformers of width C, in fp32.
  const Answer a = ask("sd-1.5", kLora);
  REQUIRE(a.estimate);
  CHECK(a.estimate->parameters.trainable == 797184);
}

TEST_CASE("a text's length is a prompt's where none is given", "[diffusion]") {
  CHECK(says(ask("sdxl", kLora), "ASSUMED_DEFAULT", "/sequence_length"));
  CHECK_FALSE(
      says(ask("sdxl", std::string{kLora} + R"(, "sequence_length": 77)"), "ASSUMED_DEFAULT", "/sequence_length"));
}

TEST_CASE("what diffusers does otherwise is refused by name", "[diffusion]") {
  CHECK(says(ask("sdxl", R"(, "method": "qlora")"), "UNSUPPORTED_VALUE", "/method"));
  CHECK(says(ask("sdxl", R"(, "gradient_checkpointing": "full", "use_reentrant": true)"), "UNSUPPORTED_VALUE",
             "/use_reentrant"));
  CHECK(says(ask("flux.1-dev", R"(, "attention": "eager")"), "UNSUPPORTED_VALUE", "/attention"));
}

TEST_CASE("checkpointing and smaller pictures need less", "[diffusion]") {
  for (const char* model : {"sd-1.5", "sdxl", "sd3-medium", "flux.1-dev"}) {
    const Answer plain = ask(model, kLora),
                 again = ask(model, std::string{kLora} + R"(, "gradient_checkpointing": "full")");
    const Answer small = ask(model, std::string{kLora} + R"(, "image_size": 256)");
    REQUIRE(plain.estimate);
    REQUIRE(again.estimate);
    REQUIRE(small.estimate);
    CHECK(again.estimate->allocated.expected < plain.estimate->allocated.expected);
    CHECK(small.estimate->allocated.expected < plain.estimate->allocated.expected);
  }
}

}  // namespace tidemark
