// OPT: learned positions counted from the mask, pre-norm; OPT-350m norms after each branch and embeds in 512
// dimensions.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/opt/modeling_opt.py: OPTDecoder.forward";
constexpr const char* kLayer = "transformers 5.12 models/opt/modeling_opt.py: OPTDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/opt/modeling_opt.py: OPTAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/opt/modeling_opt.py: OPTForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = mul_scalar(std::move(q));
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.Q, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.Q, bias);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.out_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  const bool before = net.arch.norm_before;
  Tensor residual = hidden;
  Tensor h = std::move(hidden);
  if (before) h = net.layer_norm("self_attn_layer_norm", std::move(h));
  h = self_attention(net, std::move(h));
  h = dropout(std::move(h), p);
  h = add(residual, std::move(h));
  if (!before) h = net.layer_norm("self_attn_layer_norm", std::move(h));
  const Shape shape = h.shape();
  h = reshape(std::move(h), Shape{net.T, net.H});
  residual = h;
  if (before) h = net.layer_norm("final_layer_norm", std::move(h));
  h = net.linear("fc1", std::move(h), net.F, net.arch.mlp_bias);
  {
    Scope act(net.tape, "activation_fn", kLayer);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.linear("fc2", std::move(h), net.H, net.arch.mlp_bias);
  h = dropout(std::move(h), p);
  h = add(residual, std::move(h));
  h = view(std::move(h), shape);
  if (!before) h = net.layer_norm("final_layer_norm", std::move(h));
  return h;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model.decoder", kModel);
  Tape& t = net.tape;
  const Dim width = net.arch.embedding_dim > 0 ? Dim(net.arch.embedding_dim) : net.H;
  Tensor embeds = net.embedding("model.decoder.embed_tokens", net.input_ids, net.V, width);
  net.tied_embedding = t.last_parameter();
  const Shape rows{net.B, net.S};
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(rows, Dtype::kFp32, "attention_mask");
  Tensor ids = t.allocate(rows, mask.dtype(), "cumsum");
  ids = mul(std::move(ids), mask);
  ids = add_scalar(std::move(ids));
  ids = to(std::move(ids), Dtype::kInt64);
  make_causal_masks(net, embeds, {false, true, false});
  Tensor offset = add_scalar(ids);
  Tensor positions =
      net.embedding("model.decoder.embed_positions", std::move(offset), Dim(net.arch.max_positions), net.H);
  net.shared.position_ids = std::move(ids);
  if (net.arch.embedding_dim > 0) embeds = net.linear("model.decoder.project_in", std::move(embeds), net.H);
  Tensor h = add(embeds, positions);
  net.model_locals = {std::move(mask), std::move(embeds), std::move(positions)};
  return h;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = std::move(hidden);
  if (net.arch.final_norm) h = net.layer_norm("model.decoder.final_layer_norm", std::move(h));
  if (net.arch.embedding_dim > 0)
    h = net.linear("model.decoder.project_out", std::move(h), Dim(net.arch.embedding_dim));
  net.model_locals.clear();
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kOptProgram = {embed, layer, head};

}  // namespace tidemark
