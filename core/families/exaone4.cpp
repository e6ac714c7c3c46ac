// EXAONE 4: norms after each branch and over each head of q and k; where some layers slide, the others do not rotate.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/exaone4/configuration_exaone4.py: Exaone4Config. Without a window all layers attend to
// everything and rotate (modeling_exaone4.py: Exaone4Attention.forward).
void read_exaone4_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  // The published files write the pattern as letters ("LLLG") and the layers beside it.
  const Value* pattern = fields.find({"sliding_window_pattern"});
  const Count period = pattern != nullptr && pattern->is_integer() && pattern->integer > 0 ? pattern->integer : 4;
  if (types) {
    architecture.sliding_layers = *types;
  } else if (architecture.sliding_window > 0) {
    architecture.sliding_layers = sliding_but_every(period, architecture.num_layers);
  }
  if (architecture.sliding_window == 0) return;
  for (const char slides : architecture.sliding_layers) architecture.no_rope_layers.push_back(!slides);
}

constexpr const char* kLayer = "transformers 5.12 models/exaone4/modeling_exaone4.py: Exaone4DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/exaone4/modeling_exaone4.py: Exaone4Attention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    q = rms_norm(n, "self_attn.q_norm", std::move(q));
    k = rms_norm(n, "self_attn.k_norm", std::move(k));
    if (n.rotates(n.layer_index)) rotate_both(n, q, k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention(net, residual);
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = llama_mlp(net, std::move(h));
  h = rms_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

}  // namespace

const Program kExaone4Program = {one_stack<llama_embed, layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"exaone4", "Exaone4", "Exaone4ForCausalLM", kFourHeads, read_exaone4_config, &kExaone4Program},
};

extern const FamilyRows exaone4_rows;
const FamilyRows exaone4_rows = kRows;

}  // namespace tidemark
