#include "core/wire/map_cells.hpp"

#include <limits>
#include <utility>

#include "core/engine/questions.hpp"
#include "core/wire/json.hpp"

namespace tidemark {

std::vector<double> map_cells(const Engine& engine, std::string_view request, const std::vector<double>& batches,
                              const std::vector<double>& sequences) {
  std::vector<double> cells(batches.size() * sequences.size(), std::numeric_limits<double>::quiet_NaN());
  if (cells.empty()) return cells;
  Issues issues;
  Value document = parse_json(request, "", issues);
  if (has_error(issues) || !document.is_object()) return cells;

  // Names are looked up and options read once. What the axes replace must not stand in the way where it is wrong.
  const Understood own = engine.read(document);
  if (own.complete) return peak_cells(own, batches, sequences);
  Value base = empty_object();
  for (Value::Member& member : document.members) {
    if (member.key != "micro_batch_size" && member.key != "sequence_length") base.members.push_back(std::move(member));
  }
  set(base, "micro_batch_size", 1);
  set(base, "sequence_length", 1);
  return peak_cells(engine.read(base), batches, sequences);
}

}  // namespace tidemark
