// Mamba-2's mixer: the fused kernels, and transformers' torch path with its products of six dimensions. Batch and
// chunks are one dimension here, and heads' columns and states where nothing tells them apart.
#include "core/layers/ssm.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kNorm = "transformers 5.12 models/mamba2/modeling_mamba2.py: MambaRMSNormGated.forward";
constexpr const char* kFused = "mamba-ssm 2 ops/triton/ssd_combined.py: MambaSplitConv1dScanCombinedFn";

/// Sizes of the torch path.
struct Sizes {
  Dim chunks;  ///< of one row
  Dim size;    ///< tokens of a chunk
  Dim outer;   ///< batch times chunks
  Dim heads, width, state;
  Count extra = 0;  ///< tokens that pad the last chunk
};

Sizes sizes_of(Net& net) {
  const StateSpace& s = net.arch.ssm;
  Sizes z;
  z.chunks = Dim(net.tape.quotient_up(net.S.n(), s.chunk));
  z.size = Dim(s.chunk);
  z.outer = Dim(net.B.n() * z.chunks.n());
  z.heads = Dim(s.heads);
  z.width = Dim(s.head_dim);
  z.state = Dim(s.state);
  z.extra = z.chunks.n() * s.chunk - net.S.n();
  return z;
}

// segment_sum: x is [.., n].
Tensor segment_sum(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const Dim n = x.dim(-1);
  const Shape square{n, n};
  const auto mask = [&] {
    Tensor ones = t.allocate(square, Dtype::kBool, "ones");
    ones = t.allocate(square, Dtype::kBool, "tril");
    return ones;
  };
  Shape wide = x.shape();
  wide.dims[wide.rank++] = n;
  Tensor lower = mask();
  Tensor input = masked_fill(expand(unsqueeze(x, -1), wide), t.allocate(square, Dtype::kBool, "bitwise_not"));
  Tensor sums = cumsum(input);
  lower = mask();
  return masked_fill(sums, t.allocate(square, Dtype::kBool, "bitwise_not"));
}

/// What torch_forward has names for until it returns.
struct Locals {
  Tensor g_intermediate, g, m_intermediate, m, diagonal, decay_states, b_decay, previous, states, decay_chunk,
      new_states, state_decay_out, c_times_states, off;
};

// 1. within chunks: scores of tokens, by the decay between them.
void within_chunks(const Sizes& z, const Tensor& x, const Tensor& b, const Tensor& c, const Tensor& decay, Locals& l) {
  const Dim one(1);
  const Shape rows{z.outer, z.size, one, z.heads, z.state}, columns{z.outer, one, z.size, z.heads, z.state};
  // One after another: whose gradient comes first decides whether the other is added to it in place.
  Tensor by_row = view(c, rows), by_column = view(b, columns);
  l.g_intermediate = mul(std::move(by_row), std::move(by_column));
  l.g = sum_over(l.g_intermediate, -1, false);
  const Tensor by_token = view(decay, Shape{z.outer, z.size, z.size, z.heads, one});
  l.m_intermediate = mul(unsqueeze(l.g, -1), by_token);
  l.m = sum_over(l.m_intermediate, -1, false);
  Tensor scores = unsqueeze(l.m, -1), values = view(x, Shape{z.outer, one, z.size, z.heads, z.width});
  Tensor y = mul(std::move(scores), std::move(values));
  l.diagonal = sum_over(std::move(y), 2, false);
}

// 2. the state of each chunk; 3. what it becomes from chunk to chunk.
void across_chunks(Net& net, const Sizes& z, const Tensor& x, const Tensor& b, const Tensor& sums, Locals& l) {
  const Dim one(1), next(z.chunks.n() + 1), flat(z.width.n() * z.state.n());
  const Tensor last = narrow(sums, -1, z.size.n() - 1, one);
  l.decay_states = exp(sub(last, sums));
  l.b_decay = mul(b, view(l.decay_states, Shape{z.outer, z.size, z.heads, one}));
  Tensor decayed = unsqueeze(l.b_decay, -2), inputs = unsqueeze(x, -1);
  Tensor states = mul(std::move(decayed), std::move(inputs));
  l.states = sum_over(std::move(states), 1, false);
  l.previous = zeros(net.tape, Shape{net.B, one, z.heads, flat}, Dtype::kFp32, "zeros_like");
  l.states = view(std::move(l.states), Shape{net.B, z.chunks, z.heads, flat});
  l.states = cat({&l.previous, &l.states}, 1);
  Tensor ends = select(sums, -1);
  ends = pad(std::move(ends), -1, 1);
  l.decay_chunk = exp(segment_sum(std::move(ends)));
  const Tensor by_chunk = view(l.decay_chunk, Shape{net.B, next, next, z.heads, one});
  Tensor product = mul(by_chunk, unsqueeze(l.states, 2));
  l.new_states = sum_over(std::move(product), 1, false);
}

