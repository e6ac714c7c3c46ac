// MiniMax-M2: norms over the whole of q and k, then experts chosen by sigmoids.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/minimax_m2/configuration_minimax_m2.py: MiniMaxM2Config. Published files say `rotary_dim`,
// which nobody reads until 5.18: all of a head turns unless the rope dictionary has a factor.
void read_minimax_m2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 196608);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_experts(fields, architecture, {256, 8, 0}, {"num_local_experts", "num_experts"});
  architecture.experts.jitter = fields.number({"router_jitter_noise"}, 0.0) > 0.0;
  read_aux_loss(fields, architecture);
  const Count turning = fields.count({"rotary_dim"}, architecture.rotary_dim);
  if (architecture.rotary_dim == architecture.head_dim && turning <= architecture.head_dim) {
    architecture.rotary_dim_since_18 = turning;
  }
  fields.accept({"attn_type_list", "mlp_intermediate_size", "mtp_transformer_layers", "num_mtp_modules", "qk_norm_type",
                 "scoring_func", "shared_intermediate_size", "shared_moe_mode", "use_mtp", "use_qk_norm",
                 "use_routing_bias"});
}

constexpr const char* kLayer =
    "transformers 5.12 models/minimax_m2/modeling_minimax_m2.py: MiniMaxM2DecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/minimax_m2/modeling_minimax_m2.py: MiniMaxM2Attention.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/minimax_m2/modeling_minimax_m2.py: MiniMaxM2SparseMoeBlock.forward";
constexpr const char* kRouter =
    "transformers 5.12 models/minimax_m2/modeling_minimax_m2.py: MiniMaxM2TopKRouter.forward";
constexpr ExpertForm kForm = {
    .source = "transformers 5.12 models/minimax_m2/modeling_minimax_m2.py: MiniMaxM2Experts.forward"};

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q);
  q = rms_norm(net, "self_attn.q_norm", std::move(q));
  Tensor k = net.linear("self_attn.k_proj", x, net.K);
  k = rms_norm(net, "self_attn.k_norm", std::move(k));
  Tensor v = net.linear("self_attn.v_proj", x, net.K);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  turn_leading(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

}  // namespace

Routing minimax_m2_routing(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "mlp.gate", kRouter);
  const Experts& e = net.arch.experts;
  const Tensor weight = net.parameter("mlp.gate", "weight", Shape{Dim(e.count), net.H});
  Routing r;
  Tensor x = to(hidden, weight.dtype());
  r.logits = linear(std::move(x), weight);
  Tensor wide = to(r.logits, Dtype::kFp32);
  const Tensor scores = sigmoid(std::move(wide));
  const Tensor choice = add(scores, net.tape.part_of_buffer(Shape{Dim(e.count)}, Dtype::kFp32));
  r.indices = topk(choice, Dim(e.per_token)).indices;
  r.weights = gather_last(scores, r.indices);
  Tensor sum = sum_over(r.weights, -1, true);
  r.weights = div_in_place(std::move(r.weights), std::move(sum));
  keep_router_logits(net, r.logits);
  return r;
}

namespace {

Tensor mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kBlock);
  Tensor hidden = std::move(hidden_in);
  net.tape.buffer("mlp.e_score_correction_bias", 4 * net.arch.experts.count);
  if (net.arch.experts.jitter) hidden = add_noise(std::move(hidden));
  hidden = as_tokens(net, std::move(hidden));
  const Routing routing = minimax_m2_routing(net, hidden);
  hidden = run_experts(net, kForm, std::move(hidden), routing.indices, routing.weights);
  return as_sequences(net, std::move(hidden));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, mlp);
}

}  // namespace

const Program kMiniMaxM2Program = {one_stack<llama_embed, layer, llama_norm>, llama_head, kMoeForwards};

const Family kRows[] = {
    {"minimax_m2", "MiniMaxM2", "MiniMaxM2ForCausalLM", kLanguageModelOnly, read_minimax_m2_config, &kMiniMaxM2Program},
};

extern const FamilyRows minimax_m2_rows;
const FamilyRows minimax_m2_rows = kRows;

}  // namespace tidemark
