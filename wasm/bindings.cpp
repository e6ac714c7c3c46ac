// The engine's one seam, seen from JavaScript: one message in, one message out. Nothing here decides anything.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <string>
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

/// The texts of catalog/models.json and catalog/gpus.json in, {"schema": 1, "issues": [...]} out.
std::string load_catalog(const std::string& models_json, const std::string& gpus_json) {
  return tidemark::write_json(tidemark::write_errors(engine().load_catalog(models_json, gpus_json)));
}

/// A request in, an answer out; both JSON.
std::string handle(const std::string& request) {
  return engine().handle(request);
}

std::vector<double> numbers(const std::string& json) {
  tidemark::Issues issues;
  std::vector<double> list;
  for (const tidemark::Value& item : tidemark::parse_json(json, "", issues).items) list.push_back(item.real);
  return list;
}

/// Allocated bytes, one per batch size and sequence length (JSON arrays of numbers), row by row; NaN where there is no
/// estimate. The view is into the module's memory and good until the next call: the caller copies it.
emscripten::val map(const std::string& request, const std::string& batches, const std::string& sequences) {
  static std::vector<double> cells;
  cells = tidemark::map_cells(engine(), request, numbers(batches), numbers(sequences));
  return emscripten::val(emscripten::typed_memory_view(cells.size(), cells.data()));
}

}  // namespace

EMSCRIPTEN_BINDINGS(tidemark) {
  emscripten::function("loadCatalog", &load_catalog);
  emscripten::function("handle", &handle);
  emscripten::function("map", &map);
}