// 4. what states add to the outputs.
Tensor with_states(Net& net, const Sizes& z, const Tensor& c, const Tensor& sums, Locals& l) {
  const Dim one(1);
  l.states = narrow(l.new_states, 1, 0, z.chunks);
  l.state_decay_out = exp(sums);
  Tensor states = view(l.states, Shape{z.outer, one, z.heads, z.width, z.state});
  l.c_times_states = mul(unsqueeze(c, -2), std::move(states));
  Tensor sum = sum_over(l.c_times_states, -1, false);
  l.off = mul(std::move(sum), view(l.state_decay_out, Shape{z.outer, z.size, z.heads, one}));
  Tensor y = add(l.diagonal, l.off);
  return view(std::move(y), Shape{net.B, Dim(z.chunks.n() * z.size.n()), z.heads, z.width});
}

/// What the scan reads: x [B, S, heads, width], B and C [B, S, groups, state], dt and A.
struct ScanInputs {
  Tensor x, b, c, dt, a;
};

// clamp(softplus(dt + dt_bias))
Tensor time_step(Net& net, const char* module, const Tensor& dt) {
  const Tensor bias = net.parameter(module, "dt_bias", Shape{Dim(net.arch.ssm.heads)});
  Tensor step = add(dt, bias);
  step = softplus(std::move(step));
  return clamp(std::move(step));
}

// -exp(A_log.float())
Tensor decay_rate(Net& net, const char* module) {
  Tensor rate = to(net.parameter(module, "A_log", Shape{Dim(net.arch.ssm.heads)}), Dtype::kFp32);
  rate = exp(std::move(rate));
  return neg(std::move(rate));
}

// -- mamba2_chunk_scan of transformers 5.15 and later: the same steps as products of matrices (torch.einsum) --

// torch 2.14 ATen/native/Linear.cpp sumproduct_pair: an operand is reshaped to [outer * heads, .., ..], which copies it
// unless both are one stride apart.
Tensor folded(Tensor x) {
  const Shape& shape = x.shape();
  const bool is_one = shape.size(0) == 1 || shape.strides[0] == shape.strides[1] * shape.size(1);
  return is_one ? x : contiguous(std::move(x));
}

Tensor heads_before_tokens(const Tensor& x) {
  return folded(permute(x, {0, 2, 1, 3}));
}

// Steps 1 to 4: x, B, C [outer, size, heads, ..], a's sums and decays.
Tensor by_products(Net& net, const Sizes& z, const ScanInputs& s, const Tensor& sums, const Tensor& decay, Locals& l) {
  const Dim one(1), next(z.chunks.n() + 1), flat(z.width.n() * z.state.n());
  {
    Tensor rows = heads_before_tokens(s.c), columns = folded(permute(s.b, {0, 2, 3, 1}));
    l.g = matmul(std::move(rows), std::move(columns));
  }
  l.m = mul(l.g, view(decay, Shape{z.outer, z.heads, z.size, z.size}));
  l.diagonal = permute(matmul(l.m, heads_before_tokens(s.x)), {0, 2, 1, 3});

  l.decay_states = exp(sub(narrow(sums, -1, z.size.n() - 1, one), sums));
  l.b_decay = mul(s.b, view(l.decay_states, Shape{z.outer, z.size, z.heads, one}));
  {
    Tensor rows = folded(permute(s.x, {0, 2, 3, 1})), columns = heads_before_tokens(l.b_decay);
    l.states = matmul(std::move(rows), std::move(columns));
  }
  l.previous = zeros(net.tape, Shape{net.B, one, z.heads, flat}, Dtype::kFp32, "zeros_like");
  l.states = view(std::move(l.states), Shape{net.B, z.chunks, z.heads, flat});
  l.states = cat({&l.previous, &l.states}, 1);
  l.decay_chunk = exp(segment_sum(pad(select(sums, -1), -1, 1)));
  const Tensor between = view(l.decay_chunk, Shape{net.B, z.heads, next, next});
  l.new_states = permute(matmul(between, heads_before_tokens(l.states)), {0, 2, 1, 3});

  l.states = narrow(l.new_states, 1, 0, z.chunks);
  l.state_decay_out = exp(sums);
  {
    Tensor rows = heads_before_tokens(s.c), starts;
    if (z.chunks.n() == 1) {
      starts = transpose(view(select(l.states, 1), Shape{z.outer, z.heads, z.width, z.state}), 2, 3);
    } else {
      starts = view(contiguous(l.states), Shape{z.outer, z.heads, z.state, z.width});
    }
    l.c_times_states = permute(matmul(std::move(rows), std::move(starts)), {0, 2, 1, 3});
  }
  l.off = mul(l.c_times_states, view(l.state_decay_out, Shape{z.outer, z.size, z.heads, one}));
  Tensor y = contiguous(add(l.diagonal, l.off));
  return view(std::move(y), Shape{net.B, Dim(z.chunks.n() * z.size.n()), z.heads, z.width});
}

