// Operations of Megatron-Core on tensors that several GPUs share.
#include "core/tape/megatron_ops.hpp"

namespace tidemark {
namespace {

Shape with_rows(const Shape& from, Count rows) {
  Shape s = from;
  s.dims[0] = Dim(rows, from.dims[0].symbol());
  s.make_contiguous();
  return s;
}

// layers.py LinearWithGradAccumulationAndAsyncCommunication.backward: the whole input beside its gradient, which is
// scattered while the weight's is computed. LinearWithFrozenWeight needs no input.
void gathered_linear_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const bool gathers = n.attributes[0] > 1, trains = n.needs(1);
  const Shape whole = with_rows(n.input_shapes[0], g[0].size(0));
  Tensor input;
  if (gathers && trains && n.attributes[2] == 0) input = t.allocate(whole, n.input_dtypes[0], "all_gather_into_tensor");
  if (n.needs(0)) r[0] = t.allocate(whole, n.input_dtypes[0], "mm (input gradient)");
  const Tensor gradient = r[0];
  if (gathers && n.needs(0)) r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "reduce_scatter_tensor");
  if (n.input_count > 2 && n.needs(2)) r[2] = g[0];  // the engine sums it to the bias's shape
  if (!trains) return;
  const bool fused = n.attributes[1] != 0;
  r[1] = fused ? t.part_of_buffer(n.input_shapes[1], n.input_dtypes[1])
               : t.allocate(n.input_shapes[1], n.input_dtypes[1], "mm (weight gradient)");
}

// Transformer Engine 2.x pytorch/module/grouped_linear.py: without a gradient of the weights no input is kept.
void grouped_linear_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  if (n.needs(0)) r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "grouped gemm (input gradient)");
  if (!n.needs(1)) return;
  r[1] = n.attributes[1] != 0 ? t.part_of_buffer(n.input_shapes[1], n.input_dtypes[1])
                              : t.allocate(n.input_shapes[1], n.input_dtypes[1], "grouped gemm (weight gradient)");
}

void communicate_gradient(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "communicated gradient");
}

void pass_gradient(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = g[0];
}

// The gradient that came is there until autograd's engine is through with this node.
void swiglu_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "swiglu_back");
}

void weighted_swiglu_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "weighted_swiglu_back");
  r[1] = t.allocate(n.input_shapes[1], n.input_dtypes[1], "weighted_swiglu_back");
}

// Compiled (fused_cross_entropy.py calculate_gradients), Inductor's code copies the softmax, writes into that, and
// casts it to bf16 whatever the logits have.
void cross_entropy_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = n.saved_tensor(0);
  if (n.attributes[0] == 0) return;
  const Tensor copy = t.allocate(n.input_shapes[0], Dtype::kFp32, "index_put");
  r[0] = t.allocate(n.input_shapes[0], Dtype::kBf16, "calculate_gradients");
}

}  // namespace

Tensor gathered_linear(Tensor x_in, Tensor weight_in, Tensor bias_in, Count shards, bool fused, bool to_buffer) {
  const Tensor x = std::move(x_in), weight = std::move(weight_in), bias = std::move(bias_in);
  Tape& t = x.tape();
  Node* n = bias.defined() ? t.record("gathered_linear", gathered_linear_backward, {&x, &weight, &bias})
                           : t.record("gathered_linear", gathered_linear_backward, {&x, &weight});
  if (n != nullptr) {
    n->attributes[0] = shards;
    n->attributes[1] = fused ? 1 : 0;
    n->attributes[2] = to_buffer ? 1 : 0;
  }
  const bool trains = weight.requires_grad();
  if (trains) t.save(n, x);
  t.save(n, weight);
  const Shape whole = with_rows(x.shape(), x.size(0) * shards);
  Tensor gathered;
  if (shards > 1 && (!to_buffer || !trains)) gathered = t.allocate(whole, x.dtype(), "all_gather_into_tensor");
  Tensor out = t.allocate(whole.with_last(weight.dim(0)), x.dtype(), "mm");
  t.attach(n, out);
  return out;
}

