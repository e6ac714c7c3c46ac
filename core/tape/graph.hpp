#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/tape/record.hpp"
#include "core/units/few.hpp"

namespace tidemark {

class Graph;

/// The rule of an operation's backward: from the gradients of its outputs to those of its inputs.
using BackwardFn = void (*)(Tape&, Node&, Tensor* grads, Tensor* results);

/// A block program that can be run again: what checkpointing recomputes.
using BlockCall = std::function<Tensor(Tensor)>;

/// Where the input of a checkpoint waits.
enum class CheckpointInput : std::uint8_t {
  kKept,      ///< where it is
  kOnHost,    ///< in host memory, from where it comes back into memory of its own
  kInBuffer,  ///< in host memory, from where it comes back into a buffer that stands on the card
};

/// A checkpoint's input that waits in host memory.
struct OnHost {
  Shape shape;
  Dtype dtype = Dtype::kFp32;
  bool requires_grad = false;
  std::int32_t packed = 0;  ///< as Saved::packed, by Tape::offload's hooks; 0: it was moved without them
  bool in_buffer = false;   ///< it comes back into a buffer that stands on the card
};

/// A non-reentrant checkpoint (torch/utils/checkpoint.py: _CheckpointFrame): what its block kept for backward was let
/// go, and is made again when the first of it is asked for.
struct Frame {
  BlockCall call;
  Tensor input;                    ///< undefined while it waits in host memory
  std::vector<Tensor> slots;       ///< what the recomputation kept, in the order of the first pass
  std::vector<std::int32_t> dead;  ///< slots whose node died in between: nobody will ask for them
  std::int32_t count = 0;          ///< slots handed out in the first pass
  std::int32_t remaining = 0;      ///< not yet consumed by backward
  bool packing = true;             ///< the first pass is under way
  bool recomputed = false;
  std::optional<OnHost> host;     ///< what the input is made from again
  std::optional<Dtype> autocast;  ///< of the first pass
  KeptResults kept;               ///< what is not computed again
  std::int16_t instance = -1;     ///< whose parameters the block uses

  /// A slot is taken out, or its node died.
  void consume(std::int32_t slot);
  /// The first pass is over.
  void close();

 private:
  void let_go();
};

/// A reentrant checkpoint (torch/utils/checkpoint.py: CheckpointFunction).
struct ReentrantCall {
  BlockCall call;
  std::optional<Dtype> autocast;
  std::optional<OnHost> host;  ///< what the input is made from again; else the node has saved it
  /// What else the block returned: these get gradients, too, zeros where none came.
  std::vector<std::pair<Shape, Dtype>> more;
};

/// A tensor kept for backward: held, or, under non-reentrant checkpointing, a slot of a frame that is filled again
/// when the frame is recomputed.
struct Saved {
  Tensor tensor;
  Frame* frame = nullptr;
  std::int32_t slot = -1;   ///< of the frame, −1: none, or taken out
  std::int32_t packed = 0;  ///< as the so manyth that Tape::offload was asked for; 0: it was not
  bool on_host = false;     ///< the tensor has no storage until it is asked for
};

/// A node of the autograd graph. It lives as long as a tensor or a younger node leads to it, as in PyTorch.
struct Node {
  // What the engine asks of every node lies together: most nodes are no longer in the nearest cache as they run.
  Graph* graph = nullptr;      ///< none: it has run, and keeps nothing any more
  std::int32_t position = -1;  ///< among the nodes of its graph
  std::int32_t users = 0;      ///< tensors and younger nodes that lead here
  int input_count = 0;
  int output_count = 1;
  BackwardFn backward = nullptr;
  const char* name = "";
  std::int16_t scope = 0;  ///< where in the program it was recorded
  std::int16_t instance = -1;
  std::int16_t card = 0;  ///< that it was recorded on, and runs on
  std::unique_ptr<ReentrantCall> call;
  Few<Tensor, 1> grads;  ///< the engine's input buffers: what has arrived for each output
  Few<Edge, 2> inputs;
  Few<Dtype, 2> input_dtypes;
  Few<Saved, 2> saved;
  Few<Shape, 2> input_shapes;
  std::vector<Count> lengths;  ///< of split and unbind: the length of each output
  Count attributes[6] = {};    ///< the operation's own numbers

