#include <algorithm>
#include <utility>

#include "core/exchange/fields.hpp"
#include "core/exchange/reading.hpp"

namespace tidemark::exchange {
namespace {

using Syntax = Look::Syntax;
constexpr std::size_t kHeadBytes = 64 << 10;
constexpr std::size_t kMostTextBytes = 8 << 20;

bool has_line_with(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    for (std::string_view word : beginnings) {
      if (rest.substr(0, word.size()) == word) return true;
    }
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return false;
    at += end + 1;
  }
  return false;
}

bool is_binary(std::string_view head) {
  if (head.substr(0, 4) == "GGUF") return true;
  return std::any_of(head.begin(), head.end(),
                     [](char letter) { return static_cast<unsigned char>(letter) < 7 || letter == 0x0E; });
}

bool is_log(std::string_view head) {
  return head.find("Traceback (most recent call last)") != std::string_view::npos ||
         head.find("out of memory") != std::string_view::npos || head.find("NVIDIA-SMI") != std::string_view::npos ||
         head.find("PyTorch CUDA memory summary") != std::string_view::npos;
}

/// What a name says; kText where it says nothing.
Syntax syntax_of_name(const Source& source) {
  constexpr std::pair<std::string_view, Syntax> kEndings[] = {
      {".json", Syntax::kJson},   {".yaml", Syntax::kYaml},   {".yml", Syntax::kYaml},       {".toml", Syntax::kToml},
      {".py", Syntax::kPython},   {".sh", Syntax::kShell},    {".ipynb", Syntax::kNotebook}, {".bash", Syntax::kShell},
      {".slurm", Syntax::kShell}, {".sbatch", Syntax::kShell}};
  for (const auto& [ending, syntax] : kEndings) {
    if (name_ends(source, ending)) return syntax;
  }
  return Syntax::kText;
}

/// Of what was pasted, or has a name that says nothing.
Syntax syntax_of_text(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Syntax::kText;
  if (head.substr(0, 2) == "#!") {
    return head.substr(0, head.find('\n')).find("python") == std::string_view::npos ? Syntax::kShell : Syntax::kPython;
  }
  if (head[first] == '{') return head.find("\"cells\"") == std::string_view::npos ? Syntax::kJson : Syntax::kNotebook;
  if (has_line_with(head, {"import ", "from ", "def ", "class "})) return Syntax::kPython;
  if (is_log(head)) return Syntax::kText;
  if (has_line_with(
          head, {"torchrun ", "accelerate launch", "deepspeed ", "python ", "python3 ", "swift ", "#SBATCH", "export ",
                 "llamafactory-cli ", "megatron ", "srun ", "axolotl ", "tune run", "tidemark ", "$ tidemark "})) {
    return Syntax::kShell;
  }
  if (has_line_with(head, {"[training]", "[model]", "[job]", "[optimizer]"})) return Syntax::kToml;
  return Syntax::kYaml;
}

}  // namespace

Syntax syntax_of(const Source& source) {
  const std::string_view head = std::string_view{source.bytes}.substr(0, kHeadBytes);
  if (is_binary(head.substr(0, 4096))) return Syntax::kBinary;
  const Syntax named = syntax_of_name(source);
  return named == Syntax::kText ? syntax_of_text(head) : named;
}

std::string code_of(const Node& cell) {
  const Node* type = cell.find("cell_type");
  const Node* source = cell.find("source");
  if (type == nullptr || type->text != "code" || source == nullptr) return {};
  std::string text = source->text;
  for (const Node& line : source->items) text += line.text;
  return text;
}

Look look_at(const Source& source) {
  const std::string_view bytes = source.bytes;
  Look look{source, syntax_of(source), {}, bytes.substr(0, kHeadBytes)};
  if (bytes.size() > kMostTextBytes && look.syntax != Syntax::kJson) return look;
  if (look.syntax == Syntax::kJson || look.syntax == Syntax::kNotebook) look.document = parse_json_lines(bytes);
  if (look.syntax == Syntax::kYaml) look.document = parse_yaml_lines(bytes);
  if (look.syntax == Syntax::kToml) look.document = parse_toml_lines(bytes);
  return look;
}

}  // namespace tidemark::exchange
