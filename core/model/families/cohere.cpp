#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

// One norm without bias per layer, feeding both branches; the logits are scaled.
void read_cohere_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, std::nullopt);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.parallel_residual = true;
  architecture.logit_scale = true;
  fields.accept({"logit_scale"});
}

}  // namespace

// transformers 5.12.1 models/cohere/configuration_cohere.py: CohereConfig (Command R, Aya).
void read_cohere_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.qk_norm = fields.flag({"use_qk_norm"}, false);
}

// transformers 5.12.1 models/cohere2/configuration_cohere2.py: Cohere2Config. Three of four layers slide, and only
// those rotate (modeling_cohere2.py: Cohere2Attention.forward).
void read_cohere2_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  derive_head_dim(fields, architecture);
  fields.accept({"order_of_interleaved_layers", "layer_switch", "position_embedding_type", "rotary_pct",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding",
                 "use_qk_norm"});
  architecture.rotary_dim = architecture.head_dim;
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(pattern, architecture.num_layers);
  architecture.sliding_window = window;
  for (const bool slides : architecture.sliding_layers) {
    architecture.no_rope_layers.push_back(window > 0 && !slides);
  }
}

}  // namespace tidemark
