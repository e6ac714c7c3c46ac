#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/units/bytes.hpp"
#include "core/units/category.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// An amount and how sure we are of it. Bytes.
struct Range {
  Bytes low = 0;
  Bytes expected = 0;
  Bytes high = 0;
};

/// One line of the breakdown: storages made at one place of the program, alive at the peak.
struct BreakdownEntry {
  std::string name;  ///< "mlp.gate_proj: output"
  Bytes bytes = 0;
  std::string formula;      ///< symbols: "2·B·S·F × 32 layers"
  std::string substituted;  ///< the same with numbers: "2 × 1 × 2048 × 11008 B × 32"
  std::string source;       ///< the line of which project that does it, with version
  Confidence confidence = Confidence::kExact;
};

/// All entries of a category; its bytes are their sum.
struct BreakdownGroup {
  Category category = Category::kWeights;
  Bytes bytes = 0;
  std::vector<BreakdownEntry> entries;  ///< largest first
};

/// One labelled moment of the step.
struct Instant {
  std::string label;  ///< "forward: model.layers.0 … 31", "loss peak"
  Phase phase = Phase::kForward;
  Bytes total = 0;                   ///< allocated
  Bytes bytes[kCategoryCount] = {};  ///< by category, summing to total
};

/// The moment at which most is allocated.
struct Peak {
  Phase phase = Phase::kForward;
  std::string at;               ///< module that was running: "model.layers.31.mlp.down_proj"
  std::string rank = "rank 0";  ///< which GPU; always rank 0 on one GPU
};

/// Alike GPUs of a job whose GPUs differ: the stages of a pipeline.
struct RankFigures {
  Count first = 0, last = 0;  ///< ranks
  std::string layers;         ///< what each has: "0-7", "0-7, 16-23"
  Count parameters = 0;       ///< of these
  Bytes allocated = 0;        ///< as Estimate's, expected
  Bytes reserved = 0;
  Phase phase = Phase::kForward;  ///< of its peak
};

/// Parameter counts, elements.
struct ParameterCounts {
  Count total = 0;  ///< of the model as trained, adapters included
  Count trainable = 0;
  Count active = 0;           ///< used for one token (differs for mixtures of experts)
  Count base = 0;             ///< of the model without adapters
  Count published = 0;        ///< what the catalog's source states, 0 when unknown
  Count adapted_modules = 0;  ///< modules that carry an adapter
  Count saved_modules = 0;    ///< modules trained in full beside them
};

/// Memory of a node's host, in bytes.
struct Host {
  Bytes expected = 0;  ///< offloaded and paged state
  Bytes high = 0;      ///< with blocks of powers of two, where that is pinned
  Bytes load = 0;      ///< what all processes keep of the model before it is on their GPUs, beyond mapped files
};

/// What the engine answers. Every figure in bytes, for the steady state (second step on) unless said otherwise.
struct Estimate {
  Range allocated;  ///< torch.cuda.max_memory_allocated, cuBLAS workspaces included
  Range reserved;   ///< torch.cuda.max_memory_reserved
  Range device;     ///< what nvidia-smi shows for the process: reserved + CUDA context
  Bytes first_step_allocated = 0;
  Host host;  ///< per node
  Peak peak;
  Bytes phase_peaks[kPhaseCount] = {};    ///< largest `allocated` of each phase, indexed by Phase
  Bytes phase_live[kPhaseCount] = {};     ///< the same without what the allocator does not split off
  std::vector<BreakdownGroup> breakdown;  ///< sums to allocated.expected
  std::vector<Instant> timeline;          ///< in time order
  std::vector<RankFigures> ranks;         ///< where GPUs differ: all of them, in order; the rest is about one
  ParameterCounts parameters;
  Recipe recipe;                 ///< as used
  std::string attention_kernel;  ///< which the attention really runs: "flash", "efficient", "cudnn", "math", "eager"
  std::string architecture;      ///< which model was assumed, when only a count was given; else empty
  Issues issues;                 ///< warnings and notes
};

/// What one card can give, as far as it is known.
struct Card {
  std::string name;       ///< catalog name, or "24 GiB" where only the memory is known
  Bytes visible = 0;      ///< what torch sees (total_memory), bytes; 0 when unknown
  Bytes context = 0;      ///< CUDA context with the kernels that a training job loads, bytes
  std::string estimated;  ///< a sentence when a figure above is an estimate; empty when both were measured
  Bytes whole = 0;        ///< what torch sees where `visible` is what is left of that; 0: the same
};

/// A card to choose, with what decides which kernels run on it.
struct CardChoice {
  Card card;
  /// Whose kernels run; where the card has none, those that are assumed without a card.
  int compute_capability = TrainingJob{}.compute_capability;
  Bytes sold_as = 0;  ///< memory on the box; 0 when only the visible one is known
};

enum class Verdict : std::uint8_t { kFits, kTight, kDoesNotFit, kUnknown };
std::string_view name_of(Verdict verdict);

/// Whether the job fits one card.
struct Fit {
  std::string gpu;   ///< catalog name
  Bytes usable = 0;  ///< memory that torch sees, minus what the CUDA context takes
  Verdict verdict = Verdict::kUnknown;
  Bytes headroom = 0;        ///< usable − needed (expected); negative when it does not fit
  double utilization = 0.0;  ///< needed / usable
  std::string reason;        ///< why the verdict is unknown or estimated; empty otherwise
};

}  // namespace tidemark
