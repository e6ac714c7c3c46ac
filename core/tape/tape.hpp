#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/tape/shape.hpp"
#include "core/units/bytes.hpp"
#include "core/units/category.hpp"
#include "core/units/dtype.hpp"

namespace tidemark {

class Tape;

/// Where a gradient goes: output `output` of node `node`; −1 is nowhere; −2−p is parameter p.
struct Edge {
  std::int32_t node = -1;
  std::int32_t output = 0;
};

/// What a tensor is besides its storage. Handles share it: whoever changes it gets one of his own (`Tensor::change`).
struct TensorBody {
  Shape shape;
  Dtype dtype = Dtype::kFp32;
  bool requires_grad = false;
  bool is_leaf_parameter = false;  ///< autocast caches casts of these only
  std::int32_t storage = -1;       ///< −1: none was made, because the recomputation had stopped
  Edge edge;                       ///< grad_fn
  Tape* tape = nullptr;
  std::int32_t handles = 0;
};

// A handle is one pointer: clang may pass it in a register, and the function that takes it lets go of it. What a copy
// or a move compiles to is shorter than a call, also where the compiler is told to make everything small.
#if defined(__clang__)
#define TIDEMARK_IN_REGISTERS [[clang::trivial_abi]]
#else
#define TIDEMARK_IN_REGISTERS
#endif
#define TIDEMARK_INLINE [[gnu::always_inline]]

/// A tensor without numbers: a shape over a counted storage, as torch.Tensor is. When the last handle on a storage
/// goes, the storage is freed, so C++ scopes give Python's lifetimes. Operations take tensors by value and let go of
/// them when they return, as Python's evaluation stack does; a caller that still needs one keeps its own copy.
class TIDEMARK_IN_REGISTERS Tensor {
 public:
  TIDEMARK_INLINE Tensor() = default;
  TIDEMARK_INLINE explicit Tensor(TensorBody* body) : body_(hold(body)) {}
  TIDEMARK_INLINE Tensor(const Tensor& other) : body_(hold(other.body_)) {}
  TIDEMARK_INLINE Tensor(Tensor&& other) noexcept : body_(other.body_) { other.body_ = nullptr; }
  TIDEMARK_INLINE Tensor& operator=(const Tensor& other) {
    TensorBody* const old = body_;
    body_ = hold(other.body_);
    let_go(old);
    return *this;
  }
  TIDEMARK_INLINE Tensor& operator=(Tensor&& other) noexcept {
    TensorBody* const taken = other.body_;
    other.body_ = nullptr;
    TensorBody* const old = body_;
    body_ = taken;
    let_go(old);
    return *this;
  }
  TIDEMARK_INLINE ~Tensor() {
    if (body_ != nullptr) let_go(body_);
  }

  void reset() { *this = Tensor(); }
  bool defined() const { return body_ != nullptr; }
  const Shape& shape() const { return body_->shape; }
  Dtype dtype() const { return body_->dtype; }
  bool requires_grad() const { return body_->requires_grad; }
  bool is_leaf_parameter() const { return body_->is_leaf_parameter; }
  Edge edge() const { return body_->edge; }
  Tape& tape() const { return *body_->tape; }
  std::int32_t storage() const { return body_->storage; }
  Count size(int i) const { return shape().size(i); }
  Dim dim(int i) const { return shape().dim(i); }
  Count numel() const { return shape().numel(); }
  /// No other handle is on the storage.
  bool is_alone() const;
  /// To change what this handle alone sees.
  TensorBody& change();
  /// As the result of an operation that makes no storage: nothing is known yet of where its gradient goes.
  void leave_graph();

 private:
  static TensorBody* hold(TensorBody* body);
  static void let_go(TensorBody* body);

