// The attention interface of transformers 5.12: eager_attention_forward of the modelling files,
// integrations/sdpa_attention.py, integrations/flash_attention.py, and the masks of masking_utils.py.
#include <algorithm>
#include <utility>

#include "core/layers/kv_cache.hpp"
#include "core/layers/net.hpp"

namespace tidemark {
namespace {

constexpr const char* kEager = "transformers 5.12 models/llama/modeling_llama.py: eager_attention_forward";
constexpr const char* kSdpa = "transformers 5.12 integrations/sdpa_attention.py: sdpa_attention_forward";
constexpr const char* kFlash2 = "transformers 5.12 modeling_flash_attention_utils.py: _flash_attention_forward";
constexpr const char* kMasks = "transformers 5.12 masking_utils.py: sdpa_mask, eager_mask";

Tensor run_attention(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options);

// transpose(1, 2).contiguous(), then reshape(*input_shape, -1)
Tensor heads_to_rows(Tensor x) {
  Tensor y = transpose(std::move(x), 1, 2);
  y = contiguous(std::move(y));
  const Dim width(y.size(2) * y.size(3), product_symbol(y.dim(2).symbol(), y.dim(3).symbol()));
  const Shape rows{y.dim(0), y.dim(1), width};
  return reshape(std::move(y), rows);
}

Tensor eager(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, const AttentionOptions& o) {
  Scope in(net.tape, "self_attn", kEager);
  net.attention_kernel = "eager";
  const Tensor q = std::move(q_in), k_arg = std::move(k_in), v_arg = std::move(v_in);
  const Count times = q.size(1) / k_arg.size(1);
  const Dtype dtype = q.dtype();
  const Tensor k = repeat_kv(k_arg, times);
  const Tensor v = repeat_kv(v_arg, times);
  Tensor kt = transpose(k, 2, 3);
  Tensor scores = matmul(q, std::move(kt));
  if (o.scale) scores = mul_scalar(std::move(scores));
  if (o.softcap) {
    scores = mul_scalar(std::move(scores));
    scores = tanh(std::move(scores));
    scores = mul_scalar(std::move(scores));
  }
  if (o.mask.defined()) scores = add(std::move(scores), o.mask);
  if (o.softmax_fp32) {
    // One expression: the scores keep their name until what it gives takes it.
    Tensor probabilities = softmax(scores, Dtype::kFp32);
    if (o.cast_back) probabilities = to(std::move(probabilities), dtype);
    scores = std::move(probabilities);
  } else {
    scores = softmax(std::move(scores));  // in fp32 under autocast
    if (o.cast_back) scores = to(std::move(scores), dtype);
  }
  scores = dropout(std::move(scores), o.dropout);
  net.attention_weights = scores;
  Tensor out = matmul(scores, v);
  return heads_to_rows(std::move(out));
}

// attention.cpp convert_boolean_attn_mask, then pad_bias: an additive copy per layer where the mask is neither.
Tensor additive_mask(Tensor mask_in, const Tensor& q, const Tensor& k) {
  Tensor mask = std::move(mask_in);
  Tape& t = q.tape();
  if (mask.requires_grad()) {  // Swin's positions
    const Dim columns = mask.dim(-1);
    if (!t.is_multiple(columns.n(), 16)) {
      mask = pad_last(std::move(mask), t.round_up(columns.n(), 16) - columns.n());
      mask = narrow(std::move(mask), -1, 0, columns);
    }
    return expand(std::move(mask), Shape{q.dim(0), q.dim(1), q.dim(2), k.dim(2)});
  }
  Shape s = mask.shape();
  s.make_contiguous();
  if (mask.dtype() == Dtype::kBool) {
    mask = t.allocate(s, q.dtype(), "attention mask (additive)");
    Tensor inverted = t.allocate(s, Dtype::kBool, "attention mask (inverted)");
  }
  if (!t.is_multiple(s.size(-1), 16)) {
    const Shape wide = s.with_last(Dim(t.round_up(s.size(-1), 16)));
    mask = t.allocate(wide, q.dtype(), "attention mask (padded)");
  }
  return mask;
}

Tensor sdpa(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, const AttentionOptions& o) {
  Scope in(net.tape, "self_attn", kSdpa);
  const Tensor q = std::move(q_in);
  Tensor k = std::move(k_in), v = std::move(v_in);
  bool enable_gqa = false;
  if (o.has_groups) {
    // use_gqa_in_sdpa: only without a mask, and from 5.13 on only where a fused kernel takes such heads.
    constexpr Count kWidestHead = 256;
    const bool takes = !net.job.framework.at_least(5, 13) || (k.size(3) == v.size(3) && k.size(3) <= kWidestHead);
    if (o.mask.defined() || !takes) {
      const Count times = q.size(1) / k.size(1);
      k = repeat_kv(std::move(k), times);
      v = repeat_kv(std::move(v), times);
    } else {
      enable_gqa = true;
    }
  }
  Tensor out = scaled_dot_product_attention(net, q, k, v, o.mask, o.dropout, o.causal && !o.mask.defined(), enable_gqa);
  return heads_to_rows(std::move(out));
}

}  // namespace

// flash_attn_func takes 16-bit inputs; a padding mask first gathers the valid tokens (counted as if all were valid).
Tensor flash_attention_forward(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, const AttentionOptions& o) {
  Scope in(net.tape, "self_attn", kFlash2);
  net.attention_kernel = "flash";
  Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in);
  Tape& t = net.tape;
  // transformers 5.24 integrations/flash_attention.py: latent attention's values are padded, and the output is cropped.
  const Dim columns = v.dim(3);
  const bool padded = columns.n() < q.size(3);
  if (padded) v = pad_last(std::move(v), q.size(3) - columns.n());
  if (q.dtype() == Dtype::kFp32) {
    const Dtype half = t.autocast().value_or(Dtype::kBf16);
    q = to(std::move(q), half);
    k = to(std::move(k), half);
    v = to(std::move(v), half);
  }
  const auto autocast = t.autocast();
  t.set_autocast(std::nullopt);
  Tensor out;
  if (!o.mask.defined()) {
    out = flash_attention(q, k, v, o.dropout);
    out = transpose(std::move(out), 1, 2);
  } else {
    // transformers 5.12 modeling_flash_attention_utils.py _upad_input: queries that are as many as keys share their
    // indices; of others those that the mask's last columns name are gathered.
    const auto rows_of = [&](const Dim& length) { return Dim(net.B.n() * length.n(), Symbol::kTokens); };
    const bool alike = q.size(2) == k.size(2);
    const Dim length = q.size(2) <= k.size(2) ? q.dim(2) : k.dim(2);
    const auto indices_of = [&](const Dim& rows) {
      return t.allocate(Shape{rows_of(rows)}, Dtype::kInt64, "unpad indices");
    };
    const Tensor of_keys = indices_of(k.dim(2));
    const Tensor indices = alike ? of_keys : indices_of(length);
    Tensor packed[3];
    Tensor* inputs[3] = {&q, &k, &v};
    for (int i = 0; i < 3; ++i) {
      Tensor rows = transpose(*inputs[i], 1, 2);
      const Shape four = rows.shape();
      rows = reshape(std::move(rows), Shape{rows_of(four.dim(1)), four.dim(2), four.dim(3)});
      rows = index_rows(std::move(rows), i == 0 ? indices : of_keys);
      rows = view(std::move(rows), Shape{four.dim(0), i == 0 ? length : four.dim(1), four.dim(2), four.dim(3)});
      packed[i] = transpose(std::move(rows), 1, 2);
    }
    out = flash_attention(packed[0], packed[1], packed[2], o.dropout);
    out = transpose(std::move(out), 1, 2);
    Shape full = out.shape();
    full.dims[1] = q.dim(2);
    full.make_contiguous();
    out = scatter_rows(std::move(out), indices, full);
  }
  t.set_autocast(autocast);
  if (padded) out = narrow(std::move(out), -1, 0, columns);
  const Dim width(out.size(2) * out.size(3), product_symbol(out.dim(2).symbol(), out.dim(3).symbol()));
  const Shape rows{out.dim(0), out.dim(1), width};
  return reshape(std::move(out), rows);
}

