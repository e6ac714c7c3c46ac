#include "core/exchange/trouble/compare.hpp"

#include <algorithm>
#include <optional>

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

/// Less than this of other processes is a desktop or another rank's context.
constexpr Bytes kNoteworthy = 512 * kMiB;
/// The allocator asks the driver for segments of up to 20 MiB where a small tensor is wanted
/// (pytorch v2.6.0 c10/cuda/CUDACachingAllocator.cpp: kLargeBuffer).
constexpr Bytes kLargestSegment = 20 * kMiB;

std::optional<Bytes> bytes_at(const Value& log, std::string_view key) {
  const Value* value = log.find(key);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  return value->integer;
}

std::optional<Bytes> bytes_at(const Value& log, std::string_view key, std::string_view inner) {
  const Value* value = log.find(key);
  return value == nullptr ? std::nullopt : bytes_at(*value, inner);
}

std::string gib(Bytes bytes) {
  return format_gib(bytes);
}

// Exhausted memory ----------------------------------------------------------------------------------------------------

/// A message's figures, with what follows from them.
struct Death {
  std::optional<Bytes> allocated, reserved, tried, free, allowed;
  Bytes capacity = 0;
  Bytes outside = 0;  ///< of this process beside PyTorch's allocator: context, libraries
  Bytes others = 0;   ///< of other processes
  std::string phase;

  Bytes room() const { return capacity - outside - others; }
  Bytes unallocated() const { return reserved.value_or(0) - allocated.value_or(0); }
};

Bytes sum_of_others(const Value& log) {
  Bytes sum = 0;
  const Value* list = log.find("other_processes");
  if (list == nullptr) return 0;
  for (const Value& other : list->items) sum += bytes_at(other, "bytes").value_or(0);
  return sum;
}

/// Where the text does not say what this process takes beside PyTorch, the estimate's context stands for it; what is
/// then neither free nor ours belongs to others.
Death death_of(const Estimate& estimate, const Value& log) {
  Death death;
  death.allocated = bytes_at(log, "allocated_bytes");
  death.reserved = bytes_at(log, "reserved_bytes");
  death.tried = bytes_at(log, "tried_to_allocate_bytes");
  death.free = bytes_at(log, "free_bytes");
  death.allowed = bytes_at(log, "allowed_bytes");
  death.capacity = bytes_at(log, "gpu_capacity_bytes").value_or(0);
  const Bytes context = estimate.device.expected - estimate.reserved.expected;
  death.outside = std::max<Bytes>(bytes_at(log, "non_pytorch_bytes").value_or(context), 0);
  death.others = sum_of_others(log);
  if (death.others == 0 && death.free && death.reserved && death.capacity > 0) {
    death.others = std::max<Bytes>(death.capacity - *death.free - *death.reserved - death.outside, 0);
  }
  if (const Value* phase = log.find("phase"); phase != nullptr) death.phase = phase->string;
  return death;
}

/// The estimate's own phases that a message's phase may mean.
Bytes peak_in(const Estimate& estimate, std::string_view phase) {
  Bytes peak = 0;
  for (int i = 0; i < kPhaseCount; ++i) {
    const std::string_view name = name_of(static_cast<Phase>(i));
    const bool meant = (phase == "forward" && name == "loss") || (phase == "rollout" && name == "generation");
    if (name == phase || meant) peak = std::max(peak, estimate.phase_peaks[i]);
  }
  return peak;
}

void tell_phase(const Estimate& estimate, const Death& death, Comparison& out) {
  if (death.phase.empty() || death.phase == "unknown") return;
  std::string text = "It died in " + death.phase;
  if (const Bytes peak = peak_in(estimate, death.phase); peak > 0) {
    text += ", of which the estimate's highest point is " + gib(peak);
  }
  text += "; the step's peak of " + gib(estimate.allocated.expected) + " comes in " +
          std::string{name_of(estimate.peak.phase)} + " at " + estimate.peak.at + ".";
  out.sentences.push_back(std::move(text));
}