bool scans_by_products(const Net& net) {
  return net.job.framework.at_least(5, 15);
}

// "ssd naive implementation without einsums", until 5.14
Tensor torch_scan(Net& net, const char* module, ScanInputs s, Locals& l) {
  const Sizes z = sizes_of(net);
  s.dt = time_step(net, module, s.dt);
  const Shape grouped{net.B, net.S, Dim(net.arch.ssm.groups), z.state};
  s.x = to(reshape(std::move(s.x), Shape{net.B, net.S, z.heads, z.width}), Dtype::kFp32);
  s.b = to(reshape(std::move(s.b), grouped), Dtype::kFp32);
  s.c = to(reshape(std::move(s.c), grouped), Dtype::kFp32);
  s.b = repeat_heads(std::move(s.b), z.heads.n() / net.arch.ssm.groups);
  s.c = repeat_heads(std::move(s.c), z.heads.n() / net.arch.ssm.groups);
  const Tensor d = net.parameter(module, "D", Shape{z.heads});
  Tensor padded = pad(s.x, 1, z.extra);
  const Tensor residual = mul(unsqueeze(d, -1), std::move(padded));
  const auto step = [&](Tensor dt) { return scans_by_products(net) ? to(std::move(dt), Dtype::kFp32) : dt; };
  s.x = mul(s.x, step(unsqueeze(s.dt, -1)));
  s.a = mul(s.a, step(s.dt));
  // What the convolution returns has tokens side by side, and of one chunk that is how its products read it: the pad
  // keeps it so (channels_last), as do all before it.
  const bool side_by_side = scans_by_products(net) && z.chunks.n() == 1;
  Tensor x = side_by_side ? permute(pad(permute(s.x, {0, 2, 3, 1}), 3, z.extra), {0, 3, 1, 2}) : pad(s.x, 1, z.extra);
  Tensor a = pad(s.a, 1, z.extra), b = pad(s.b, 1, z.extra), c = pad(s.c, 1, z.extra);
  s.x = side_by_side ? std::move(x) : view(std::move(x), Shape{z.outer, z.size, z.heads, z.width});
  s.a = permute(view(std::move(a), Shape{net.B, z.chunks, z.size, z.heads}), {0, 3, 1, 2});
  s.b = view(std::move(b), Shape{z.outer, z.size, z.heads, z.state});
  s.c = view(std::move(c), Shape{z.outer, z.size, z.heads, z.state});
  const Tensor sums = cumsum(s.a);
  const Tensor decay = exp(segment_sum(s.a));
  Tensor y;
  if (scans_by_products(net)) {
    y = by_products(net, z, s, sums, decay, l);
  } else {
    within_chunks(z, s.x, s.b, s.c, decay, l);
    across_chunks(net, z, s.x, s.b, sums, l);
    y = with_states(net, z, s.c, sums, l);
  }
  y = add(std::move(y), residual);
  y = narrow(std::move(y), 1, 0, net.S);
  return reshape(std::move(y), Shape{net.B, net.S, Dim(z.heads.n() * z.width.n())});
}

}  // namespace

