// Kimi Linear (Moonshot): three layers of Kimi delta attention, a gated delta rule that forgets by the column, to one
// of DeepSeek's latent attention without positions; experts as DeepSeek-V3 chooses them.
#include "core/families/family.hpp"
#include "core/families/latent.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearModel.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearAttention.forward";
constexpr const char* kDelta =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearDeltaAttention.forward";
constexpr const char* kGate =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearForgetGate.forward";
constexpr const char* kRule =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: chunk_kimi_delta_attention";
constexpr const char* kGatedNorm =
    "transformers 5.24 models/kimi_linear/modeling_kimi_linear.py: KimiLinearRMSNormGated.forward";

// The checkpoint's own lists count layers from one.
void read_kinds(ConfigFields& fields, Architecture& architecture, const Value* linear) {
  if (fields.has({"layer_types"})) {
    return read_layer_kinds(fields, architecture, {"linear_attention", "full_attention"}, 4);
  }
  const Value* const full = linear != nullptr ? linear->find("full_attn_layers") : nullptr;
  for (Count i = 0; i < architecture.num_layers; ++i) {
    bool attends = full == nullptr && i > 0 && i % 4 == 0;
    if (full != nullptr) {
      for (const Value& item : full->items) attends = attends || item.integer == i + 1;
    }
    architecture.layer_kinds.push_back(attends ? 1 : 0);
  }
}

// transformers 5.24 models/kimi_linear/configuration_kimi_linear.py: KimiLinearConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 1048576);
  fields.accept({"model_max_length"});
  read_kv_heads(fields, architecture, 32);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_latent_attention(fields, architecture, 0, 128, 128);
  if (architecture.num_heads > 0 && architecture.num_kv_heads != architecture.num_heads) {
    fields.error("INVALID_VALUE", "num_key_value_heads", "Latent attention has as many heads of keys as of queries.");
  }
  Experts& e = architecture.experts;
  e.count = fields.count({"num_experts", "num_local_experts"}, 256);
  e.per_token = fields.count({"num_experts_per_token", "num_experts_per_tok"}, 8);
  e.width = fields.count({"moe_intermediate_size"}, 1024);
  e.shared_width = e.width * fields.count({"num_shared_experts", "n_shared_experts"}, 1);
  e.groups = fields.count({"num_expert_group", "n_group"}, 1);
  e.groups_per_token = fields.count({"topk_group"}, 1);
  e.normalised = fields.flag({"moe_renormalize", "norm_topk_prob"}, true);
  if (e.per_token > e.count || e.count % e.groups != 0 || e.groups_per_token > e.groups) {
    fields.error("INVALID_VALUE", "num_experts", "A token cannot take so many experts, or groups of them.");
  }
  if (fields.has({"mlp_layer_types"})) {
    read_mlp_layer_types(fields, architecture);
    fields.accept({"first_k_dense_replace"});
  } else {
    read_dense_prefix(fields, architecture, 1);
  }
  StateSpace& s = architecture.ssm;
  s.head_dim = fields.count({"linear_head_dim"}, 128);
  s.heads = fields.count({"linear_num_heads"}, 32);
  s.kernel = fields.count({"linear_conv_kernel_dim"}, 4);
  const Value* const linear = fields.find({"linear_attn_config"});
  const bool nested = linear != nullptr && linear->is_object();
  if (nested) {
    const auto take = [&](const char* key, Count& into) {
      const Value* const given = linear->find(key);
      if (given != nullptr && given->is_integer() && given->integer > 0) into = given->integer;
    };
    take("head_dim", s.head_dim);
    take("num_heads", s.heads);
    take("short_conv_kernel_size", s.kernel);
  }
  read_kinds(fields, architecture, nested ? linear : nullptr);
  s.groups = s.heads;
  s.state = s.head_dim;
  s.chunk = kDeltaChunk;
  refuse_router_logits(fields);
  fields.accept({"routed_scaling_factor", "moe_layer_freq", "moe_router_activation_func", "use_grouped_topk",
                 "mla_use_nope", "num_nextn_predict_layers", "topk_method", "rope_theta", "rope_scaling",
                 "rope_parameters"});
}

