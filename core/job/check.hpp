#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What no single option can tell: options that contradict each other or have no effect. `given` holds the names of
/// the options that the request states ("adapter.r").
void check_request(const Request& request, const std::vector<std::string_view>& given, Issues& issues);

/// What the model and the job contradict each other in: options that this model has no use for, shapes that no kernel
/// takes.
void check_model(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// What the job's card cannot run, or only by detours.
void check_kernels(const TrainingJob& job, Issues& issues);

/// What a card does not run.
struct Refusal {
  std::string_view why;      ///< a sentence; empty where it runs everything
  std::string_view path;     ///< JSON pointer of the option that asks for it
  std::string_view instead;  ///< a value of that option which runs
  std::string_view advice;   ///< a sentence that says so, where `why` does not
};

/// Why a card of the job's compute capability cannot run it.
Refusal refusal_of_card(const TrainingJob& job);

/// Why no card runs sequences of this length, as a sentence; empty when the model has positions for them.
std::string refusal_of_length(const Architecture& architecture, Count sequence_length);

/// Rows of a decoder's own table of positions; 0 where there is none.
Count decoder_positions(const Architecture& architecture);

/// Refuses dimensions whose byte counts could leave 64 bits anywhere downstream.
void check_magnitude(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// Warns of sequences that are longer than the model's learned table of positions.
void check_positions(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