Tensor scaled_dot_product_attention(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, Tensor mask_in, double dropout,
                                    bool causal, bool enable_gqa) {
  Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in), mask = std::move(mask_in);
  Tape& t = net.tape;
  const auto autocast = t.autocast();
  if (autocast) {  // on autocast's lower-precision list
    // From the last argument to the first, as in products.cpp.
    if (mask.defined()) mask = t.autocast_cast(std::move(mask), *autocast);
    v = t.autocast_cast(std::move(v), *autocast);
    k = t.autocast_cast(std::move(k), *autocast);
    q = t.autocast_cast(std::move(q), *autocast);
    t.set_autocast(std::nullopt);
  }
  const Tensor cast_mask = mask;  // an argument of the call that autocast makes, whatever the kernel's own copy is
  const bool trains_mask = mask.defined() && mask.requires_grad();
  const SdpaKernel kernel = choose_sdpa(net, q, k, v, mask.defined(), trains_mask, enable_gqa);
  net.attention_kernel = kernel == SdpaKernel::kFlash       ? "flash"
                         : kernel == SdpaKernel::kEfficient ? "efficient"
                         : kernel == SdpaKernel::kCudnn     ? "cudnn"
                                                            : "math";
  if (mask.defined() && kernel == SdpaKernel::kEfficient) mask = additive_mask(std::move(mask), q, k);
  Tensor out;
  if (kernel == SdpaKernel::kFlash) {
    const Count pad = (8 - q.size(3) % 8) % 8;
    if (pad == 0) {
      out = flash_attention(std::move(q), std::move(k), std::move(v), dropout);
    } else {
      const Dim head_dim = q.dim(3);
      q = pad_last(std::move(q), pad);
      k = pad_last(std::move(k), pad);
      v = pad_last(std::move(v), pad);
      out = flash_attention(std::move(q), std::move(k), std::move(v), dropout);
      out = narrow(std::move(out), 3, 0, head_dim);
    }
  } else if (kernel == SdpaKernel::kCudnn) {
    out = cudnn_attention(std::move(q), std::move(k), std::move(v), std::move(mask));
  } else if (kernel == SdpaKernel::kEfficient) {
    out = efficient_attention(std::move(q), std::move(k), std::move(v), std::move(mask), dropout);
  } else {
    out = math_attention(std::move(q), std::move(k), std::move(v), std::move(mask), causal, dropout, enable_gqa);
  }
  t.set_autocast(autocast);
  return out;
}

