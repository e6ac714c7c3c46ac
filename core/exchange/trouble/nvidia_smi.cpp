#include "core/exchange/trouble/nvidia_smi.hpp"

#include <algorithm>

#include "core/exchange/trouble/sizes.hpp"

namespace tidemark::exchange {
namespace {

using Words = std::vector<std::string_view>;

/// More rows than any machine has.
constexpr std::size_t kMostRows = 4096;

Words split(std::string_view text, std::string_view at) {
  Words words;
  for (std::size_t begin = text.find_first_not_of(at); begin != std::string_view::npos;
       begin = text.find_first_not_of(at, begin)) {
    const std::size_t end = std::min(text.find_first_of(at, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// The word after "Driver Version:".
std::string word_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return {};
  const Words words = split(line.substr(at + label.size()), " |");
  return words.empty() || words[0] == "N/A" ? std::string{} : std::string{words[0]};
}

/// "8405MiB", "97%".
std::optional<std::int64_t> number_with(std::string_view word, std::string_view unit) {
  word = trimmed(word);
  if (word.size() <= unit.size() || word.substr(word.size() - unit.size()) != unit) return std::nullopt;
  return whole_number(word.substr(0, word.size() - unit.size()));
}

/// "8405MiB / 11178MiB".
bool read_usage(std::string_view cell, std::optional<std::int64_t>& used, std::optional<std::int64_t>& total) {
  const std::size_t slash = cell.find('/');
  if (slash == std::string_view::npos) return false;
  const auto all = number_with(cell.substr(slash + 1), "MiB");
  if (!all) return false;
  used = number_with(cell.substr(0, slash), "MiB");
  total = all;
  return true;
}

/// "  0  GeForce GTX 108...  Off  ": index, name, and the persistence mode at the end.
void read_card(std::string_view cell, int line, NvidiaSmi& smi) {
  const Words words = split(cell, " ");
  if (words.size() < 3) return;
  const auto index = whole_number(words[0]);
  if (!index) return;
  const char* begin = words[1].data();
  const char* end = words[words.size() - 2].data() + words[words.size() - 2].size();
  smi.gpus.push_back({*index, std::string(begin, static_cast<std::size_t>(end - begin)), {}, {}, {}, line});
}

/// "| 29%   37C    P2    64W / 250W |   8405MiB / 11178MiB |     97%      Default |" below it.
void read_card_usage(const Words& cells, NvidiaSmi& smi) {
  if (smi.gpus.empty() || cells.size() < 3 || smi.gpus.back().total) return;
  NvidiaSmi::Gpu& gpu = smi.gpus.back();
  if (!read_usage(cells[1], gpu.used, gpu.total)) return;
  const Words words = split(cells[2], " ");
  if (!words.empty()) gpu.utilization = number_with(words[0], "%");
}

/// "|  1    3   0   0  |  14366MiB / 19968MiB | ...".
void read_instance(const Words& cells, int line, NvidiaSmi& smi) {
  if (cells.size() < 2) return;
  const Words words = split(cells[0], " ");
  if (words.size() != 4) return;
  NvidiaSmi::Instance row;
  row.line = line;
  std::int64_t* const numbers[] = {&row.gpu, &row.gi, &row.ci, &row.device};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto number = whole_number(words[i]);
    if (!number) return;
    *numbers[i] = *number;
  }
  if (read_usage(cells[1], row.used, row.total)) smi.instances.push_back(row);
}

/// "|    3   N/A  N/A     12439      C   python3    9347MiB |"; GI and CI since driver 450.
void read_process(std::string_view cell, NvidiaSmi& smi) {
  Words words = split(cell, " ");
  if (words.size() < 5) return;
  const bool with_instances = words[2] == "N/A" || whole_number(words[2]);
  const std::size_t pid_at = with_instances ? 3 : 1;
  if (words.size() < pid_at + 4) return;
  const auto gpu = whole_number(words[0]), pid = whole_number(words[pid_at]);
  if (!gpu || !pid) return;
  const std::string_view first = words[pid_at + 2], last = words[words.size() - 2];
  const auto length = static_cast<std::size_t>(last.data() + last.size() - first.data());
  smi.processes.push_back({*gpu, *pid, std::string(first.data(), length), number_with(words.back(), "MiB")});
}

enum class Part { kCards, kInstances, kProcesses };

}  // namespace

std::optional<NvidiaSmi> find_nvidia_smi(const LogText& log) {
  std::optional<NvidiaSmi> found;
  Part part = Part::kCards;
  for (const LogLine& line : log.lines) {
    const std::string_view text = line.text;
    if (text.find("Driver Version:") != std::string_view::npos) {
      if (found) break;  // a second table, later
      found.emplace();
      found->driver = word_after(text, "Driver Version:");
      found->cuda = word_after(text, "CUDA Version:");
      if (found->cuda.empty()) found->cuda = word_after(text, "CUDA UMD Version:");
    }
    if (!found || text.empty() || text[0] != '|' || found->processes.size() > kMostRows) continue;
    if (text.find("MIG devices:") != std::string_view::npos) part = Part::kInstances;
    if (text.find("Processes:") != std::string_view::npos) part = Part::kProcesses;
    const Words cells = split(text, "|");
    if (cells.empty()) continue;
    if (part == Part::kProcesses) read_process(cells[0], *found);
    if (part == Part::kInstances) read_instance(cells, line.number, *found);
    if (part != Part::kCards) continue;
    read_card_usage(cells, *found);
    if (cells.size() >= 3) read_card(cells[0], line.number, *found);
  }
  return found;
}

}  // namespace tidemark::exchange
