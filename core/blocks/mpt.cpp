// MPT: alibi added to the scores, one fused projection, no biases. Its attention is always its own.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/mpt/modeling_mpt.py: MptModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/mpt/modeling_mpt.py: MptBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/mpt/modeling_mpt.py: MptAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/mpt/modeling_mpt.py: MptMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/mpt/modeling_mpt.py: MptForCausalLM.forward";

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  net.attention_kernel = "eager";
  const Tensor x = std::move(hidden);
  Tensor mixed_qkv = net.linear("attn.Wqkv", x, Dim(3 * net.H.n));
  if (net.arch.clip_qkv) mixed_qkv = clamp(std::move(mixed_qkv));
  Pieces qkv = split(mixed_qkv, 2, {net.H, net.H, net.H});
  const Tensor q = split_heads(net, std::move(qkv.part[0]), net.A, net.hd);
  const Tensor k = split_heads(net, std::move(qkv.part[1]), net.A, net.hd);
  const Tensor v = split_heads(net, std::move(qkv.part[2]), net.A, net.hd);
  Tensor kt = transpose(k, -1, -2);
  Tensor scores = matmul(q, std::move(kt));
  scores = mul_scalar(std::move(scores));
  Tensor bias = narrow(net.shared.bias, 2, net.shared.bias.size(2) - net.S.n, net.S);
  scores = add(std::move(scores), std::move(bias));
  scores = masked_fill(std::move(scores), net.shared.causal_mask);
  Tensor weights;
  {
    Tensor wide = to(scores, Dtype::kFp32);
    weights = softmax(std::move(wide));
  }
  weights = to(std::move(weights), v.dtype());
  weights = dropout(std::move(weights), net.arch.attention_dropout);
  Tensor context = matmul(weights, v);
  net.attn_weights = weights;
  context = transpose(std::move(context), 1, 2);
  context = contiguous(std::move(context));
  context = view(std::move(context), Shape{net.B, net.S, net.H});
  return net.linear("attn.out_proj", context, net.H);
}

Tensor ffn(Net& net, Tensor hidden, const Tensor& residual) {
  Scope in(net.tape, "ffn", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("ffn.up_proj", x, net.F);
  h = gelu(std::move(h));
  Tensor out = net.linear("ffn.down_proj", h, net.H);
  out = dropout(std::move(out), net.arch.residual_dropout);
  return add(std::move(out), residual);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor h = std::move(hidden);
  Tensor normed = net.layer_norm("norm_1", h, true, false);
  const Tensor attn_outputs = attn(net, normed);
  Tensor dropped = dropout(attn_outputs, net.arch.residual_dropout);
  h = add(std::move(dropped), std::move(h));
  normed = net.layer_norm("norm_2", h, true, false);
  Tensor out = ffn(net, normed, h);
  net.return_weights();
  return out;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.embedding("transformer.wte", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  net.shared.bias = net.tape.allocate(Shape{net.A, Dim(1), Dim(net.arch.max_positions)}, Dtype::kFp32, "alibi");
  make_causal_masks(net, embeds, {true, false, false});
  Shape shape = net.shared.causal_mask.shape();
  net.shared.causal_mask = net.tape.allocate(shape, Dtype::kBool, "causal mask (bool)");
  net.model_locals = {embeds};
  return embeds;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = net.layer_norm("transformer.norm_f", std::move(hidden), true, false);
  net.model_locals.clear();
  net.outputs_weights.reset();
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kMptProgram = {embed, layer, head};

}  // namespace tidemark