  TensorBody* body_ = nullptr;
};

/// A place of the program that allocates: the unit of the breakdown.
struct Site {
  std::int16_t scope = 0;  ///< index into Tape::scopes()
  const char* op = "";     ///< "mm", "silu", …
  Category category = Category::kActivations;
  bool backward = false;  ///< made while gradients flow
  Dtype dtype = Dtype::kFp32;
  Shape shape;                      ///< of one storage
  std::int32_t recategorised = -1;  ///< the site of the same place in the category that it was given last
};

/// A module of the model and the code that it mirrors.
struct ScopeName {
  const char* module = "";  ///< path inside the layer or the model: "self_attn.q_proj"
  const char* source = "";  ///< "transformers 5.12 models/llama/modeling_llama.py: LlamaAttention.forward"
};

/// One allocation's life.
struct Storage {
  Bytes bytes = 0;              ///< as requested, before rounding
  std::int32_t references = 0;  ///< bodies of tensors, and one for what outlives the step
  std::int32_t site = 0;
};

/// A parameter as the program uses it.
struct Parameter {
  const char* module = "";  ///< path inside its layer or the model: "self_attn.q_proj"
  const char* leaf = "";    ///< "weight", "bias", "lora_A"
  Shape shape;              ///< logical shape (not the packed one)
  Dtype dtype = Dtype::kFp32;
  bool requires_grad = false;
  bool is_embedding = false;   ///< nn.Embedding weight: bitsandbytes keeps 32-bit states, HF Trainer
  bool is_adapter = false;     ///< added by PEFT: not part of the base model's count
  bool counts = true;          ///< false for buffers and quantisation state: no parameter
  std::int16_t instance = -1;  ///< layer instance on the tape, −1 outside the layers
  Bytes storage_bytes = 0;     ///< on the device; 0 = numel × size_of(dtype) (packed weights are smaller)
  std::int32_t storage = -1;
  Tensor grad;               ///< `.grad`
  std::int32_t pending = 0;  ///< gradient contributions that the engine still waits for
  Tensor buffer;             ///< what has arrived of them
};

struct Node;
using BackwardFn = void (*)(Tape&, Node&, Tensor* grads, Tensor* results);

inline constexpr int kMaxInputs = 4;
inline constexpr int kMaxSaved = 8;
inline constexpr int kMaxOutputs = 4;

/// A tensor kept for backward: held, or, under non-reentrant checkpointing, a slot of a frame that is filled again
/// when the frame is recomputed.
struct Saved {
  Tensor tensor;
  std::int32_t frame = -1;
  std::int32_t slot = -1;
};

/// A node of the autograd graph.
struct Node {
  BackwardFn backward = nullptr;
  const char* name = "";
  int input_count = 0;
  Edge inputs[kMaxInputs];
  Shape input_shapes[kMaxInputs];
  Dtype input_dtypes[kMaxInputs] = {};
  int saved_count = 0;
  std::size_t saved_begin = 0;  ///< where they start on that stack
  Saved* saved = nullptr;       ///< on the tape's stack of saved tensors
  int output_count = 1;
  Tensor grad;                           ///< the engine's input buffer, of the first output
  std::unique_ptr<Tensor[]> more_grads;  ///< of the others, for operations with several outputs
  Shape output_shape;
  Dtype output_dtype = Dtype::kFp32;
  Count attributes[6] = {};
  std::int16_t scope = 0;
  std::int16_t instance = -1;
  std::int32_t call = -1;  ///< index of a reentrant checkpoint's call, or −1

  Tensor& grad_of(int output) {
    if (output == 0) return grad;
    if (more_grads == nullptr) more_grads = std::make_unique<Tensor[]>(kMaxOutputs - 1);
    return more_grads[static_cast<std::size_t>(output - 1)];
  }
  bool has_grad(int output) const {
    return output == 0 ? grad.defined()
                       : more_grads != nullptr && more_grads[static_cast<std::size_t>(output - 1)].defined();
  }
  bool needs(int input) const { return inputs[input].node != -1; }
  const Tensor& saved_tensor(int i) const { return saved[i].tensor; }
};

/// A stretch of events that belongs to one phase and one layer instance.
struct Segment {
  Phase phase = Phase::kForward;
  std::int16_t instance = -1;  ///< −1 before the first and after the last layer
  std::uint32_t begin = 0, end = 0;
};

/// A place where the step stops being polynomial in its sizes: a comparison or a division of a number of sequences,
/// positions or tokens. Steps whose bends agree have the same allocations in the same order.
struct Bend {
  enum class Kind : std::uint8_t {
    kAbove,     ///< quantity > parameter
    kQuotient,  ///< floor((quantity + offset) / parameter)
    kMultiple,  ///< quantity is a multiple of parameter
    kPower,     ///< smallest power of two that is at least ceil(quantity / parameter)
  };
  Kind kind = Kind::kAbove;
  Count quantity = 0;   ///< what was compared or divided
  Count offset = 0;     ///< parameter − 1 where the quotient is rounded up
  Count parameter = 1;  ///< the limit or the divisor
  Count outcome() const;
  bool operator==(const Bend& other) const {
    return kind == other.kind && quantity == other.quantity && offset == other.offset && parameter == other.parameter;
  }
};

/// A block program that can be run again: what checkpointing recomputes.
using BlockCall = std::function<Tensor(Tensor)>;

/// Records a training step without numbers: allocations, frees, the autograd graph, autocast.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // -- allocation ---------------------------------------------------------------------------------------------
  Tensor allocate(const Shape& shape, Dtype dtype, const char* op);
  /// A kernel's scratch: allocated and freed at once.
  void scratch(std::initializer_list<std::pair<Bytes, const char*>> sizes);
  /// A tensor on a storage that is there already.
  Tensor on_storage(const TensorBody& description);
  /// A tensor on a buffer of the model, which is counted on its own.
  Tensor part_of_buffer(const Shape& shape, Dtype dtype);
  void set_category(const Tensor& tensor, Category category);

