#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "core/tape/graph.hpp"
#include "core/tape/guards.hpp"
#include "core/tape/placement.hpp"
#include "core/tape/record.hpp"

namespace tidemark {

/// A parameter as the program uses it.
struct Parameter {
  const char* module = "";  ///< path inside its layer or the model: "self_attn.q_proj"
  const char* leaf = "";    ///< "weight", "bias", "lora_A"
  Shape shape;              ///< logical shape (not the packed one)
  Dtype dtype = Dtype::kFp32;
  bool requires_grad = false;
  bool reached = false;        ///< a gradient came: what no loss depends on is passed over by optimizers
  bool is_embedding = false;   ///< nn.Embedding weight: bitsandbytes keeps 32-bit states, HF Trainer
  bool is_expert = false;      ///< a token uses as many of its numbers as it passes through experts
  bool is_adapter = false;     ///< added by PEFT: not part of the base model's count
  bool elsewhere = false;      ///< on a card that is not recorded
  bool counts = true;          ///< false for buffers and quantisation state: no parameter
  Count whole = 0;             ///< its elements, where `shape` is this GPU's part alone; 0: those of `shape`
  std::int16_t instance = -1;  ///< layer instance on the tape, −1 outside the layers
  Bytes storage_bytes = 0;     ///< on the device; 0 = numel × size_of(dtype) (packed: less), −1: nothing
  std::int32_t storage = -1;
  Tensor grad;  ///< `.grad`

  Count elements() const { return whole > 0 ? whole : shape.numel(); }
};

/// Parameter::storage_bytes of what lies in host memory.
inline constexpr Bytes kOnHost = -1;

/// torch.autocast: the dtype of its lower-precision list, and the casts of weights that it keeps until it is left.
struct Autocast {
  struct Cast {
    std::int32_t storage = -1;   ///< of the weight
    std::int16_t instance = -1;  ///< whose weight it is
    Tensor cast;
  };
  std::optional<Dtype> dtype;
  std::vector<Cast> casts;
  std::int32_t last = -1;  ///< of their storages, in the order of making: what was made after it is not among them
};

/// TRL's OffloadActivations: what is under way between the GPU and the host.
struct Offloading {
  /// A tensor that stays on the GPU for the copy's sake.
  struct Held {
    std::int32_t packed = 0;  ///< Saved::packed
    Tensor tensor;
  };
  /// What was saved: _get_unique_tensor_key.
  struct Known {
    std::int32_t packed = 0;  ///< the last time
    std::int32_t storage = -1;
    Count offset = 0;
    Dtype dtype = Dtype::kFp32;
  };
  bool on = false;
  std::int32_t asked = 0;        ///< how many tensors were to be saved
  std::int32_t waiting = 0;      ///< how many of them nobody has asked for yet
  std::int32_t unpacked = 0;     ///< how many came back
  const Graph* graph = nullptr;  ///< whose nodes let go of what the ones before them brought back
  std::vector<Held> leaving;     ///< fwd_stash
  std::vector<Held> back;        ///< bwd_tensor_stash
  std::vector<Known> known;      ///< storage_to_tensor_id
  std::vector<OnHost> inputs;    ///< of the checkpoints so far
};

/// Records a training step without numbers: what it allocates and frees (Record), for which other sizes that holds
/// (Guards), and through autograd graphs what waits for backward.
class Tape : public Record, public Guards {
 public:
  Tape();
  ~Tape();

  /// A tensor on a storage that is there already.
  Tensor on_storage(const TensorBody& description);

