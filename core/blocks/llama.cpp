// Llama, Mistral, Qwen2, SmolLM3, Seed-OSS, Yi: pre-norm, rotary attention, gated feed-forward.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/llama/modeling_llama.py: LlamaModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/llama/modeling_llama.py: LlamaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/llama/modeling_llama.py: LlamaAttention.forward";
constexpr const char* kMinistral3 =
    "transformers 5.12 models/ministral3/modeling_ministral3.py: get_llama_4_attn_scale";
constexpr const char* kMlp = "transformers 5.12 models/llama/modeling_llama.py: LlamaMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/llama/modeling_llama.py: LlamaForCausalLM.forward";

// q * (1 + beta * log(1 + floor(position_ids / max))).to(q.dtype())
Tensor scale_by_position(Net& net, Tensor q_in) {
  Scope in(net.tape, "self_attn", kMinistral3);
  const Tensor q = std::move(q_in);
  const Shape row{Dim(1), net.S};
  Tensor scale = net.tape.allocate(row, Dtype::kFp32, "div");
  for (const char* step : {"floor", "add", "log", "mul", "add"}) scale = net.tape.allocate(row, Dtype::kFp32, step);
  scale = view(std::move(scale), Shape{Dim(1), Dim(1), net.S, Dim(1)});
  scale = to(std::move(scale), q.dtype());
  return mul(q, std::move(scale));
}

}  // namespace

Tensor llama_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (net.rotates(net.layer_index)) {
    // apply_rotary_pos_emb returns both: the unrotated ones go when the names are bound anew.
    Tensor q_embed = rotate(net, q);
    Tensor k_embed = rotate(net, k);
    q = std::move(q_embed);
    k = std::move(k_embed);
  }
  if (net.arch.query_scale) q = scale_by_position(net, std::move(q));
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  out = net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
  return dropout(std::move(out), net.arch.residual_dropout);
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = llama_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

}  // namespace

Tensor llama_embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  if (net.arch.rotary_dim > 0) rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor llama_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor gate = net.linear("mlp.gate_proj", x, net.F, bias);
  if (net.job.liger_swiglu) {
    Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
    gate = liger_swiglu(std::move(gate), std::move(up));
  } else {
    {
      Scope act(net.tape, "mlp.act_fn", kMlp);
      gate = activate(net.arch.activation, std::move(gate));
    }
    Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
    gate = mul(std::move(gate), std::move(up));
  }
  gate = net.linear("mlp.down_proj", std::move(gate), net.H, bias);
  // Only Seed-OSS has a residual dropout (modeling_seed_oss.py: SeedOssMLP.forward) and Starcoder2, with an MLP of its
  // own.
  return dropout(std::move(gate), net.arch.residual_dropout);
}

Tensor llama_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = rms_norm(net, "model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V, net.arch.head_bias);
}

const Program kLlamaProgram = {llama_embed, layer, llama_head};

}  // namespace tidemark
