#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/opt/configuration_opt.py: OPTConfig. The position table has two rows more than positions
// (modeling_opt.py: OPTLearnedPositionalEmbedding), and OPT-350m embeds in a smaller width, norms after each branch
// and has no final norm.
void read_opt_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"ffn_dim"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048) + 2;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  const Count table_width = fields.nullable({"word_embed_proj_dim"}, std::nullopt).value_or(architecture.hidden_size);
  if (table_width != architecture.hidden_size) architecture.embedding_dim = table_width;
  architecture.activation = read_activation(fields, {"activation_function"}, "relu");
  const bool bias = fields.flag({"enable_bias"}, true);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = fields.flag({"layer_norm_elementwise_affine"}, true);
  if (!architecture.norm_bias) {
    fields.error("INVALID_VALUE", "layer_norm_elementwise_affine", "OPT without norm weights is not modelled.");
  }
  architecture.norm_before = fields.flag({"do_layer_norm_before"}, true);
  architecture.final_norm = architecture.norm_before && !fields.flag({"_remove_final_layer_norm"}, false);
  architecture.residual_dropout = fields.probability({"dropout"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"activation_dropout"});  // in the published files; the class no longer has it
  if (fields.probability({"layerdrop"}, 0.0) > 0.0) {
    fields.note("INVALID_VALUE", "layerdrop",
                "Layers are dropped at random; the estimate is for a step with them all.");
  }
}

}  // namespace tidemark
