// Jais 2: Llama with LayerNorm and Nemotron's feed-forward.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/jais2/configuration_jais2.py: Jais2Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, true);
  architecture.norm_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/jais2/modeling_jais2.py: Jais2DecoderLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/jais2/modeling_jais2.py: Jais2MLP.forward";

Tensor feed_forward(Net& net, Tensor hidden) {
  return ungated_mlp(net, std::move(hidden), kMlp);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, feed_forward, affine_norm);
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm("model.norm", std::move(hidden));
}

const Program kProgram = {one_stack<llama_embed, layer, norm>, llama_head};

}  // namespace

const Family kRows[] = {
    {"jais2", "Jais2", "Jais2ForCausalLM", kLanguageModelOnly, read_config, &kProgram},
};

extern const FamilyRows jais2_rows;
const FamilyRows jais2_rows = kRows;

}  // namespace tidemark
