#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/nemotron/configuration_nemotron.py: NemotronConfig (Nemotron-4, Minitron). Norms with
// bias, an ungated feed-forward with squared ReLU, half of each head rotates.
void read_nemotron_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.norm_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace tidemark
