#pragma once

#include <vector>

#include "core/job/mixed_precision.hpp"
#include "core/plan/sharded.hpp"

namespace tidemark {

/// FSDP 1: FullyShardedDataParallel with a unit for each layer and one for the rest. A unit's parameters are one flat
/// tensor, of which each GPU keeps an equal part; it is gathered before the unit's forward and backward, and its whole
/// gradient is put together before it is reduced. Adapters are units of their own, here one for all of a layer: PEFT's
/// policy has one for each matrix, which are small.
/// Source: torch 2.14 torch/distributed/fsdp/{_flat_param, _runtime_utils}.py; peft 0.18 utils/other.py:
/// fsdp_auto_wrap_policy.
class FlatUnits : public Sharded {
 public:
  /// `reference`: a frozen copy of the model, which no backward lets go of again.
  FlatUnits(Tape& tape, const TrainingJob& job, bool reference = false);

  void collect() override;
  void begin_micro_step(bool last) override;
  void end_micro_steps() override;

  void declare(Parameter& p) override;
  void enter_model() override;
  void enter_layer(std::int16_t instance, bool input_needs_grad) override;
  void leave_layer(std::int16_t instance) override;
  void before_backward() override;
  void backward_enters(std::int16_t instance) override;
  void backward_leaves(std::int16_t instance) override;
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
    Tensor gathered;                // _full_param_padded
    Tensor accumulated;             // the whole gradient of micro-steps that did not reduce it
    Tensor reduced;                 // this GPU's part of the gradient
    bool stays = false;             // it is gathered for good
    bool in_backward = false, done = false;
  };

  // A layer's units, or the root's (-1): of what is frozen, where that is apart, and of what is trained.
  Unit& unit_of(std::int16_t instance, bool trained) {
    return units_[static_cast<std::size_t>(instance + 1) * 2 + (trained ? 1 : 0)];
  }
  std::int16_t last_layer() const { return static_cast<std::int16_t>(units_.size() / 2 - 2); }
  // Whether it lies in the unit of what is trained.
  bool is_trained(const Parameter& p) const { return p.requires_grad || !fsdp_.trained_leaves; }
  void train_together(Unit& unit);
  Dtype own_dtype(const Parameter& p) const;
  // Elements that a parameter in it begins at a multiple of.
  Count alignment(const Unit& unit) const;
  void unshard(std::int16_t instance);
  void unshard(Unit& unit);
  void prefetch(std::int16_t instance);
  void pre_backward(std::int16_t instance);
  void post_backward(std::int16_t instance);
  void post_backward(Unit& unit);
  void reduce(Unit& unit, Tensor grad);
  void keep_gathered(std::size_t unit);
  Tensor& gradient_of(std::int32_t p) { return gradients_[static_cast<std::size_t>(p)]; }

  Tape& tape_;
  const DataParallel& mesh_;
  const Fsdp& fsdp_;
  MixedPrecision how_;
  const TrainingJob& job_;
  bool reference_;
  std::size_t first_ = 0;           // parameter of those that are divided here
  bool reduces_ = true;             // this micro-step does
  std::vector<Unit> units_;         // the root's two, then the layers'
  std::vector<std::int32_t> lent_;  // parameters that require gradients for their units' sake alone
  std::vector<Count> sizes_;        // elements of parameters in their units
  std::vector<Tensor> gradients_;   // whole, by parameter
};

}  // namespace tidemark
