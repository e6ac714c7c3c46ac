#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/starcoder2/configuration_starcoder2.py: Starcoder2Config. One switch for every bias.
void read_starcoder2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  const bool bias = fields.flag({"use_bias"}, true);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"residual_dropout"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embedding_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  if (architecture.sliding_window > 0) {
    architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
  }
  // In the published files, not in the class: norms are LayerNorm and the feed-forward has two matrices.
  fields.accept({"activation_function", "mlp_type", "norm_type"});
}

}  // namespace tidemark