namespace {

// sdp_utils.cpp of torch 2.11 check_prefer_cudnn_attention: from cuDNN 9.15 on it is the first choice of Hopper's and
// Blackwell's data-centre cards, for all 16-bit inputs but a mask that is trained. Seen on an H200
// (tests/measured/kernels.jsonl).
bool prefers_cudnn(const Net& net, const Tensor& q, const Tensor& v, bool trains_mask) {
  constexpr Count kLargestHead = 256;
  const int capability = net.job.compute_capability;
  const Count widest = std::max(q.size(3), v.size(3));
  return is_half(q.dtype()) && (capability == 90 || capability == 100) && !trains_mask && q.size(3) % 8 == 0 &&
         v.size(3) % 8 == 0 && widest <= kLargestHead;
}

// sdp_utils.cpp minimum_gemm_alignment: of a head's elements, where tensor cores multiply.
Count gemm_alignment(bool half, int capability) {
  const bool tensor_cores = capability >= 80 || (capability >= 70 && half);
  return !tensor_cores ? 1 : half ? 8 : 4;
}

}  // namespace

SdpaKernel choose_sdpa(const Net& net, const Tensor& q, const Tensor& k, const Tensor& v, bool has_mask,
                       bool trains_mask, bool enable_gqa) {
  if (net.job.attention == AttentionKernel::kMath) return SdpaKernel::kMath;
  if (net.job.attention == AttentionKernel::kXformers) return SdpaKernel::kEfficient;
  const bool half = is_half(q.dtype());
  const Count head_dim = q.size(3);
  const bool same = head_dim == k.size(3) && head_dim == v.size(3);
  const bool grouped = q.size(1) != k.size(1);
  const bool ampere = net.job.compute_capability >= 80;
  // Heads that would only broadcast have no fused kernel (sdp_utils.cpp check_batch_size_and_num_heads_dense).
  if (grouped && !enable_gqa) return SdpaKernel::kMath;
  // check_last_dim_stride_equals_1_dense, of all fused kernels (Florence-2's attention among channels).
  const auto apart = [](const Tensor& x) { return x.size(3) > 1 && x.shape().strides[3] != 1; };
  if (apart(q) || apart(k) || apart(v)) return SdpaKernel::kMath;
  if (prefers_cudnn(net, q, v, trains_mask)) return SdpaKernel::kCudnn;
  if (half && !has_mask && same && head_dim <= 256 && ampere) return SdpaKernel::kFlash;
  // sdp_utils.cpp less_than_sm80_mem_efficient_dtypes; a T4 under bf16 autocast measured it (tests/measured: tpf-*).
  if (q.dtype() == Dtype::kBf16 && !ampere) return SdpaKernel::kMath;
  const Count align = gemm_alignment(half, net.job.compute_capability);
  if (!grouped && head_dim % align == 0 && v.size(3) % align == 0) return SdpaKernel::kEfficient;
  return SdpaKernel::kMath;
}

