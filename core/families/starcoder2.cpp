// StarCoder 2: LayerNorm, biases everywhere, an ungated feed-forward, dropout after each branch.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/starcoder2/configuration_starcoder2.py: Starcoder2Config. One switch for every bias.
void read_starcoder2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  const bool bias = fields.flag({"use_bias"}, true);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"residual_dropout"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embedding_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  if (architecture.sliding_window > 0) {
    architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
  }
  // In the published files, not in the class: norms are LayerNorm and the feed-forward has two matrices.
  fields.accept({"activation_function", "mlp_type", "norm_type"});
}

constexpr const char* kModel = "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2Model.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2DecoderLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2MLP.forward";
constexpr const char* kHead =
    "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2ForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  make_position_ids(net);
  make_causal_masks(net, embeds);
  // `inputs_embeds` stays alive beside the dropped copy until the model's forward returns.
  net.model_locals = {embeds};
  Tensor hidden = dropout(std::move(embeds), net.arch.embedding_dropout);
  rotary_tables(net, hidden.dtype(), net.arch.rotary_dim);
  return hidden;
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const bool bias = net.arch.mlp_bias;
  const Tensor x = std::move(hidden);  // the layer has a name for it until the module returns
  Tensor h = net.linear("mlp.c_fc", x, net.F, bias);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("mlp.c_proj", std::move(h), net.H, bias);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, mlp, affine_norm);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kStarcoder2Program = {.forward = one_stack<embed, layer, norm>,
                                    .lm_head = head,
                                    .dropout_calls = DropoutCalls::kAll,
                                    .has_tp_plan = true};

const Family kRows[] = {
    {"starcoder2", "Starcoder2", "Starcoder2ForCausalLM", kSequenceAndToken, read_starcoder2_config,
     &kStarcoder2Program},
};

extern const FamilyRows starcoder2_rows;
const FamilyRows starcoder2_rows = kRows;

}  // namespace tidemark
