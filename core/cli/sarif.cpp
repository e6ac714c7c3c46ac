#include "core/cli/checked.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

struct Rule {
  Checked::Verdict verdict;
  std::string_view id;
  std::string_view level;
  std::string_view help;
};

constexpr Rule kRules[] = {
    {Checked::Verdict::kDoesNotFit, "does-not-fit", "error", "The training job needs more memory than the card gives."},
    {Checked::Verdict::kTight, "tight", "warning",
     "The card's memory lies within the range of the estimate: it may or may not fit."},
    {Checked::Verdict::kNotEstimated, "not-estimated", "note", "The file holds a job that was not estimated, and why."},
};

Value text(std::string_view words) {
  Value value = empty_object();
  set(value, "text", words);
  return value;
}

Value list(Value item) {
  Value value = empty_array();
  value.items.push_back(std::move(item));
  return value;
}

Value rules() {
  Value all = empty_array();
  for (const Rule& rule : kRules) {
    Value row = empty_object();
    set(row, "id", rule.id);
    set(row, "shortDescription", text(rule.help));
    all.items.push_back(std::move(row));
  }
  return all;
}

/// A path as a relative reference (RFC 3986).
std::string uri_of(const std::string& path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (letter || std::string_view{"-._~/"}.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += {'%', kHex[byte / 16], kHex[byte % 16]};
    }
  }
  return uri.rfind("./", 0) == 0 ? uri.substr(2) : uri;
}

Value location(const Checked& checked) {
  Value artifact = empty_object(), region = empty_object(), place = empty_object(), location = empty_object();
  set(artifact, "uri", uri_of(checked.file));
  set(region, "startLine", checked.line);
  set(place, "artifactLocation", std::move(artifact));
  set(place, "region", std::move(region));
  set(location, "physicalLocation", std::move(place));
  return location;
}

Value result(const Rule& rule, const Checked& checked) {
  Value row = empty_object();
  set(row, "ruleId", rule.id);
  set(row, "level", rule.level);
  set(row, "message", text(checked.message));
  if (!checked.file.empty()) set(row, "locations", list(location(checked)));
  return row;
}

}  // namespace

Value sarif_of(const std::vector<Checked>& all) {
  Value driver = empty_object(), tool = empty_object(), results = empty_array();
  set(driver, "name", "Tidemark");
  set(driver, "version", engine_version());
  set(driver, "rules", rules());
  set(tool, "driver", std::move(driver));
  for (const Checked& checked : all) {
    for (const Rule& rule : kRules) {
      if (rule.verdict == checked.verdict) results.items.push_back(result(rule, checked));
    }
  }
  Value run = empty_object();
  set(run, "tool", std::move(tool));
  set(run, "results", std::move(results));
  Value document = empty_object();
  set(document, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  set(document, "version", "2.1.0");
  set(document, "runs", list(std::move(run)));
  return document;
}

}  // namespace tidemark
