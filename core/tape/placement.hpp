#pragma once

#include <cstdint>
#include <vector>

#include "core/tape/tensor.hpp"

namespace tidemark {

struct Parameter;

/// Who holds which parameter on several GPUs, and what is gathered, reduced and let go around its use. The tape and the
/// layers' loops tell it what happens; it allocates on the tape. A unit is a layer instance, or −1 for all that lies
/// outside the layers.
class Placement {
 public:
  virtual ~Placement() = default;

  /// A parameter is declared: how many bytes of it this GPU keeps.
  virtual void declare(Parameter&) {}
  /// A module asks for it, in forward or as a checkpoint is recomputed.
  virtual void use(std::int32_t /*parameter*/) {}
  /// In a rehearsal, of the module that asks next: whether what it is called with has a gradient.
  virtual void rehearse_input(bool /*has_gradient*/) {}
  /// Of the module that asked last: a hook makes its output require a gradient.
  virtual void rehearse_hooked_output() {}
  /// What follows the module that asked last saves something for backward.
  virtual void rehearse_saved() {}

  /// The model's forward begins and returns.
  virtual void enter_model() {}
  virtual void leave_model() {}
  /// A layer's. `input_needs_grad`: backward comes back to what was before it.
  virtual void enter_layer(std::int16_t /*instance*/, bool /*input_needs_grad*/) {}
  virtual void leave_layer(std::int16_t /*instance*/) {}

  /// generate() runs the model once more, for one further token of each answer, of which the layers' keys and values
  /// alone are recorded; it has returned.
  virtual void begin_token() {}
  virtual void end_token() {}

  /// A unit inside a layer, the current one: its module is called, or returns; backward comes to its output, or has
  /// left its input.
  virtual void enter_inner() {}
  virtual void leave_inner() {}
  virtual void backward_enters_inner() {}
  virtual void backward_leaves_inner() {}

  /// The gradient of the loss is there: backward begins.
  virtual void before_backward() {}
  /// The gradient of a layer's output is there; then that of its input. What lies outside the layers (−1) is left, too.
  virtual void backward_enters(std::int16_t /*instance*/) {}
  /// The same of a layer that a re-entrant checkpoint runs again first; it has returned, and its backward begins.
  virtual void backward_runs_again(std::int16_t instance) { backward_enters(instance); }
  virtual void ran_again(std::int16_t /*instance*/) {}
  virtual void backward_leaves(std::int16_t /*instance*/) {}
  /// The rule of an operation on a trained parameter is about to run (−1: on no parameter); of one that has saved a
  /// parameter's storage: what of it the rule alone still holds.
  virtual void backward_uses(std::int32_t /*parameter*/) {}
  virtual Tensor backward_reads(std::int32_t /*storage*/) { return {}; }
  /// The gradient of what the module of a frozen parameter returned is there, which a hook has asked for.
  virtual void backward_returns(std::int32_t /*parameter*/) {}
  /// What a view of such a parameter keeps, where each gathering of it is a storage of its own.
  virtual Tensor gathered(std::int32_t /*storage*/) { return {}; }
  /// F.linear's function saves its input, whether its weight is trained or not.
  virtual bool linear_keeps_input() const { return false; }
  /// One process's batch is made; the model has returned: what is done with those of all GPUs.
  virtual void scatter(const std::vector<Tensor>& /*batch*/) {}
  virtual void join(std::vector<Tensor>& /*outputs*/) {}
  /// A parameter's gradient is complete.
  virtual void take_gradient(std::int32_t parameter, Tensor grad) = 0;
  /// The engine has run all nodes.
  virtual void after_backward() {}
};

}  // namespace tidemark