// l2norm: x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps)
Tensor l2_normalised(const Tensor& x) {
  Tensor r = mul(x, x);
  r = sum_over(std::move(r), -1, true);
  r = add_scalar(std::move(r));
  r = sqrt(std::move(r));
  return div(x, r);
}

// (a.unsqueeze(-2) * b.unsqueeze(-3) * decay).sum(-1).masked_fill(mask, 0); `of_chunk`: by decay[:, :, i], which is
// looked up behind the first product.
Tensor decayed_products(const Tensor& a, const Tensor& b, const Tensor& decay, const Tensor& mask, bool of_chunk) {
  const Tensor left = unsqueeze(a, -2);
  Tensor product = mul(left, unsqueeze(b, -3));
  product = mul(std::move(product), of_chunk ? select(decay, 1) : decay);
  product = sum_over(std::move(product), -1, false);
  return masked_fill(std::move(product), mask);
}

Tensor triangle(Tape& t) {
  const Shape square{Dim(kDeltaChunk), Dim(kDeltaChunk)};
  const Tensor ones = t.allocate(square, Dtype::kBool, "ones");
  return t.allocate(square, Dtype::kBool, "triu");
}

/// What the loop over chunks reads, [B·heads, chunks, 64, D] and [B·heads, chunks, 64, 64, D].
struct Chunks {
  Tensor query, key, value, decay, decay_mask, cumulative;
};

Tensor scan_chunks(const Chunks& c) {
  Tape& t = c.query.tape();
  const Dim outer = c.query.dim(0), dk = c.key.dim(3), dv = c.value.dim(3), size(kDeltaChunk);
  Tensor state = zeros(t, Shape{outer, dk, dv}, c.value.dtype());
  Tensor out = zeros(t, c.value.shape(), c.value.dtype(), "zeros_like");
  const Tensor mask = triangle(t);
  Tensor q, k, v, g, inter, intra, v_prime, v_new;
  for (Count i = 0; i < c.query.size(1); ++i) {
    q = select(c.query, 1);
    k = select(c.key, 1);
    v = select(c.value, 1);
    g = select(c.decay, 1);
    Tensor scale = exp(g);
    Tensor scaled = mul(q, std::move(scale));
    inter = matmul(std::move(scaled), state);
    intra = decayed_products(q, k, c.decay_mask, mask, true);
    v_prime = matmul(select(c.cumulative, 1), state);
    v_new = sub(v, v_prime);
    Tensor part = matmul(intra, v_new);
    part = add(inter, std::move(part));
    out = copy_into(std::move(out), Shape{outer, size, dv}, std::move(part));
    Tensor last = exp(select(g, 1));
    Tensor kept = mul(state, unsqueeze(std::move(last), -1));
    Tensor rest = sub(narrow(g, 1, kDeltaChunk - 1, Dim(1)), g);
    rest = exp(std::move(rest));
    rest = mul(k, std::move(rest));
    rest = matmul(transpose(std::move(rest), -1, -2), v_new);
    state = add(std::move(kept), std::move(rest));
  }
  return out;
}

