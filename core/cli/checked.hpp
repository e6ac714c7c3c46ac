#pragma once

#include <string>
#include <vector>

#include "core/answer/answer.hpp"
#include "core/cli/command_table.hpp"
#include "core/units/value.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {

/// A job as a guard sees it: where it stands, and whether it fits the cards that are named.
struct Checked {
  enum class Verdict { kFits, kTight, kDoesNotFit, kNotEstimated, kNoJob };
  std::string file;  ///< empty for a job of flags alone
  int line = 1;      ///< where the file says how large the job is
  Verdict verdict = Verdict::kNotEstimated;
  std::string message;   ///< one sentence
  bool misused = false;  ///< no card is named, or one that nobody knows: the command is at fault, not the job
};

/// The verdict on a job that has been estimated, or why it has not; with what would make it fit.
void judge(const Answer& answer, const Engine& engine, const Value& request, Checked& checked);

/// Where the files say how large the job is: the line of its batch, its length, its model.
void find_place(const std::vector<std::string>& files, Checked& checked);

/// Static Analysis Results Interchange Format 2.1.0 (OASIS), as code scanning of a pull request reads it.
Value sarif_of(const std::vector<Checked>& all);

}  // namespace tidemark
