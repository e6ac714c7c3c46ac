// What DeepSpeed's coordinator knows in GRPO's passes. Source: DeepSpeed 0.19.8
// runtime/zero/partitioned_param_coordinator.py: reset_step, trace_prologue, record_module; TRL 1.9 models/utils.py:
// add_hooks (behind a generation it is told to know nothing).
#include "core/plan/zero_rollout.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark {
namespace {

// Passes in letters: a forward, the same without its adapters, PEFT's base alone (generate() calls that), a backward.
constexpr std::string_view kTrained = "FB", kScored = "F", kBare = "f", kBase = "g";
constexpr Count kTokens = 3;   // as many as it takes to show what a further one finds
constexpr Count kBatches = 4;  // the same of micro-batches
constexpr int kRollouts = 4;   // and of rollouts: they repeat themselves from the third on

class Coordinator {
 public:
  /// reset_step and a pass behind it: what of it is known ahead. Within one the model's own forward does not begin.
  Known pass(std::string_view modules, bool begins = true) {
    if (begins) reset();
    Known known = Known::kNothing;
    for (const char module : modules) known = run(module, known);
    return known;
  }
  void forget() { mode_ = Mode::kInvalid; }
  /// __params_to_release remembers for good (lru_cache) what it first found of a module in its place.
  bool releases_forward() const { return releases_forward_; }

 private:
  enum class Mode : std::uint8_t { kInvalid, kRecord, kComplete };

  void reset() {
    if (mode_ == Mode::kRecord) {
      mode_ = Mode::kComplete;
    } else if (mode_ == Mode::kInvalid) {
      mode_ = Mode::kRecord;
      noted_.clear();
    }
    at_ = 0;
  }

  // A forward is known as one of a step where the noted one has a backward behind it.
  Known run(char module, Known before) {
    if (mode_ == Mode::kRecord) noted_ += module;
    if (mode_ != Mode::kComplete) return before;
    if (at_ >= noted_.size() || noted_[at_] != module) {
      mode_ = Mode::kInvalid;
      return before == Known::kStep ? Known::kForward : before;
    }
    const bool ends_there = noted_.substr(0, kTrained.size()) != kTrained;
    if (module == kScored.front() && std::exchange(undecided_, false)) releases_forward_ = ends_there;
    ++at_;
    if (module == kTrained.back()) return before;
    return ends_there ? Known::kForward : Known::kStep;
  }

  Mode mode_ = Mode::kInvalid;
  std::string noted_;
  std::size_t at_ = 0;
  bool undecided_ = true, releases_forward_ = false;
};

// unwrap_model_for_generation: without hooks, which come back to a coordinator that knows nothing; or token by token.
Known generate(Coordinator& coordinator, const TrainingJob& job) {
  if (job.rollout.engine != RolloutEngine::kTransformers) return Known::kNothing;
  if (job.rollout.gathers) {
    coordinator.forget();
    return Known::kNothing;
  }
  Known known = Known::kNothing;
  const Count tokens = std::min<Count>(job.answer_length(), kTokens);
  for (Count i = 0; i < tokens; ++i) {
    known = job.has_adapter() ? coordinator.pass(kBase, false) : coordinator.pass(kScored);
  }
  return known;
}

}  // namespace

bool scores_itself(const TrainingJob& job) {
  return job.preference == Preference::kRloo || job.rollout.engine != RolloutEngine::kTransformers ||
         job.gradient_accumulation_steps % job.generates_every() != 0;
}

KnownInRollout known_in_rollout(const TrainingJob& job) {
  Coordinator coordinator;
  KnownInRollout out;
  const Count batches = std::min<Count>(job.generated_together(), kBatches);
  const Count trained = std::min<Count>(job.generates_every(), kBatches);
  for (int rollout = 0; rollout < kRollouts; ++rollout) {
    out.token = generate(coordinator, job);
    Known last = out.token;
    for (Count i = 0; scores_itself(job) && i < batches; ++i) {
      last = coordinator.pass(kScored);
      (i == 0 ? out.scoring : out.scoring_on) = last;
    }
    for (Count i = 0; job.reference == Reference::kAdapterOff && i < batches; ++i) {
      last = out.without_adapters = coordinator.pass(kBare);
    }
    out.releases_forward = coordinator.releases_forward();
    out.leaves_gathered = last == Known::kStep && !out.releases_forward;
    for (Count i = 0; i < trained; ++i) {
      out.later = coordinator.pass(kTrained);
      if (i == 0) out.first = out.later;
    }
  }
  return out;
}

}  // namespace tidemark
