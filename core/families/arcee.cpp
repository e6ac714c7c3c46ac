// Arcee (AFM): Llama's layer around a feed-forward without a gate.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/arcee/configuration_arcee.py: ArceeConfig. One switch for the biases of all four
// projections (modeling_arcee.py: ArceeAttention).
void read_arcee_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/arcee/modeling_arcee.py: ArceeDecoderLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/arcee/modeling_arcee.py: ArceeMLP.forward";

Tensor mlp(Net& net, Tensor hidden) {
  return ungated_mlp(net, std::move(hidden), kMlp);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, mlp);
}

}  // namespace

const Program kArceeProgram = {
    .forward = one_stack<llama_embed, layer, llama_norm>, .lm_head = llama_head, .has_tp_plan = true};

const Family kRows[] = {
    {"arcee", "Arcee", "ArceeForCausalLM", kFourHeads, read_arcee_config, &kArceeProgram},
};

extern const FamilyRows arcee_rows;
const FamilyRows arcee_rows = kRows;

}  // namespace tidemark
