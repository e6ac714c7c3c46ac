// The engine's one seam, seen from JavaScript (api.js): texts in, a text or numbers out. Nothing here decides anything.
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "core/wire/map_cells.hpp"
#include "core/wire/write_answer.hpp"

namespace {

tidemark::Engine& engine() {
  static tidemark::Engine instance;
  return instance;
}

// What the caller wrote, and what it reads: good until the next call.
std::array<std::string, 3> texts;
std::string answer;
std::vector<double> cells;
std::size_t size_of_answer = 0;

const char* answered(std::string text) {
  answer = std::move(text);
  size_of_answer = answer.size();
  return answer.data();
}

std::vector<double> numbers(const std::string& json) {
  tidemark::Issues issues;
  std::vector<double> list;
  for (const tidemark::Value& item : tidemark::parse_json(json, "", issues).items) list.push_back(item.real);
  return list;
}

}  // namespace

// CMakeLists.txt exports each by its name.
extern "C" {

/// Where the caller writes `size` bytes of UTF-8, the next function's text number `index`.
char* room(std::size_t index, std::size_t size) {
  texts[index].resize(size);
  return texts[index].data();
}

/// How many bytes, or numbers, the last answer has.
std::size_t length() {
  return size_of_answer;
}

/// The texts of catalog/models.json and catalog/gpus.json in, {"schema": 1, "issues": [...]} out.
const char* load_catalog() {
  return answered(tidemark::write_json(tidemark::write_errors(engine().load_catalog(texts[0], texts[1]))));
}

/// A request in, an answer out; both JSON.
const char* handle() {
  return answered(engine().handle(texts[0]));
}

/// Allocated bytes, one per batch size and sequence length (texts 1 and 2: JSON arrays of numbers), row by row; NaN
/// where there is no estimate.
const double* map() {
  cells = tidemark::map_cells(engine(), texts[0], numbers(texts[1]), numbers(texts[2]));
  size_of_answer = cells.size();
  return cells.data();
}
}
