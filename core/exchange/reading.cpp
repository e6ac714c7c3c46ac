#include "core/exchange/reading.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {

const Format* recognise(const Look& look) {
  const Format* best = nullptr;
  int highest = 0;
  for (const Format* format : all_formats()) {
    if (const int score = format->recognise(look); score > highest) {
      highest = score;
      best = format;
    }
  }
  return best;
}

Finding* find(Reading& reading, std::string_view path) {
  for (Finding& finding : reading.findings) {
    if (finding.path == path) return &finding;
  }
  return nullptr;
}

void state(Reading& reading, std::string_view path, Value value, std::vector<Origin> origins, std::string assumed) {
  Finding* known = find(reading, path);
  Finding& finding = known == nullptr ? reading.findings.emplace_back() : *known;
  finding = {std::string{path}, std::move(value), {}, std::move(assumed)};
  for (Origin& origin : origins) {
    const auto same = [&](const Origin& other) {
      return other.first == origin.first && other.last == origin.last && other.cell == origin.cell &&
             other.file == origin.file;
    };
    if (std::none_of(finding.origins.begin(), finding.origins.end(), same))
      finding.origins.push_back(std::move(origin));
  }
}

void not_counted(Reading& reading, std::string what, std::vector<Origin> origins) {
  const Finding* known = find(reading, "not_counted");
  std::vector<Value> all = known == nullptr ? std::vector<Value>{} : known->value.items;
  if (known != nullptr) origins.insert(origins.begin(), known->origins.begin(), known->origins.end());
  all.push_back(of(what));
  state(reading, "not_counted", of(std::move(all)), std::move(origins), "nothing of the request tells it");
}

std::string_view since_5(std::string_view before) {
  return before == "amp_bf16" ? "bf16" : before == "amp_fp16" ? "fp16" : "pure_bf16";
}

void contradicts(Reading& reading, std::string what) {
  reading.issues.push_back({"INVALID_COMBINATION", Severity::kError, reading.file, std::move(what), ""});
}

void refuse_both_halves(Reading& reading, bool bf16, bool fp16) {
  if (!bf16 || !fp16) return;
  contradicts(reading, "bf16 and fp16 are both on, which is refused before training starts: leave one of them.");
}

void refuse_both_widths(Reading& reading, bool four, bool eight) {
  if (!four || !eight) return;
  contradicts(reading,
              "Weights are loaded in 4 bits and in 8, which is refused before training starts: leave one of them.");
}

void refuse_packed_alone(Reading& reading, std::string_view says) {
  contradicts(reading, "\"" + std::string{says} +
                           "\" packs the weights, and no adapter is trained beside them, which is refused before "
                           "training starts: say the adapter, or leave the weights unpacked.");
}

}  // namespace tidemark::exchange
