#include "core/step/record_pipeline.hpp"

#include <memory>
#include <utility>

#include "core/layers/program.hpp"
#include "core/plan/pipeline.hpp"

namespace tidemark {
namespace {

constexpr const char* kHook = "accelerate 1.14 hooks.py: AlignDevicesHook";

// One process runs layer after layer, wherever they are; this is what one of its GPUs sees of it. A hidden state is
// copied when a layer of another GPU gets it, and so is its gradient on the way back. The Trainer puts the batch on the
// first GPU, and what the model returns is sent back there (io_same_device of the hook on the model itself).
class DeviceMapRank {
 public:
  DeviceMapRank(Net& net, const Program& program, const Architecture& architecture, Count rank)
      : net_(net), tape_(net.tape), program_(program), rank_(rank) {
    stage_ = stages_of(architecture, net.job.pipeline, rank).front();
  }

  void run() {
    tape_.begin_segment(Phase::kForward, -1);
    tape_.use_parameters_of(-1);
    net_.stage = &stage_;
    net_.begin_micro_step();
    take_batch();
    // A micro-step's graph is its own, as each micro-batch's in a pipeline.
    auto graph = std::make_unique<Graph>(tape_);
    Graph& before = tape_.record_in(*graph);
    const bool runs = stage_.first || stage_.last || stage_.end > stage_.begin;
    if (runs) forward();
    tape_.record_in(before);
    receive_logits();
    if (runs) backward();
    tape_.begin_segment(Phase::kBackward, -1);
    graph.reset();
    net_.end_micro_step();
    logits_.reset();
    net_.input_ids.reset();
    net_.labels.reset();
    net_.attention_mask.reset();
    net_.more_inputs.clear();
    net_.stage = nullptr;
  }

 private:
  Shape hidden() const { return Shape{net_.B, net_.S, net_.H}; }
  Tensor copied(const char* name) const {
    const Scope in(tape_, "received", kHook);
    return tape_.allocate(hidden(), net_.job.recipe.weights, name);
  }

  // The GPU of the embeddings gets a copy of the tokens, which may not be the first one; the last one of the labels.
  void take_batch() {
    if (rank_ != 0 && !stage_.first && !stage_.last) return;
    const Category before = tape_.default_category();
    tape_.set_default_category(Category::kBuffers);
    program_.inputs(net_);
    tape_.set_default_category(before);
  }

  void forward() {
    const TrainingJob& job = net_.job;
    tape_.set_autocast(job.recipe.autocast);
    if (!stage_.first) net_.received = tape_.leaf(copied("hidden states"));
    root_ = program_.forward(net_);
    if (stage_.last) {
      tape_.begin_segment(Phase::kLoss, -1);
      // The head's logits are sent to the first GPU; here the loss alone has them.
      root_ = program_.heads.find(Head::kCausalLm)->forward(net_, program_, std::move(root_)).loss;
    }
    net_.last_hidden.reset();
    net_.model_locals.clear();
    net_.shared = {};
    tape_.set_autocast(std::nullopt);
    tape_.clear_autocast_cache();
  }

  // As accelerate's wrapper then makes them fp32, the argument lives on.
  void receive_logits() {
    if (rank_ != 0) return;
    const TrainingJob& job = net_.job;
    tape_.begin_segment(Phase::kLoss, -1);
    const Scope in(tape_, "outputs", kHook);
    const Shape rows{net_.B, net_.S, net_.V};
    logits_ = tape_.allocate(rows, job.recipe.autocast.value_or(job.recipe.weights), "logits");
    if (job.recipe.autocast && job.outputs_to_fp32) {
      Tensor wide = tape_.allocate(rows, Dtype::kFp32, "logits");
      logits_ = std::move(wide);
    }
    if (!job.keep_outputs) logits_.reset();
  }

  void backward() {
    Tensor gradient;
    if (!stage_.last) gradient = copied("gradient");
    const Tensor sent = tape_.backward(std::move(root_), std::move(gradient));
  }

  Net& net_;
  Tape& tape_;
  const Program& program_;
  Count rank_;
  ModelStage stage_;
  Tensor root_;    // hidden states, or the loss
  Tensor logits_;  // on the first GPU
};

}  // namespace

std::function<void()> device_map_rank(Net& net, const Program& program, const Architecture& architecture, Count rank) {
  const auto ours = std::make_shared<DeviceMapRank>(net, program, architecture, rank);
  return [ours] { ours->run(); };
}

}  // namespace tidemark