Tensor repeat_kv(Tensor x_in, Count times) {
  Tensor x = std::move(x_in);
  if (times == 1) return x;
  const Dim heads(x.size(1) * times, Symbol::kHeads);
  Tensor e = unsqueeze(x, 2);
  const Shape five{e.dim(0), e.dim(1), Dim(times), e.dim(3), e.dim(4)};
  e = expand(std::move(e), five);
  return reshape(std::move(e), Shape{x.dim(0), heads, x.dim(2), x.dim(3)});
}

bool wants_flash(const TrainingJob& job) {
  return job.attention == AttentionKernel::kFlashAttention2 || job.attention == AttentionKernel::kFlashAttention3;
}

Tensor core_attention(Net& net, Tensor q, const BlockCall& core) {
  if (net.job.checkpointing != Checkpointing::kSelectiveCoreAttention) return core(std::move(q));
  // Only q, k, v wait; scores, probabilities and the kernel's extras are made again. Megatron-LM
  // core/transformer/transformer_config.py: recompute_granularity="selective", recompute_modules=["core_attn"].
  const auto call = [&net, core, shared = net.shared](Tensor query) {
    const Net::Shared outside = std::exchange(net.shared, shared);
    Tensor out = core(std::move(query));
    net.shared = outside;
    // The call that is recomputed returns its output alone: no layer holds the probabilities.
    net.attention_weights.reset();
    net.attn_weights.reset();
    return out;
  };
  return net.tape.checkpoint(call, std::move(q), false, CheckpointInput::kKept);
}

Tensor attention(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  // A tower's attention looks both ways and to nothing else: it has no cache.
  const bool reads_encoder = !options.causal && net.shared.encoder_states.defined();
  if (net.kv_cache() != nullptr && (options.causal || reads_encoder)) {
    keep_keys(net, k, v, !reads_encoder);
    CachedAttention& entry = net.kv_cache()->back();
    entry.query_heads = q.size(1);
    entry.options = options;
    entry.options.mask.reset();
  }
  if (net.job.checkpointing != Checkpointing::kSelectiveCoreAttention) {
    return run_attention(net, std::move(q), std::move(k), std::move(v), options);
  }
  return core_attention(net, std::move(q), [&net, k, v, options](Tensor query) {
    return run_attention(net, std::move(query), k, v, options);
  });
}

namespace {
Tensor run_attention(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  if (options.eager) return eager(net, std::move(q), std::move(k), std::move(v), options);
  switch (net.job.attention) {
    case AttentionKernel::kEager:
      return eager(net, std::move(q), std::move(k), std::move(v), options);
    case AttentionKernel::kFlashAttention2:
    case AttentionKernel::kFlashAttention3:
      return flash_attention_forward(net, std::move(q), std::move(k), std::move(v), options);
    case AttentionKernel::kSdpa:
    case AttentionKernel::kXformers:
    case AttentionKernel::kMath:
      break;
  }
  return sdpa(net, std::move(q), std::move(k), std::move(v), options);
}
}  // namespace