/// Why the request failed where the card was not the reason.
bool is_limited(const Death& death, Comparison& out) {
  if (death.allowed && death.allocated && death.tried && *death.allocated + *death.tried > *death.allowed) {
    out.verdict = "limited";
    out.sentences.push_back("A memory fraction allows this process " + gib(*death.allowed) + " of the card's " +
                            gib(death.capacity) + ": raise it (set_per_process_memory_fraction).");
    return true;
  }
  if (death.free && death.tried && *death.free > *death.tried + kLargestSegment) {
    out.verdict = "limited";
    out.sentences.push_back("The driver says that " + gib(*death.free) + " were free, more than the " +
                            gib(*death.tried) +
                            " that were asked for: the card was not full. Look for a limit: MIG, a "
                            "container's, the driver's mappings.");
    return true;
  }
  return false;
}

/// What the estimate says of a step does not hold for a run that had more at its death.
bool is_another_job(const Estimate& estimate, const Death& death, Comparison& out) {
  const Bytes had = death.allocated.value_or(0);
  if (had <= estimate.allocated.high) return false;
  if (death.phase == "evaluation" || death.phase.rfind("rollout", 0) == 0) {
    out.sentences.push_back("The estimate is of training steps, and the run died in " + death.phase + ".");
  }
  out.verdict = "not_this_job";
  out.sentences.push_back("The run had " + gib(had) +
                          " allocated when it died, more than this job needs at any time (" +
                          gib(estimate.allocated.expected) + ", at most " + gib(estimate.allocated.high) +
                          "). Batch, length, model or precision differ from what was read, or something else is kept.");
  return true;
}

void judge_size(const Estimate& estimate, const Death& death, Comparison& out) {
  const Bytes need = estimate.allocated.expected, room = death.room();
  const std::string leaves =
      "The job needs " + gib(need) + "; the card of " + gib(death.capacity) + " leaves PyTorch " + gib(room);
  if (estimate.allocated.low > room && need > death.capacity - death.outside) {
    out.verdict = "too_large";
    out.sentences.push_back(leaves + ": " + gib(need - room) + " short. Fragmentation is not the reason.");
  } else if (estimate.allocated.low > room) {
    out.verdict = "other_processes";
    out.sentences.push_back(leaves + ", because other processes hold " + gib(death.others) + ": alone it fits.");
  } else if (death.tried && death.unallocated() >= *death.tried) {
    out.verdict = "fragmentation";
    out.sentences.push_back(leaves + ", enough. " + gib(death.unallocated()) +
                            " were reserved and unallocated, more than "
                            "the " +
                            gib(*death.tried) +
                            " that were asked for: fragmentation. Try "
                            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
  } else if (estimate.allocated.high > room) {
    out.verdict = "tight";
    out.sentences.push_back(leaves + ": too near for the estimate to tell (" + gib(estimate.allocated.low) + " to " +
                            gib(estimate.allocated.high) + ").");
  } else {
    out.sentences.push_back(leaves +
                            ", enough, and yet it died: its first steps may differ from the later ones "
                            "(loading, evaluation), or the files do not say all of the job.");
  }
}

void compare_death(const Estimate& estimate, const Value& log, Comparison& out) {
  const Death death = death_of(estimate, log);
  if (death.allocated) {
    out.rows.push_back({"allocated when it died, peak of the estimate", estimate.allocated.expected, *death.allocated});
  }
  if (death.reserved) out.rows.push_back({"reserved", estimate.reserved.expected, *death.reserved});
  if (death.capacity == 0) {
    out.sentences.emplace_back("The message has no figures: name the card (--gpu) to learn whether the job fits it.");
  } else if (!is_another_job(estimate, death, out) && !is_limited(death, out)) {
    judge_size(estimate, death, out);
  }
  if (death.others > kNoteworthy && out.verdict != "other_processes") {
    out.sentences.push_back("Other processes hold " + gib(death.others) + " of the card.");
  }
  tell_phase(estimate, death, out);
}

// Measurements --------------------------------------------------------------------------------------------------------

void add(std::string what, Bytes estimated, std::optional<Bytes> measured, Comparison& out) {
  if (measured) out.rows.push_back({std::move(what), estimated, *measured});
}

/// Of a whole process nvidia-smi tells; of a card, where none is listed.
std::optional<Bytes> used_on_card(const Value& log) {
  std::optional<Bytes> most;
  for (std::string_view key : {"processes", "gpus"}) {
    const Value* list = log.find(key);
    if (list == nullptr || most) continue;
    for (const Value& row : list->items) {
      const auto used = bytes_at(row, "used_mib");
      if (used && *used > 0) most = std::max(most.value_or(0), *used * kMiB);
    }
  }
  return most;
}

void judge_measurement(const Range& range, Bytes measured, Comparison& out) {
  const bool inside = measured >= range.low && measured <= range.high;
  out.verdict = inside ? "agrees" : "differs";
  const double percent =
      100.0 * static_cast<double>(range.expected - measured) / static_cast<double>(std::max<Bytes>(measured, 1));
  const auto tenths = static_cast<Bytes>(percent * 10.0 + (percent < 0 ? -0.5 : 0.5));
  const Bytes size = tenths < 0 ? -tenths : tenths;
  out.sentences.push_back("Measured " + gib(measured) + ", estimated " + gib(range.expected) + " (" +
                          (tenths < 0 ? "-" : "+") + std::to_string(size / 10) + "." + std::to_string(size % 10) +
                          " %), " + (inside ? "within" : "outside") + " the estimate's range.");
}

void compare_phases(const Estimate& estimate, const Value& log, Comparison& out) {
  const Value* phases = log.find("phases");
  if (phases == nullptr) return;
  for (const Value::Member& phase : phases->members) {
    if (const Bytes peak = peak_in(estimate, phase.key); peak > 0 && phase.value.is_integer()) {
      out.rows.push_back({"peak in " + phase.key, peak, phase.value.integer});
    }
  }
}

}  // namespace

