#include "core/exchange/pins.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/exchange/fields.hpp"
#include "core/job/training_job.hpp"

namespace tidemark::exchange {
namespace {

using Syntax = Look::Syntax;

struct Package {
  std::string_view name;
  std::string_view path;
};
constexpr std::array kPackages{Package{"transformers", "framework.version"}, Package{"peft", "framework.peft"}};

/// Frameworks with code of their own, whose version is not that of transformers.
constexpr std::array<std::string_view, 4> kOwnCode = {"torchtitan", "torchtune", "litgpt", "megatron"};

bool is_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '-' || letter == '.' || letter == '/';
}
bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

int number_at(std::string_view text, std::size_t& at) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc{}) return -1;
  at = static_cast<std::size_t>(end - text.data());
  return number;
}

/// "4.56.2" at the beginning of a text; empty where no release stands there.
std::string_view release_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && end > 0 && text[end - 1] != '.'))) ++end;
  if (end > 0 && text[end - 1] == '.') --end;
  return text.substr(0, end);
}

/// The last release of transformers 4, which `<5` and `==4.*` install.
constexpr int kLastMinorOf4 = 57;

/// ">=5.2": no release, but one of transformers 5.
bool is_new(std::string_view rest) {
  const std::size_t sign = rest.find(">=");
  if (sign == std::string_view::npos || sign > rest.find_first_of(" \"'\n;")) return false;
  std::size_t at = sign + 2;
  return number_at(rest, at) >= 5;
}

/// The newest release that a clause of PEP 440 lets in: "==4.56.2", "~=4.41.0", "<=4.41", "<4.42", "<5".
std::optional<std::string> newest_under(std::string_view clause) {
  std::size_t at = 0;
  for (std::string_view word : {"===", "==", "~=", "<=", "<"}) {
    if (!clause.starts_with(word)) continue;
    at = word.size();
    break;
  }
  if (at == 0) return std::nullopt;
  const std::string_view sign = clause.substr(0, at);
  while (at < clause.size() && clause[at] == ' ') ++at;
  const std::string_view release = release_at(clause.substr(at));
  if (release.empty()) return std::nullopt;
  std::size_t read = 0;
  const int major = number_at(release, read);
  const bool has_minor = read + 1 < release.size();
  int minor = 0;
  if (has_minor) minor = number_at(release, ++read);
  if (major < 0 || minor < 0) return std::nullopt;
  const bool has_patch = read < release.size();
  const auto last_of = [](int number) -> std::optional<std::string> {
    if (number != 4) return std::nullopt;
    return "4." + std::to_string(kLastMinorOf4);
  };
  const bool any_minor = sign == "~=" ? !has_patch : sign.starts_with("==") && !has_minor;
  if (any_minor) return last_of(major);
  if (sign != "<") return std::string{release};
  if (has_patch && release.substr(read) != ".0") return std::string{release};  // the one before it, of the same minor
  if (minor > 0) return std::to_string(major) + "." + std::to_string(minor - 1);
  return last_of(major - 1);
}

/// The release behind a package's name: "[torch]>=4.40,<4.42", " @ git+https://…/transformers@v4.49.0".
std::optional<std::string> release_behind(std::string_view rest) {
  std::size_t at = 0;
  if (at < rest.size() && rest[at] == '[') at = std::min(rest.find(']'), rest.size() - 1) + 1;
  for (std::string_view source : {".git@v", "@v"}) {
    if (rest.substr(at, source.size()) != source) continue;
    const std::string_view release = release_at(rest.substr(at + source.size()));
    return release.empty() ? std::nullopt : std::optional{std::string{release}};
  }
  std::optional<std::string> newest;
  while (at < rest.size()) {
    while (at < rest.size() && (rest[at] == ' ' || rest[at] == ',')) ++at;
    if (const auto bound = newest_under(rest.substr(at))) newest = bound;
    // The next clause of the same requirement.
    while (at < rest.size() && (std::string_view{"=<>~! ."}.find(rest[at]) != std::string_view::npos ||
                                is_digit(rest[at]) || rest[at] == '*'))
      ++at;
    if (at >= rest.size() || rest[at] != ',') break;
  }
  return newest;
}

