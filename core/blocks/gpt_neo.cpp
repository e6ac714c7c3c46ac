// GPT-Neo: GPT-2's layout with nn.Linear; scores in fp32 and unscaled, global and local layers masked by a buffer.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoSelfAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoMLP.forward";

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn.attention", kAttention);
  const Tensor x = std::move(hidden);
  net.tape.buffer("attn.attention.bias", net.arch.max_positions * net.arch.max_positions);
  Tensor q = net.linear("attn.attention.q_proj", x, net.H);
  Tensor k = net.linear("attn.attention.k_proj", x, net.H);
  Tensor v = net.linear("attn.attention.v_proj", x, net.H);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention_fp32_scores(net, q, k, v, options, true);
  out = net.linear("attn.attention.out_proj", std::move(out), net.H, true);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.c_fc", x, net.F, true);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.linear("mlp.c_proj", std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("ln_1", residual);
  const Tensor attn_output = attn(net, h);
  h = add(attn_output, std::move(residual));
  residual = h;
  h = net.layer_norm("ln_2", residual);
  const Tensor feed_forward = mlp(net, h);
  h = add(std::move(residual), feed_forward);
  net.return_weights();
  return h;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.embedding("transformer.wte", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  Tensor ids = net.tape.allocate(Shape{Dim(1), net.S}, Dtype::kInt64, "position_ids");
  const bool flash =
      net.job.attention == AttentionKernel::kFlashAttention2 || net.job.attention == AttentionKernel::kFlashAttention3;
  make_causal_masks(net, embeds, {!flash, false, false});
  Tensor positions = net.embedding("transformer.wpe", ids, Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  net.model_locals = {std::move(embeds), std::move(positions), std::move(ids)};
  return dropout(std::move(h), net.arch.embedding_dropout);
}

}  // namespace

const Program kGptNeoProgram = {embed, layer, gpt2_head};

}  // namespace tidemark