Tensor gate_then_norm(Net& net, const char* name, Tensor y_in, Tensor gate_in) {
  Scope in(net.tape, name, kNorm);
  const Dtype dtype = y_in.dtype();
  const Tensor gate = std::move(gate_in);
  Tensor h = to(std::move(y_in), Dtype::kFp32);
  Tensor open = to(gate, Dtype::kFp32);
  open = silu(std::move(open));
  h = mul(std::move(h), std::move(open));
  const Shape whole = h.shape();
  if (net.arch.model_type != "mamba2") {
    h = view(std::move(h),
             Shape{net.B, net.S, Dim(net.arch.ssm.groups), Dim(net.arch.ssm.width / net.arch.ssm.groups)});
  }
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  h = view(std::move(h), whole);
  h = to(std::move(h), dtype);
  const Tensor weight = net.parameter(name, "weight", Shape{h.dim(-1)});
  return mul(weight, h);
}

namespace {

// torch_forward
Tensor torch_mixer(Net& net, const Mamba2Form& form, Tensor hidden_in) {
  const StateSpace& s = net.arch.ssm;
  const Dim width(s.width), grouped(s.groups * s.state), channels(s.width + 2 * grouped.n()), heads(s.heads);
  const Dtype dtype = hidden_in.dtype();
  Tensor input = mask_padding(net, std::move(hidden_in));
  if (form.scale_input != nullptr) input = form.scale_input(net, std::move(input));
  Tensor projected = net.linear(form.in_proj, input, Dim(width.n() + channels.n() + heads.n()), s.bias);
  if (form.scale_projected != nullptr) projected = form.scale_projected(net, std::move(projected));
  const Pieces three = split(projected, -1, {width, channels, heads});
  Tensor mixed = causal_convolution(net, form.conv1d, transpose(three.part[1], 1, 2), s.conv_bias);
  mixed = transpose(std::move(mixed), 1, 2);
  mixed = mask_padding(net, std::move(mixed));
  const Pieces parts = split(mixed, -1, {width, grouped, grouped});
  Locals locals;
  Tensor y =
      torch_scan(net, form.module,
                 {parts.part[0], parts.part[1], parts.part[2], three.part[2], decay_rate(net, form.module)}, locals);
  y = form.gated_norm(net, form.norm, std::move(y), three.part[0]);
  Tensor narrow_y = to(y, dtype);
  return net.linear(form.out_proj, std::move(narrow_y), net.H, s.bias);
}

}  // namespace

Tensor mamba2_mixer(Net& net, const Mamba2Form& form, Tensor hidden) {
  Scope in(net.tape, form.module, form.source);
  if (net.job.torch_scan) return torch_mixer(net, form, std::move(hidden));
  const StateSpace& s = net.arch.ssm;
  const Dim channels(s.width + 2 * s.groups * s.state), heads(s.heads);
  Tensor input = mask_padding(net, std::move(hidden));
  if (form.scale_input != nullptr) input = form.scale_input(net, std::move(input));
  Tensor projected = net.linear(form.in_proj, input, Dim(s.width + channels.n() + heads.n()), s.bias);
  if (form.scale_projected != nullptr) projected = form.scale_projected(net, std::move(projected));
  SplitScan scan;
  scan.a = decay_rate(net, form.module);
  scan.dt_bias = net.parameter(form.module, "dt_bias", Shape{heads});
  scan.d = net.parameter(form.module, "D", Shape{heads});
  Tensor weight = net.parameter(form.conv1d, "weight", Shape{channels, Dim(1), Dim(s.kernel)});
  scan.conv_weight = view(std::move(weight), Shape{channels, Dim(s.kernel)});
  if (s.conv_bias) scan.conv_bias = net.parameter(form.conv1d, "bias", Shape{channels});
  if (s.norm) scan.norm_weight = net.parameter(form.norm, "weight", Shape{Dim(s.width)});
  scan.out_weight = net.linear_weight(form.out_proj, net.H, Dim(s.width));
  if (s.bias) scan.out_bias = net.parameter(form.out_proj, "bias", Shape{net.H});
  scan.head_dim = s.head_dim;
  scan.groups = s.groups;
  scan.state = s.state;
  scan.chunk = s.chunk;
  Scope fused(net.tape, form.module, kFused);
  return split_conv1d_scan(projected, scan);
}

}  // namespace tidemark
