#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/model/architecture.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/plan/host_memory.hpp"
#include "core/tape/tape.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// torch 2.14 distributed/fsdp/_flat_param.py: _validate_tensors_to_flatten.
inline constexpr std::string_view kOneFlatTensor =
    "Without use_orig_params FSDP 1 flattens no trained parameters with frozen ones of their unit (\"Must flatten "
    "tensors with uniform `requires_grad`\").";

/// One GPU's part of a job whose weights, gradients or optimizer states are divided among several.
class Sharded : public Placement {
 public:
  /// All parameters are declared: the step can begin.
  virtual void collect() = 0;
  /// A micro-step begins; the step's last one reduces gradients in any case.
  virtual void begin_micro_step(bool /*last*/) {}
  /// Of a pipeline: what runs from here on is this chunk of the GPU's layers.
  virtual void enter_chunk(std::size_t /*chunk*/) {}
  /// Its last backward of the step is through, after which gradients are reduced (torch 2.14
  /// distributed/pipelining/stage.py: perform_reduce_grad).
  virtual void reduce_chunk() {}
  /// All micro-steps are recorded: from here on parameters are the parts that this GPU's optimizer sees.
  virtual void end_micro_steps() {}
  /// What a step does before its optimizer does: norms, and putting gradients together.
  virtual void prepare_step() {}
  /// The optimizer's states, as its first step makes them.
  virtual void create_states(OptimizerRun& optimizer) { optimizer.create(); }
  /// Clipping and the optimizer's step.
  virtual void step(OptimizerRun& optimizer) { optimizer.step(); }
  /// Answers are generated (TRL 1.9 models/utils.py: unwrap_model_for_generation) by the model's own generate().
  virtual void begin_generation() {}
  virtual void end_generation() {}
  /// Another forward without gradients begins, which scores them.
  virtual void begin_scoring(bool /*without_adapters*/) {}
  /// vLLM is sent the weights (TRL 1.9 generation/vllm_generation.py: sync_weights).
  virtual void send_weights() {}
  /// All of that is through; a micro-step begins that finds what it has left.
  virtual void end_rollout() {}
  virtual void follow_rollout() {}
  /// A batch of an evaluation between two steps begins, a forward that no backward follows; end_rollout ends the last.
  virtual void begin_evaluation() {}
  /// A micro-step begins that finds what an evaluation has left.
  virtual void follow_evaluation() {}
  /// Parameters of one unit are of several dtypes, which FSDP refuses.
  virtual bool mixes_dtypes() const { return false; }
  /// What this GPU's process keeps in host memory.
  virtual HostMemory host_memory(const LayerPlan& /*plan*/) const { return {}; }
  /// GPUs that may need more than the one that was recorded, where their parts differ.
  virtual std::vector<Count> further_ranks() const { return {}; }
};

/// Bytes of a parameter's states where the optimizer runs on the host.
Bytes states_on_host(const Parameter& p, const TrainingJob& job);

/// The first `count` parameters in the order of model.parameters(), in which flat tensors hold them.
std::vector<std::size_t> flat_order(const std::vector<Parameter>& parameters, std::size_t count,
                                    const Architecture& architecture);

/// A flat tensor of as many elements: parts and buffers are nothing else.
inline Shape elements(Count count) {
  return Shape{Dim(count)};
}

/// The job as the modules see it: with the dtype in which weights are gathered.
TrainingJob as_modules_see(const TrainingJob& job);

/// The placement that the job asks for; null where each GPU keeps everything.
std::unique_ptr<Sharded> place(Tape& tape, const Architecture& architecture, const TrainingJob& job);

/// The same of a frozen copy of the model, whose parameters are the last that the tape declares; null: as the model.
std::unique_ptr<Sharded> place_reference(Tape& tape, const Architecture& architecture, const TrainingJob& job,
                                         const LayerPlan& plan);

/// Each GPU keeps a part of the weights alone: ZeRO-3, FSDP.
bool divides_weights(const TrainingJob& job);

/// What the job's GPUs do with the model: "they divide weights, gradients and optimizer states among them".
std::string in_words(const TrainingJob& job);

/// An error for each thing about a sharded job that is not modelled, or that the frameworks refuse.
void check_sharding(const Architecture& architecture, const TrainingJob& job, Issues& issues);
/// The same of tensor parallelism.
void check_tensor(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
