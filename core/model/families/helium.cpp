#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/helium/configuration_helium.py: HeliumConfig. The output projection never has a bias
// (modeling_helium.py: HeliumAttention).
void read_helium_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 20);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace tidemark
