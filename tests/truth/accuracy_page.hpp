#pragma once

#include <string>
#include <vector>

#include "tests/truth/rows.hpp"

namespace tidemark::truth {

/// A record that we do not answer to, with the reason (tests/truth/deviations.json).
struct Deviation {
  std::string ids;     ///< the id or the beginning of it
  std::string reason;  ///< why the record and not the engine is at fault, or what is not modelled
};

/// Published measurements of an implementation that has a program of its own, whose truth they are.
struct Own {
  std::string title;      ///< on pages
  std::string metric;     ///< that is published of it
  std::vector<Row> rows;  ///< all of them
};

/// Our own measurements of one kind of run (tests/measured/own.jsonl).
struct Runs {
  std::string kind;       ///< trainer, loop, parallel
  std::string title;      ///< on pages
  std::vector<Row> rows;  ///< a row for each figure
};

/// All that was compared.
struct Tables {
  std::vector<Row> open, extra, pairs, beyond, multi, loops, adapters, optimizers, offloaded, quantised, later,
      megatron, unsloth;
  std::vector<Row> measured;
  std::vector<Own> own;    ///< measurements of implementations that have a program
  std::vector<Runs> runs;  ///< our own measurements
  std::vector<Deviation> deviations;
};

std::vector<Deviation> read_deviations(const std::string& path);
std::vector<Row> without(const std::vector<Row>& rows, const std::vector<Deviation>& deviations);
std::vector<Row> part(const std::vector<Row>& rows, const std::string& metric, const std::string& completeness);

/// docs/accuracy.md
std::string accuracy_page(const Tables& tables);

}  // namespace tidemark::truth
