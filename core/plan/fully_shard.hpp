#pragma once

#include <vector>

#include "core/plan/sharded.hpp"

namespace tidemark {

/// Modules of several of accelerate's units have a parameter in common: the table that encoder and decoder of T5 and
/// BART look words up in, the bias of BERT's head for masked words. An encoder that hears or sees has no table.
inline bool shares_among_units(const Architecture& architecture) {
  const bool masked = architecture.head == Head::kMaskedLm || architecture.head == Head::kPreTraining;
  if (masked) return architecture.model_type != "distilbert";
  const bool of_text = architecture.facts.text_input || architecture.language != nullptr;
  return architecture.head == Head::kSeq2SeqLm && of_text;
}

/// FSDP 2: torch.distributed.fsdp.fully_shard on every layer and then on the model. Each parameter is cut along its
/// first dimension; a unit's are gathered before its forward and again before its backward, where the next unit's are
/// gathered ahead; its gradients are reduced to this GPU's part as its backward ends.
/// Source: torch 2.14 torch/distributed/fsdp/_fully_shard/{_fsdp_param_group, _fsdp_collectives, _fsdp_param,
/// _fsdp_state}.py.
class FullyShard : public Sharded {
 public:
  /// `reference`: the plan of the layers of a frozen copy of the model, which is one unit as a whole (TRL 1.9
  /// models/utils.py: prepare_fsdp calls fully_shard on the model alone).
  FullyShard(Tape& tape, const Architecture& architecture, const TrainingJob& job,
             const LayerPlan* reference = nullptr);

  void collect() override;
  void begin_micro_step(bool last) override;
  void enter_chunk(std::size_t chunk) override;
  void reduce_chunk() override;
  void end_micro_steps() override;
  void create_states(OptimizerRun& optimizer) override;
  void step(OptimizerRun& optimizer) override;
  bool mixes_dtypes() const override;
  HostMemory host_memory(const LayerPlan& plan) const override;
  void begin_generation() override { begin_pass(); }
  void begin_scoring(bool without_adapters) override;
  void send_weights() override;
  void end_rollout() override;
  void follow_rollout() override;
  void begin_evaluation() override { begin_pass(); }
  void follow_evaluation() override { follow_rollout(); }

  void declare(Parameter& p) override;
  void use(std::int32_t parameter) override;
  void enter_model() override;
  void leave_model() override;
  void enter_layer(std::int16_t instance, bool input_needs_grad) override;
  void leave_layer(std::int16_t instance) override;
  void begin_token() override;
  void end_token() override { leave_model(); }
  void enter_inner() override;
  void leave_inner() override;
  void backward_enters_inner() override;
  void backward_leaves_inner() override;
  void before_backward() override;
  void backward_enters(std::int16_t instance) override;
  void backward_runs_again(std::int16_t instance) override;
  void ran_again(std::int16_t instance) override;
  void backward_leaves(std::int16_t instance) override;
  void backward_uses(std::int32_t parameter) override;
  Tensor backward_reads(std::int32_t storage) override;
  void backward_returns(std::int32_t parameter) override;
  void take_gradient(std::int32_t parameter, Tensor grad) override;
  void after_backward() override;

 private:
  // A parameter's part on this GPU.
  struct Part {
    Shape shape;                    // of the part; what pads the last GPU's is on every one
    Dtype dtype = Dtype::kFp32;     // of the part: the parameter's own
    Dtype gathered = Dtype::kFp32;  // of the whole
    std::size_t unit = 0;           // that it belongs to
    std::size_t chunk = 0;          // of a pipeline
    bool ignored = false;           // whole on every GPU
    Count shards = 1;               // among as many GPUs it is divided
    bool by_columns = false;        // along its second dimension: copied on the way to a reduction and from a gathering
    Count times = 1;                // as often as its layer stands for others of the one unit
    Tensor grad;                    // whole, not yet reduced
    Tensor accumulated;             // those of backwards that reduced nothing, in the dtype of the reduction
    Count elements() const { return shape.numel() * times; }
  };
  // FSDPParamGroup
  struct Unit {
    std::vector<std::int32_t> parameters;
    bool reshards = true;               // after forward
    bool gathered = false;              // its parameters are whole
    bool left_at_end = false;           // no gradient comes to its input: its backward ends with the model's
    bool in_backward = false;           // pre_backward has run
    bool done = false;                  // post_backward has run
    Tensor all_gathered;                // the collective's output, not yet copied out
    std::vector<Tensor> whole;          // the parameters
    std::vector<Tensor> after_forward;  // parts of a smaller mesh (reshard_after_forward = k)
    Tensor all_reduced;                 // HSDP: what the all-reduce works on
    std::ptrdiff_t place = -1;          // in the order of forward
    std::size_t chunk = 0;              // of a pipeline: a root of its own
  };

