// AFMoE (Arcee's Trinity): norms before and behind each branch, attention behind a gate of its own, rotation in sliding
// layers alone; experts chosen by sigmoids beside a feed-forward that all tokens share.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/norms.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/afmoe/configuration_afmoe.py: AfmoeConfig. What published files say of the router's
// scores and groups beside it nobody reads.
void read_afmoe_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 16384);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.embedding_scale = fields.flag({"mup_enabled"}, false);
  const Count period = fields.count({"global_attn_every_n_layers"}, 4);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(period, architecture.num_layers);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 1024).value_or(0);
  for (const char slides : architecture.sliding_layers) architecture.no_rope_layers.push_back(slides == 0);
  read_experts(fields, architecture, {64, 6, 1408}, {"num_experts"}, {"moe_intermediate_size"});
  Experts& e = architecture.experts;
  e.shared_width = e.width * fields.count({"num_shared_experts"}, 2);
  const Count dense = fields.count({"num_dense_layers"}, 1, 0);
  for (Count i = 0; i < architecture.num_layers; ++i) e.dense_layers.push_back(i < dense);
  fields.accept({"route_scale", "route_norm", "score_func", "n_group", "topk_group", "num_expert_groups",
                 "num_limited_groups", "load_balance_coeff", "use_grouped_mm", "output_router_logits"});
}

constexpr const char* kModel = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeAttention.forward";
constexpr const char* kBlock = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeSparseMoeBlock.forward";
constexpr const char* kRouter = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeTokenChoiceRouter.forward";
constexpr ExpertForm kForm = {.source = "transformers 5.12 models/afmoe/modeling_afmoe.py: AfmoeExperts.forward"};

// The embeddings keep their name beside what muP makes of them.
Tensor embed(Net& net) {
  Tensor embeds = decoder_embed(net, kModel, false);
  if (!net.arch.embedding_scale) return embeds;
  Scope in(net.tape, "model", kModel);
  return mul_scalar(embeds);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = view(net.linear("self_attn.q_proj", x, net.Q, bias), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = view(net.linear("self_attn.k_proj", x, net.K, bias), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  const Tensor gate = net.linear("self_attn.gate_proj", x, net.Q);
  q = transpose(olmo2_norm(net, "self_attn.q_norm", std::move(q)), 1, 2);
  k = transpose(olmo2_norm(net, "self_attn.k_norm", std::move(k)), 1, 2);
  if (net.rotates(net.layer_index)) rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  Tensor open = sigmoid(gate);
  out = mul(std::move(out), std::move(open));
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

// The correction, a parameter that is never trained, is for the choice alone.
Routing route(Net& net, const Tensor& tokens) {
  const Experts& e = net.arch.experts;
  const Tensor correction = net.parameter("mlp", "expert_bias", Shape{Dim(e.count)}, false);
  Scope in(net.tape, "mlp.router", kRouter);
  Routing r;
  r.logits = to(net.linear("mlp.router.gate", tokens, Dim(e.count)), Dtype::kFp32);
  const Tensor scores = sigmoid(r.logits);
  choose_corrected(r, scores, correction, Dim(e.per_token), true);
  r.weights = mul_scalar(std::move(r.weights));
  return r;
}

Tensor mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor tokens = as_tokens(net, std::move(hidden_in));
  const Routing routing = route(net, tokens);
  const Tensor shared = gated_mlp(net, kSharedExperts, kBlock, tokens, Dim(net.arch.experts.shared_width));
  const Tensor out = run_experts(net, kForm, tokens, routing.indices, routing.weights);
  return as_sequences(net, add(shared, out));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention(net, olmo2_norm(net, "input_layernorm", residual));
  h = olmo2_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = mlp(net, olmo2_norm(net, "pre_mlp_layernorm", std::move(h)));
  h = olmo2_norm(net, "post_mlp_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return olmo2_norm(net, "model.norm", std::move(hidden));
}

const Program kProgram = {one_stack<embed, layer, norm>, llama_head};

}  // namespace

const Family kRows[] = {
    {"afmoe", "Afmoe", "AfmoeForCausalLM", kLanguageModelOnly, read_afmoe_config, &kProgram},
};

extern const FamilyRows afmoe_rows;
const FamilyRows afmoe_rows = kRows;

}  // namespace tidemark
