#include "core/step/record_pipeline.hpp"

#include <memory>
#include <utility>

#include "core/layers/program.hpp"
#include "core/plan/pipeline.hpp"
#include "core/tape/megatron_ops.hpp"

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
    auto body = std::make_unique<Graph>(tape_), head = std::make_unique<Graph>(tape_);
    Graph& before = tape_.record_in(*body);
    tape_.set_autocast(net_.job.recipe.autocast);
    if (has_body()) run_body();
    if (is_apart()) tape_.record_in(*head);
    if (stage_.last) run_head();
    tape_.record_in(before);
    receive_logits();
    backward();
    for (Graph* graph : {body.get(), head.get()}) graph->let_go_of_held(0, true);
    tape_.begin_segment(Phase::kBackward, -1);
    body.reset();
    head.reset();
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
  // Hidden states on the GPU before, behind so many layers: the first module that gets them makes a copy.
  Tensor elsewhere(Count layers) const {
    const TrainingJob& job = net_.job;
    Tensor there = tape_.allocate(Shape{}, net_.weight_dtype(2), "hidden states");
    const bool trained = job.method == Method::kFull || layers > 0 || net_.inputs_require_grads();
    return trained ? tape_.leaf(there) : there;
  }

  // The GPU of the embeddings gets a copy of the tokens, which may not be the first one; the last one of the labels.
  void take_batch() {
    if (rank_ != 0 && !stage_.first && !stage_.last) return;
    const Category before = tape_.default_category();
    tape_.set_default_category(Category::kBuffers);
    program_.inputs(net_);
    tape_.set_default_category(before);
  }

  bool has_body() const { return stage_.first || stage_.norm || !stage_.is_empty(); }
  // Tied to the table, the head may lie on another GPU than what comes before it.
  bool is_apart() const { return stage_.last && !stage_.norm; }

  // What is sent is let go, unless the next layer's checkpoint keeps it to copy it again.
  void run_body() {
    if (!stage_.first) net_.received = elsewhere(stage_.begin);
    Tensor hidden = program_.forward(net_);
    net_.leave_body({});
    const bool kept = stage_.end < net_.arch.num_layers && checkpointed(net_.job, stage_.end);
    const bool sent = !(stage_.last && stage_.norm);
    root_ = sent && !kept && hidden.requires_grad() ? without_data(hidden) : std::move(hidden);
  }

  // The loss's part of what the head returns, and on the first GPU its logits: they are sent there.
  void run_head() {
    tape_.begin_segment(Phase::kLoss, -1);
    Tensor hidden = is_apart() ? copied_by_hook(net_, elsewhere(net_.arch.num_layers)) : std::move(root_);
    if (!is_apart()) net_.last_hidden = hidden;
    Outputs outputs = program_.heads.find(Head::kCausalLm)->forward(net_, program_, std::move(hidden));
    net_.last_hidden.reset();
    loss_ = std::move(outputs.loss);
    if (rank_ == 0) logits_ = std::move(outputs.rest.front());
  }

  // They come before autocast lets its copies of weights go; as accelerate's wrapper then makes them fp32, the argument
  // lives on.
  void receive_logits() {
    const TrainingJob& job = net_.job;
    const Scope in(tape_, "outputs", kHook);
    const Shape rows{net_.B, net_.S, net_.V};
    const Dtype dtype = job.recipe.autocast.value_or(net_.weight_dtype(2));
    tape_.begin_segment(Phase::kLoss, -1);
    if (rank_ == 0 && !stage_.last) logits_ = tape_.allocate(rows, dtype, "logits");
    tape_.set_autocast(std::nullopt);
    tape_.clear_autocast_cache();
    if (rank_ != 0) return;
    tape_.begin_segment(Phase::kLoss, -1);
    if (job.recipe.autocast && job.outputs_to_fp32) {
      Tensor wide = tape_.allocate(rows, Dtype::kFp32, "logits");
      logits_ = std::move(wide);
    }
    if (!job.keep_outputs) logits_.reset();
  }

  void backward() {
    if (stage_.last) const Tensor sent = tape_.backward(std::move(loss_), {});
    if (!root_.defined()) return;
    Tensor gradient;
    {
      const Scope in(tape_, "received", kHook);
      gradient = tape_.allocate(hidden(), net_.weight_dtype(2), "gradient");
    }
    const Tensor sent = tape_.backward(std::move(root_), std::move(gradient));
  }

  Net& net_;
  Tape& tape_;
  const Program& program_;
  Count rank_;
  ModelStage stage_;
  Tensor root_;    // hidden states that are sent
  Tensor loss_;    // on the GPU of the head
  Tensor logits_;  // on the first GPU
};

}  // namespace

std::function<void()> device_map_rank(Net& net, const Program& program, const Architecture& architecture, Count rank) {
  const auto ours = std::make_shared<DeviceMapRank>(net, program, architecture, rank);
  return [ours] { ours->run(); };
}

}  // namespace tidemark
