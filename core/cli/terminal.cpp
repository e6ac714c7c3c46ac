#include "core/cli/terminal.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(_WIN32)
#include <io.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace tidemark {
namespace {

constexpr std::size_t kWidthWithoutTerminal = 100;
constexpr std::size_t kWidest = 120;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

bool is_terminal(int descriptor) {
#if defined(_WIN32)
  return _isatty(descriptor) != 0;
#else
  return isatty(descriptor) != 0;
#endif
}

std::size_t window_width(int descriptor) {
#if !defined(_WIN32)
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
#else
  (void)descriptor;
#endif
  return 0;
}

/// The locale that decides about characters, by POSIX's order of precedence; UTF-8 where none is set.
bool locale_knows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos ||
           value.find("UTF8") != std::string::npos || value.find("utf-8") != std::string::npos;
  }
  return true;
}

TextStyle style_for(int descriptor) {
  TextStyle style;
  const bool terminal = is_terminal(descriptor);
  style.colour = terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  // A file keeps UTF-8 whatever the locale; only a terminal must be able to show it.
  style.unicode = !terminal || locale_knows_unicode();
  const std::string columns = environment("COLUMNS");
  std::size_t width = columns.empty() ? 0 : static_cast<std::size_t>(std::strtoul(columns.c_str(), nullptr, 10));
  if (width == 0 && terminal) width = window_width(descriptor);
  if (width == 0) width = kWidthWithoutTerminal;
  style.width = width < kWidest ? width : kWidest;
  return style;
}

void print_to(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace

TextStyle style_for_output() {
  return style_for(1);
}
TextStyle style_for_errors() {
  return style_for(2);
}
void print(std::string_view text) {
  print_to(stdout, text);
}
void print_error(std::string_view text) {
  print_to(stderr, text);
}

bool finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  print_error(std::string{"error: standard output cannot be written: "} + std::strerror(errno) + ".\n");
  return false;
}

}  // namespace tidemark
