#include "core/exchange/trouble/memory_summary.hpp"

#include <array>

#include "core/exchange/trouble/sizes.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::string_view kTitle = "memory summary, device ID ";

std::optional<std::int64_t> number_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text = trimmed(text.substr(at + words.size()));
  return whole_number(text.substr(0, text.find_first_not_of("0123456789")));
}

/// The first three cells of "| a | b | c | ...".
std::array<std::string_view, 3> cells_of(std::string_view line) {
  std::array<std::string_view, 3> cells;
  for (std::string_view& cell : cells) {
    line = line.substr(0, 1) == "|" ? line.substr(1) : line;
    const std::size_t end = line.find('|');
    cell = trimmed(line.substr(0, end));
    line = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  }
  return cells;
}

void read_row(std::string_view line, MemorySummary& out) {
  const auto [metric, current, peak] = cells_of(line);
  std::optional<MemorySummary::Row>* row = nullptr;
  if (metric == "Allocated memory") row = &out.allocated;
  if (metric == "Active memory") row = &out.active;
  if (metric == "Requested memory") row = &out.requested;
  if (metric == "GPU reserved memory") row = &out.reserved;
  const auto now = size_in(current), most = size_in(peak);
  if (row != nullptr && !*row && now && most) *row = {*now, *most};
}

}  // namespace

std::optional<MemorySummary> find_memory_summary(const LogText& log) {
  std::optional<MemorySummary> found;
  for (const LogLine& line : log.lines) {
    if (const auto device = number_after(line.text, kTitle)) {
      if (found) break;  // the next card's
      found.emplace().device = *device;
      found->line = line.number;
    }
    if (!found) continue;
    if (!found->ooms) found->ooms = number_after(line.text, "CUDA OOMs:");
    if (!found->retries) found->retries = number_after(line.text, "cudaMalloc retries:");
    read_row(line.text, *found);
  }
  return found;
}

}  // namespace tidemark::exchange
