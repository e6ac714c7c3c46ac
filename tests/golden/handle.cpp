// The engine's one seam on a pipe: a request per line of standard input, its answer per line of standard output.
//   tidemark_handle CATALOG_DIRECTORY < requests.jsonl > answers.jsonl
//   tidemark_handle CATALOG_DIRECTORY --printed < requests.jsonl > reports.jsonl   as people read it
//   tests/oracle
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "core/report/markdown.hpp"
#include "core/report/text.hpp"
#include "core/units/make_value.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// All that the command line may print of an answer to an estimate, as one line.
std::string printed(const tidemark::Engine& engine, const std::string& request) {
  tidemark::Issues issues;
  const tidemark::Value value = tidemark::parse_json(request, "", issues);
  const tidemark::Answer answer = engine.answer(value);
  std::string text = engine.handle(value, 2) + '\n' + tidemark::render_markdown(answer, true);
  text += tidemark::render_text(answer, {.colour = true});
  text += tidemark::render_text(answer, {.width = 120, .unicode = false, .bytes = true, .explain = true});
  return tidemark::write_json(tidemark::to_value(text));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 3 ? argv[2] : "";
  if (argc != 2 && how != "--printed") {
    std::cerr << "usage: tidemark_handle CATALOG_DIRECTORY [--printed]\n";
    return 2;
  }
  const std::string directory = argv[1];
  tidemark::Engine engine;
  bool readable = true;
  for (const tidemark::Issue& issue :
       engine.load_catalog(read_file(directory + "/models.json"), read_file(directory + "/gpus.json"))) {
    std::cerr << issue.code << ' ' << issue.path << ": " << issue.message << '\n';
    readable = readable && issue.severity != tidemark::Severity::kError;
  }
  if (!readable) return 2;
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << (how == "--printed" ? printed(engine, line) : engine.handle(std::string_view{line})) << '\n';
  }
  return std::cout.flush() ? 0 : 1;
}
