#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/phi/configuration_phi.py: PhiConfig (phi-1, 1.5, 2). All projections and the head carry a
// bias in the code (modeling_phi.py), half of each head rotates.
void read_phi_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_new");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.head_bias = true;
  architecture.norm_bias = true;
  architecture.qk_norm = fields.flag({"qk_layernorm"}, false);
  architecture.parallel_residual = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embd_pdrop"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/phi3/configuration_phi3.py: Phi3Config (Phi-3, Phi-3.5, phi-4, phi-4-mini). The class has
// `embd_pdrop`, but its model never applies it.
void read_phi3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.0);
  fields.accept({"embd_pdrop", "original_max_position_embeddings"});
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  if (architecture.sliding_window > 0) {
    architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
  }
}

}  // namespace tidemark
