#pragma once

#include <string_view>

#include "core/job/training_job.hpp"

namespace tidemark {

/// A release of a framework from free text: "5.12", "4.48.1", "4.36 (ms-swift 2.x)", "2026-07". False when none is in
/// it.
bool read_version(std::string_view text, Framework& framework);

/// A day as a number: later days are greater.
constexpr int date_of(int year, int month, int day) {
  return (year * 12 + month) * 31 + day;
}

/// The day of Unsloth 2026.10.9, whose loss takes rows of logits and whose kernel unpacks NF4 with its scales at once.
inline constexpr int kUnslothRows = date_of(2026, 10, 26);

/// Whether that release runs, or a later one, or one that nobody has stated.
inline bool is_unsloth_by_rows(const Framework& framework) {
  return framework.name == "unsloth" && (framework.date == 0 || framework.date >= kUnslothRows);
}

/// date_of() a date ("2025-02-05", "2025-06") or a release of torchtitan or Unsloth 2026.10.9, far ahead if it is none
/// that is known; 0 of what is neither.
int date_in(std::string_view text);

/// LLaMA-Factory's loop of its own (src/llamafactory/v1), whose loss is of the logits that the model returns, beside
/// the one that the model computes.
bool runs_llama_factory_v1(const TrainingJob& job);

/// kohya-ss/sd-scripts, which has U-Nets and LoRA layers of its own.
bool runs_sd_scripts(const TrainingJob& job);

/// Whether that text states a date in place of a release.
bool is_date(std::string_view text);

}  // namespace tidemark
