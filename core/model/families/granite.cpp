#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/granite/configuration_granite.py: GraniteConfig. modeling_granite.py multiplies and
// divides by its four factors even where they are one.
void read_granite_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.embedding_scale = true;
  architecture.residual_scale = true;
  architecture.logit_scale = true;
  fields.accept({"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
}

}  // namespace tidemark
