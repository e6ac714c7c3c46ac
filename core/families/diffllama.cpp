// DiffLlama: Llama with the difference of two attentions, over each half of the values.
#include "core/families/family.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer =
    "transformers 5.24 models/diffllama/modeling_diffllama.py: DiffLlamaDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/diffllama/modeling_diffllama.py: DiffLlamaAttention.forward";

// transformers 5.24 models/diffllama/configuration_diffllama.py: DiffLlamaConfig; DiffLlamaAttention.__init__ raises
// for dropout, and where key-value heads are not even.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_llama_config(fields, architecture);
  architecture.mlp_bias = false;
  fields.accept({"lambda_std_dev"});
  if (architecture.attention_dropout > 0.0) {
    fields.error("INVALID_VALUE", "attention_dropout", "DiffLlama's class refuses dropout of its attention.");
  }
  if (architecture.num_kv_heads % 2 != 0) {
    fields.error("INVALID_VALUE", "num_key_value_heads", "DiffLlama's class wants an even number of key-value heads.");
  }
}

/// torch.exp(torch.sum(a * b, dim=-1, dtype=torch.float32)).to(dtype)
Tensor scale_of(Net& net, const char* left, const char* right, Dtype dtype) {
  Tensor a = net.parameter("self_attn", left, Shape{net.hd});
  Tensor b = net.parameter("self_attn", right, Shape{net.hd});
  Tensor product = mul(std::move(a), std::move(b));
  product = to(std::move(product), Dtype::kFp32);
  return to(exp(mean_all(std::move(product))), dtype);
}

Tensor differential_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("self_attn.k_proj", x, net.K, bias), net.Kv, net.hd);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  rotate_both(net, q, k);
  const Dim half(net.Kv.n() / 2), heads(net.A.n() / 2), wide(2 * net.hd.n());
  Tensor v1, v2;
  {
    const Pieces halves = split(v, 1, {half, half});
    // v.repeat(1, 2, 1, 1): the heads lie in another order there.
    v1 = repeat_kv(halves.part[0], 2);
    v2 = repeat_kv(halves.part[1], 2);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  const Shape four{net.B, net.S, net.A, net.hd};
  Tensor first = view(attention(net, q, k, v1, options), four);
  const Tensor weights = net.attention_weights;
  Tensor second = view(attention(net, q, k, v2, options), four);
  Tensor out = cat({&first, &second}, -1);
  const Pieces parts = split(out, 2, {heads, heads});
  first = parts.part[0];
  second = parts.part[1];
  const Tensor one = scale_of(net, "lambda_q1", "lambda_k1", q.dtype());
  const Tensor two = scale_of(net, "lambda_q2", "lambda_k2", q.dtype());
  const Tensor all = add_scalar(sub(one, two));
  Tensor taken = mul(all, second);
  out = sub(first, std::move(taken));
  if (net.tape.autocast()) out = to(std::move(out), Dtype::kFp32);  // on its list of fp32
  out = mul_scalar(fused_rms_norm(std::move(out), {}));
  out = view(std::move(out), Shape{net.B, net.S, net.Q});
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, differential_attention, llama_mlp);
}

const Program kProgram = {
    .forward = one_stack<llama_embed, layer, llama_norm>, .lm_head = llama_head, .attention = {.core_alone = false}};

}  // namespace

const Family kRows[] = {
    {"diffllama", "DiffLlama", "DiffLlamaForCausalLM", kFourHeads, read_config, &kProgram},
};

extern const FamilyRows diffllama_rows;
const FamilyRows diffllama_rows = kRows;

}  // namespace tidemark
