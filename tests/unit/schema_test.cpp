// The words that the answers' schema allows are those that the engine has.
#include "core/answer/estimate.hpp"
#include "core/fit/lever.hpp"
#include "core/fit/mode.hpp"
#include "core/options/option.hpp"
#include "core/units/category.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

#include <fstream>
#include <sstream>

namespace tidemark {
namespace {

Value answer_schema() {
  std::ifstream file(std::string{TIDEMARK_CATALOG} + "/../core/answer/answer.schema.json", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  Issues issues;
  return parse_json(text.str(), "", issues);
}

const Value* at(const Value& document, std::initializer_list<std::string_view> path) {
  const Value* value = &document;
  for (std::string_view key : path) value = value == nullptr ? nullptr : value->find(key);
  return value;
}

std::vector<std::string> words(const Value* list) {
  std::vector<std::string> all;
  if (list == nullptr) return all;
  for (const Value& item : list->items) all.push_back(item.string);
  for (const Value::Member& member : list->members) all.push_back(member.key);
  return all;
}

/// The names of an enumeration's first `count` values.
template <class Enum>
std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int value = 0; value < count; ++value) all.emplace_back(name_of(static_cast<Enum>(value)));
  return all;
}

TEST_CASE("the words of an answer are those of its schema") {
  const Value schema = answer_schema();
  const auto enumerated = [&](std::string_view name) { return words(at(schema, {"$defs", name, "enum"})); };
  CHECK(enumerated("Category") == names<Category>(kCategoryCount));
  CHECK(enumerated("Phase") == names<Phase>(kPhaseCount));
  CHECK(enumerated("Verdict") == names<Verdict>(static_cast<int>(Verdict::kUnknown) + 1));
  CHECK(enumerated("Confidence") == names<Confidence>(static_cast<int>(Confidence::kModelled) + 1));
  CHECK(enumerated("ModeName") == names<Mode>(static_cast<int>(Mode::kAggressiveSmaller) + 1));
  CHECK(words(at(schema, {"$defs", "BytesByCategory", "properties"})) == names<Category>(kCategoryCount));
  CHECK(words(at(schema, {"$defs", "BytesByPhase", "properties"})) == names<Phase>(kPhaseCount));
  CHECK(words(at(schema, {"$defs", "Cost", "properties", "harm", "enum"})) ==
        names<Harm>(static_cast<int>(Harm::kTraining) + 1));
  CHECK(words(at(schema, {"$defs", "OptionDescription", "properties", "type", "enum"})) ==
        names<OptionType>(static_cast<int>(OptionType::kAny) + 1));
}

}  // namespace
}  // namespace tidemark