// q, k, v and g [B, S, heads, D], beta [B, S, heads]: g differs from column to column, so that the decay between two
// tokens of a chunk is a row of its own.
Tensor delta_rule(Net& net, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const Tensor& g_in,
                  const Tensor& beta_in) {
  Scope in(net.tape, "self_attn", kRule);
  Tape& t = net.tape;
  Tensor query = heads_first(q_in), key = heads_first(k_in), value = heads_first(v_in), beta = heads_first(beta_in),
         g = heads_first(g_in);
  query = l2_normalised(query);
  key = l2_normalised(key);
  const Count extra = t.round_up(net.S.n(), kDeltaChunk) - net.S.n();
  {
    Tensor padded = pad(query, 2, extra);
    query = mul_scalar(std::move(padded));
  }
  for (Tensor* x : {&key, &value, &g, &beta}) *x = pad(*x, 2, extra);
  Tensor v_beta = mul(value, unsqueeze(beta, -1));
  Tensor k_beta = mul(key, unsqueeze(beta, -1));
  const Dim outer(query.size(0) * query.size(1)), chunks(query.size(2) / kDeltaChunk), width = query.dim(3),
                                                                                       size(kDeltaChunk);
  for (Tensor* x : {&query, &key, &value, &g, &k_beta, &v_beta}) {
    *x = view(std::move(*x), Shape{outer, chunks, size, width});
  }
  g = cumsum(g);
  const Tensor mask = triangle(t), strict = triangle(t);
  Tensor decay_mask = sub(unsqueeze(g, -2), unsqueeze(g, -3));
  decay_mask = masked_fill(std::move(decay_mask), unsqueeze(strict, -1));
  decay_mask = exp(std::move(decay_mask));
  Tensor attn = decayed_products(k_beta, key, decay_mask, mask, false);
  attn = neg(std::move(attn));
  attn = solved_rows(std::move(attn));
  {
    const Tensor eye = t.allocate(Shape{size, size}, attn.dtype(), "eye");
    attn = add(std::move(attn), eye);
  }
  value = matmul(attn, v_beta);
  Tensor scale = exp(g);
  scale = mul(k_beta, std::move(scale));
  Tensor cumulative = matmul(attn, std::move(scale));
  Tensor out = scan_chunks({query, key, value, g, decay_mask, cumulative});
  out = view(std::move(out), Shape{net.B, q_in.dim(2), Dim(net.S.n() + extra), width});
  out = narrow(std::move(out), 2, 0, net.S);
  Tensor flat = contiguous(transpose(out, 1, 2));
  return to(std::move(flat), q_in.dtype());
}

// -exp(A_log) · softplus(f_b(f_a(x)) + dt_bias), the softplus written out.
Tensor forget_gate(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn.forget_gate", kGate);
  const Dim heads(net.arch.ssm.heads), width(net.arch.ssm.head_dim), all(heads.n() * width.n());
  const Shape by_heads{net.B, net.S, heads, width};
  Tensor narrow_gate = net.linear("self_attn.forget_gate.f_a_proj", x, width);
  const Tensor gate = net.linear("self_attn.forget_gate.f_b_proj", std::move(narrow_gate), all);
  Tensor g = to(gate, Dtype::kFp32);
  g = add(std::move(g), net.fp32_parameter("self_attn.forget_gate", "dt_bias", Shape{all}, true));
  g = view(std::move(g), by_heads);
  const Tensor a =
      to(net.parameter("self_attn.forget_gate", "A_log", Shape{Dim(1), Dim(1), heads, Dim(1)}), Dtype::kFp32);
  const Tensor rate = exp(a);
  Tensor soft;
  {
    Tensor large = net.tape.allocate(by_heads, Dtype::kBool, "gt");
    Tensor small = exp(g);
    small = add_scalar(std::move(small));
    small = log(std::move(small));
    soft = where(std::move(large), g, std::move(small));
  }
  Tensor negative = neg(rate);
  return mul(std::move(negative), soft);
}

// All in fp32, the weight, too; a sigmoid for a gate.
Tensor gated_norm(Net& net, const Tensor& x, const Tensor& gate) {
  Scope in(net.tape, "self_attn.o_norm", kGatedNorm);
  const Tensor weight = net.parameter("self_attn.o_norm", "weight", Shape{x.dim(-1)});
  Tensor h = to(x, Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  Tensor wide = to(weight, Dtype::kFp32);
  h = mul(std::move(wide), std::move(h));
  Tensor open = to(gate, Dtype::kFp32);
  open = sigmoid(std::move(open));
  h = mul(std::move(h), std::move(open));
  return to(std::move(h), x.dtype());
}

// causal_conv1d_fn on torch, of the three joined projections [B, channels, S].
Tensor short_convolution(Net& net, const Tensor& mixed) {
  const Dim channels = mixed.dim(1), kernel(net.arch.ssm.kernel);
  Tensor weight = net.parameter("self_attn.conv1d", "weight", Shape{channels, Dim(1), kernel});
  weight = view(view(std::move(weight), Shape{channels, kernel}), Shape{channels, Dim(1), kernel});
  Tensor x = to(mixed, weight.dtype());
  x = convolution(std::move(x), std::move(weight), {}, {Dim(net.S.n() + kernel.n() - 1)});
  x = silu(narrow(std::move(x), 2, 0, net.S));
  return to(std::move(x), mixed.dtype());
}

Tensor delta_attention(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "self_attn", kDelta);
  const Tensor x = mask_padding(net, hidden);
  const Dim heads(net.arch.ssm.heads), width(net.arch.ssm.head_dim), all(heads.n() * width.n());
  const Shape by_heads{net.B, net.S, heads, width};
  Tensor mixed;
  {
    const Tensor q = net.linear("self_attn.q_proj", x, all), k = net.linear("self_attn.k_proj", x, all),
                 v = net.linear("self_attn.v_proj", x, all);
    mixed = transpose(cat({&q, &k, &v}, -1), 1, 2);
  }
  mixed = short_convolution(net, mixed);
  const Pieces parts = split(transpose(mixed, 1, 2), -1, {all, all, all});
  const Tensor query = view(parts.part[0], by_heads), key = view(parts.part[1], by_heads),
               value = view(parts.part[2], by_heads);
  const Tensor g = forget_gate(net, x);
  const Tensor beta = sigmoid(net.linear("self_attn.b_proj", x, heads));
  const Tensor core = delta_rule(net, query, key, value, g, beta);
  Tensor gate = net.linear("self_attn.g_a_proj", x, width);
  gate = view(net.linear("self_attn.g_b_proj", std::move(gate), all), by_heads);
  Tensor out = gated_norm(net, core, gate);
  out = view(std::move(out), Shape{net.B, net.S, all});
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

}  // namespace

