// Axolotl v0.18 src/axolotl/kernels/lora.py (067b021) and unsloth/kernels/fast_lora.py, function by function.
#include "core/layers/fused_lora.hpp"

namespace tidemark {
namespace {

// What backward has to know of a layer. A node keeps it as numbers (Node::lengths), because the functions keep weights
// and scales as attributes of their ctx, which hold no memory of their own.
struct Layer {
  Count in = 0, out = 0;
  Count blocks = -1;  // of a packed weight; −1: it is not packed
  Count double_quant = 0;
  Count unpacked = 0;
  Count storage = -1;
  Count rank = 0;  // 0: no adapter
};
constexpr std::size_t kLayerNumbers = 7;

Layer described(const FusedLinear& l) {
  Layer d{l.in_features.n(), l.out_features.n()};
  if (!l.weight.defined()) {
    d.blocks = l.packed.block_count;
    d.double_quant = l.packed.double_quant ? 1 : 0;
    d.unpacked = static_cast<Count>(l.unpacked);
  }
  d.storage = l.weight.defined() ? l.weight.storage() : l.packed.storage;
  d.rank = l.a.defined() ? l.a.size(0) : 0;
  return d;
}

// The bits of FusedLora and the layers, in Node::lengths.
enum Flag : int {
  kOverwrites = 1,
  kAddsInProduct = 2,
  kCastsAhead = 4,
  kReuses = 8,
  kScalesFirst = 16,
  kDropped = 32,
  kBuffer = 64,
  kOneKernel = 128
};

std::vector<Count> noted(const FusedLora& how, bool dropped, const std::vector<FusedLinear>& layers) {
  std::vector<Count> numbers{(how.overwrites_input ? kOverwrites : 0) + (how.adds_in_product ? kAddsInProduct : 0) +
                             (how.casts_ahead ? kCastsAhead : 0) + (how.reuses_gradients ? kReuses : 0) +
                             (how.makes_scales_first ? kScalesFirst : 0) + (dropped ? kDropped : 0) +
                             (how.unpacks_into_buffer ? kBuffer : 0) + (how.unpacks_scales ? 0 : kOneKernel)};
  for (const FusedLinear& l : layers) {
    const Layer d = described(l);
    numbers.insert(numbers.end(), {d.in, d.out, d.blocks, d.double_quant, d.unpacked, d.storage, d.rank});
  }
  return numbers;
}

Layer layer_of(const Node& n, std::size_t i) {
  const Count* const d = n.lengths.data() + 1 + i * kLayerNumbers;
  return {d[0], d[1], d[2], d[3], d[4], d[5], d[6]};
}

FusedLora how_of(const Node& n) {
  const Count flags = n.lengths[0];
  FusedLora how;
  how.overwrites_input = (flags & kOverwrites) != 0;
  how.adds_in_product = (flags & kAddsInProduct) != 0;
  how.casts_ahead = (flags & kCastsAhead) != 0;
  how.reuses_gradients = (flags & kReuses) != 0;
  how.makes_scales_first = (flags & kScalesFirst) != 0;
  how.unpacks_into_buffer = (flags & kBuffer) != 0;
  how.unpacks_scales = (flags & kOneKernel) == 0;
  return how;
}

// dequantize(W, quant_state): nothing where the weight is not packed. Scales that are quantised become fp32 beside it.
Tensor unpacked(Tape& t, const FusedLora& how, const Layer& l) {
  if (l.blocks < 0) return {};
  const Shape scales{Dim(l.blocks)};
  const bool apart = l.double_quant != 0 && how.unpacks_scales;
  Tensor absmax;
  if (how.makes_scales_first && apart) absmax = t.allocate(scales, Dtype::kFp32, "dequantised scales");
  Tensor w = t.allocate(Shape{Dim(l.out), Dim(l.in)}, static_cast<Dtype>(l.unpacked), "dequantised weight");
  t.set_category(w, Category::kWorkspace);
  if (!how.makes_scales_first && apart) absmax = t.allocate(scales, Dtype::kFp32, "dequantised scales");
  return w;
}

// .to(dtype) without a graph
Tensor cast(Tape& t, const Tensor& x, Dtype dtype) {
  return x.dtype() == dtype ? x : t.allocate(x.shape().contiguous(), dtype, "to");
}

// X @ W, or in backward grad @ W: [rows, width].
Tensor product(Tape& t, const FusedLora& how, const Layer& l, const Shape& whole, Dtype dtype) {
  Tensor w;
  if (!how.unpacks_into_buffer) w = unpacked(t, how, l);
  return t.allocate(whole, dtype, "mm");
}

// out.addmm_(X @ A, B), or out += s * X @ A @ B: then X is scaled and the update is as wide as `out`.
void add_update(Tape& t, const FusedLora& how, const Layer& l, const Shape& x, const Shape& whole, Dtype dtype) {
  const Shape low = x.with_last(Dim(l.rank, Symbol::kRank));
  Tensor scaled;
  if (!how.adds_in_product) scaled = t.allocate(x, dtype, "mul");
  const Tensor lower = t.allocate(low, dtype, "mm");
  scaled.reset();
  if (!how.adds_in_product) t.allocate(whole, dtype, "mm");
}

// matmul_lora
Tensor forward_of(const FusedLora& how, const Tensor& x, const FusedLinear& l) {
  Tape& t = x.tape();
  const Layer layer = described(l);
  const Shape whole = x.shape().with_last(l.out_features);
  Tensor out = product(t, how, layer, whole, x.dtype());
  if (layer.rank == 0) return out;
  const Tensor a = cast(t, l.a, x.dtype());
  const Tensor b = cast(t, l.b, x.dtype());
  add_update(t, how, layer, x.shape().contiguous(), whole, x.dtype());
  return out;
}

// A.to(dtype) and B.to(dtype) of each layer, for backward.
void save_factors(Node* n, const FusedLora& how, Dtype dtype, const std::vector<FusedLinear>& layers) {
  for (const FusedLinear& l : layers) {
    if (!l.a.defined()) continue;
    for (const Tensor* factor : {&l.a, &l.b}) {
      Tape& t = factor->tape();
      const Tensor kept = how.casts_ahead ? cast(t, *factor, dtype) : *factor;
      t.save(n, kept);
    }
  }
}

Node* recorded(const char* name, BackwardFn rule, const Tensor& x, const Tensor& dropped,
               const std::vector<FusedLinear>& layers) {
  std::vector<const Tensor*> inputs{&x};
  if (dropped.defined()) inputs.push_back(&dropped);
  for (const FusedLinear& l : layers) {
    if (l.a.defined()) inputs.insert(inputs.end(), {&l.a, &l.b});
  }
  return x.tape().record(name, rule, inputs.data(), inputs.size());
}

void save_inputs(Node* n, const FusedLora& how, const Tensor& x, const Tensor& dropped) {
  x.tape().save(n, x);
  if (dropped.defined() || how.keeps_input_twice) x.tape().save(n, dropped.defined() ? dropped : x);
}

// -- backward ---------------------------------------------------------------------------------------------------------

// Where a layer's factors are among the node's inputs, and so its gradients among the results.
std::size_t place_of(const Node& n, std::size_t layer) {
  std::size_t place = (n.lengths[0] & kDropped) != 0 ? 2 : 1;
  for (std::size_t i = 0; i < layer; ++i) place += layer_of(n, i).rank > 0 ? 2 : 0;
  return place;
}

// What names of a function hold until it returns.
using Names = std::vector<Tensor>;

std::size_t count_of(const Node& n) {
  return (n.lengths.size() - 1) / kLayerNumbers;
}

// grad @ B; d_A = X.T @ that, d_B = (A @ X.T) @ grad, each in a buffer of its factor's layout.
void factor_gradients(Tape& t, Node& n, const FusedLora& how, std::size_t layer, const Shape& rows, Dtype dtype,
                      Tensor* r, Names& names) {
  const Layer l = layer_of(n, layer);
  if (l.rank == 0) return;
  const std::size_t at = place_of(n, layer);
  const Shape low = rows.with_last(Dim(l.rank, Symbol::kRank));
  Tensor lower = t.allocate(low, dtype, "mm");
  r[at] = t.allocate(n.input_shapes[at].contiguous(), dtype, "addmm (weight gradient)");
  if (!how.reuses_gradients) lower.reset();
  r[at + 1] = t.allocate(n.input_shapes[at + 1].contiguous(), dtype, "addmm (weight gradient)");
  { const Tensor turned = t.allocate(low, dtype, "mm"); }
  if (how.reuses_gradients) names.push_back(std::move(lower));
}

// grad_X.addmm_(grad @ B, A), where grad @ B is made anew.
void multiply_again(Tape& t, const FusedLora& how, const Layer& l, const Shape& input, Dtype dtype) {
  if (how.reuses_gradients || l.rank == 0) return;
  t.allocate(input.with_last(Dim(l.rank, Symbol::kRank)), dtype, "mm");
}

// Factors that were saved as they are, in the dtype of the input: names that live until the function returns.
void cast_factors(Tape& t, const Node& n, const FusedLora& how, Dtype dtype, Names& names) {
  if (how.casts_ahead) return;
  const std::size_t factors = place_of(n, count_of(n)) - place_of(n, 0);
  for (std::size_t i = n.saved.size() - factors; i < n.saved.size(); ++i)
    names.push_back(cast(t, n.saved[i].tensor, dtype));
}

void read_weights(Tape& t, const Node& n) {
  if (t.placement() == nullptr) return;
  for (std::size_t i = 0; i < count_of(n); ++i) {
    const Count storage = layer_of(n, i).storage;
    if (storage >= 0) t.placement()->backward_reads(static_cast<std::int32_t>(storage));
  }
}

// The gradient of what dropout made of X: zeros that updates are added to; LoRA_O: grad @ B @ A * s.
void dropped_gradient(Tape& t, Node& n, Dtype dtype, Tensor* r) {
  if ((n.lengths[0] & kDropped) == 0) return;
  const Shape shape = n.input_shapes[1].contiguous();
  Tensor product;
  if (count_of(n) == 1) product = t.allocate(shape, dtype, "mm");
  r[1] = t.allocate(shape, dtype, count_of(n) == 1 ? "mul" : "zeros_like");
}

// LoRA_QKV.backward, LoRA_QK.backward, LoRA_O.backward, LoRA_FusedProj.backward; LoRA_W.backward.
void projections_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const FusedLora how = how_of(n);
  const std::size_t count = count_of(n);
  const Dtype dtype = n.input_dtypes[0];
  const Shape input = n.input_shapes[0].contiguous();
  Names names;
  read_weights(t, n);
  for (std::size_t i = 0; i < count; ++i) {  // a gradient that did not come is zeros (set_materialize_grads)
    const Shape shape = input.with_last(Dim(layer_of(n, i).out));
    g[i] = g[i].defined() ? contiguous(std::move(g[i])) : zeros(t, shape, dtype);
  }
  cast_factors(t, n, how, dtype, names);
  for (std::size_t i = 0; i < count; ++i) factor_gradients(t, n, how, i, input, dtype, r, names);
  for (std::size_t i = 0; i < count; ++i) {
    const Layer l = layer_of(n, i);
    {
      const Tensor w = unpacked(t, how, l);
      if (i == 0) r[0] = how.overwrites_input ? n.saved_tensor(0) : t.allocate(input, dtype, "mm (input gradient)");
    }
    multiply_again(t, how, l, input, dtype);
  }
  dropped_gradient(t, n, dtype, r);
}

// LoRA_MLP.backward. Layers: gate, up, down; saved: X, (what the factors multiply), gate, up, factors. The
// activation's kernel writes the hidden state over the gradient of down's input, and gradients over gate and up.
void mlp_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const FusedLora how = how_of(n);
  const Dtype dtype = n.input_dtypes[0];
  const Shape input = n.input_shapes[0].contiguous();
  const Layer gate = layer_of(n, 0), up = layer_of(n, 1), down = layer_of(n, 2);
  const Shape inner = input.with_last(Dim(down.in, Symbol::kFeedForward));
  Names names;
  read_weights(t, n);
  g[0] = contiguous(std::move(g[0]));
  cast_factors(t, n, how, dtype, names);
  const Tensor hidden = product(t, how, down, inner, dtype);
  if (down.rank > 0) add_update(t, how, down, g[0].shape(), inner, dtype);
  factor_gradients(t, n, how, 2, inner, dtype, r, names);
  factor_gradients(t, n, how, 1, input, dtype, r, names);
  factor_gradients(t, n, how, 0, input, dtype, r, names);
  if (!n.needs(0)) return;
  {
    const Tensor w = unpacked(t, how, up);
    r[0] = how.overwrites_input ? n.saved_tensor(0) : t.allocate(input, dtype, "mm (input gradient)");
  }
  multiply_again(t, how, up, input, dtype);
  {
    const Tensor w = unpacked(t, how, gate);
    if (!how.adds_in_product) t.allocate(input, dtype, "mm");
  }
  multiply_again(t, how, gate, input, dtype);
  dropped_gradient(t, n, dtype, r);
}

}  // namespace

