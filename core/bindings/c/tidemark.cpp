#include "core/bindings/c/tidemark.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/embedded.hpp"
#include "core/exchange/document.hpp"
#include "core/exchange/import.hpp"
#include "core/exchange/job.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace {

using tidemark::Issues;
using tidemark::Value;

/// With the catalog, made by the first question.
const tidemark::Engine& engine() {
  static const tidemark::Engine ready = [] {
    tidemark::Engine made;
    made.load_catalog(tidemark::embedded_models(), tidemark::embedded_gpus());
    return made;
  }();
  return ready;
}

char* handed_out(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::string text_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_string() ? value->string : std::string{};
}

std::string read_files(std::string_view json) {
  Issues issues;
  const Value request = tidemark::parse_json(json, "", issues);
  const Value* files = request.find("files");
  if (!has_error(issues) && (files == nullptr || !files->is_array())) {
    issues.push_back({"INVALID_VALUE", tidemark::Severity::kError, "/files",
                      "\"files\" must be a list: [{\"name\": \"train.yaml\", \"text\": \"...\"}].", ""});
  }
  if (has_error(issues)) return tidemark::write_json(tidemark::write_errors(issues));
  std::vector<tidemark::exchange::Source> sources;
  for (const Value& file : files->items) sources.push_back({text_at(file, "name"), text_at(file, "text"), 0});
  const tidemark::exchange::Import import = tidemark::exchange::import_sources(sources);
  Value document = tidemark::exchange::document_of(import);
  Issues left_out;
  tidemark::set(document, "job", tidemark::exchange::job_of(import, left_out));
  return tidemark::write_json(document);
}

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

}  // namespace

char* tidemark_handle(const char* request) {
  return handed_out(engine().handle(text_of(request)));
}

char* tidemark_import(const char* files) {
  return handed_out(read_files(text_of(files)));
}

void tidemark_free(char* text) {
  std::free(text);
}

const char* tidemark_version() {
  return tidemark::engine_version().data();
}