const Tensor& layer_mask(const Net& net) {
  return net.slides(net.layer_index) ? net.shared.sliding_mask : net.shared.causal_mask;
}

void make_causal_masks(Net& net, const Tensor& embeds, const MaskOptions& options) {
  Scope in(net.tape, "causal_mask", kMasks);
  Tape& t = net.tape;
  const TrainingJob& job = net.job;
  const bool flash = wants_flash(job);
  if (flash) {
    // flash_attention_mask: the two-dimensional mask as it is, or none.
    net.shared.causal_mask = net.attention_mask;
    net.shared.sliding_mask = net.attention_mask;
    return;
  }
  const bool eager_mask = options.eager || job.attention == AttentionKernel::kEager;
  const bool masked = (job.padding || job.packing) && !options.whole;  // a mask that says something
  const bool padded = masked || options.padded;
  const bool prefixed = job.prefix_length() > 0 && !net.adapters_off;
  const Dim keys = prefixed ? net.keys() : net.S;
  const auto make = [&] {
    // mask_function over broadcast index grids: comparisons of [1 or B, 1, S, S] bytes.
    Tensor mask = t.allocate(Shape{Dim(1), Dim(1), net.S, keys}, Dtype::kBool, "causal mask (bool)");
    if (padded) {
      Tensor both = t.allocate(Shape{net.B, Dim(1), net.S, keys}, Dtype::kBool, "causal and padding mask (bool)");
      mask = std::move(both);
    } else {
      mask = expand(std::move(mask), Shape{net.B, Dim(1), net.S, keys});
    }
    if (!eager_mask) return mask;
    // torch.where(mask, 0.0, min_dtype) in the embeddings' dtype
    Shape s = mask.shape();
    s.make_contiguous();
    return t.allocate(s, embeds.dtype(), "eager mask");
  };
  // masking_utils.py _ignore_causal_mask_sdpa: as many keys as queries, or there is a mask.
  const bool forced = options.forced || prefixed;
  const auto slides = [&](Count i) { return forced ? net.is_sliding_layer(i) : net.slides(i); };
  // Where every layer slides there is one mask (modeling_mistral.py MistralModel.forward: mask_function).
  bool all_slide = net.arch.num_layers > 0 && !options.forced;
  for (Count i = 0; i < net.arch.num_layers && all_slide; ++i) all_slide = slides(i);
  if ((eager_mask || masked || forced) && (!all_slide || prefixed)) net.shared.causal_mask = make();
  net.shared.sliding_mask = net.shared.causal_mask;
  for (Count i = 0; i < net.arch.num_layers && !(prefixed && all_slide); ++i) {
    if (slides(i)) {
      net.shared.sliding_mask = make();
      break;
    }
  }
}

Tensor bidirectional_mask(Net& net, const Tensor& embeds, bool eager, Dim queries, Dim keys) {
  Scope in(net.tape, "bidirectional_mask", kMasks);
  if (wants_flash(net.job) || !net.job.padding) return net.attention_mask;
  // masking_utils.py and_masks: "every position" & "is no padding" broadcast to a mask of its own, never to a view.
  const Shape scores{net.B, Dim(1), queries, keys};
  Tensor mask = net.tape.allocate(scores, Dtype::kBool, "padding mask (bool)");
  if (eager) mask = net.tape.allocate(scores, embeds.dtype(), "eager mask");
  return mask;
}

void make_bidirectional_mask(Net& net, const Tensor& embeds) {
  const bool eager = net.job.attention == AttentionKernel::kEager;
  net.shared.causal_mask = bidirectional_mask(net, embeds, eager, net.S, net.S);
}

Tensor split_heads(Net& net, Tensor x_in, Dim heads, Dim head_dim) {
  Tensor x = view(std::move(x_in), Shape{net.B, net.S, heads, head_dim});
  return transpose(std::move(x), 1, 2);
}

}  // namespace tidemark
