// Doge: Llama whose values say how much each key counts, by a mask that is learned, with a weight on each residual.
#include <string>

#include "core/families/family.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.24 models/doge/modeling_doge.py: DogeModel.forward";
constexpr const char* kLayer = "transformers 5.24 models/doge/modeling_doge.py: DogeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/doge/modeling_doge.py: DogeAttention.forward";
constexpr const char* kMask = "transformers 5.24 models/doge/modeling_doge.py: DogeAttention.prepare_dynamic_mask";

// transformers 5.24 models/doge/configuration_doge.py: DogeConfig. num_buckets: how many keys are never masked.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_llama_config(fields, architecture);
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.num_buckets = fields.count({"keep_window_size"}, 2048);
  if (fields.flag({"is_moe"}, false)) {
    fields.error("INVALID_VALUE", "is_moe", "Doge's experts, which are looked up by keys, are not modelled.", "false");
  }
  if (fields.has({"sliding_window"})) {
    fields.error("INVALID_VALUE", "sliding_window", "Doge with a sliding window is not modelled.");
  }
  fields.accept({"num_experts", "num_experts_per_tok", "norm_topk_prob", "output_router_logits", "router_aux_loss_coef",
                 "expert_retrieval_size"});
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {.forced = true});
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

// [B, key-value heads, S, S]: what each key counts, and nothing where the causal mask hides it.
Tensor dynamic_mask(Net& net, const Tensor& hidden, const Tensor& counts) {
  Scope in(net.tape, "self_attn", kMask);
  Tape& t = net.tape;
  Tensor mask = expand(unsqueeze(counts, 2), Shape{net.B, net.Kv, net.S, net.S});
  const Tensor causal = layer_mask(net);
  const Shape scores{net.B, Dim(1), net.S, net.S};
  const Tensor hidden_ones = causal.dtype() == Dtype::kBool ? t.allocate(scores, hidden.dtype(), "where") : Tensor();
  Tensor hides = t.allocate(scores, Dtype::kBool, "ne");
  return masked_fill(std::move(mask), std::move(hides));
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const auto normed = [&](const char* name, Tensor h, Dim heads) {
    h = view(std::move(h), Shape{net.B, net.S, heads, net.hd});
    return transpose(rms_norm(net, name, std::move(h)), 1, 2);
  };
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  const Tensor rows = net.linear("self_attn.v_proj", x, net.K, bias);
  const Tensor v = split_heads(net, rows, net.Kv, net.hd);
  Tensor decay = net.parameter("self_attn", "A", Shape{net.Kv});
  q = normed("self_attn.q_norm", std::move(q), net.A);
  k = normed("self_attn.k_norm", std::move(k), net.Kv);
  rotate_both(net, q, k);
  Tensor counts = softplus(net.linear("self_attn.dt_proj", rows, net.Kv, bias));
  counts = exp(mul(std::move(decay), std::move(counts)));
  counts = transpose(std::move(counts), 1, 2);
  AttentionOptions options;
  options.mask = repeat_kv(dynamic_mask(net, x, counts), net.A.n() / net.Kv.n());
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

Tensor weighted(Net& net, const char* weight, const Tensor& residual, Tensor h) {
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor scaled = mul(net.parameter("", weight, Shape{net.H}), residual);
  return add(std::move(scaled), std::move(h));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = weighted(net, "input_residual", residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return weighted(net, "post_attention_residual", residual, std::move(h));
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.sequence_length <= architecture.num_buckets) return;
  const std::string most = std::to_string(architecture.num_buckets);
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/sequence_length",
                    "Doge masks keys beyond \"keep_window_size\" anew in each layer, which is not modelled: at most " +
                        most + " tokens.",
                    most});
}

const Program kProgram = {.forward = one_stack<embed, layer, llama_norm>,
                          .lm_head = llama_head,
                          .attention = {.flash_attention_2 = false, .flash_attention_3 = false, .core_alone = false},
                          .dropout_calls = DropoutCalls::kAll,
                          .check = check};

}  // namespace

const Family kRows[] = {
    {"doge", "Doge", "DogeForCausalLM", kSequenceOnly, read_config, &kProgram},
};

extern const FamilyRows doge_rows;
const FamilyRows doge_rows = kRows;

}  // namespace tidemark
