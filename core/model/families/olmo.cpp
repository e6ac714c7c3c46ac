#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

void read_olmo_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace

// transformers 5.12.1 models/olmo/configuration_olmo.py: OlmoConfig. Its norms have no weights at all.
void read_olmo_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.clip_qkv = fields.number({"clip_qkv"}, 0.0) != 0.0;
}

// transformers 5.12.1 models/olmo2/configuration_olmo2.py: Olmo2Config. Norms after each branch, and over the whole
// width of q and k.
void read_olmo2_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.qk_norm = true;
}

// transformers 5.12.1 models/olmo3/configuration_olmo3.py: Olmo3Config. Every fourth layer attends to everything.
void read_olmo3_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo2_config(fields, architecture);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(4, architecture.num_layers);
}

}  // namespace tidemark