  // -- parameters ------------------------------------------------------------------------------------------------
  /// The next parameter of the current layer instance: declared the first time, found again afterwards, because a
  /// program asks for its parameters in the same order every time.
  Tensor parameter(const Parameter& declaration) { return existing_parameter(declare(declaration)); }
  /// Its index alone: it is there, and this forward does not ask for it.
  std::int32_t declare(const Parameter& declaration);
  /// The handle on a parameter already declared outside the layers (tied heads).
  Tensor existing_parameter(std::int32_t index);
  /// The index of the parameter that is asked for next.
  std::int32_t next_parameter() const;
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void rewind_parameters(std::int16_t instance);
  /// Where the program is in the current instance's parameters, and back to there: a module that is used twice.
  std::size_t parameter_place() const;
  void set_parameter_place(std::size_t place);
  /// Which layer instance the next parameters belong to (−1: none).
  void use_parameters_of(std::int16_t instance) {
    instance_of_parameters_ = instance;
    rewind_parameters(instance);
  }
  std::int16_t instance_of_parameters() const { return instance_of_parameters_; }
  bool in_layer() const { return instance_of_parameters_ >= 0; }
  void resume_parameters_outside_layers() { instance_of_parameters_ = -1; }
  /// The next parameters are this instance's again, from where the program was in them.
  void resume_parameters_of(std::int16_t instance) { instance_of_parameters_ = instance; }

  // -- several GPUs ------------------------------------------------------------------------------------------------
  /// Who holds what on several GPUs; null: this one holds everything, or nothing is recorded.
  void set_placement(Placement* placement) { placement_ = placement; }
  Placement* placement() const { return stopped_ ? nullptr : placement_; }

  /// A pass that allocates and saves nothing, which the placement watches. Results know all the same whether they would
  /// have a gradient.
  void rehearse(bool on) {
    rehearsing_ = on;
    set_stopped(on);
    grad_enabled_ = !on;
  }
  /// A module is about to be called with this input.
  void tell_input(const Tensor& input) {
    if (rehearsing_) placement_->rehearse_input(input.requires_grad());
  }
  /// The same of a module that is called with nothing: it has parameters alone.
  void tell_no_input() {
    if (rehearsing_) placement_->rehearse_input(false);
  }
  /// A hook has made the output of the module that was called last require a gradient.
  void tell_hooked_output() {
    if (rehearsing_) placement_->rehearse_hooked_output();
  }

  /// What follows the module that was called last saves something for backward.
  void tell_saved() {
    if (rehearsing_) placement_->rehearse_saved();
  }

  /// A layer met a weight of another dtype than its input, which torch refuses.
  void tell_mixed_dtypes() { mixed_dtypes_ = true; }
  bool has_mixed_dtypes() const { return mixed_dtypes_; }

  /// nn.BatchNorm ran, which FSDP 1's mixed precision treats apart.
  void tell_batch_norm() { batch_norm_ = true; }
  bool has_batch_norm() const { return batch_norm_; }

  /// Of the card whose kernels run: 90 = 9.0.
  void set_compute_capability(int capability) { compute_capability_ = capability; }
  int compute_capability() const { return compute_capability_; }

  /// Whether convolutions take what cuDNN was seen to take beside them (convolution_workspace.hpp).
  void set_convolution_workspaces(bool taken) { convolution_workspaces_ = taken; }
  bool has_convolution_workspaces() const { return convolution_workspaces_; }
  /// A convolution ran that may take so much; and the most of all.
  void note_workspace(Bytes bytes) {
    if (!is_elsewhere()) largest_workspace_ = std::max(largest_workspace_, bytes);
  }
  Bytes largest_workspace() const { return largest_workspace_; }

  /// A tensor of as many times `each` bytes as the guard says.
  Tensor allocate_guarded(const Guard& guard, Bytes each, const char* op);

