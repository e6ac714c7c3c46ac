// What the fuzz targets share: an engine with the catalog, and what must hold of every answer.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/wire/engine.hpp"

namespace fuzz {

using json = nlohmann::json;

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline const tidemark::Engine& engine() {
  static const tidemark::Engine instance = [] {
    tidemark::Engine made;
    const char* catalog = std::getenv("FUZZ_CATALOG");
    const std::string directory = catalog != nullptr ? catalog : TIDEMARK_CATALOG;
    made.load_catalog(read_file(directory + "/models.json"), read_file(directory + "/gpus.json"));
    return made;
  }();
  return instance;
}

[[noreturn]] inline void broken(const char* what, const std::string& request, const std::string& answer) {
  std::fprintf(stderr, "BROKEN PROMISE: %s\nrequest: %.4000s\nanswer: %.3000s\n", what, request.c_str(),
               answer.c_str());
  std::abort();
}

/// FUZZ_STRICT=0 looks for crashes only.
inline bool strict() {
  static const bool value = [] {
    const char* s = std::getenv("FUZZ_STRICT");
    return s == nullptr || *s != '0';
  }();
  return value;
}

/// Asks, and holds the answer against the contract.
inline void ask(const std::string& request) {
  const std::clock_t start = std::clock();
  const std::string answer = engine().handle(std::string_view{request});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  static const double limit = [] {
    const char* s = std::getenv("FUZZ_SECONDS");
    return s ? std::atof(s) : 10.0;
  }();
  // Advice asks some hundred questions; that for Llama 3.2 Vision takes two seconds without the sanitizers.
  const double factor = request.find("\"advise\"") == std::string::npos ? 1.0 : 4.0;
  if (seconds > limit * factor) {
    std::fprintf(stderr, "%.2f seconds\n", seconds);
    broken("slow", request, answer);
  }
  if (!strict()) return;
  const json reply = json::parse(answer, nullptr, false);
  if (reply.is_discarded()) broken("the answer is not JSON (or not UTF-8)", request, answer);
  if (!reply.is_object() || !reply.contains("schema")) broken("the answer has no schema", request, answer);
  bool error = false;
  if (reply.contains("issues")) {
    for (const json& issue : reply["issues"]) {
      if (issue["severity"] == "error") error = true;
      if (issue["code"].get<std::string>().empty()) broken("an issue without a code", request, answer);
    }
  }
  if (!reply.contains("estimate")) return;
  if (error) broken("an estimate and an error at once", request, answer);
  const json& e = reply["estimate"];
  for (const char* level : {"allocated", "reserved", "device"}) {
    const auto low = e[level]["low"].get<std::int64_t>(), expected = e[level]["expected"].get<std::int64_t>(),
               high = e[level]["high"].get<std::int64_t>();
    if (low < 0 || low > expected || expected > high) broken("low <= expected <= high", request, answer);
  }
  for (const char* part : {"low", "expected", "high"}) {
    if (e["allocated"][part] > e["reserved"][part]) broken("allocated <= reserved", request, answer);
    if (e["reserved"][part] > e["device"][part]) broken("reserved <= device", request, answer);
  }
  std::int64_t sum = 0;
  for (const json& row : e["breakdown"]) {
    std::int64_t entries = 0;
    if (row["bytes"].get<std::int64_t>() < 0) broken("a negative category", request, answer);
    sum += row["bytes"].get<std::int64_t>();
    for (const json& entry : row["entries"]) {
      if (entry["bytes"].get<std::int64_t>() < 0) broken("a negative entry", request, answer);
      entries += entry["bytes"].get<std::int64_t>();
    }
    if (entries != row["bytes"].get<std::int64_t>()) broken("entries sum to their category", request, answer);
  }
  if (sum != e["allocated"]["expected"].get<std::int64_t>()) broken("the breakdown sums to allocated", request, answer);
  const json& p = e["parameters"];
  if (p["total"].get<std::int64_t>() < 0 || p["trainable"].get<std::int64_t>() < 0 ||
      p["trainable"].get<std::int64_t>() > p["total"].get<std::int64_t>())
    broken("0 <= trainable <= total", request, answer);
}

}  // namespace fuzz
