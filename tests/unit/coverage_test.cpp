#include <algorithm>
#include <string>

#include "core/step/coverage.hpp"
#include "core/step/coverage_table.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

Answer answer_to(const std::string& text) {
  Issues issues;
  return engine().answer(parse_json(text, "", issues));
}

bool notes(const Answer& answer, const std::string& words) {
  return std::any_of(answer.issues.begin(), answer.issues.end(), [&](const Issue& issue) {
    return issue.code == "UNCOVERED_COMBINATION" && issue.severity == Severity::kNote &&
           issue.message.find(words) != std::string::npos;
  });
}

/// Half the width of the range, in per mille of the expected peak.
Bytes half_width(const Answer& answer) {
  const Range& range = answer.estimate->allocated;
  return (range.high - range.expected) * 1000 / range.expected;
}

}  // namespace

TEST_CASE("what records cover, option by option and with the family, is stated to 1.2 per cent") {
  const Answer answer = answer_to(
      R"({"model":"llama-2-7b","precision":"pure_bf16","framework":{"name":"transformers","version":"5.12"}})");
  REQUIRE(answer.estimate);
  CHECK_FALSE(notes(answer, ""));
  CHECK(half_width(answer) <= 12);
}

namespace {

bool stands_in(const Answer& answer, const std::string& words) {
  return std::any_of(answer.issues.begin(), answer.issues.end(), [&](const Issue& issue) {
    return issue.code == "STAND_IN" && issue.message.find(words) != std::string::npos;
  });
}

std::string under(const std::string& release, const std::string& rest) {
  return R"({"framework":{"name":"transformers","version":")" + release + R"("},)" + rest + "}";
}

}  // namespace

// tests/oracle/records-later.jsonl: Llama 2's like are recorded under 5.24, SmolVLM, whose code changed, is not.
TEST_CASE("where a later release runs a model by code that no record shows, 5.12's stands in and the answer says so") {
  const std::string llama = R"("model":"llama-2-7b","precision":"pure_bf16")",
                    smolvlm = R"("model":"HuggingFaceTB/SmolVLM-256M-Instruct")";
  CHECK_FALSE(stands_in(answer_to(under("5.24", llama)), "after 5.12"));
  CHECK(half_width(answer_to(under("5.24", llama))) <= 12);
  CHECK(stands_in(answer_to(under("5.24", smolvlm)), "after 5.12"));
  CHECK_FALSE(stands_in(answer_to(under("5.12", smolvlm)), "after 5.12"));
}

// transformers 5.21 models/gemma2/modeling_gemma2.py: _supports_sdpa = False.
TEST_CASE("Gemma 2 is run eagerly since its releases know that sdpa squashes no scores, and the answer says so") {
  const auto chosen = [](const Answer& answer) {
    return std::any_of(answer.issues.begin(), answer.issues.end(),
                       [](const Issue& issue) { return issue.code == "CHOSEN_ATTENTION"; });
  };
  const std::string gemma = R"("model":"google/gemma-2-2b","sequence_length":1024)";
  const Answer before = answer_to(under("5.20", gemma)), since = answer_to(under("5.21", gemma));
  REQUIRE(before.estimate);
  REQUIRE(since.estimate);
  CHECK_FALSE(chosen(before));
  CHECK(chosen(since));
  CHECK(std::string{since.estimate->attention_kernel} == "eager");
}

TEST_CASE("an optimizer that no record has is named, and its range is wider") {
  const Answer answer = answer_to(R"({"model":"llama-2-7b","precision":"pure_bf16","optimizer":"stable_adamw"})");
  REQUIRE(answer.estimate);
  CHECK(notes(answer, "optimizer stable_adamw"));
  CHECK(half_width(answer) > 30);
}

TEST_CASE("a family that no record has is named, and its range is wider") {
  const Answer answer = answer_to(R"({"model":"internlm2.5-7b","precision":"pure_bf16"})");
  REQUIRE(answer.estimate);
  CHECK(notes(answer, "model_type internlm2"));
  CHECK(half_width(answer) > 30);
}

TEST_CASE("beside an option that makes a peak less certain another one does not narrow the range") {
  const std::string offloaded = R"({"model":"qwen2.5-0.5b","activation_offloading":true)";
  const Answer one = answer_to(offloaded + "}"), plain = answer_to(R"({"model":"qwen2.5-0.5b"})");
  const Answer both = answer_to(offloaded + R"(,"evaluation":{"micro_batch_size":2,"generate":true}})");
  REQUIRE(one.estimate);
  REQUIRE(both.estimate);
  REQUIRE(plain.estimate);
  CHECK(half_width(one) > half_width(plain));
  CHECK(half_width(both) >= half_width(one));
}

TEST_CASE("the table of recorded traits is sorted, counts all values and has each together with itself") {
  std::size_t place = 0, row = 0;
  std::string_view option;
  for (const RecordedOption& here : recorded_options()) {
    CHECK(option < here.option);
    CHECK(here.first == place);
    option = here.option;
    std::string_view before, rest = here.values;
    for (; !rest.empty(); ++place) {
      const std::string_view value = rest.substr(0, rest.find('\n'));
      CHECK((value == here.values.substr(0, value.size()) || before < value));
      rest.remove_prefix(value.size() + 1);
      before = value;
      REQUIRE(row + place / 8 < recorded_pairs().size());
      CHECK((recorded_pairs()[row + place / 8] >> (place % 8) & 1) == 1);
      row += place / 8 + 1;
    }
  }
  CHECK(place > 0);
  CHECK(row == recorded_pairs().size());
}
