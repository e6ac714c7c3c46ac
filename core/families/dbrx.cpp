// DBRX: LayerNorm without biases, clamped q, k and v, experts that are lists of linear layers.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 4.57 models/dbrx/modeling_dbrx.py: DbrxModel.forward";
constexpr const char* kLayer = "transformers 4.57 models/dbrx/modeling_dbrx.py: DbrxBlock.forward";
constexpr const char* kAttention = "transformers 4.57 models/dbrx/modeling_dbrx.py: DbrxAttention.forward";
constexpr const char* kFfn = "transformers 4.57 models/dbrx/modeling_dbrx.py: DbrxFFN.forward";

// transformers 4.57.1 models/dbrx/configuration_dbrx.py: DbrxConfig, DbrxAttentionConfig, DbrxFFNConfig.
void read_dbrx_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.num_layers = fields.required({"n_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_seq_len"}, 2048);
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.norm_bias = false;
  static const Value kNothing{Value::Kind::kObject};
  const auto part = [&](std::string_view key) {
    const Value* given = fields.find({key});
    const bool there = given != nullptr && given->is_object();
    return ConfigFields(there ? *given : kNothing, fields.path() + "/" + std::string{key}, fields.issues());
  };
  ConfigFields attention = part("attn_config");
  architecture.num_kv_heads = attention.count({"kv_n_heads"}, 1);
  architecture.attention_dropout = attention.probability({"attn_pdrop"}, 0.0);
  architecture.clip_qkv = attention.number({"clip_qkv"}, 0.0) != 0.0;
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  ConfigFields ffn = part("ffn_config");
  Experts& e = architecture.experts;
  architecture.intermediate_size = e.width = ffn.count({"ffn_hidden_size"}, 3584);
  e.count = ffn.count({"moe_num_experts"}, 4);
  e.per_token = ffn.count({"moe_top_k"}, 1);
  e.normalised = ffn.number({"moe_normalize_expert_weights"}, 1.0) != 0.0;
  e.listed = true;
  architecture.activation = Activation::kSilu;
  if (e.per_token > e.count) {
    ffn.error("INVALID_VALUE", "moe_top_k", "A token cannot pass through more experts than there are.");
  }
  fields.accept({"emb_pdrop", "output_router_logits", "router_aux_loss_coef"});
}

// One projection for q, k and v there; LnL-AI/dbrx-base-converted-v2, the copy that is trained with adapters, has
// three. Each is clamped.
Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "norm_attn_norm.attn", kAttention);
  const Tensor x = std::move(hidden);
  const auto project = [&](const char* name, Dim out, Dim heads) {
    Tensor y = net.linear(name, x, out);
    if (net.arch.clip_qkv) y = clamp_in_place(std::move(y));
    return split_heads(net, std::move(y), heads, net.hd);
  };
  Tensor q = project("norm_attn_norm.attn.q_proj", net.Q, net.A);
  Tensor k = project("norm_attn_norm.attn.k_proj", net.K, net.Kv);
  const Tensor v = project("norm_attn_norm.attn.v_proj", net.K, net.Kv);
  rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("norm_attn_norm.attn.out_proj", std::move(out), net.H);
}

Tensor feed_forward(Net& net, const Tensor& hidden) {
  constexpr ExpertForm kForm = {.listed = {"ffn.experts", "ffn.experts.mlp.0.w1", "ffn.experts.mlp.0.activation_fn",
                                           "ffn.experts.mlp.0.v1", "ffn.experts.mlp.0.w2"}};
  constexpr SoftmaxRouter kRouter = {.module = "ffn.router.layer", .source = kFfn, .listed = "ffn.router.layer"};
  Scope in(net.tape, "ffn", kFfn);
  const Tensor tokens = as_tokens(net, hidden);
  const Routing routing = softmax_routing(net, kRouter, tokens);
  return as_sequences(net, run_experts(net, kForm, tokens, routing.indices, routing.weights));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("norm_attn_norm.norm_1", residual, true, false);
  h = self_attention(net, std::move(h));
  h = add(dropout(std::move(h), net.arch.residual_dropout), std::move(residual));
  residual = h;
  h = net.layer_norm("norm_attn_norm.norm_2", std::move(h), true, false);
  h = feed_forward(net, h);
  return add(std::move(residual), dropout(std::move(h), net.arch.residual_dropout));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.norm_f", std::move(hidden), true, false);
}

// transformers 5.12.1 modeling_dbrx.py: DbrxRouter and DbrxExperts take `ffn_hidden_size` for the width of the hidden
// states: a model in which the two differ, as they do in DBRX, raises an error. What runs there is the code beside the
// weights.
void check_release(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (!job.framework.at_least(5, 0)) return;
  issues.push_back({"ASSUMED_CODE", Severity::kNote, "/framework/version",
                    "transformers 5's own code of DBRX fails on its sizes: the code beside the weights "
                    "(trust_remote_code) is answered, as transformers 4.57 has it, with three projections for q, k "
                    "and v. No record covers it.",
                    ""});
}

}  // namespace

const Program kDbrxProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = llama_head, .check = check_release};

const Family kRows[] = {
    {"dbrx", "Dbrx", "DbrxForCausalLM", kLanguageModelOnly, read_dbrx_config, &kDbrxProgram, "transformer.blocks"},
};

extern const FamilyRows dbrx_rows;
const FamilyRows dbrx_rows = kRows;

}  // namespace tidemark
