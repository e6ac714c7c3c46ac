#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/falcon/configuration_falcon.py: FalconConfig; heads and norms as modeling_falcon.py
// (FalconAttention, FalconDecoderLayer) derives them. `n_layer`, `n_head` and `n_head_kv` are of the first releases,
// which came with code of their own.
void read_falcon_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"n_embed", "hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers", "n_layer"});
  architecture.num_heads = fields.required({"num_attention_heads", "n_head"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  derive_head_dim(fields, architecture);
  architecture.intermediate_size =
      fields.nullable({"ffn_hidden_size"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.activation = read_activation(fields, {"activation"}, "gelu");

  architecture.new_decoder = fields.flag({"new_decoder_architecture"}, false);
  architecture.multi_query = fields.flag({"multi_query"}, true);
  architecture.parallel_attention = fields.flag({"parallel_attn"}, true);
  architecture.parallel_residual = architecture.parallel_attention || architecture.new_decoder;
  const Count kv_heads = fields.nullable({"num_kv_heads", "n_head_kv"}, std::nullopt).value_or(architecture.num_heads);
  if (architecture.new_decoder) {
    architecture.num_kv_heads = kv_heads;
    if (kv_heads > 0 && architecture.num_heads % kv_heads != 0) {
      fields.error("INVALID_VALUE", "num_kv_heads", "The key/value heads do not divide the query heads.");
    }
  } else {
    architecture.num_kv_heads = architecture.multi_query ? 1 : architecture.num_heads;
  }
  // A sequential layer has two norms, a parallel one has one unless it asks for two.
  const std::optional<Count> parallel_norms = fields.nullable({"num_ln_in_parallel_attn"}, std::nullopt);
  architecture.num_layer_norms = 1;
  if (!architecture.parallel_attention) {
    architecture.num_layer_norms = 2;
  } else if (parallel_norms.value_or(architecture.new_decoder ? 2 : 1) == 2) {
    architecture.num_layer_norms = 2;
  }

  architecture.alibi = fields.flag({"alibi"}, false);
  architecture.rotary_dim = architecture.alibi ? 0 : architecture.head_dim;
  const bool bias = fields.flag({"bias"}, false);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"apply_residual_connection_post_layernorm"});
}

}  // namespace tidemark