/// What is written between the requirements of a line.
enum class Where : std::uint8_t {
  kAnywhere,  ///< a line that installs, or lists requirements
  kQuoted,    ///< elsewhere in Python: only a string that begins with the name, as in an image's list of packages
};

/// Whether a string literal that `quote` opened before the name holds a requirement and nothing else.
bool is_whole(std::string_view rest, char quote) {
  if (quote != '"' && quote != '\'') return false;
  const std::string_view words = rest.substr(0, rest.find(quote));
  return words.size() < rest.size() && words.find(' ') == std::string_view::npos;
}

void read_line(std::string_view line, Where where, const Origin& origin, Reading& reading) {
  for (const Package& package : kPackages) {
    for (std::size_t at = line.find(package.name); at != std::string_view::npos; at = line.find(package.name, at + 1)) {
      const char before = at == 0 ? '\n' : line[at - 1];
      const std::string_view rest = line.substr(at + package.name.size());
      // git+https://github.com/huggingface/transformers@v4.49.0 is a path.
      const bool from_git = before == '/' && where == Where::kAnywhere && line.find("git+") < at;
      if (!from_git && (is_name(before) || (where == Where::kQuoted && !is_whole(rest, before)))) continue;
      if (const auto release = release_behind(rest)) {
        state(reading, package.path, of(*release), {origin});
      } else if (package.path == "framework.version" && is_new(rest)) {
        const Framework newest;
        state(reading, package.path, of(std::to_string(newest.major) + "." + std::to_string(newest.minor)), {origin},
              "the newest release, as far as it has been studied");
      }
    }
  }
}

/// Whether a line of a shell, or of Python that starts one, installs packages.
bool installs(std::string_view line) {
  for (std::string_view word : {"install", "uv add", "--with", "pixi add", "poetry add"}) {
    if (line.find(word) != std::string_view::npos) return true;
  }
  return false;
}

/// Lines of one text; of a notebook those of a cell.
void read_lines(std::string_view text, Syntax syntax, const std::string& file, int cell, Reading& reading) {
  bool dependencies = false;  // between PEP 723's "# /// script" and "# ///"
  bool goes_on = false;       // behind a backslash
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    const Origin origin{file, number, number, cell};
    const std::string_view words = line.substr(first);
    if (words.starts_with("# ///")) dependencies = words.find("script") != std::string_view::npos;
    if (words[0] == '#' && !dependencies) continue;
    const bool requirements = syntax == Syntax::kText || dependencies;
    const bool python = syntax == Syntax::kPython || syntax == Syntax::kNotebook;
    const bool anywhere = requirements || goes_on || installs(words);
    goes_on = (goes_on || installs(words)) && words.ends_with('\\');
    if (anywhere || python) read_line(words, anywhere ? Where::kAnywhere : Where::kQuoted, origin, reading);
  }
}

}  // namespace

void read_pins(const Look& look, Reading& reading) {
  // What serves or asks the model has packages of its own.
  if (!reading.issues.empty() && reading.findings.empty()) return;
  const Finding* framework = find(reading, "framework.name");
  if (framework != nullptr && std::find(kOwnCode.begin(), kOwnCode.end(), framework->value.string) != kOwnCode.end())
    return;
  if (look.syntax != Syntax::kNotebook) return read_lines(look.source.bytes, look.syntax, reading.file, -1, reading);
  const Node* cells = look.find("cells");
  if (cells == nullptr) return;
  for (std::size_t at = 0; at < cells->items.size(); ++at) {
    read_lines(code_of(cells->items[at]), look.syntax, reading.file, static_cast<int>(at), reading);
  }
}

}  // namespace tidemark::exchange
