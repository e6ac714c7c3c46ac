#include "core/step/record_pipeline.hpp"

#include <utility>
#include <vector>

#include "core/layers/program.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/plan/pipeline.hpp"
#include "core/tape/megatron_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kStage = "torch 2.14 distributed/pipelining/stage.py: PipelineStage";
constexpr const char* kSchedule = "torch 2.14 distributed/pipelining/schedules.py: _PipelineSchedule.step";

/// A rank at work: what its stages and its schedule hold, and for how long.
class PipelineRank {
 public:
  PipelineRank(Net& net, const Program& program, const Architecture& architecture, Count rank, Sharded* sharded)
      : net_(net),
        tape_(net.tape),
        program_(program),
        sharded_(sharded),
        how_(net.job.pipeline),
        rank_(rank),
        micro_batches_(recorded_micro_batches(net.job, rank)),
        stages_(stages_of(architecture, how_, rank)),
        chunks_(stages_.size()) {
    for (Chunk& chunk : chunks_) chunk.in_flight.resize(static_cast<std::size_t>(micro_batches_));
    if (net.job.is_megatron()) return;
    if (sharded != nullptr) declare();
    receive_buffers();
  }

  void run();

 private:
  // A micro-batch on its way through a stage.
  struct InFlight {
    std::unique_ptr<Graph> graph;
    Tensor output;  // fwd_cache
    Tensor loss;    // _internal_losses
  };
  struct Chunk {
    std::vector<Tensor> inputs, gradients;  // what is received for each micro-batch
    std::vector<Tensor> input_gradients;    // their .grad, where backwards are cut in two
    std::vector<InFlight> in_flight;
  };

  void declare();
  void receive_buffers();
  Shape hidden() const;
  void load_batch();
  Tensor rows_of(const Tensor& batch, Count micro_batch) const;
  void enter(std::size_t chunk);
  Tensor stage_forward(const ModelStage& stage);
  Tensor loss_of_logits(const Tensor& logits, Count micro_batch);
  Tensor received() const;
  void forward_megatron(const ModelStage& stage, InFlight& here);
  void forward(const PipelineAction& action);
  bool is_last(const PipelineAction& action) const { return action.micro_batch + 1 == micro_batches_; }
  void fill_buckets(const PipelineAction& action);
  void backward(const PipelineAction& action);
  void backward_input(const PipelineAction& action);
  void backward_weights(const PipelineAction& action);
  bool meets_itself() const { return how_.schedule == PipelineSchedule::kZeroBubbleV && rank_ + 1 == how_.stages; }
  void end(InFlight& micro_batch);
  bool keeps_sent() const { return how_.schedule == PipelineSchedule::k1F1B; }

  Net& net_;
  Tape& tape_;
  const Program& program_;
  Sharded* sharded_;
  const Pipeline& how_;
  Count rank_;
  Count micro_batches_;  // recorded
  std::vector<ModelStage> stages_;
  std::vector<Chunk> chunks_;
  std::size_t outside_ = 0;    // parameters outside of the layers that the first stage has
  Tensor input_ids_, labels_;  // of all micro-batches
  Tensor last_output_;         // the schedule's name for what the last forward returned
  Tensor sent_;                // the gradient of an input, in the list of what is being sent
  Tensor received_gradient_;   // Megatron-Core's name for what came last, until the next is there
};

// A forward of every chunk that allocates nothing.
void PipelineRank::declare() {
  tape_.set_placement(sharded_);
  tape_.set_grad_enabled(false);
  tape_.set_stopped(true);
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    enter(i);
    const Shape rows{net_.B, net_.S};
    if (stages_[i].first) net_.input_ids = tape_.allocate(rows, Dtype::kInt64, "input_ids");
    if (!stages_[i].first) net_.received = tape_.allocate(hidden(), net_.weight_dtype(2), "received");
    const Tensor returned = stage_forward(stages_[i]);
    net_.input_ids.reset();
  }
  tape_.set_stopped(false);
  tape_.set_grad_enabled(true);
  sharded_->collect();
}

