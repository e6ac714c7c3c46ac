// StarCoder 2: LayerNorm, biases everywhere, an ungated feed-forward, dropout after each branch.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2Model.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2DecoderLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2MLP.forward";
constexpr const char* kHead =
    "transformers 5.12 models/starcoder2/modeling_starcoder2.py: Starcoder2ForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
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
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("input_layernorm", residual);
  h = llama_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = net.layer_norm("post_attention_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = net.layer_norm("model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kStarcoder2Program = {embed, layer, head};

}  // namespace tidemark
