#include <string>

#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/mpt/configuration_mpt.py: MptConfig, MptAttentionConfig. modeling_mpt.py has no bias
// anywhere, a feed-forward of four times the width and always alibi, whatever the file says; its one dropout is
// `attn_config.attn_pdrop`.
void read_mpt_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.num_layers = fields.required({"n_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_seq_len"}, 2048);
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = Activation::kGelu;
  architecture.alibi = true;
  architecture.norm_bias = false;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);

  if (fields.number({"expansion_ratio"}, 4.0) != 4.0) {
    fields.warning("INVALID_VALUE", "expansion_ratio", "transformers' MPT ignores \"expansion_ratio\" and uses 4.");
  }
  if (!fields.flag({"no_bias"}, true)) {
    fields.warning("INVALID_VALUE", "no_bias", "transformers' MPT has no biases whatever \"no_bias\" says.");
  }
  fields.accept({"attn_impl", "emb_pdrop", "embedding_fraction", "init_config", "init_device", "learned_pos_emb",
                 "logit_scale", "norm_type", "resid_pdrop", "tokenizer_name", "verbose", "fc_type", "ffn_config",
                 "use_pad_tok_in_ffn"});

  const Value* attention = fields.find({"attn_config"});
  if (attention == nullptr || attention->is_null()) return;
  if (!attention->is_object()) {
    fields.error("WRONG_TYPE", "attn_config", "\"attn_config\" must be an object.");
    return;
  }
  ConfigFields inner(*attention, fields.path() + "/attn_config", fields.issues());
  const double dropout = inner.probability({"attn_pdrop"}, 0.0);
  architecture.attention_dropout = dropout;
  architecture.residual_dropout = dropout;
  architecture.clip_qkv = inner.number({"clip_qkv"}, 0.0) != 0.0;
  if (inner.text({"attn_type"}, "multihead_attention") != "multihead_attention") {
    inner.error("INVALID_VALUE", "attn_type", "transformers' MPT has multi-head attention only.",
                "multihead_attention");
  }
}

}  // namespace tidemark
