#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

// Gemma's three text configurations: heads of 256 whatever the width, tied embeddings, one bias switch for all four
// projections.
void read_gemma_like(ConfigFields& fields, Architecture& architecture, Count kv_heads) {
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, 256);
  architecture.rotary_dim = architecture.head_dim;
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.embedding_scale = true;
  if (fields.flag({"use_bidirectional_attention"}, false)) {
    fields.error("INVALID_VALUE", "use_bidirectional_attention",
                 "Gemma with bidirectional attention is not modelled yet.");
  }
}

}  // namespace

// transformers 5.12.1 models/gemma/configuration_gemma.py: GemmaConfig. Its code reads `hidden_act`; the
// `hidden_activation` of the published files is a leftover (both name the same fused kernel).
void read_gemma_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_gemma_like(fields, architecture, 16);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_activation"});
}

// transformers 5.12.1 models/gemma2/configuration_gemma2.py: Gemma2Config.
void read_gemma2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_gemma_like(fields, architecture, 4);
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_act"});
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(2, architecture.num_layers);
  if (fields.find({"final_logit_softcapping"}) == nullptr || fields.has({"final_logit_softcapping"})) {
    architecture.logit_softcap = fields.number({"final_logit_softcapping"}, 30.0) != 0.0;
  }
  if (fields.find({"attn_logit_softcapping"}) == nullptr || fields.has({"attn_logit_softcapping"})) {
    architecture.attention_softcap = fields.number({"attn_logit_softcapping"}, 50.0) != 0.0;
  }
}

// transformers 5.12.1 models/gemma3/configuration_gemma3.py: Gemma3TextConfig. Google's own files leave the heads and
// the vocabulary to the class, so here their absence is no error.
void read_gemma3_text_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.count({"num_attention_heads"}, 8);
  architecture.vocab_size = fields.count({"vocab_size"}, 262208);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 131072);
  for (const std::string_view key : {"num_attention_heads", "vocab_size"}) {
    if (!fields.has({key})) {
      fields.note("ASSUMED_DEFAULT", key, "\"" + std::string(key) + "\" is absent; the class's default is used.");
    }
  }
  read_gemma_like(fields, architecture, 4);
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_act"});
  architecture.qk_norm = true;
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(pattern, architecture.num_layers);
  architecture.logit_softcap = fields.number({"final_logit_softcapping"}, 0.0) != 0.0;
  architecture.attention_softcap = fields.number({"attn_logit_softcapping"}, 0.0) != 0.0;
}

}  // namespace tidemark
