#include "tests/truth/coverage.hpp"

#include <algorithm>
#include <cstdint>
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

// A bit for each word up to this one: it was met.
std::string row_of(const Meetings& meetings, const Word& word, const std::set<Word>& met) {
  std::vector<unsigned> bytes;
  std::size_t i = 0;
  for (auto other = meetings.begin(); other != meetings.upper_bound(word); ++other, ++i) {
    if (i % 8 == 0) bytes.push_back(0);
    if (met.count(other->first) > 0) bytes.back() |= 1U << (i % 8);
  }
  std::string text = "   ";
  for (const unsigned byte : bytes) text += " " + std::to_string(byte) + ",";
  return text + "\n";
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
  std::string options, pairs;
  std::size_t i = 0;
  std::string_view option;
  for (const auto& [word, met] : meetings) {
    if (word.first != option) {
      options += (i == 0 ? "    {\"" : "\"},\n    {\"") + word.first + "\", " + std::to_string(i) + ", \"";
      option = word.first;
    }
    options += word.second + "\\n";
    pairs += row_of(meetings, word, met);
    ++i;
  }
  return "// Written by `tidemark_truth --coverage core/step/coverage_table.cpp` from the records in tests/oracle.\n"
         "#include \"core/step/coverage_table.hpp\"\n\nnamespace tidemark {\nnamespace {\n\n// clang-format off\n"
         "constexpr RecordedOption kOptions[] = {\n" +
         options + "\"},\n};\n\nconstexpr std::uint8_t kPairs[] = {\n" + pairs +
         "};\n// clang-format on\n\n}  // namespace\n\n"
         "std::span<const RecordedOption> recorded_options() {\n  return kOptions;\n}\n\n"
         "std::span<const std::uint8_t> recorded_pairs() {\n  return kPairs;\n}\n\n}  // namespace tidemark\n";
}

}  // namespace tidemark::truth