Tensor grouped_linear(Tensor x_in, Tensor weight_in, bool fused) {
  const Tensor x = std::move(x_in), weight = std::move(weight_in);
  Tape& t = x.tape();
  Node* n = t.record("grouped_linear", grouped_linear_backward, {&x, &weight});
  if (n != nullptr) n->attributes[1] = fused ? 1 : 0;
  if (weight.requires_grad()) t.save(n, x);
  t.save(n, weight);
  Tensor out = t.allocate(Shape{x.dim(0), weight.dim(1)}, x.dtype(), "grouped gemm");
  t.attach(n, out);
  return out;
}

Tensor reduce_scattered(Tensor x_in, Count shards) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("reduce_scattered", communicate_gradient, {&x});
  Tensor out = t.allocate(with_rows(x.shape(), t.quotient(x.size(0), shards)), x.dtype(), "reduce_scatter_tensor");
  t.attach(n, out);
  return out;
}

Tensor all_gathered(Tensor x_in, Count shards) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("all_gathered", communicate_gradient, {&x});
  Tensor out = t.allocate(with_rows(x.shape(), x.size(0) * shards), x.dtype(), "all_gather");
  t.attach(n, out);
  return out;
}

Tensor all_gathered_last(Tensor x_in, Count shards) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("all_gathered_last", communicate_gradient, {&x});
  const Shape whole = x.shape().with_last(Dim(x.size(-1) * shards));
  Tensor gathered = t.allocate(whole, x.dtype(), "all_gather");  // one GPU's columns behind another's
  Tensor out = t.allocate(whole, x.dtype(), "cat");
  t.attach(n, out);
  return out;
}

Tensor softmax_over_gradient(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("softmax_over_gradient", pass_gradient, {&x});
  Tensor out = t.allocate(x.shape(), x.dtype(), "scaled_upper_triang_masked_softmax");
  t.save(n, out);
  t.attach(n, out);
  return out;
}

Tensor bias_swiglu(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("swiglu", swiglu_backward, {&x});
  Shape half = x.shape();
  half.dims[half.rank - 1] = Dim(half.dims[half.rank - 1].n() / 2, Symbol::kFeedForward);
  half.make_contiguous();
  Tensor out = t.allocate(half, x.dtype(), "swiglu");
  t.save(n, x);
  t.attach(n, out);
  return out;
}

Tensor weighted_swiglu(Tensor x_in, Tensor weights_in) {
  const Tensor x = std::move(x_in), weights = std::move(weights_in);
  Tape& t = x.tape();
  Node* n = t.record("weighted_swiglu", weighted_swiglu_backward, {&x, &weights});
  t.save(n, x);
  t.save(n, weights);
  Tensor out = t.allocate(x.shape().with_last(Dim(x.size(-1) / 2)), x.dtype(), "weighted_swiglu");
  t.attach(n, out);
  return out;
}

Tensor vocab_parallel_cross_entropy(Tensor logits_in, Tensor target_in, bool in_place, bool compiled) {
  const Tensor logits = std::move(logits_in), target = std::move(target_in);
  Tape& t = logits.tape();
  Node* n = t.record("vocab_parallel_cross_entropy", cross_entropy_backward, {&logits});
  if (n != nullptr) n->attributes[0] = compiled ? 1 : 0;
  Tensor softmax = logits;
  if (!in_place) softmax = t.allocate(logits.shape(), Dtype::kFp32, "float");
  t.save(n, softmax);
  t.save(n, t.allocate(target.shape(), Dtype::kBool, "target_mask"));
  t.save(n, t.allocate(target.shape(), Dtype::kInt64, "masked_target"));
  const Tensor maximum = t.allocate(target.shape(), Dtype::kFp32, "max");
  const Tensor sum = t.allocate(target.shape(), Dtype::kFp32, "sum");
  Tensor out = t.allocate(target.shape(), Dtype::kFp32, "loss");
  t.attach(n, out);
  return out;
}

Tensor without_data(const Tensor& x) {
  Tensor out = x.tape().allocate(Shape{}, x.dtype(), "deallocate_output_tensor");
  const Edge edge = x.edge();
  x.tape().attach(edge.node, out, edge.output);
  return out;
}

}  // namespace tidemark
