#include <cstdio>
#include <exception>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/cli/command_line.hpp"
#include "core/cli/commands.hpp"
#include "core/cli/embedded.hpp"
#include "core/cli/help.hpp"
#include "core/cli/terminal.hpp"

namespace tidemark {
namespace {

/// A search computes hundreds of jobs: memory that one gave back serves the next, instead of travelling to the kernel
/// and back each time (three times faster).
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 24);
#endif
}

/// What `--help` asks for: of a command, or of all.
std::string help_of(const Command* command, bool all, const TextStyle& style) {
  if (command == nullptr) return general_help(style);
  return command->name == "estimate" ? options_help(*command, all, style) : command_help(*command, style);
}

int run(int argc, char** argv) {
  keep_freed_memory();
  CommandLine line;
  if (Issues issues = line.parse(argc, argv); has_error(issues)) return refuse(std::move(issues));
  const Command* command = line.command();
  const TextStyle style = line.style();
  if (line.help || line.help_all) {
    print(help_of(command, line.help_all, style));
    return kAnswered;
  }
  if (command == nullptr && line.version) command = find_command("version");
  if (command == nullptr) {
    print_error(general_help(style_for_errors()));
    return kBadInput;
  }
  Engine engine;
  if (command->catalog) {
    if (Issues issues = engine.load_catalog(embedded_models(), embedded_gpus()); has_error(issues)) {
      complain(std::move(issues));
      return kInternalError;
    }
  }
  return command->run(line.invocation(*command, engine, style));
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  try {
    const int status = tidemark::run(argc, argv);
    return tidemark::finish_output() ? status : tidemark::kInternalError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return tidemark::kInternalError;
  }
}