// What goes from stage to stage: torch's plans divide its positions with sequence parallelism.
Shape PipelineRank::hidden() const {
  const TensorParallel& tp = net_.job.tensor;
  const bool cut = tp.is_used() && tp.sequence;
  return Shape{net_.B, cut ? Dim(tape_.quotient(net_.S.n(), tp.degree), Symbol::kSequence) : net_.S, net_.H};
}

// stage.py _create_act_recv_info, _create_grad_recv_info: buffers for every micro-batch of a step, made in the first
// and kept.
void PipelineRank::receive_buffers() {
  const Scope in(tape_, "received", kStage);
  const Dtype dtype = net_.weight_dtype(2);
  const auto make = [&](std::vector<Tensor>& buffers) {
    for (Count i = 0; i < how_.micro_batches; ++i) {
      buffers.push_back(tape_.standing(hidden(), dtype, "buffer to receive into", Category::kCommunication));
    }
  };
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (!stages_[i].first) make(chunks_[i].inputs);
    if (!stages_[i].last) make(chunks_[i].gradients);
  }
}

// The first stage gets the ids of all micro-batches at once, the last one the labels.
void PipelineRank::load_batch() {
  const Scope in(tape_, "batch", kSchedule);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kBuffers);
  const Shape rows{Dim(net_.B.n() * how_.micro_batches), net_.S};
  if (stages_.front().first) input_ids_ = tape_.allocate(rows, Dtype::kInt64, "input_ids");
  if (stages_.back().last) labels_ = tape_.allocate(rows, Dtype::kInt64, "labels");
  tape_.set_default_category(before);
}

// microbatch.py: torch.tensor_split, views of the batch.
Tensor PipelineRank::rows_of(const Tensor& batch, Count micro_batch) const {
  return narrow(batch, 0, micro_batch * net_.B.n(), net_.B);
}

// Which of this GPU's stages runs from here on. A GPU that has both the first and the last has two sets of parameters
// outside of the layers.
void PipelineRank::enter(std::size_t chunk) {
  tape_.use_parameters_of(-1);
  if (chunk > 0 && stages_.front().first && stages_[chunk].last) {
    if (outside_ == 0) {
      for (const Parameter& p : tape_.parameters()) outside_ += p.instance < 0 ? 1 : 0;
    }
    tape_.set_parameter_place(outside_);
  }
  net_.stage = &stages_[chunk];
  net_.begin_micro_step(chunk);
  if (sharded_ != nullptr) sharded_->enter_chunk(chunk);
}

// Norm and head behind the last layer; the logits of the rest are hidden states. Autocast is around each stage's
// forward, as accelerate has it around a model's (accelerate 1.14 accelerator.py: prepare_model).
Tensor PipelineRank::stage_forward(const ModelStage& stage) {
  tape_.set_autocast(net_.job.recipe.autocast);
  Placement* const placement = tape_.placement();
  if (placement != nullptr) placement->enter_model();
  Tensor hidden = program_.forward(net_);
  if (stage.last) {
    tape_.begin_segment(Phase::kLoss, -1);
    hidden = program_.lm_head(net_, std::move(hidden));
  }
  if (placement != nullptr) placement->leave_model();
  net_.shared = {};
  net_.model_locals.clear();
  tape_.set_autocast(std::nullopt);
  tape_.clear_autocast_cache();
  return hidden;
}

// F.cross_entropy(output.flatten(0, 1).float(), target.flatten(0, 1)), as torchtitan's loss.
Tensor PipelineRank::loss_of_logits(const Tensor& logits, Count micro_batch) {
  if (program_.loss_of_logits != nullptr) return program_.loss_of_logits(net_, logits);
  const Scope in(tape_, "loss", "torchtitan components/loss.py: cross_entropy_loss");
  Tensor rows = view(logits, Shape{net_.T, logits.dim(-1)});
  rows = to(std::move(rows), Dtype::kFp32);
  return loss_of(net_, std::move(rows), view(rows_of(labels_, micro_batch), Shape{net_.T}));
}