  bool needs(int input) const { return inputs[static_cast<std::size_t>(input)].leads_on(); }
  const Tensor& saved_tensor(int i) const { return saved[static_cast<std::size_t>(i)].tensor; }
  bool reached() const {
    for (const Tensor& grad : grads) {
      if (grad.defined()) return true;
    }
    return false;
  }
};

/// Nodes that are in no graph now. They keep what memory they have.
class NodePool {
 public:
  NodePool();
  ~NodePool();
  Node& take();
  void give_back(Node& node) { spare_.push_back(&node); }

 private:
  static constexpr std::size_t kChunk = 64;
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::size_t used_ = 0;  ///< of the chunks' nodes, those that were ever taken
  std::vector<Node*> spare_;
};

/// The nodes that one forward pass records, oldest first, and the engine that runs them backward
/// (pytorch v2.6.0 torch/csrc/autograd/engine.cpp: GraphTask). Micro-batches that are under way together have a graph
/// each: the backward of one leaves the others as they are.
class Graph {
 public:
  explicit Graph(Tape& tape) : tape_(tape) {}
  ~Graph() { clear(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Node& add_node();
  /// The first node: without a rule, it catches the gradient of a tensor that another GPU sent.
  Node& add_leaf();
  bool has_leaf() const { return leaf_ != nullptr; }
  Tensor take_leaf_gradient();
  Frame& add_frame();
  /// An edge of one of its nodes leads to that parameter.
  void expect(std::int32_t parameter);
  /// A gradient arrives. A parameter that waits for no further one takes it over.
  void deposit(const Edge& edge, Tensor grad);
  /// Runs what gradients have reached, from the youngest node to the one at position `end`.
  void run(std::size_t end = 0);
  /// The gradient of the leaf alone (torch 2.14 distributed/pipelining/_backward.py: stage_backward_input): nodes keep
  /// what they saved, and those that parameters lead to from aside the gradients that came to them.
  void run_inputs();
  /// Then those of the parameters (stage_backward_weight), and all goes.
  void run_weights();
  /// Nothing leads to the node any more: it gives back what it kept, and so do those that it alone led to.
  void drop(Node& node);
  /// An attribute of a function's ctx: hooks on saved tensors do not see it, and it stays until the graph goes, not
  /// until its node has run (pytorch v2.6.0 torch/csrc/autograd/python_function.cpp: PyNode::release_variables clears
  /// saved variables alone).
  void hold(const Tensor& tensor, std::int16_t instance) { held_.push_back({tensor, instance}); }
  std::size_t held() const { return held_.size(); }
  /// The nodes go, but for those that hold the first so many, and with them what they hold: from the youngest down,
  /// what each layer's hold in a stretch of that layer where `by_layer`.
  void let_go_of_held(std::size_t first, bool by_layer);
  /// The same of those that hold the first so many, which belong to an iteration before.
  void let_go_of_oldest(std::size_t count);
  /// Nodes and checkpoints give back all that they keep.
  void clear();

 private:
  // Gradients of a parameter on their way.
  struct Arrival {
    std::int32_t pending = 0;  // contributions that nodes have still to make
    Tensor buffer;             // what has arrived of them
  };

  // What a node holds by itself.
  struct Held {
    Tensor tensor;
    std::int16_t instance = -1;  // of the node
  };

  // What a rule is run for: all that leads on, what leads to the leaf, or the rest.
  enum class Pass : std::uint8_t { kBoth, kInputs, kWeights };
  // A node between the two passes.
  struct Split {
    Node* node = nullptr;
    Few<Tensor, 1> grads;
  };

  Tensor announce(const Node& node);
  void execute(Node& node, Pass pass = Pass::kBoth);
  bool is_aside(const Edge& edge) const;
  void run_aside(const Node& node);
  void settle(Node& node);
  void arrive(std::int32_t parameter, Tensor grad);
  void accumulate(Tensor& buffer, Tensor grad);
  void accumulate_parameter(std::int32_t parameter);
  void compact(std::size_t end);

  Tape& tape_;
  std::vector<Node*> nodes_;  ///< null where one is gone
  std::vector<Held> held_;    ///< in the order of the nodes' making
  std::vector<Node*> dying_;  ///< that nothing leads to, while they are dropped
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Arrival> arrivals_;  ///< by parameter
  Node* leaf_ = nullptr;
  std::vector<bool> to_leaf_;  ///< by position: whether a node leads there
  std::vector<Split> split_;   ///< youngest first
  Tensor added_;  ///< the last gradient that was added to a parameter's, which a name holds between the passes
  bool running_ = false;
};

}  // namespace tidemark
