#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/step/growth.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// What the sizes of a step are asked for later: bounds that every question keeps to.
struct Grid {
  Extents least;   ///< smallest B and smallest S
  Extents common;  ///< greatest common divisor of all B, and of all S
};

/// A training step recorded at certain sizes.
struct Recording {
  Simulation simulation;
  Extents at;
};

/// A training step whose sizes are known as functions of B and S, reduced to the instants that can be its highest.
class CompiledStep {
 public:
  /// From three recordings with the same guards. Nothing when their allocations differ in kind or order, or when some
  /// size grows in a way that Growth does not have.
  static std::optional<CompiledStep> compile(std::array<Recording, kSamples>&& recordings, Bytes workspaces,
                                             const Grid& grid);

  /// Whether a further recording makes the same allocations in the same order, of the sizes that this step predicts.
  bool predicts(const Recording& recording) const;

  /// The quick peak (step/quick_peak.hpp) at other sizes, to the byte.
  Bytes peak(Extents at);

 private:
  // How storages of one kind grow, and bounds of their rounded size as polynomials in B and S.
  using Polynomial = std::array<double, kPowers>;
  struct Kind {
    Growth growth;
    Polynomial low{}, high{};
    bool aligned = false;  // a multiple of the allocator's block wherever the grid asks
  };
  // What is live at one instant.
  struct Level {
    Bytes fixed = 0;                  // of storages that do not grow
    std::vector<std::int32_t> count;  // of each kind
    Polynomial low{}, high{};
  };
  // A level made ready for evaluation.
  struct Instant {
    Bytes fixed = 0;
    std::vector<Count> coefficients;                            // of each term: all aligned kinds together
    std::vector<std::pair<std::size_t, std::int32_t>> rounded;  // kinds to be rounded one by one, and how many
  };

  bool find_guarded(const std::array<Recording, kSamples>& recordings);
  bool find_kinds(const std::array<Recording, kSamples>& recordings, const Grid& grid);
  bool bound(Kind& kind, const Grid& grid) const;
  void add(Level& level, Bytes bytes, std::int32_t storage, Count times) const;
  void find_instants(Level& level, const Grid& grid);
  void keep(std::vector<Level>& best, const Level& level, Extents least) const;
  Instant ready(const Level& level) const;

  Simulation first_;
  std::vector<MovingGuard> quotients_;
  std::vector<std::pair<std::size_t, Bytes>>
      guarded_;  // of each storage: a quotient and bytes for each of it; 0: neither
  std::vector<Term> terms_;
  std::vector<Kind> kinds_;
  std::vector<std::int32_t> kind_of_;  // of each storage; −1: it does not grow
  std::vector<Instant> instants_;
  std::vector<Count> term_values_, kind_sizes_;  // of the extents asked for last
};

}  // namespace tidemark