  // -- places --------------------------------------------------------------------------------------------------
  std::int16_t enter(const char* module, const char* source);
  void leave(std::int16_t previous) { scope_ = previous; }
  std::int16_t scope() const { return scope_; }
  void set_default_category(Category category) { category_ = category; }
  Category default_category() const { return category_; }
  void begin_segment(Phase phase, std::int16_t instance);
  /// The next begin_segment opens a new one even when phase and instance are the same.
  void break_segment() { force_segment_ = true; }
  std::int16_t instance() const { return instance_; }
  Phase phase() const { return phase_; }

  // -- parameters ------------------------------------------------------------------------------------------------
  /// The next parameter of the current layer instance: declared the first time, found again afterwards, because a
  /// program asks for its parameters in the same order every time.
  Tensor parameter(const Parameter& declaration);
  /// A tensor that stays on the device and is no parameter (rope tables, quantisation constants).
  void buffer(const char* name, Bytes bytes, Category category = Category::kBuffers);
  /// The handle on a parameter already declared outside the layers (tied heads).
  Tensor existing_parameter(std::int32_t index);
  std::int32_t last_parameter() const { return last_parameter_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void rewind_parameters(std::int16_t instance);
  /// Which layer instance the next parameters belong to (−1: none).
  void use_parameters_of(std::int16_t instance) {
    instance_of_parameters_ = instance;
    rewind_parameters(instance);
  }
  void resume_parameters_outside_layers() { instance_of_parameters_ = -1; }

  // -- autograd ----------------------------------------------------------------------------------------------------
  bool grad_enabled() const { return grad_enabled_; }
  void set_grad_enabled(bool enabled) { grad_enabled_ = enabled; }
  /// A node for an operation on `inputs`, or null when none of them needs a gradient (or grad mode is off).
  Node* record(const char* name, BackwardFn rule, std::initializer_list<const Tensor*> inputs);
  void save(Node* node, const Tensor& tensor);
  /// Ties the output to its node.
  void attach(Node* node, Tensor& output, int output_index = 0);
  /// torch.utils.checkpoint. With `offload` the stored input waits in host memory and comes back for the recomputation
  /// (transformers' and axolotl's activation offloading, Unsloth's checkpointing): always the non-reentrant form.
  Tensor checkpoint(const BlockCall& call, Tensor input, bool use_reentrant, bool offload);
  /// A checkpointed block returns this tensor beside its first result. Nobody uses it, so a re-entrant checkpoint's
  /// backward gets zeros for it (autograd functions materialise missing gradients) and sends them through the block.
  void return_also(Tensor tensor) { second_output_ = std::move(tensor); }
  /// Bytes of one micro-step's inputs that wait in host memory, for layers of this instance.
  const std::vector<std::pair<std::int16_t, Bytes>>& offloaded() const { return offloaded_; }
  /// Gradients are used and dropped as soon as they are complete (optimizer in backward).
  void set_drop_gradients(bool drop) { drop_gradients_ = drop; }
  /// Gradients are kept in this dtype, whatever backward makes (fp32 main gradients of 16-bit parameters).
  void set_gradient_dtype(std::optional<Dtype> dtype) { gradient_dtype_ = dtype; }
  void backward(Tensor loss);
  bool stopped() const { return stopped_; }

  // -- autocast ----------------------------------------------------------------------------------------------------
  std::optional<Dtype> autocast() const { return autocast_; }
  void set_autocast(std::optional<Dtype> dtype) { autocast_ = dtype; }
  /// The lower-precision cast of autocast_mode.h: cached for leaf fp32 parameters that require a gradient.
  Tensor autocast_cast(Tensor tensor, Dtype dtype);
  /// Leaving the autocast context: each layer's copies go in a stretch of that layer.
  void clear_autocast_cache();

  // -- bends -------------------------------------------------------------------------------------------------------
  // Programs and operations decide and divide by these where numbers of sequences, positions or tokens are concerned,
  // so that a record tells for which other sizes it holds (step/surface).
  bool above(Count quantity, Count limit) { return bend({Bend::Kind::kAbove, quantity, 0, limit}) != 0; }
  Count quotient(Count quantity, Count divisor) { return bend({Bend::Kind::kQuotient, quantity, 0, divisor}); }
  Count quotient_up(Count quantity, Count divisor) {
    return bend({Bend::Kind::kQuotient, quantity, divisor - 1, divisor});
  }
  Count round_up(Count quantity, Count multiple) { return quotient_up(quantity, multiple) * multiple; }
  bool is_multiple(Count quantity, Count of) { return bend({Bend::Kind::kMultiple, quantity, 0, of}) != 0; }
  Count power_of_two_from(Count quantity, Count divisor) { return bend({Bend::Kind::kPower, quantity, 0, divisor}); }
  const std::vector<Bend>& bends() const { return bends_; }

  // -- the record --------------------------------------------------------------------------------------------------
  const std::vector<std::int32_t>& events() const { return events_; }  ///< +id+1 allocates, −(id+1) frees
  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Site>& sites() const { return sites_; }
  const std::vector<ScopeName>& scopes() const { return scopes_; }
  const std::vector<std::int32_t>& buffers() const { return buffers_; }  ///< storages made by buffer()
  const std::vector<std::int16_t>& buffer_instances() const { return buffer_instances_; }
  /// Ends the record: what is let go from here on is no event.
  void close();

 private:
  void finish();

  struct Memory;

  struct Frame {
    BlockCall call;
    Tensor input;
    std::vector<Tensor> slots;
    std::int32_t count = 0;      // slots handed out in forward
    std::int32_t remaining = 0;  // not yet consumed by backward
    bool recomputed = false;
    bool offloaded = false;  // `input` is a description; its storage went to the host
    Shape shape;             // of an offloaded input
    Dtype dtype = Dtype::kFp32;
    std::optional<Dtype> autocast;
    std::int16_t instance = -1;
  };
  struct ReentrantCall {
    BlockCall call;
    std::optional<Dtype> autocast;
    bool has_second = false;  // the block returned a second tensor of this shape and dtype
    Shape second_shape;
    Dtype second_dtype = Dtype::kFp32;
  };

  static constexpr std::size_t kChunk = 64;
  static constexpr std::size_t kSavedChunk = 256;
  static constexpr std::size_t kBodyChunk = 256;
  Node& node(std::int32_t index) {
    return chunks_[static_cast<std::size_t>(index) / kChunk][static_cast<std::size_t>(index) % kChunk];
  }
  Node& push_node();
  Saved& push_saved(Node& n);
  void pop_saved(Node& n);
  void grow_site_table();
  Count bend(const Bend& bend);
  std::int32_t site_of(const Shape& shape, Dtype dtype, const char* op);
  std::int32_t persistent(const Shape& shape, Dtype dtype, const char* name, Category category);
  void run(std::int32_t begin);
  void execute(Node& n);
  void deposit(Edge edge, Tensor grad);
  void accumulate(Tensor& buffer, Tensor grad);
  void accumulate_parameter(Parameter& p);
  void recompute(Frame& frame);
  static void checkpoint_backward(Tape& tape, Node& n, Tensor* grads, Tensor* results);

  friend class Tensor;  // its bodies live here
  void drop(TensorBody* body);

  std::vector<std::unique_ptr<TensorBody[]>> bodies_;
  std::size_t body_count_ = 0;             // of bodies_ that were ever used
  std::vector<TensorBody*> spare_bodies_;  // used and free again
  std::vector<std::int32_t> events_;
  std::vector<Storage> storages_;
  std::vector<Segment> segments_;
  std::vector<Site> sites_;
  std::vector<ScopeName> scopes_;
  std::vector<Bend> bends_;               // each once
  std::vector<std::int32_t> site_table_;  // open addressing over sites_
  std::vector<Parameter> parameters_;
  std::vector<std::int32_t> buffers_;
  std::vector<std::int16_t> buffer_instances_;
  std::vector<std::vector<std::int32_t>> parameter_order_;  // by instance + 1
  std::vector<std::size_t> parameter_cursor_;
  std::vector<std::size_t> buffer_count_;  // by instance + 1, like the next one
  std::vector<std::size_t> buffer_cursor_;
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::int32_t node_count_ = 0;
  std::vector<std::unique_ptr<Saved[]>> saved_chunks_;  // a stack like the nodes': the last node's are on top
  std::size_t saved_count_ = 0;
  Node scratch_node_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<ReentrantCall> calls_;
  struct CachedCast {
    std::int32_t parameter_storage = -1;
    std::int16_t instance = -1;
    Tensor cast;
  };
  std::vector<CachedCast> autocast_cache_;
  std::optional<Dtype> autocast_;
  std::int32_t last_parameter_ = -1;
  std::int32_t packing_frame_ = -1;  // forward of a non-reentrant checkpoint
  Frame* recomputing_ = nullptr;
  Phase phase_ = Phase::kForward;
  Category category_ = Category::kActivations;
  std::int16_t scope_ = 0;
  std::int16_t instance_ = -1;
  std::int16_t instance_of_parameters_ = -1;
  bool grad_enabled_ = true;
  bool stopped_ = false;
  bool in_backward_ = false;
  bool force_segment_ = false;
  bool closed_ = false;
  bool drop_gradients_ = false;
  Tensor second_output_;
  std::optional<Dtype> gradient_dtype_;
  std::vector<std::pair<std::int16_t, Bytes>> offloaded_;
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
