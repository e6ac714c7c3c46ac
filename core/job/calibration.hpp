#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// What measurements of a user's own say of the engine's figures: the document that `calibrate` returns, as far as an
/// answer needs it. 1 stands for a factor that no measurement determined.
struct Calibration {
  struct Context {
    std::string gpu;  ///< the card's name in the catalog
    Bytes bytes = 0;  ///< what the process takes there outside PyTorch's allocator and NCCL
  };
  double activations = 1.0;       ///< by which activations are larger than the sources say
  double fragmentation = 1.0;     ///< likewise what is reserved beyond what is allocated
  double communication = 1.0;     ///< likewise NCCL's buffers
  std::vector<Context> contexts;  ///< of the cards that were measured
  Count measurements = 0;
  double worst_percent = 0.0;           ///< largest error on its own measurements
  double worst_left_out_percent = 0.0;  ///< on each, fitted to the others

  /// The context of that card, where it was measured.
  std::optional<Bytes> context_of(const std::string& gpu) const;
};

/// Reads the document, alone or within the answer to `calibrate`; nothing where it is none.
std::optional<Calibration> read_calibration(const Value& document);

/// "activations × 1.08, context of NVIDIA A100 80GB 0.48 GiB".
std::string in_words(const Calibration& calibration);

}  // namespace tidemark
