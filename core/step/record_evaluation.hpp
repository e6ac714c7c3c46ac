#pragma once

#include <cstdint>
#include <vector>

#include "core/layers/program.hpp"

namespace tidemark {

struct Simulation;
class Sharded;

/// What a parameter is to the model; ZeRO's step makes one of all.
struct Declared {
  Shape shape;
  Dtype dtype = Dtype::kFp32;
  std::int16_t instance = -1;  ///< layer on the tape
};
std::vector<Declared> declared_in(const Tape& tape);

/// What divides the weights of the model that generates and scores, and of a copy beside it; null: they are whole.
struct Divided {
  Sharded* own = nullptr;
  Sharded* reference = nullptr;
};

/// The last batch of an evaluation, which begins when the step's gradients are gone, on the tape of the model that was
/// trained; of a divided one two, the second of which finds what the first has left. Returns its first segment.
std::size_t record_evaluation(const Net& trained, const Architecture& architecture, const TrainingJob& job,
                              const Program& program, std::vector<Declared>& declared, const Divided& divided);

/// Answers are generated for the next steps and scored, on the same tape, where the loop is between two micro-steps.
void record_rollout(Simulation& simulation, Net& trained, const Architecture& architecture, const TrainingJob& job,
                    const Program& program, std::vector<Declared>& declared, const Divided& divided);

}  // namespace tidemark
