#include "core/wire/map_cells.hpp"

#include <limits>

#include "core/job/check.hpp"
#include "core/step/estimate.hpp"
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
  const Answer answer = engine.answer(base);
  if (!answer.estimate) return cells;

  TrainingJob job = answer.job;
  EstimateOptions quick;
  quick.simulate_allocator = false;
  quick.itemise = false;
  std::size_t cell = 0;
  for (const double batch : batches) {
    for (const double sequence : sequences) {
      double& bytes = cells[cell++];
      if (!(batch >= 1.0 && batch < 1e9 && sequence >= 1.0 && sequence < 1e12)) continue;
      job.micro_batch_size = static_cast<Count>(batch);
      job.sequence_length = static_cast<Count>(sequence);
      Issues troubles;
      check_magnitude(answer.architecture, job, troubles);
      if (has_error(troubles)) continue;
      const Estimate estimated = estimate(answer.architecture, job, quick);
      if (!has_error(estimated.issues)) bytes = static_cast<double>(estimated.allocated.expected);
    }
  }
  return cells;
}

}  // namespace tidemark
