#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/stablelm/configuration_stablelm.py: StableLmConfig. A quarter of each head rotates; with
// parallel residuals one of the two norms goes (modeling_stablelm.py: StableLmDecoderLayer).
void read_stablelm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 32);
  derive_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.25);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"use_qkv_bias"}, false);
  architecture.norm_bias = true;
  architecture.qk_norm = fields.flag({"qk_layernorm"}, false);
  architecture.parallel_residual = fields.flag({"use_parallel_residual"}, false);
  architecture.num_layer_norms = architecture.parallel_residual ? 1 : 2;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace tidemark
