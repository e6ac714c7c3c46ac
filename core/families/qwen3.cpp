// Qwen3 dense: Llama's layer with a norm over each head of q and k.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/qwen3/configuration_qwen3.py: Qwen3Config. Heads of 128 whatever the width.
void read_qwen3_config(ConfigFields& fields, Architecture& architecture) {
  read_qwen3_sizes(fields, architecture, 32768, 32, 128);
  read_qwen_window(fields, architecture);
}

constexpr const char* kLayer = "transformers 5.12 models/qwen3/modeling_qwen3.py: Qwen3DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/qwen3/modeling_qwen3.py: Qwen3Attention.forward";

}  // namespace

void read_qwen3_sizes(ConfigFields& fields, Architecture& architecture, Count max_positions, Count kv_heads,
                      std::optional<Count> head_dim) {
  read_dimensions(fields, architecture, max_positions);
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, head_dim);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

Tensor qwen3_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias, fused = net.job.fused_attention;
  qkv_at_once(net, x, bias);
  // The norm sees [B, S, heads, hd], before the transposition.
  const auto normed = [&](const char* name, Tensor heads) {
    return fused ? heads : transpose(rms_norm(net, name, std::move(heads)), 1, 2);
  };
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = normed("self_attn.q_norm", view(std::move(q), Shape{net.B, net.S, net.A, net.hd}));
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = normed("self_attn.k_norm", view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd}));
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (fused) {
    turn_at_once(net, q, k);
  } else {
    rotate_both(net, q, k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, qwen3_attention, llama_mlp);
}

}  // namespace

const Program kQwen3Program = {.forward = one_stack<llama_embed, layer, llama_norm>,
                               .lm_head = llama_head,
                               .is_divisible = true,
                               .has_tp_plan = true};

const Family kRows[] = {
    {"qwen3", "Qwen3", "Qwen3ForCausalLM", kFourHeads, read_qwen3_config, &kQwen3Program},
};

extern const FamilyRows qwen3_rows;
const FamilyRows qwen3_rows = kRows;

}  // namespace tidemark
