#pragma once

#include <utility>
#include <vector>

#include "core/job/mixed_precision.hpp"
#include "core/plan/sharded.hpp"

namespace tidemark {

/// FSDP 1: FullyShardedDataParallel with a unit for each layer and one for the rest. A unit's parameters are one flat
/// tensor, of which each GPU keeps an equal part; it is gathered before the unit's forward and backward, and its whole
/// gradient is put together before it is reduced. PEFT's policy makes each trained module without children a unit of
/// its own, gathered for its own forward and backward alone (a leaf). Source: torch 2.14
/// torch/distributed/fsdp/{_flat_param, _runtime_utils}.py; peft 0.18 utils/other.py: fsdp_auto_wrap_policy.
class FlatUnits : public Sharded {
 public:
  /// `reference`: a frozen copy of the model, which no backward lets go of again.
  FlatUnits(Tape& tape, const Architecture& architecture, const TrainingJob& job, bool reference = false);

  void collect() override;
  void begin_micro_step(bool last) override;
  void end_micro_steps() override;
  void create_states(OptimizerRun& optimizer) override;
  void step(OptimizerRun& optimizer) override;
  bool mixes_dtypes() const override { return mixes_dtypes_; }
  HostMemory host_memory(const LayerPlan& plan) const override;
  void begin_generation() override;
  void end_generation() override;
  void end_rollout() override;
  void follow_rollout() override;
  void follow_evaluation() override;

  void declare(Parameter& p) override;
  void use(std::int32_t parameter) override;
  void enter_model() override;
  void leave_model() override;
  void enter_layer(std::int16_t instance, bool input_needs_grad) override;
  void leave_layer(std::int16_t instance) override;
  void begin_token() override { enter_model(); }
  void end_token() override { leave_model(); }
  void before_backward() override;
  void backward_enters(std::int16_t instance) override;
  void backward_leaves(std::int16_t instance) override;
  void backward_uses(std::int32_t parameter) override;
  void take_gradient(std::int32_t parameter, Tensor grad) override;
  void after_backward() override;

 private:
  // FlatParamHandle
  struct Unit {
    std::vector<std::int32_t> parameters;
    Dtype own = Dtype::kFp32;       // of its parameters
    Dtype computes = Dtype::kFp32;  // of what is gathered
    bool trained = false;           // some of its parameters are
    Count whole = 0;                // elements, with what aligns parameters
    Count part = 0;                 // elements of a GPU's part
    Tensor here;                    // this GPU's part, come from the host
    Tensor gathered;                // _full_param_padded
    Tensor accumulated;             // the whole gradient of micro-steps that did not reduce it
    Tensor reduced;                 // this GPU's part of the gradient
    bool stays = false;             // it is gathered for good
    bool in_backward = false, done = false;
    bool ahead = false;          // _prefetched: its next use asks for nothing
    bool reached = false;        // a gradient came to it
    std::int16_t instance = -1;  // the layer it is, or lies in
    std::string_view module;     // a leaf's
    bool of_adapter = false;     // PEFT has a module for each of its matrices
  };

  // Whether the root's unit has it.
  bool is_in_root(std::int16_t instance) const { return instance < root_layers_; }
  // A layer's unit, or the root's (-1): but for what is trained, where that lies in leaves.
  Unit& unit_of(std::int16_t instance) { return units_[static_cast<std::size_t>(instance + 1)]; }
  std::int16_t last_layer() const { return static_cast<std::int16_t>(units_.size() - 2); }
  // Whether it lies in a unit of what is trained.
  bool is_trained(const Parameter& p) const { return p.requires_grad || !fsdp_.trained_leaves; }
  void train_together(Unit& unit);
  Dtype own_dtype(const Parameter& p) const;
  // The unit that a parameter of these lies in.
  Unit& unit_with(std::int32_t at, const Parameter& p) {
    return at >= 0 ? leaf(at) : unit_of(is_in_root(p.instance) ? std::int16_t{-1} : p.instance);
  }
  // -1 where it lies in no leaf.
  std::int32_t leaf_of(std::int32_t p) const { return leaf_of_[static_cast<std::size_t>(p) - first_]; }
  Unit& leaf(std::int32_t at) { return leaves_[static_cast<std::size_t>(at)]; }
  std::int32_t declare_leaf(const Parameter& p);
  // All units, the leaves behind the others.
  template <class Work>
  void each_unit(Work work) {
    for (Unit& unit : units_) work(unit);
    for (Unit& unit : leaves_) work(unit);
  }
  void keep_part(Unit& unit);
  void stay_whole(Unit& unit);
  bool trains(std::int16_t instance) const;
  void hand_over(Unit& unit);
  // The leaf whose forward is through, which nothing says.
  void let_go();
  void reshard_behind_forward(Unit& unit);
  void reshard_behind_backward(Unit& unit);
  // Elements that a parameter in it begins at a multiple of.
  Count alignment(const Unit& unit) const;
  void unshard(Unit& unit, bool ahead = false);
  // This GPU's part as it is gathered, and what it is made of.
  std::pair<Tensor, Tensor> part_to_gather(const Unit& unit, Dtype dtype);
  void summon(Unit& unit);
  bool stays_whole(const Unit& unit) const { return unit.instance < 0 || fsdp_.keeps_gathered; }
  void prefetch(std::int16_t instance);
  void prefetch_before_leaf(std::int32_t at);
  void prefetch_behind(std::int16_t instance, std::int32_t at);
  void prefetch_before_layer(std::int16_t instance);
  std::int16_t layer_ahead_of(std::int32_t parameter);
  void prefetch(Unit& unit);
  void pre_backward(std::int16_t instance);
  void post_backward(std::int16_t instance);
  void post_backward(Unit& unit);
  bool waits_for_encoder_states(std::int16_t instance);
  void reduce(Unit& unit, Tensor grad);
  Tensor& gradient_of(std::int32_t p) { return gradients_[static_cast<std::size_t>(p)]; }

  Tape& tape_;
  const Architecture& architecture_;
  const DataParallel& mesh_;
  const Fsdp& fsdp_;
  MixedPrecision how_;
  const TrainingJob& job_;
  bool reference_;
  std::int16_t root_layers_;           // the first that the root has
  bool on_host_;                       // CPUOffload(offload_params=True): parts wait there
  Count decoder_;                      // the first layer that is given an encoder's states; 0: none is
  std::size_t first_ = 0;              // parameter of those that are divided here
  bool mixes_dtypes_ = false;          // _validate_tensors_to_flatten: "Must flatten tensors with uniform dtype"
  bool reduces_ = true;                // this micro-step does
  bool generates_ = false;             // generate() runs, and the model's own unit is whole for it
  std::vector<Unit> units_;            // the root's, then the layers'
  std::vector<Unit> leaves_;           // in the order of forward
  std::vector<std::int32_t> leaf_of_;  // by parameter
  std::int32_t in_use_ = -1;           // the leaf that a module asked for last
  std::vector<std::int32_t> lent_;     // parameters that require gradients for their units' sake alone
  std::vector<Count> sizes_;           // elements of parameters in their units
  std::vector<Tensor> gradients_;      // whole, by parameter
};

}  // namespace tidemark
