// Granite's layers with a window: rotation by a base that each layer has of its own, or none; attention whose output a
// learned number of each head scales, which no fused kernel of torch knows. With experts in one release, without in the
// other.
#include <algorithm>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/granite.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/kv_cache.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// A layer's kind: 0 where nothing turns, else which of the bases, counted from 1 and from the smallest.
void read_bases(ConfigFields& fields, Architecture& architecture) {
  const Value* const stated = list_of_layers(fields, "layer_rope_theta", architecture.num_layers);
  if (stated == nullptr) {
    architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 1);
    return;
  }
  std::vector<double> own, bases;
  for (const Value& item : stated->items) {
    own.push_back(item.real);
    if (own.back() != 0.0 && std::find(bases.begin(), bases.end(), own.back()) == bases.end()) {
      bases.push_back(own.back());
    }
  }
  std::sort(bases.begin(), bases.end());
  for (const double base : own) {
    const auto at = std::find(bases.begin(), bases.end(), base) - bases.begin();
    architecture.layer_kinds.push_back(base == 0.0 ? 0 : static_cast<std::uint8_t>(at + 1));
  }
}

// What GraniteSWAConfig and GraniteMoeSWAConfig have in common.
void read_swa(ConfigFields& fields, Architecture& architecture) {
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.embedding_scale = architecture.residual_scale = architecture.logit_scale = true;
  architecture.sliding_window = fields.nullable({"sliding_window"}, 128).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    for (Count i = 0; i < architecture.num_layers; ++i) architecture.sliding_layers.push_back(i % 4 != 0);
  }
  read_bases(fields, architecture);
  fields.accept({"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
}

// transformers 5.24 models/granite_swa/configuration_granite_swa.py: GraniteSWAConfig.
void read_granite_swa_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, 4);
  read_swa(fields, architecture);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
}

// transformers 5.24 models/granitemoe_swa/configuration_granitemoe_swa.py: GraniteMoeSWAConfig.
void read_granitemoe_swa_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_swa(fields, architecture);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts"});
  architecture.experts.shared_width = fields.count({"shared_intermediate_size"}, 0, 0);
  read_aux_loss(fields, architecture);
  if (architecture.experts.aux_loss) {
    fields.error(
        "UNSUPPORTED_VALUE", "output_router_logits",
        "The loss of the routers' balance is not modelled for this family: leave \"output_router_logits\" out.");
  }
}

constexpr const char* kModel = "transformers 5.24 models/granite_swa/modeling_granite_swa.py: GraniteSWAModel.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/granite_swa/modeling_granite_swa.py: GraniteSWADecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/granite_swa/modeling_granite_swa.py: GraniteSWAAttention.forward";
constexpr const char* kEager = "transformers 5.24 models/granite_swa/modeling_granite_swa.py: eager_attention_forward";
constexpr TopKMoe kMoe = {
    .block = "transformers 5.24 models/granitemoe_swa/modeling_granitemoe_swa.py: GraniteMoeSWAMoE.forward",
    .router = "transformers 5.24 models/granitemoe_swa/modeling_granitemoe_swa.py: GraniteMoeSWATopKRouter.forward",
    .experts = {
        .module = "block_sparse_moe.experts",
        .source = "transformers 5.24 models/granitemoe_swa/modeling_granitemoe_swa.py: GraniteMoeSWAExperts.forward",
        .act = "block_sparse_moe.experts.act_fn"}};

// Both masks, whatever the length; a pair of tables for each base, and a module of the global one that nobody calls.
Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  embeds = mul_scalar(std::move(embeds));
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {.eager = !wants_flash(net.job), .forced = true});
  const Count half = net.arch.rotary_dim / 2;
  for (const char* name : {"rotary_emb.inv_freq", "rotary_emb.original_inv_freq"}) net.tape.buffer(name, half * 4);
  const auto& kinds = net.arch.layer_kinds;
  for (int bases = *std::max_element(kinds.begin(), kinds.end()); bases > 0; --bases) {
    rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
    net.shared.captured.push_back(std::move(net.shared.cos));
    net.shared.captured.push_back(std::move(net.shared.sin));
  }
  return embeds;
}

// GraniteSWAModel.forward: a layer is handed the mask of its kind and the tables of its base.
void hand_by_base(Net& net, Count layer) {
  const std::size_t kind = net.arch.layer_kinds[static_cast<std::size_t>(layer)];
  Net::Shared& all = net.shared;
  for (std::size_t i = 0; i < all.captured.size(); ++i) {
    if (i / 2 + 1 != kind) all.captured[i].reset();
  }
  (net.is_sliding_layer(layer) ? all.causal_mask : all.sliding_mask).reset();
}

