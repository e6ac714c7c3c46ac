#include "core/job/module_pattern.hpp"

#include <string>

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

bool freezes(std::string_view pattern, std::string_view parameter) {
  std::string error;
  const auto compiled = NamePattern::compile(pattern, error);
  INFO(pattern << ": " << error);
  REQUIRE(compiled);
  return compiled->names(parameter);
}

constexpr std::string_view kWeight = "model.layers.1.self_attn.q_proj.weight";

TEST_CASE("a freeze pattern's text occurs in the full name of a parameter") {
  CHECK(freezes("layers.1", kWeight));
  CHECK(freezes("layers.1.", kWeight));
  CHECK(!freezes("layers.0", kWeight));
  CHECK(freezes("self_attn", kWeight));
  CHECK(freezes("weight", kWeight));
  CHECK(!freezes("", kWeight));
}

TEST_CASE("anchors tie a freeze pattern to the ends of a module or a parameter") {
  CHECK(freezes("^model.layers.1.self_attn.q_proj$", kWeight));
  CHECK(freezes("^model.layers.1$", kWeight));
  CHECK(freezes("q_proj.weight$", kWeight));
  CHECK(!freezes("^layers.1", kWeight));
  CHECK(!freezes("self_at$", kWeight));
  CHECK(!freezes("^model.layers.1$", "model.layers.11.mlp.up_proj.weight"));
}

TEST_CASE("a star stands for any run of characters") {
  CHECK(freezes("model.layers.*", kWeight));
  CHECK(freezes("*", kWeight));
  CHECK(freezes("^model.*.q_proj$", kWeight));
  CHECK(!freezes("^model.*.k_proj$", kWeight));
}

TEST_CASE("a pattern with signs that no name has is a regular expression") {
  CHECK(freezes(R"(layers\.(0|1)\.)", kWeight));
  CHECK(!freezes(R"(layers\.(0|2)\.)", kWeight));
  CHECK(freezes(R"(\.1$)", kWeight));
  std::string error;
  CHECK(!NamePattern::compile("layers.[0", error));
  CHECK(error == "a class of characters is not closed");
}

TEST_CASE("a pattern of many stars takes no longer than its length times the name's") {
  CHECK(!freezes(std::string(1000, '*') + "z", std::string(1000, 'a')));
}

TEST_CASE("a list names modules by their full names or last parts") {
  NameList list({"q_proj", "mlp.up_proj", "model.layers.0.self_attn.v_proj", "nope"});
  CHECK(list.names("model.layers.3.self_attn.q_proj"));
  CHECK(list.names("model.layers.3.mlp.up_proj"));
  CHECK(!list.names("model.layers.3.block.up_proj"));
  CHECK(!list.names("model.layers.3.self_attn.eq_proj"));
  CHECK(list.has("model.layers.0.self_attn.v_proj"));
  CHECK(!list.names("model.layers.1.self_attn.v_proj"));
  CHECK(list.unused() == std::vector<std::string>{"nope"});
}

TEST_CASE("patterns know whether layers of different numbers fare differently") {
  const auto apart = [](std::string_view pattern) {
    std::string error;
    return NamePattern::compile(pattern, error)->tells_layers_apart();
  };
  CHECK(apart("layers.0"));
  CHECK(apart("1"));
  CHECK(!apart("layers.*.mlp"));
  CHECK(!apart("fc1"));
  CHECK(!apart("ln_1"));
  CHECK(NameList({"layers.0.mlp"}).tells_layers_apart());
  CHECK(!NameList({"mlp.fc1", "dense_h_to_4h"}).tells_layers_apart());
}

}  // namespace
}  // namespace tidemark