  Unit& unit_of(std::int16_t instance) { return units_[static_cast<std::size_t>(instance + 1)]; }
  // The experts of the layer that runs.
  Unit& inner() { return units_[layers_ + static_cast<std::size_t>(tape_.instance()) + 1]; }
  bool has_inner() const { return job_.expert > 1; }
  bool is_alone(const Unit& unit) const { return part_of(unit.parameters.front()).shards == 1; }
  const Part& part_of(std::int32_t parameter) const { return parts_[static_cast<std::size_t>(parameter) - first_]; }
  Part& part_of(std::int32_t parameter) { return parts_[static_cast<std::size_t>(parameter) - first_]; }
  void collect_reference();
  void find_outside();
  bool is_head(const Parameter& p) const;
  std::size_t unit_of_parameter(std::size_t index) const;
  Unit& table() { return units_[units_.size() - 2]; }
  Unit& tail() { return units_.back(); }
  void gather(Unit& unit);
  void gather_layer(std::size_t layer);
  void take_alone(Unit& unit);
  std::vector<Tensor> gather_inputs(const Unit& unit);
  void copy_out(Unit& unit, bool in_forward);
  void pre_forward(Unit& unit);
  void post_forward(Unit& unit);
  void reshard(Unit& unit);
  void pre_backward(Unit& unit);
  void post_backward(Unit& unit);
  void lay_out(std::int32_t parameter);
  void keep_whole(Unit& unit);
  void reduce(Unit& unit, std::vector<std::int32_t> reduced);
  void close_embedding();
  void begin_pass();
  // Whose unit that is; -1: it lies outside the layers.
  std::int16_t layer_of(std::size_t unit) const {
    const bool layer = unit > 0 && reference_ == nullptr && unit <= layers_;
    return layer ? static_cast<std::int16_t>(unit - 1) : std::int16_t{-1};
  }
  void keep_gathered(Unit& unit);
  void finish_units(Phase phase);
  bool runs(const Unit& unit) const { return unit.chunk == chunk_; }

  Tape& tape_;
  const Architecture& architecture_;
  const TrainingJob& job_;
  const DataParallel& how_;
  std::optional<Dtype> gathered_, reduced_;  // MixedPrecisionPolicy
  bool on_host_;
  Count reshard_to_;
  const LayerPlan* reference_;
  std::size_t first_ = 0;  // parameter of those that are divided here
  bool apart_ = false;     // embedding, and norm with head, are units of their own
  bool tied_ = true;       // the head is the token table
  Count root_layers_ = 0;  // the first that the root has
  // LLaMA-Factory ff6d4d12 src/llamafactory/v1/plugins/trainer_plugins/distributed/fsdp2.py prepare_model: an adapter's
  // matrices are units of their own. They are counted with their layer, beside which they are small.
  bool leaves_apart_;
  bool accelerate_;                                       // those units are accelerate's
  std::size_t first_in_layers_ = 0, last_in_layers_ = 0;  // parameters
  bool follows_ = false;                                  // forwards without a backward have run before this micro-step
  bool reduces_ = true;                                   // this micro-step does
  std::size_t chunk_ = 0;                                 // of a pipeline, which runs
  std::size_t layers_ = 0;                                // units of layers, behind which those of their experts lie
  std::vector<Part> parts_;                               // by parameter
  std::vector<Unit> units_;  // root, layers, their experts, then embedding and head where they are units of their own
  std::vector<std::size_t> order_;  // of forward
  std::int32_t embedding_ = -1;     // the token table
  bool inside_ = false;             // between enter_model and leave_model
  Tensor deferred_;                 // the all-gather of the unit before: let go as the next is copied out
  Tensor reducing_;                 // input of the last reduce-scatter
};

}  // namespace tidemark