  // -- autograd ----------------------------------------------------------------------------------------------------
  bool grad_enabled() const { return grad_enabled_; }
  void set_grad_enabled(bool enabled) { grad_enabled_ = enabled; }
  /// It is on, or rehearsed as if it was.
  bool makes_graphs() const { return grad_enabled_ || rehearsing_; }
  /// A node for an operation on `inputs`, or null when none of them needs a gradient (or grad mode is off).
  Node* record(const char* name, BackwardFn rule, std::initializer_list<const Tensor*> inputs) {
    return record(name, rule, std::data(inputs), inputs.size());
  }
  Node* record(const char* name, BackwardFn rule, const Tensor* const* inputs, std::size_t count);
  void save(Node* node, const Tensor& tensor);
  /// Will what is saved now stay, or does a checkpoint that packs it let it go (or is nothing saved at all)?
  bool keeps_saved() const { return grad_enabled_ && packing_ == nullptr && !offloading_.on; }
  /// The node holds the tensor by itself (Graph::hold).
  void hold(const Node* node, const Tensor& tensor);
  /// The loss goes, and with it what the nodes of the graph hold.
  void let_graph_go();
  /// How many tensors nodes hold so; the loss of an iteration before goes, whose nodes hold the first so many.
  std::size_t held() const { return graph_->held(); }
  void let_oldest_go(std::size_t count);
  /// Ties the output to the node that made it.
  void attach(Node* node, Tensor& output, int output_index = 0);
  /// Nodes belong to this graph from here on; returns the graph before.
  Graph& record_in(Graph& graph);
  /// loss.backward(): runs the graph that the loss is in.
  void backward(Tensor loss) { backward(std::move(loss), {}); }
  /// torch.autograd.backward(root, gradient), of a loss without one; returns the gradient of the graph's leaf, if any.
  /// `inputs_only`: that gradient alone (Graph::run_inputs).
  Tensor backward(Tensor root, Tensor gradient, bool inputs_only = false);
  /// What another GPU sent, as a leaf that its graph begins with.
  Tensor leaf(const Tensor& buffer);
  /// Gradients are used and dropped as soon as they are complete (optimizer in backward).
  void set_drop_gradients(bool drop) { drop_gradients_ = drop; }
  /// Who takes a complete gradient then.
  void set_gradient_hook(std::function<void(std::int32_t parameter, Tensor gradient)> hook) {
    gradient_hook_ = std::move(hook);
  }
  /// Gradients are kept in this dtype, whatever backward makes (fp32 main gradients of 16-bit parameters).
  void set_gradient_dtype(std::optional<Dtype> dtype) { gradient_dtype_ = dtype; }

  // -- checkpointing -----------------------------------------------------------------------------------------------
  /// torch.utils.checkpoint. The stored input may wait in host memory and come back for the recomputation
  /// (transformers' and axolotl's activation offloading, Unsloth's checkpointing), whichever the form. `further`: what
  /// else of the arguments requires a gradient; a re-entrant checkpoint detaches these, too, and its block is to read
  /// them from detached() where that is not empty.
  Tensor checkpoint(const BlockCall& call, Tensor input, bool use_reentrant, CheckpointInput where,
                    std::vector<Tensor> further = {});
  const std::vector<Tensor>& detached() const { return detached_; }
  /// What the operations of a checkpointed block make from here on is kept, not made again (torch/utils/checkpoint.py:
  /// create_selective_checkpoint_contexts, CheckpointPolicy.MUST_SAVE); without a checkpoint nothing changes.
  void keep_results(bool keep);
  /// A checkpointed block returns this tensor beside its first result. Where nobody uses it a re-entrant checkpoint's
  /// backward gets zeros for it (autograd functions materialise missing gradients) and sends them through the block.
  void return_also(Tensor tensor) { more_outputs_.push_back(std::move(tensor)); }
  /// What the last checkpoint returned so; it is forgotten.
  std::vector<Tensor> take_more_outputs() { return std::exchange(more_outputs_, {}); }
  /// A checkpointed block runs once more: nobody takes what it returns.
  bool recomputing() const { return recomputing_ != nullptr; }
  /// What the nodes of a recomputation keep from here on is part of the graph behind what a module will hold.
  void note_saved(bool on) { noting_ = on && recomputing_ != nullptr; }
  /// A module of this layer takes the tensors as attributes: they stay, with the graph of a recomputation behind them,
  /// which no backward runs (nobody but what was saved leads there), until the module lets them go.
  void hold_in_module(const Tensor& tensor, const Tensor& further = {});
  void let_module_go();
  /// The same of all layers, each in a stretch of its own.
  void let_modules_go();
  /// Bytes of one micro-step's inputs that wait in host memory, for layers of this instance.
  const std::vector<std::pair<std::int16_t, Bytes>>& offloaded() const { return offloaded_; }

