#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

class OptimizerRun;

/// What a Python step() that walks over parameters still holds of one when it comes to the next: a name keeps its
/// tensor until it is bound anew. One for each name; what a slot means is its optimizer's.
using StepNames = std::array<Tensor, 6>;

/// The order in which an optimizer comes by its parameters.
enum class ParameterGroups : std::uint8_t {
  kDecay,      ///< Hugging Face's Trainer: what decays, then what does not
  kNamed,      ///< as model.named_parameters()
  kProjected,  ///< transformers 5.12 trainer_optimizer.py _setup_low_rank_optimizer: what is projected comes last
};

/// One optimizer, as Hugging Face's `optim` names it: a row of its file in core/optimizers. Requests, flags, `describe`
/// and the advice read the same row.
struct Optimizer {
  const char* name = "";        ///< as a request spells it: "adamw_torch_fused"
  std::string_view help;        ///< half a sentence
  const char* source = "";      ///< the file that `create` and `step` follow, with its release
  std::string_view rule = {};   ///< rows of one update rule differ in where and how wide their states are: "adamw"
  int state_bits = 32;          ///< of an element of its moments; 32 also where they have the parameter's own dtype
  std::string_view alias = {};  ///< a second spelling of the name, or empty
  /// What the first step() keeps for a trained parameter, on the tape.
  void (*create)(OptimizerRun& run, const Parameter& p) = nullptr;
  /// What it keeps for a parameter that is not trained; null for nothing.
  void (*create_frozen)(OptimizerRun& run, const Parameter& p) = nullptr;
  /// What any step() makes and drops besides; null when it works in place.
  void (*step)(OptimizerRun& run) = nullptr;
  /// The same for one parameter, of optimizers that take one after the other: what step() makes, in the order in which
  /// it does, and which names hold it afterwards. `gradient` goes where step() lets it go.
  void (*update)(OptimizerRun& run, const Parameter& p, Tensor& gradient, StepNames& names) = nullptr;
  /// Bytes of a parameter's states outside the card's memory: in managed memory (cudaMallocManaged), or on the host;
  /// null for none.
  Bytes (*managed)(const Parameter& p) = nullptr;
  ParameterGroups groups = ParameterGroups::kDecay;
  /// Of what is projected, where nothing is stated: the rank (transformers 5.12 trainer_optimizer.py
  /// _get_galore_optimizer, _get_apollo_optimizer), and what the names of matrices have in them; empty: all but token
  /// tables.
  Count rank = 128;
  std::span<const std::string_view> targets = {};
  /// It steps by hooks, in backward, whatever the job says; `one_behind` when the next gradient is there (LOMO).
  bool in_backward = false, one_behind = false;
};

/// Every optimizer, file by file in the order of their names.
std::span<const Optimizer* const> all_optimizers();

/// The row of that name, or null.
const Optimizer* find_optimizer(std::string_view name);

/// Bytes that an optimizer keeps for one element of a large matrix, rounded down: what is said of a model of which only
/// the size is known.
Bytes state_bytes_per_element(const TrainingJob& job);

/// An optimizer at work on a recorded model: its states, clipping and its steps, all on the tape so that the peak sees
/// them. Sizes are those of torch.cuda's statistics.
class OptimizerRun {
 public:
  OptimizerRun(Tape& t, const TrainingJob& j) : tape(t), job(j), row_(*find_optimizer(job.optimizer)) {}

  Tape& tape;              ///< where everything is recorded
  const TrainingJob& job;  ///< how the model is trained

  /// The first `step()`: states for every trained parameter.
  void create();
  /// Gradient clipping and the temporaries of any `step()`.
  void step();
  /// The same without clipping.
  void step_alone();
  /// A gradient is complete, and the parameter is stepped from a hook. Without an `update` it is dropped.
  void take_gradient(std::int32_t parameter, Tensor gradient);
  /// Backward is through.
  void finish_backward();
  /// Bytes of states that live in managed memory or on the host: not in torch's statistics.
  Bytes managed_bytes(const Parameter& p) const;

  // -- for the rows ---------------------------------------------------------------------------------------------------
  const Optimizer& row() const { return row_; }
  /// A state that stays from the first step on.
  void keep(const Shape& shape, Dtype dtype, const char* name);
  /// torch's optimizers make states like their parameter; a recipe that says otherwise (by name through its master
  /// copy, or as an object) is believed.
  Dtype state_dtype(const Parameter& p) const;
  /// Group by group (ParameterGroups).
  template <typename Visit>
  void for_each_trained(Visit visit) {
    for (const bool first : {true, false}) {
      const std::size_t n = tape.parameters().size();
      for (std::size_t i = 0; i < n; ++i) {
        Parameter& p = tape.parameters()[i];
        if (!p.reached || is_first(p) != first) continue;
        tape.begin_segment(Phase::kOptimizer, p.instance);
        Scope in(tape, p.module, row_.source);
        visit(p);
      }
    }
  }
  /// Weights decay, one-dimensional parameters do not.
  static bool decays(const Parameter& p) { return p.shape.rank > 1; }

 private:
  bool is_first(const Parameter& p) const;
  void update_one_by_one();
  void update(std::int32_t parameter, Tensor gradient);

  const Optimizer& row_;
  std::vector<Tensor> states_;
  std::int32_t behind_ = -1;  // the parameter whose gradient waits for the next one
  Tensor waiting_;            // that gradient
};

}  // namespace tidemark
