#pragma once

#include <string>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/wire/engine.hpp"

namespace tidemark::truth {

/// One record or measurement beside the engine's answer. Errors are per cent of the truth, positive when we say more.
struct Row {
  std::string id;            ///< of the record
  std::string family;        ///< model_type, "?" when the config was not read
  std::string regime;        ///< method and precision
  std::string note;          ///< why there is no answer, or which count is off
  std::string phase;         ///< in which our peak falls: forward (loss included), backward, optimizer
  std::string true_phase;    ///< in which the record's falls
  std::string metric;        ///< of a measurement: allocated, reserved, device
  std::string completeness;  ///< of a measurement: A when everything that moves memory is known
  bool answered = false;     ///< the engine gave an estimate
  Bytes truth = 0;           ///< what the record says, cuBLAS workspaces included
  Bytes ours = 0;            ///< what we say
  double error = 0;          ///< of the figure compared
  double live = 0;           ///< of the sum of live storages: the worst phase
  double forward = 0, backward = 0, optimizer = 0;  ///< of the phases' peaks
  double reserved = 0;                              ///< of reserved memory
  double low = 0, high = 0;                         ///< of the stated range, relative to the truth
};

/// Rows of an oracle file (records.jsonl).
std::vector<Row> oracle_rows(const Engine& engine, const std::string& path, const std::string& only);
/// Rows of the published measurements in scope: transformers on one GPU without torch.compile, or all of an
/// implementation that the engine has of its own.
std::vector<Row> measured_rows(const Engine& engine, const std::string& path, const std::string& conditions_path,
                               const std::string& implementation, const std::string& only);

/// Rows of our own measurements (tests/measured/own.jsonl): allocated, reserved and device bytes of one kind of run.
std::vector<Row> own_rows(const Engine& engine, const std::string& path, const std::string& kind,
                          const std::string& only);

std::string read_file(const std::string& path);

}  // namespace tidemark::truth
