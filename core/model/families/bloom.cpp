#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/bloom/configuration_bloom.py: BloomConfig. `n_embed` counts before `hidden_size`; the
// feed-forward is four times as wide in the code, everything but the head has a bias (modeling_bloom.py).
void read_bloom_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"n_embed", "hidden_size"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = Activation::kGelu;  // BloomGelu: its own autograd function, saves its input
  architecture.alibi = true;
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  // Where the residual starts from decides no size.
  fields.accept({"apply_residual_connection_post_layernorm", "unk_token_id", "seq_length", "n_inner"});
}

}  // namespace tidemark
