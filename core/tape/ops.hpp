#pragma once

#include "core/tape/tape.hpp"

/// The operations of PyTorch that models use, each with its output's dtype and layout, what it keeps for backward and
/// what its kernels allocate. Rules: pytorch v2.6.0 tools/autograd/derivatives.yaml and
/// torch/csrc/autograd/FunctionsManual.cpp; autocast lists: aten/src/ATen/autocast_mode.h.
/// C++ leaves the order of arguments open: never nest two allocating calls in one argument list.
namespace tidemark {

// -- views: no storage of their own -----------------------------------------------------------------------------------
Tensor view(Tensor x, const Shape& shape);  ///< sizes only; must be viewable
Tensor transpose(Tensor x, int a, int b);
Tensor permute(Tensor x, std::initializer_list<int> order);
Tensor expand(Tensor x, const Shape& shape);
Tensor unsqueeze(Tensor x, int dim);
Tensor narrow(Tensor x, int dim, Count start, Dim length);  ///< x[..., start:start+length, ...]
Tensor select(Tensor x, int dim);                           ///< x[:, i]: drops the dimension
struct Pieces {
  Few<Tensor, 4> part;
};
Pieces split(Tensor x, int dim, std::initializer_list<Dim> sizes);  ///< torch.split / chunk: backward is a cat
Pieces split(Tensor x, int dim, const std::vector<Dim>& sizes);
Pieces split(Tensor x, int dim, const std::vector<Count>& sizes);
Tensor every_other(Tensor x, Count start);  ///< x[..., start::2]
Pieces unbind(Tensor x, int dim);           ///< backward is a stack
Tensor detach(Tensor x);

// -- copies -----------------------------------------------------------------------------------------------------------
Tensor reshape(Tensor x, const Shape& shape);  ///< a view where strides allow, else a clone
Tensor contiguous(Tensor x);
Tensor clone(Tensor x);
Tensor to_card(Tensor x, std::int16_t card);  ///< where it lies there already no copy; operations follow it
Tensor to(Tensor x, Dtype dtype);             ///< no copy when the dtype is already right
/// x.to(dtype, memory_format=torch.contiguous_format), which changes no strides where the dtype is right.
Tensor to_contiguous(Tensor x, Dtype dtype);
Tensor cat(std::initializer_list<const Tensor*> parts, int dim);
Tensor cat(const Tensor* const* parts, std::size_t count, int dim);
Tensor cat(const std::vector<Tensor>& parts, int dim);
Tensor stack_last(Tensor a, Tensor b);  ///< torch.stack((a, b), dim=-1)
Tensor sum_to(Tensor x, const Shape& shape);
/// x[…] += y, where x is a view of what autograd knows or the part of it that begins behind the first entry (`behind`),
/// which Python then assigns to itself.
Tensor add_to_view(Tensor x, Tensor y, bool behind);
Tensor zeros(Tape& tape, const Shape& shape, Dtype dtype, const char* op = "zeros");
Tensor pad_last(Tensor x, Count extra);

// -- elementwise
// --------------------------------------------------------------------------------------------------------
Tensor add(Tensor a, Tensor b);
Tensor sub(Tensor a, Tensor b);
Tensor mul(Tensor a, Tensor b);
Tensor div(Tensor a, Tensor b);
Tensor add_in_place(Tensor a, Tensor b);  ///< a += b
Tensor add_scalar(Tensor x);
Tensor mul_scalar(Tensor x);      ///< also division by a number
Tensor scale_in_place(Tensor x);  ///< x *= a number
Tensor neg(Tensor x);
Tensor power(Tensor x);  ///< x.pow(n), torch.square: keeps its input whatever n; autocast: fp32
Tensor rsqrt(Tensor x);  ///< autocast: fp32
Tensor sqrt(Tensor x);   ///< keeps its result; not on autocast's lists
Tensor silu(Tensor x);
Tensor gelu(Tensor x);
Tensor relu(Tensor x);
Tensor tanh(Tensor x);
Tensor sigmoid(Tensor x);
Tensor dropout(Tensor x, double p);  ///< native_dropout: a byte mask; nothing at p = 0
Tensor clamp(Tensor x);
Tensor clamp_in_place(Tensor x);  ///< x.clamp_(): a clone of x stays for backward
/// transformers' XIELUActivation in Python: x plain, both slopes trained
Tensor xielu(Tensor x, Tensor alpha_p, Tensor alpha_n);
Tensor maximum(Tensor a, Tensor b);  ///< torch.maximum: keeps both; a tie's gradient goes to both
Tensor masked_fill(Tensor x, Tensor mask);
Tensor where(Tensor mask, Tensor x, Tensor other);
Tensor mean_last(Tensor x);  ///< mean(-1, keepdim=True)
Tensor std_last(Tensor x);   ///< std(-1, keepdim=True): keeps its input and its result
Tensor sum_rows(Tensor x);   ///< sum(dim=1): [B, S, H] to [B, H]

// -- reductions and norms
// -------------------------------------------------------------------------------------------------
Tensor softmax(Tensor x, std::optional<Dtype> dtype = std::nullopt);
Tensor log_softmax(Tensor x, std::optional<Dtype> dtype = std::nullopt);
/// aten::_fused_rms_norm (pytorch v2.9 aten/src/ATen/native/cuda/layer_norm_kernel.cu): keeps x and a number per row.
Tensor fused_rms_norm(Tensor x, Tensor weight);
Tensor layer_norm(Tensor x, Tensor weight, Tensor bias);  ///< undefined weight and bias: no affine part

// -- products
// -----------------------------------------------------------------------------------------------------------
Tensor lower_precision(Tensor x);                           ///< autocast's cast of what is on its list of 16 bits
Tensor linear(Tensor x, Tensor weight, Tensor bias = {});   ///< weight [out, in]
Tensor conv1d_addmm(Tensor x, Tensor weight, Tensor bias);  ///< transformers Conv1D: weight [in, out]
Tensor matmul(Tensor a, Tensor b);                          ///< batched (3-D, 4-D), or by a matrix
Tensor patch_convolution(Tensor x, Tensor weight, Tensor bias = {});  ///< Conv2d, Conv3d whose stride is its kernel
Tensor baddbmm(Tensor input, Tensor a, Tensor b);

// -- lookups and losses
// ---------------------------------------------------------------------------------------------------
Tensor embedding(Tensor ids, Tensor weight);
Tensor nll_loss(Tensor log_probabilities, Tensor target);
Tensor cross_entropy(Tensor logits, Tensor target);
/// Of [rows, S, n] one position per row: x[arange(rows), positions] (index) or a gather, [rows, n].
Tensor pick(Tensor x, Tensor rows, Tensor positions);
Tensor mse_loss(Tensor x, Tensor target);  ///< mean over all; autocast: fp32
/// Mean over all of |x - target|: without the mean, l1_loss(reduction="none").
Tensor l1_differences(Tensor x, Tensor target);
Tensor binary_cross_entropy_with_logits(Tensor x, Tensor target);  ///< mean over all; autocast: fp32
Tensor mean_all(Tensor x);                                         ///< also the sum: one number
Tensor take(Tensor x, int dim, Dim length);    ///< x[:, [i, …]]: a copy of `length` entries along `dim`
Tensor gather_rows(Tensor x, Tensor indices);  ///< x[indices] along the first dimension, as many rows as indices
Tensor put_rows(Tensor x, Tensor indices, Tensor rows);  ///< x[indices] = rows, in place
/// x with the rows that the mask [B, S, 1] marks replaced by those of `source`.
Tensor masked_scatter(Tensor x, Tensor mask, Tensor source);
Tensor average_pool(Tensor x, Count side);    ///< nn.AvgPool2d whose stride is its kernel
Tensor index_rows(Tensor x, Tensor indices);  ///< x[indices] along the first dimension, as many rows as indices
Tensor gather_last(Tensor x, Tensor indices, Dim length);   ///< torch.gather(x, -1, indices): keeps x, too
Tensor repeat_rows(Tensor x, Dim times);                    ///< x.repeat(times, 1, 1)
Tensor scatter_rows(Tensor x, Tensor indices, Shape full);  ///< into zeros: index_put

// -- fused kernels of other libraries
// -----------------------------------------------------------------------------------
/// linkedin/Liger-Kernel 0.8 ops/rms_norm.py; `in_place`: the gradient of x takes its output's place.
Tensor liger_rms_norm(Tensor x, Tensor weight, bool in_place = true);
Tensor liger_rope(Tensor x, Tensor cos, Tensor sin);  ///< ops/rope.py: in place, forward and backward
Tensor liger_swiglu(Tensor gate, Tensor up);          ///< ops/swiglu.py
/// axolotl 067b021 kernels/gemma4_fused_rope.py, of x [B, S, heads, head_dim] by tables [B or 1, S, rotary_dim]: a norm
/// over each head that is turned, and one without a weight that is not.
Tensor norm_rope(Tensor x, Tensor weight, const Tensor& cos, const Tensor& sin);
Tensor norm_without_weight(Tensor x);

// -- attention
// ------------------------------------------------------------------------------------------------------------
Tensor flash_attention(Tensor q, Tensor k, Tensor v, double dropout_p);
Tensor efficient_attention(Tensor q, Tensor k, Tensor v, Tensor bias, double dropout_p);
/// cuDNN's, on Hopper's and Blackwell's data-centre cards.
Tensor cudnn_attention(Tensor q, Tensor k, Tensor v, Tensor mask);
Tensor math_attention(Tensor q, Tensor k, Tensor v, Tensor mask, bool causal, double dropout_p, bool enable_gqa);

// -- helpers for programs and backward rules
// --------------------------------------------------------------------------------
/// The layout that an elementwise kernel gives its output (ATen TensorIterator: compute_strides).
Shape elementwise_shape(std::initializer_list<const Tensor*> operands);
Dtype promote(const Tensor& a, const Tensor& b);
Shape flat(const Shape& s);  ///< all dimensions but the last as one
bool is_viewable(const Shape& from, const Shape& to, Shape* out);

}  // namespace tidemark
