// Families whose modelling files live beside their weights on the Hugging Face Hub, not in transformers.
#include <optional>
#include <string>

#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// internlm/internlm2-7b configuration_internlm2.py: InternLM2Config; modeling_internlm2.py: one fused `wqkv`, one
// switch `bias` for the attention projections only.
void read_internlm2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// baichuan-inc/Baichuan2-7B-Base and -13B-Base configuration_baichuan.py, modeling_baichuan.py: one fused `W_pack`. The
// 13B models have the same `model_type` and code of their own, with alibi instead of rotation; they are recognised by
// their width. The second generation normalises the head's weight (NormHead); it has the larger vocabulary.
void read_baichuan_config(ConfigFields& fields, Architecture& architecture) {
  constexpr Count kWidthWithAlibi = 5120;
  constexpr Count kFirstVocabulary = 64000;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings", "model_max_length"}, 4096);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.alibi = architecture.hidden_size == kWidthWithAlibi;
  architecture.rotary_dim = architecture.alibi ? 0 : architecture.head_dim;
  architecture.norm_head = architecture.vocab_size != kFirstVocabulary;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"_from_model_config"});
}

}  // namespace tidemark