// torch/csrc/autograd/FunctionsManual.cpp: logsumexp_backward: grad * (self - result).exp().
void logsumexp_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor difference = t.allocate(n.input_shapes[0], n.input_dtypes[0], "sub");
  const Tensor exponents = t.allocate(n.input_shapes[0], n.input_dtypes[0], "exp");
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "logsumexp_backward");
}

// torch.logsumexp(x, dim=-1): in fp32 under autocast (ATen/native/ReduceOps.cpp: logsumexp_out_impl).
Tensor logsumexp(Tensor x_in) {
  Tensor x = std::move(x_in);
  Tape& t = x.tape();
  if (t.autocast()) x = to(std::move(x), Dtype::kFp32);
  Node* n = t.record("logsumexp", logsumexp_backward, {&x});
  t.save(n, x);
  Tensor out = t.allocate(Shape{x.dim(0), x.dim(1), x.dim(2)}, x.dtype(), "logsumexp");
  { const Tensor exponents = t.allocate(x.shape().contiguous(), x.dtype(), "self - maxes"); }
  t.attach(n, out);
  t.save(n, out);
  return out;
}

Tensor attend(Net& net, const Tensor& q, const Tensor& k_in, const Tensor& v_in, const Tensor& sinks) {
  Scope in(net.tape, "self_attn", kEager);
  net.attention_kernel = "eager";
  const Count times = net.A.n() / net.Kv.n();
  const Tensor k = repeat_kv(k_in, times), v = repeat_kv(v_in, times);
  Tensor weights = matmul(q, transpose(k, 2, 3));
  weights = mul_scalar(std::move(weights));
  const Tensor& mask = net.is_sliding_layer(net.layer_index) ? net.shared.sliding_mask : net.shared.causal_mask;
  if (mask.defined()) weights = add(std::move(weights), mask);
  const Tensor lse = logsumexp(weights);
  Tensor scale = sub(lse, view(sinks, Shape{Dim(1), net.A, Dim(1)}));
  scale = sigmoid(to(std::move(scale), Dtype::kFp32));
  Tensor probabilities = softmax(weights, Dtype::kFp32);
  weights = to(std::move(probabilities), q.dtype());
  weights = dropout(std::move(weights), net.arch.attention_dropout);
  net.attention_weights = weights;
  Tensor out = matmul(weights, v);
  Tensor narrow = to(unsqueeze(scale, -1), out.dtype());
  out = mul(std::move(out), std::move(narrow));
  out = contiguous(transpose(std::move(out), 1, 2));
  return reshape(std::move(out), Shape{net.B, net.S, net.Q});
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("self_attn.k_proj", x, net.K, bias), net.Kv, net.hd);
  Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  const std::size_t kind = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
  if (kind > 0) {
    const Tensor cos = unsqueeze(net.shared.captured[2 * kind - 2], 1);
    const Tensor sin = unsqueeze(net.shared.captured[2 * kind - 1], 1);
    Tensor q_embed = rotate_by(q, cos, sin);
    Tensor k_embed = rotate_by(k, cos, sin);
    q = std::move(q_embed);
    k = std::move(k_embed);
  }
  keep_keys(net, k, v, true);
  const Tensor sinks = net.parameter("self_attn", "sinks", Shape{net.A});
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = wants_flash(net.job) ? flash_attention_forward(net, q, k, v, options) : attend(net, q, k, v, sinks);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Experts& e = net.arch.experts;
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  Tensor scaled = mul_scalar(h);
  h = add(residual, std::move(scaled));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  Tensor mixed;  // `moe_hidden_states`, a name until the layer returns
  if (e.count > 0) mixed = granite_topk_moe(net, kMoe, h);
  if (e.shared_width > 0) {
    Tensor shared = granite_shared_mlp(net, h);
    h = add(mixed, std::move(shared));
  } else {
    h = e.count > 0 ? mixed : llama_mlp(net, std::move(h));
  }
  scaled = mul_scalar(h);
  return add(std::move(residual), std::move(scaled));
}

// _supports_sdpa = False; of the flash kernels those of version 3 on know sinks (_compatible_flash_implementations).
const Program kProgram = {one_stack<embed, layer, held_norm, hand_by_base>,
                          granite_head,
                          kDecoderForwards,
                          OwnLoss::kFp32,
                          {},
                          text_inputs,
                          {.sdpa = false, .flash_attention_2 = false, .core_alone = false}};

}  // namespace

const Family kRows[] = {
    {"granite_swa", "GraniteSWA", "GraniteSWAForCausalLM", kLanguageModelOnly, read_granite_swa_config, &kProgram},
    {"granitemoe_swa", "GraniteMoeSWA", "GraniteMoeSWAForCausalLM", kLanguageModelOnly, read_granitemoe_swa_config,
     &kProgram},
};

extern const FamilyRows granite_swa_rows;
const FamilyRows granite_swa_rows = kRows;

}  // namespace tidemark
