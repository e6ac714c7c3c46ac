// The engine's one seam on a pipe: a request per line of standard input, its answer per line of standard output.
//   tidemark_handle CATALOG_DIRECTORY < requests.jsonl > answers.jsonl
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "core/wire/engine.hpp"

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tidemark_handle CATALOG_DIRECTORY\n";
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
  for (std::string line; std::getline(std::cin, line);) std::cout << engine.handle(std::string_view{line}) << '\n';
  return std::cout.flush() ? 0 : 1;
}