std::vector<Tensor> fused_projections(const FusedLora& how, Tensor x_in, Tensor dropped_in,
                                      const std::vector<FusedLinear>& layers) {
  const Tensor x = std::move(x_in), dropped = std::move(dropped_in);
  Tape& t = x.tape();
  Node* const n = recorded("LoRA projections", projections_backward, x, dropped, layers);
  std::vector<Tensor> results;
  for (const FusedLinear& l : layers) results.push_back(forward_of(how, x, l));
  save_inputs(n, how, x, dropped);
  save_factors(n, how, x.dtype(), layers);
  if (n != nullptr) n->lengths = noted(how, dropped.defined(), layers);
  for (std::size_t i = 0; i < results.size(); ++i) t.attach(n, results[i], static_cast<int>(i));
  return results;
}

Tensor fused_mlp(const FusedLora& how, Tensor x_in, Tensor dropped_in, const FusedMlp& mlp) {
  const Tensor x = std::move(x_in), dropped = std::move(dropped_in);
  Tape& t = x.tape();
  const std::vector<FusedLinear> layers{mlp.gate, mlp.up, mlp.down};
  Node* const n = recorded("LoRA_MLP", mlp_backward, x, dropped, layers);
  const Tensor gate = forward_of(how, x, mlp.gate);
  const Tensor up = forward_of(how, x, mlp.up);
  const Tensor hidden = t.allocate(gate.shape(), gate.dtype(), "gated activation");
  Tensor out = forward_of(how, hidden, mlp.down);
  save_inputs(n, how, x, dropped);
  t.save(n, gate);
  t.save(n, up);
  save_factors(n, how, x.dtype(), layers);
  if (n != nullptr) n->lengths = noted(how, dropped.defined(), layers);
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
