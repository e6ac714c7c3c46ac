// MiMo-V2-Flash (Xiaomi): attention whose values are narrower than its keys and are scaled; sliding layers have twice
// the heads of keys and a learned number in each head's softmax; experts as DeepSeek-V3 chooses them, none for all
// tokens.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/towers.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel =
    "transformers 5.24 models/mimo_v2_flash/modeling_mimo_v2_flash.py: MiMoV2FlashModel.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/mimo_v2_flash/modeling_mimo_v2_flash.py: MiMoV2FlashDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/mimo_v2_flash/modeling_mimo_v2_flash.py: MiMoV2FlashAttention.forward";
constexpr const char* kEager =
    "transformers 5.24 models/mimo_v2_flash/modeling_mimo_v2_flash.py: eager_attention_forward";

// Columns that turn in layers of that type.
Count rotary_columns(ConfigFields& fields, const Architecture& architecture, const char* type) {
  return static_cast<Count>(static_cast<double>(architecture.head_dim) *
                            rotary_factor_of(fields, type).value_or(0.334));
}

// transformers 5.24 models/mimo_v2_flash/configuration_mimo_v2_flash.py: MiMoV2FlashConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture, 192);
  architecture.latent.value_dim = fields.count({"v_head_dim"}, 128);
  architecture.rotary_dim = rotary_columns(fields, architecture, "full_attention");
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.count({"sliding_window"}, 129);
  architecture.sliding_window = fields.count({"sliding_window_size"}, architecture.sliding_window - 1) + 1;
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    for (Count i = 0; i < architecture.num_layers; ++i) {
      architecture.sliding_layers.push_back(i > 0 && (i + 1) % 6 != 0);
    }
  }
  if (rotary_columns(fields, architecture, "sliding_attention") != architecture.rotary_dim) {
    fields.error("INVALID_VALUE", "rope_parameters", "As many columns are to turn in all layers.");
  }
  const bool slides = std::any_of(architecture.sliding_layers.begin(), architecture.sliding_layers.end(),
                                  [](char one) { return one != 0; });
  if (slides && architecture.num_heads % (2 * architecture.num_kv_heads) != 0) {
    fields.error("INVALID_VALUE", "num_key_value_heads", "Twice as many must divide the heads of queries.");
  }
  read_routed_experts(fields, architecture, {256, 8, 2048}, 0);
  architecture.experts.shared_width = 0;
  read_mlp_layer_types(fields, architecture);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  refuse_router_logits(fields);
  fields.accept({"attention_value_scale", "first_k_dense_replace", "rope_parameters"});
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {true});
  rotary_tables_by_kind(net, embeds.dtype());
  return embeds;
}

// The largest score is taken off; `sinks` [A], where there are some, take part in the softmax.
Tensor attend(Net& net, const Tensor& q, const Tensor& k_in, const Tensor& v_in, const Tensor& sinks_in,
              const AttentionOptions& o) {
  Scope in(net.tape, "self_attn", kEager);
  net.attention_kernel = "eager";
  const Count times = q.size(1) / k_in.size(1);
  const Tensor k = repeat_kv(k_in, times), v = repeat_kv(v_in, times);
  Tensor weights = matmul(q, transpose(k, 2, 3));
  weights = mul_scalar(std::move(weights));
  weights = add(std::move(weights), o.mask);
  Tensor sinks;
  if (sinks_in.defined()) {
    sinks = expand(view(sinks_in, Shape{Dim(1), net.A, Dim(1), Dim(1)}), Shape{net.B, net.A, net.S, Dim(1)});
    weights = cat({&weights, &sinks}, -1);
  }
  {
    Tensor maximum = topk(weights, Dim(1)).values;
    weights = sub(weights, std::move(maximum));
  }
  Tensor probabilities = softmax(weights, weights.dtype());
  if (sinks.defined()) probabilities = narrow(std::move(probabilities), -1, 0, k.dim(2));
  weights = to(dropout(probabilities, o.dropout), v.dtype());
  net.attention_weights = weights;
  Tensor out = matmul(weights, v);
  return contiguous(transpose(std::move(out), 1, 2));
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias, slides = net.is_sliding_layer(net.layer_index);
  const Dim heads(net.Kv.n() * (slides ? 2 : 1)), value(net.arch.latent.value_dim);
  Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, Dim(heads.n() * net.hd.n()), bias);
  k = split_heads(net, std::move(k), heads, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, Dim(heads.n() * value.n()), bias);
  v = mul_scalar(split_heads(net, std::move(v), heads, value));
  turn_leading(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  const Tensor sinks = slides ? net.parameter("self_attn", "sinks", Shape{net.A}) : Tensor();
  Tensor out = attend(net, q, k, v, sinks, options);
  out = reshape(std::move(out), Shape{net.B, net.S, Dim(net.A.n() * value.n())});
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, wide_router_mlp);
}

const Program kProgram = {
    .forward = one_stack<embed, layer, llama_norm>, .lm_head = llama_head, .attention = kEagerAlone};

}  // namespace

const Family kRows[] = {
    {"mimo_v2_flash", "MiMoV2Flash", "MiMoV2FlashForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers,
     kNoFlex},
};

extern const FamilyRows mimo_v2_flash_rows;
const FamilyRows mimo_v2_flash_rows = kRows;

}  // namespace tidemark