// megatron_core 0.16.1 pipeline_parallel/p2p_communication.py: a new tensor for whatever is received.
Tensor PipelineRank::received() const {
  const TensorParallel& tp = net_.job.tensor;
  const Count rows = tp.sequence ? tape_.quotient(net_.S.n(), tp.degree) : net_.S.n();
  return tape_.allocate(Shape{Dim(rows, Symbol::kSequence), net_.B, net_.H}, net_.job.recipe.weights, "received");
}

// Megatron-Core, pipeline_parallel/schedules.py: forward_step, which takes its own batch; what is sent keeps its place
// in the graph alone (deallocate_output_tensor).
void PipelineRank::forward_megatron(const ModelStage& stage, InFlight& here) {
  if (!stage.first) net_.received = tape_.leaf(received());
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kBuffers);
  program_.inputs(net_);
  tape_.set_default_category(before);
  Tensor hidden = program_.forward(net_);
  if (stage.last) {
    tape_.begin_segment(Phase::kLoss, -1);
    here.loss = program_.heads.find(Head::kCausalLm)->forward(net_, program_, std::move(hidden)).loss;
  } else {
    // DeepSpeed's engine holds what it sent in its pipe_buffers.
    here.output = net_.job.is_megatron_deepspeed() ? std::move(hidden) : without_data(hidden);
  }
  net_.model_locals.clear();
  net_.wrapper_locals.clear();
  net_.labels.reset();
  net_.attention_mask.reset();
  net_.more_inputs.clear();
}

// stage.py forward_one_chunk, then _maybe_compute_loss.
void PipelineRank::forward(const PipelineAction& action) {
  Chunk& chunk = chunks_[action.chunk];
  const ModelStage& stage = stages_[action.chunk];
  const auto i = static_cast<std::size_t>(action.micro_batch);
  InFlight& here = chunk.in_flight[i];
  tape_.begin_segment(Phase::kForward, -1);
  here.graph = std::make_unique<Graph>(tape_);
  Graph& before = tape_.record_in(*here.graph);
  enter(action.chunk);
  if (net_.job.is_megatron()) {
    forward_megatron(stage, here);
  } else {
    if (stage.first) {
      net_.input_ids = rows_of(input_ids_, action.micro_batch);
    } else {
      net_.received = tape_.leaf(chunk.inputs[i]);
    }
    here.output = stage_forward(stage);
    if (!how_.has_chunks()) last_output_ = here.output;
    // set_local_fwd_input: the next stage's buffer is the output itself from here on, in the place of the step's
    // before.
    if (meets_itself() && action.chunk == 0) here.output = without_data(here.output);
    if (stage.last) {
      if (program_.loss_of_logits != nullptr) net_.labels = rows_of(labels_, action.micro_batch);
      here.loss = loss_of_logits(here.output, action.micro_batch);
      net_.labels.reset();
    }
  }
  net_.input_ids.reset();
  tape_.record_in(before);
}

// backward_maybe_with_nosync: DistributedDataParallel gets the gradients as the last micro-batch's are added to them.
void PipelineRank::fill_buckets(const PipelineAction& action) {
  const DataParallel& data = net_.job.data_parallel;
  if (data.is_replicated() && data.gradient_as_bucket_view) tape_.set_drop_gradients(is_last(action));
}

