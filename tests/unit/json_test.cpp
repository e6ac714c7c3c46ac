#include "core/wire/json.hpp"

#include <string>

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Value parsed(std::string_view text) {
  Issues issues;
  Value value = parse_json(text, "", issues);
  REQUIRE(!has_error(issues));
  return value;
}

std::string error_of(std::string_view text) {
  Issues issues;
  const Value value = parse_json(text, "/config", issues);
  CHECK(value.is_null());
  REQUIRE(has_error(issues));
  CHECK(issues[0].path == "/config");
  return issues[0].code;
}

TEST_CASE("JSON comes back as it went in") {
  const std::string text = R"({"a":1,"b":-2.5,"c":[true,false,null],"d":{"e":"x\n\"y\" \\"},"f":1.0,"g":[],"h":{}})";
  CHECK(write_json(parsed(text)) == text);
}

TEST_CASE("integers stay integers, and what 64 bits cannot hold becomes a number") {
  CHECK(parsed("9223372036854775807").integer == 9223372036854775807);
  CHECK(parsed("9223372036854775808").kind == Value::Kind::kReal);
  CHECK(parsed("123456789012345678901234567890").is_number());
  CHECK(parsed("7e9").real == 7e9);
  CHECK(parsed("7").real == 7.0);
}

TEST_CASE("numbers are written in the fewest digits") {
  CHECK(write_json(to_value(0.1)) == "0.1");
  CHECK(write_json(to_value(1.0 / 3.0)) == "0.3333333333333333");
  CHECK(write_json(to_value(1e300)) == "1e+300");
  CHECK(write_json(to_value(24.0)) == "24.0");
  CHECK(write_json(to_value(1.0 / 0.0)) == "null");
}

TEST_CASE("text that is not JSON is told, not thrown") {
  for (const char* text : {"", "{", "[1,2", "{\"a\" 1}", "nul", "{\"a\":1}}", "\"\\x\"", "1e999", "'a'", "{\"a\":\xff}",
                           "\"\xc3\x28\"", "\"\xed\xa0\x80\""}) {
    CAPTURE(text);
    CHECK(error_of(text) == "INVALID_JSON");
  }
}

TEST_CASE("depth and size are bounded") {
  const std::string deep = std::string(1000000, '[');
  CHECK(error_of(deep) == "INVALID_JSON");
  const std::string fair = std::string(60, '[') + std::string(60, ']');
  CHECK(write_json(parsed(fair)) == fair);
  CHECK(error_of(std::string(kMaxDocumentBytes + 1, ' ')) == "TOO_LARGE");
}

TEST_CASE("of a repeated key the last counts, and it is told") {
  Issues issues;
  const Value value = parse_json(R"({"a":1,"b":2,"a":3})", "", issues);
  CHECK(write_json(value) == R"({"b":2,"a":3})");
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].code == "REPEATED_KEY");
  CHECK(issues[0].severity == Severity::kWarning);
}

TEST_CASE("Python's Infinity and NaN are read as numbers and written as null, inside strings they are text") {
  CHECK(write_json(parsed(R"({"limit":[0.0,Infinity],"x":-Infinity,"y":NaN,"z":"NaN \" Infinity"})")) ==
        R"({"limit":[0.0,null],"x":null,"y":null,"z":"NaN \" Infinity"})");
}

TEST_CASE("what is not UTF-8 is replaced when written") {
  CHECK(write_json(to_value("a\xff z")) == "\"a\xEF\xBF\xBD z\"");
  CHECK(write_json(to_value("\xe2\x82\xac")) == "\"\xe2\x82\xac\"");
  CHECK(write_json(to_value(std::string("a\0b", 3))) == "\"a\\u0000b\"");
}

TEST_CASE("indented JSON is one member a line") {
  CHECK(write_json(parsed(R"({"a":[1],"b":{}})"), 2) == "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
}

}  // namespace
}  // namespace tidemark
