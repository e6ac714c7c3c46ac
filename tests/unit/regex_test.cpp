// Expected results are those of Python 3.11's `re`.
#include "core/job/regex.hpp"

#include <string>
#include <string_view>

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

bool matches(std::string_view expression, std::string_view text) {
  std::string error;
  const auto regex = Regex::compile(expression, error);
  INFO(expression << ": " << error);
  REQUIRE(regex);
  return regex->matches(text);
}

bool occurs(std::string_view expression, std::string_view text) {
  std::string error;
  const auto regex = Regex::compile(expression, error);
  REQUIRE(regex);
  return regex->occurs_in(text);
}

std::string trouble(std::string_view expression) {
  std::string error;
  CHECK(!Regex::compile(expression, error));
  return error;
}

constexpr std::string_view kQuery = "model.layers.12.self_attn.q_proj";

TEST_CASE("an expression for a module's name fits as re.fullmatch has it") {
  CHECK(matches(R"(.*\.(q_proj|v_proj))", kQuery));
  CHECK(matches(R"(.*(q|k|v)_proj)", kQuery));
  CHECK(!matches(R"(q_proj)", kQuery));
  CHECK(!matches(R"(.*\.q)", kQuery));
  CHECK(matches(R"(model\.layers\.\d+\.self_attn\.[qkv]_proj)", kQuery));
  CHECK(matches(R"(model\.layers\.(1[0-9]|2[0-3])\..*)", kQuery));
  CHECK(!matches(R"(model\.layers\.[0-9]\..*)", kQuery));
  CHECK(matches(R"(^model.*proj$)", kQuery));
  CHECK(matches(R"(.*self_attn.(q|v)_pro[^k])", kQuery));
  CHECK(matches(R"((?:model\.)?layers\.12.*|.*\.layers\.\d{2}\.\w+\.q_proj)", kQuery));
}

TEST_CASE("lookahead tells what comes, and takes nothing") {
  CHECK(matches(R"(^(?!.*vision).*q_proj)", kQuery));
  CHECK(!matches(R"(^(?!.*vision).*q_proj)", "vision_tower.layers.0.q_proj"));
  CHECK(matches(R"(model(?=\.layers).*)", kQuery));
  CHECK(!matches(R"(model(?=\.decoder).*)", kQuery));
}

TEST_CASE("an expression is searched for as re.search does") {
  CHECK(occurs(R"(layers\.(0|12)\.)", kQuery));
  CHECK(!occurs(R"(layers\.(0|1)\.)", kQuery));
  CHECK(occurs(R"(\bq_proj$)", kQuery));
  CHECK(!occurs(R"(\bproj)", kQuery));
  CHECK(occurs("", ""));
}

TEST_CASE("quantifiers count") {
  CHECK(matches("a{2,3}b", "aaab"));
  CHECK(!matches("a{2,3}b", "aaaab"));
  CHECK(matches("a{,2}b", "b"));
  CHECK(matches("(ab)*?c", "ababc"));
  CHECK(matches("a{x}", "a{x}"));
  CHECK(matches("(?i)Q_PROJ", "q_proj"));
}

TEST_CASE("what is no expression, or none of ours, is refused in words") {
  CHECK(trouble("*") == "there is nothing to repeat before \"*\"");
  CHECK(trouble("a**") == "two quantifiers follow each other");
  CHECK(trouble("(a") == "a parenthesis is not closed");
  CHECK(trouble("a)") == "a parenthesis is closed that none opens");
  CHECK(trouble("[a") == "a class of characters is not closed");
  CHECK(trouble("a\\") == "it ends with a backslash");
  CHECK(trouble("[b-a]") == "a range of characters runs backwards");
  CHECK(trouble(R"((a)\1)") == "back-references are not supported");
  CHECK(trouble("a++") == "possessive quantifiers are not supported");
  CHECK(!trouble("(?<=a)b").empty());
  CHECK(!trouble(std::string(500, '(')).empty());
  CHECK(!trouble("((((){1000}){1000}){1000}){1000}").empty());
  CHECK(!trouble("((a{1,100}){1,100}){1,100}").empty());
}

TEST_CASE("expressions that make others backtrack take no longer") {
  const std::string text(200, 'a');
  CHECK(!matches("(a*)*b", text));
  CHECK(!matches("(a|aa)+b", text));
  CHECK(!matches("(a?){100}a{300}", text));
  CHECK(!matches(".*.*.*.*.*.*.*.*.*.*.*.*z", text));
}

TEST_CASE("an expression knows whether it tells digits apart") {
  std::string error;
  CHECK(!Regex::compile(R"(.*\.\d+\.(q|v)_proj)", error)->tells_digits_apart());
  CHECK(Regex::compile(R"(.*\.[0-7]\..*)", error)->tells_digits_apart());
  CHECK(Regex::compile(R"(layers\.1\..*)", error)->tells_digits_apart());
}

}  // namespace
}  // namespace tidemark