Measured measured_in(std::string_view format, const Value& log) {
  if (format == "memory_summary") {
    return {bytes_at(log, "allocated", "peak"), bytes_at(log, "reserved", "peak"), {}};
  }
  if (format == "snapshot") return {bytes_at(log, "peak_allocated_bytes"), bytes_at(log, "reserved_bytes"), {}};
  if (format == "nvidia_smi") return {{}, {}, used_on_card(log)};
  if (format != "probe") return {};
  return {bytes_at(log, "allocated_bytes"), bytes_at(log, "reserved_bytes"), bytes_at(log, "device_bytes")};
}

Comparison compare(const Estimate& estimate, std::string_view format, const Value& log) {
  Comparison out;
  if (format == "oom") {
    compare_death(estimate, log, out);
    return out;
  }
  const Measured measured = measured_in(format, log);
  add("allocated at the peak", estimate.allocated.expected, measured.allocated, out);
  add("reserved", estimate.reserved.expected, measured.reserved, out);
  add("on the card", estimate.device.expected, measured.device, out);
  compare_phases(estimate, log, out);
  if (out.rows.empty()) return out;
  judge_measurement(format == "nvidia_smi" ? estimate.device : estimate.allocated, out.rows.front().measured, out);
  return out;
}

Value to_value(const Comparison& comparison) {
  std::vector<Value> rows, sentences;
  for (const Comparison::Row& row : comparison.rows) {
    rows.push_back(object({{"what", of(row.what)},
                           {"estimated_bytes", of(row.estimated)},
                           {"measured_bytes", of(row.measured)},
                           {"difference_bytes", of(row.estimated - row.measured)}}));
  }
  for (const std::string& sentence : comparison.sentences) sentences.push_back(of(sentence));
  return object(
      {{"verdict", of(comparison.verdict)}, {"rows", of(std::move(rows))}, {"sentences", of(std::move(sentences))}});
}

}  // namespace tidemark::exchange
