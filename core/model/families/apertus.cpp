#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/apertus/configuration_apertus.py: ApertusConfig. An ungated feed-forward with xIELU, whose
// two parameters are trained in each layer (activations.py: XIELUActivation), and norms of head width on q and k.
void read_apertus_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 65536);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "xielu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"qk_norm", "post_norm", "mlp_bias"});  // in the published files, not in the class
}

}  // namespace tidemark