  // -- saved tensors in host memory ----------------------------------------------------------------------------------
  /// What nodes save from here on goes to host memory, or no longer does; returns whether it did.
  bool set_offloading(bool on) { return std::exchange(offloading_.on, on); }
  /// The layers are through: of the inputs of their checkpoints the last few are still on their way.
  void hold_leaving_inputs();
  /// Backward is through.
  void end_offloading() { offloading_ = {}; }
  /// The inputs' leaf and its gradient stay with the node that asked last, until one of the next backward asks.
  void keep_behind_last_node(Tensor leaf);
  void let_last_node_go() { behind_last_node_.clear(); }

  // -- autocast ----------------------------------------------------------------------------------------------------
  std::optional<Dtype> autocast() const { return autocast_.dtype; }
  void set_autocast(std::optional<Dtype> dtype) { autocast_.dtype = dtype; }
  /// The lower-precision cast of autocast_mode.h: cached for leaf fp32 parameters that require a gradient.
  Tensor autocast_cast(Tensor tensor, Dtype dtype);
  /// Leaving the autocast context: each layer's copies go in a stretch of that layer.
  void clear_autocast_cache();

 private:
  friend class Tensor;  // its bodies live here
  friend class Graph;

  void drop(TensorBody* body);
  void lead(TensorBody& body, const Edge& edge);
  void release(Node& node);
  Tensor without_edge(const Tensor& tensor);
  void save_again(const Tensor& tensor);
  void recompute(Frame& frame);
  void go_to_layer(std::int16_t instance, bool runs_again = false);
  void offload(Saved& saved, const Tensor& tensor);
  void unpack(Saved& saved);
  Tensor let_leave(std::int32_t until);
  void after_unpacking(std::size_t before);
  void ask();
  void answered();
  OnHost to_host(const Tensor& x, int asked);
  Tensor from_host(const OnHost& x);
  Tensor checkpoint_reentrant(const BlockCall& call, Tensor input, CheckpointInput where, std::vector<Tensor> further);
  Tensor detached_leaf(Graph& inner, const Node& node, const Tensor& argument);
  static void checkpoint_backward(Tape& tape, Node& node, Tensor* grads, Tensor* results);

  std::vector<Parameter> parameters_;
  std::vector<std::vector<std::int32_t>> parameter_order_;  ///< by instance + 1
  std::vector<std::size_t> parameter_cursor_;               ///< the next one that the program asks for
  NodePool nodes_;
  Graph main_graph_;
  Graph* graph_ = &main_graph_;  ///< new nodes belong to it
  Node thrown_away_;             ///< stands for all nodes of a graph that is thrown away: a recomputation's
  bool rehearsing_ = false;      ///< or a rehearsal's
  bool mixed_dtypes_ = false;
  bool batch_norm_ = false;
  int compute_capability_ = 80;
  bool convolution_workspaces_ = false;
  Bytes largest_workspace_ = 0;
  Frame* packing_ = nullptr;                          ///< the non-reentrant checkpoint whose first pass is under way
  Frame* recomputing_ = nullptr;                      ///< the one that is recomputed
  std::vector<Tensor> more_outputs_;                  ///< of a checkpointed block
  std::vector<Tensor> detached_;                      ///< a re-entrant backward's, beside the input
  bool noting_ = false;                               ///< note_saved
  std::vector<Tensor> noted_;                         ///< and what it has noted
  std::vector<std::vector<Tensor>> held_in_modules_;  ///< by layer instance + 1
  Autocast autocast_;
  std::vector<std::pair<std::int16_t, Bytes>> offloaded_;
  std::optional<Dtype> gradient_dtype_;
  Placement* placement_ = nullptr;
  Offloading offloading_;
  std::vector<Tensor> behind_last_node_;  ///< what curr_autograd_node leads to
  bool drop_gradients_ = false;
  std::function<void(std::int32_t, Tensor)> gradient_hook_;
  bool grad_enabled_ = true;
};

/// Names the module that allocates from here to the end of the C++ scope.
class Scope {
 public:
  TIDEMARK_INLINE Scope(Tape& tape, const char* module, const char* source)
      : tape_(tape), previous_(tape.enter(module, source)) {}
  TIDEMARK_INLINE ~Scope() { tape_.leave(previous_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tape& tape_;
  std::int16_t previous_;
};

}  // namespace tidemark
