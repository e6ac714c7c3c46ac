#include "tests/truth/coverage.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "core/step/coverage.hpp"
#include "core/wire/json.hpp"

namespace tidemark::truth {
namespace {

using Meetings = std::map<Word, std::set<Word>>;

bool follows(const Value& record, const std::vector<Deviation>& deviations) {
  const std::string& id = record.find("id")->string;
  return std::none_of(deviations.begin(), deviations.end(),
                      [&](const Deviation& d) { return id.compare(0, d.ids.size(), d.ids) == 0; });
}

void read_records(const Engine& engine, const std::string& path, const std::vector<Deviation>& deviations,
                  std::vector<Recorded>& records) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    Issues issues;
    const Value record = parse_json(line, "", issues);
    if (!follows(record, deviations)) continue;
    const Answer answer = engine.answer(*record.find("request"));
    if (!answer.estimate) continue;
    Recorded& recorded = records.emplace_back(Recorded{record.find("id")->string, {}});
    for (const Trait& trait : traits_of(answer.architecture, answer.job)) {
      recorded.words.emplace_back(trait.option, trait.value);
    }
  }
}

std::string masks(const Meetings& meetings, const std::set<Word>& met) {
  std::vector<std::uint64_t> bits((meetings.size() + 63) / 64);
  std::size_t i = 0;
  for (const auto& [word, unused] : meetings) {
    if (met.count(word) > 0) bits[i / 64] |= std::uint64_t{1} << (i % 64);
    ++i;
  }
  std::string text;
  for (const std::uint64_t part : bits) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(part));
    text += (text.empty() ? "" : ", ") + std::string{hex};
  }
  return text;
}

}  // namespace

std::vector<Recorded> recorded_jobs(const Engine& engine, const std::vector<std::string>& record_files,
                                    const std::vector<Deviation>& deviations) {
  std::vector<Recorded> records;
  for (const std::string& file : record_files) read_records(engine, file, deviations, records);
  return records;
}

std::string coverage_table(const std::vector<Recorded>& records) {
  Meetings meetings;
  for (const Recorded& record : records) {
    for (const Word& word : record.words) meetings[word].insert(record.words.begin(), record.words.end());
  }
  std::string rows, together;
  std::size_t i = 0;
  for (const auto& [word, met] : meetings) {
    together += "    {" + masks(meetings, met) + "},\n";
    rows += "    {{\"" + word.first + "\", \"" + word.second + "\"}, kTogether[" + std::to_string(i++) + "]},\n";
  }
  const std::string words = std::to_string((meetings.size() + 63) / 64);
  return "// Written by `tidemark_truth --coverage core/step/coverage_table.cpp` from the records in tests/oracle.\n"
         "#include \"core/step/coverage_table.hpp\"\n\nnamespace tidemark {\nnamespace {\n\n// clang-format off\n"
         "constexpr std::uint64_t kTogether[][" +
         words + "] = {\n" + together + "};\n\nconstexpr RecordedTrait kTraits[] = {\n" + rows +
         "};\n// clang-format on\n\n}  // namespace\n\n"
         "std::span<const RecordedTrait> recorded_traits() {\n  return kTraits;\n}\n\n}  // namespace tidemark\n";
}

}  // namespace tidemark::truth
