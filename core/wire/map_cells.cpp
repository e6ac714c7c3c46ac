#include "core/wire/map_cells.hpp"

#include <limits>

#include "core/step/simulation.hpp"
#include "core/step/surface.hpp"
#include "core/wire/json.hpp"

namespace tidemark {

std::vector<double> map_cells(const Engine& engine, std::string_view request, const std::vector<double>& batches,
                              const std::vector<double>& sequences) {
  std::vector<double> cells(batches.size() * sequences.size(), std::numeric_limits<double>::quiet_NaN());
  if (cells.empty()) return cells;
  Issues issues;
  Value document = parse_json(request, "", issues);
  if (has_error(issues) || !document.is_object()) return cells;

  // Names are looked up and options read once; what the axes replace must not stand in the way.
  Value base = empty_object();
  for (Value::Member& member : document.members) {
    if (member.key != "micro_batch_size" && member.key != "sequence_length") base.members.push_back(std::move(member));
  }
  set(base, "micro_batch_size", 1);
  set(base, "sequence_length", 1);
  const Engine::Question question = engine.read(base);
  const Answer& answer = question.answer;
  if (!question.complete || !is_supported(answer.architecture)) return cells;

  const auto valid = [](const std::vector<double>& sizes, double below) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] >= 1.0 && sizes[i] < below) places.push_back(i);
    }
    return places;
  };
  const auto at = [](const std::vector<double>& sizes, const std::vector<std::size_t>& places) {
    std::vector<Count> counts;
    for (const std::size_t place : places) counts.push_back(static_cast<Count>(sizes[place]));
    return counts;
  };
  const std::vector<std::size_t> rows = valid(batches, 1e9), columns = valid(sequences, 1e12);
  const Surface surface = peak_surface(answer.architecture, answer.job, at(batches, rows), at(sequences, columns));
  std::size_t next = 0;
  for (const std::size_t row : rows) {
    for (const std::size_t column : columns) {
      const Bytes peak = surface.peaks[next++];
      if (peak >= 0) cells[row * sequences.size() + column] = static_cast<double>(peak);
    }
  }
  return cells;
}

}  // namespace tidemark