KeysAndValues expand_kv(Net& net, const Tensor& latent, const Tensor& turned) {
  const LatentAttention& a = net.arch.latent;
  const Dim plain(a.plain_dim), value(a.value_dim), both(a.plain_dim + a.value_dim), rope(a.rope_dim);
  const Shape own{net.B, net.A, net.S, plain}, part{net.B, net.A, net.S, rope};
  Tensor up = net.linear("self_attn.kv_b_proj", latent, Dim(net.A.n() * both.n()));
  up = split_heads(net, std::move(up), net.A, both);
  const Pieces kv = split(std::move(up), -1, {plain, value});
  const Tensor shared = expand(turned, part);
  KeysAndValues made;
  made.k = net.tape.allocate(Shape{net.B, net.A, net.S, Dim(plain.n() + rope.n())}, kv.part[0].dtype(), "new_empty");
  made.k = copy_into(std::move(made.k), own, kv.part[0]);
  made.k = copy_into(std::move(made.k), part, shared);
  made.v = kv.part[1];
  return made;
}

namespace {

Tensor latent_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn", kAttention);
  const LatentAttention& a = net.arch.latent;
  const Dim rope(a.rope_dim), width(net.A.n() * net.hd.n());
  const bool bias = net.arch.attention_bias;
  Tensor q;
  if (a.query_rank == 0) {
    q = net.linear("self_attn.q_proj", x, width);
  } else {
    q = net.linear("self_attn.q_a_proj", x, Dim(a.query_rank), bias);
    q = rms_norm(net, "self_attn.q_a_layernorm", std::move(q));
    q = net.linear("self_attn.q_b_proj", std::move(q), width);
  }
  q = split_heads(net, std::move(q), net.A, net.hd);
  const Tensor compressed = net.linear("self_attn.kv_a_proj_with_mqa", x, Dim(a.rank + a.rope_dim), bias);
  const Pieces parts = split(compressed, -1, {Dim(a.rank), rope});
  const Tensor latent = rms_norm(net, "self_attn.kv_a_layernorm", parts.part[0]);
  const Tensor shared = view(parts.part[1], Shape{net.B, Dim(1), net.S, rope});
  const KeysAndValues kv = expand_kv(net, latent, shared);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, kv.k, kv.v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

Tensor mixer(Net& net, Tensor hidden) {
  const Tensor x = std::move(hidden);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  return attends ? latent_attention(net, x) : delta_attention(net, x);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, mixer, wide_router_mlp);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  return embeds;
}

const Program kProgram = {.forward = one_stack<embed, layer, llama_norm>, .lm_head = llama_head, .fused_scan = false};

}  // namespace

const Family kRows[] = {
    {"kimi_linear", "KimiLinear", "KimiLinearForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers,
     kNoFlex},
};

extern const FamilyRows kimi_linear_rows;
const FamilyRows kimi_linear_rows = kRows;

}  // namespace tidemark