// stage.py backward_one_chunk: a name in it holds the output to its end. What is sent waits in the schedule: of 1F1B
// until the next backward is through, of GPipe until it begins; the other's is handed over at once.
void PipelineRank::backward(const PipelineAction& action) {
  Chunk& chunk = chunks_[action.chunk];
  const ModelStage& stage = stages_[action.chunk];
  const auto i = static_cast<std::size_t>(action.micro_batch);
  InFlight& here = chunk.in_flight[i];
  if (!keeps_sent()) sent_.reset();
  if (sharded_ != nullptr) sharded_->enter_chunk(action.chunk);
  fill_buckets(action);
  const Tensor output = std::move(here.output);
  Tensor root = stage.last ? here.loss : output;
  Tensor gradient_of_output;
  if (!stage.last) gradient_of_output = net_.job.is_megatron() ? received() : chunk.gradients[i];
  if (net_.job.is_megatron() && keeps_sent()) received_gradient_ = gradient_of_output;
  Tensor gradient = tape_.backward(std::move(root), std::move(gradient_of_output));
  tape_.begin_segment(Phase::kBackward, -1);
  if (!stage.last) end(here);
  net_.end_micro_step();
  if (!how_.has_chunks()) sent_ = std::move(gradient);
  if (is_last(action) && sharded_ != nullptr) sharded_->reduce_chunk();
}

// stage.py backward_one_chunk with full_backward=False: the first stage leaves all to the weights' part. What a stage
// has returned waits for that, too; the last one's logits do not.
void PipelineRank::backward_input(const PipelineAction& action) {
  Chunk& chunk = chunks_[action.chunk];
  const ModelStage& stage = stages_[action.chunk];
  const auto i = static_cast<std::size_t>(action.micro_batch);
  InFlight& here = chunk.in_flight[i];
  if (stage.first) return;
  Tensor gradient_of_output;
  if (!stage.last) gradient_of_output = chunk.gradients[i];
  Tensor root = stage.last ? here.loss : here.output;
  const Tensor gradient = tape_.backward(std::move(root), std::move(gradient_of_output), true);
  tape_.begin_segment(Phase::kBackward, -1);
  here.output.leave_graph();
  if (stage.last) {
    here.loss.leave_graph();
    here.output.reset();
  }
  // set_local_bwd_input: so is the gradient in the stage before.
  if (meets_itself() && action.chunk == 1) return;
  chunk.input_gradients.push_back(gradient);  // the input's .grad, until the next step (clear_runtime_states)
}

// stage.py backward_weight_one_chunk
void PipelineRank::backward_weights(const PipelineAction& action) {
  if (stages_[action.chunk].first) return backward(action);
  InFlight& here = chunks_[action.chunk].in_flight[static_cast<std::size_t>(action.micro_batch)];
  fill_buckets(action);
  here.graph->run_weights();
  tape_.begin_segment(Phase::kBackward, -1);
  here.output.reset();
  end(here);
  net_.end_micro_step();
}

// Its graph goes, and what functions hold in it besides saved tensors (8-bit products their inputs).
void PipelineRank::end(InFlight& micro_batch) {
  micro_batch.graph->let_go_of_held(0, true);
  tape_.begin_segment(Phase::kBackward, -1);
  micro_batch.graph.reset();
}

void PipelineRank::run() {
  tape_.begin_segment(Phase::kForward, -1);
  for (Chunk& chunk : chunks_) chunk.input_gradients.clear();
  if (!net_.job.is_megatron()) load_batch();
  for (const PipelineAction& action : actions_of(how_, rank_, micro_batches_)) {
    switch (action.work) {
      case PipelineAction::Work::kForward:
        forward(action);
        break;
      case PipelineAction::Work::kBackward:
        backward(action);
        break;
      case PipelineAction::Work::kInput:
        backward_input(action);
        break;
      case PipelineAction::Work::kWeights:
        backward_weights(action);
        break;
    }
  }
  sent_.reset();
  received_gradient_.reset();
  last_output_.reset();
  // The losses, whose graphs they are, stay until then (_internal_losses).
  for (InFlight& micro_batch : chunks_.back().in_flight) {
    if (micro_batch.graph) end(micro_batch);
    micro_batch.loss.reset();
  }
  labels_.reset();
  input_ids_.reset();
  net_.stage = nullptr;
}

}  // namespace

std::function<void()> pipeline_rank(Net& net, const Program& program, const Architecture& architecture, Count rank,
                                    Sharded* sharded) {
  const auto ours = std::make_shared<PipelineRank>(net, program, architecture, rank, sharded);
  return [ours] { ours->run(); };
}

}  // namespace tidemark
