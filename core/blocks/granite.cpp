// Granite: Llama with four factors, each a multiplication of its own.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/granite/modeling_granite.py: GraniteModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/granite/modeling_granite.py: GraniteDecoderLayer.forward";
constexpr const char* kHead = "transformers 5.12 models/granite/modeling_granite.py: GraniteForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  if (net.inputs_require_grads() && !embeds.requires_grad()) {
    // The hook sits on the table's output: a leaf before the product, which the graph keeps.
    embeds.change().requires_grad = true;
    net.leaves.push_back(embeds);
  }
  embeds = mul_scalar(std::move(embeds));
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = llama_attention(net, std::move(h));
  Tensor scaled = mul_scalar(h);
  h = add(residual, std::move(scaled));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  scaled = mul_scalar(h);
  return add(std::move(residual), std::move(scaled));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = rms_norm(net, "model.norm", std::move(hidden));
  Tensor logits = net.lm_head("lm_head", std::move(h), net.V);
  return mul_scalar(std::move(logits));
}

}  // namespace

const Program kGraniteProgram = {embed, layer, head};

}  // namespace tidemark
