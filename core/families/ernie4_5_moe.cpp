// ERNIE-4.5's mixtures of experts: Llama's attention with pairs of neighbours turning in fp32, shared experts before
// the routed ones.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {

// Their attention has no dropout, whatever the file says.
void read_ernie4_5_experts(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"use_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = architecture.attention_bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  Experts& e = architecture.experts;
  e.count = fields.count({"moe_num_experts", "num_experts"}, 64);
  e.per_token = fields.count({"moe_k", "num_experts_per_tok"}, 6);
  read_aux_loss(fields, architecture);
  fields.accept({"moe_norm_min", "attention_dropout"});
}

namespace {

// transformers 5.12.1 models/ernie4_5_moe/configuration_ernie4_5_moe.py: Ernie4_5_MoeConfig.
void read_ernie4_5_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_ernie4_5_experts(fields, architecture);
  Experts& e = architecture.experts;
  e.width = fields.count({"moe_intermediate_size"}, 1536);
  e.shared_width = e.width * fields.count({"moe_num_shared_experts"}, 2, 0);
  const Count first = fields.count({"moe_layer_start_index"}, 1, 0);
  const double end = fields.number({"moe_layer_end_index"}, -1.0);
  const Count last = end < 0.0 ? architecture.num_layers - 1 : static_cast<Count>(end);
  const Count step = fields.count({"moe_layer_interval"}, 1);
  for (Count i = 0; i < architecture.num_layers; ++i) {
    e.dense_layers.push_back((i + 1) % step != 0 || i < first || i > last);
  }
  fields.accept({"moe_capacity", "moe_gate", "moe_use_aux_free", "num_nextn_predict_layers"});
}

constexpr const char* kModel =
    "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeAttention.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeSparseMoeBlock.forward";
constexpr const char* kRouter =
    "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeTopKRouter.forward";
constexpr ExpertForm kForm = {
    .source = "transformers 5.12 models/ernie4_5_moe/modeling_ernie4_5_moe.py: Ernie4_5_MoeExperts.forward"};

// Ernie4_5_MoeRotaryEmbedding.forward leaves the tables in fp32.
Tensor embed(Net& net) {
  return decoder_embed(net, kModel, true);
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_pairs_by_fp32(n, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

}  // namespace

// Without autocast. The router's weight is fp32 in whichever precision the model is
// (_keep_in_fp32_modules_strict), and so is the correction, a parameter that is never trained.
Routing ernie_routing(Net& net, const ErnieRouter& router, const Tensor& hidden) {
  Scope in(net.tape, router.module, kRouter);
  Tape& t = net.tape;
  const Experts& e = net.arch.experts;
  const auto autocast = t.autocast();
  t.set_autocast(std::nullopt);
  Routing r;
  const Tensor weight = net.fp32_parameter(router.module, "weight", Shape{Dim(e.count), net.H}, true);
  const Tensor correction =
      net.fp32_parameter(router.statics, "e_score_correction_bias", Shape{Dim(1), Dim(e.count)}, false);
  r.logits = linear(to(hidden, Dtype::kFp32), weight);
  Tensor scores = softmax(r.logits, Dtype::kFp32);
  Tensor choice = add(scores, view(correction, Shape{Dim(e.count)}));
  r.indices = topk(std::move(choice), Dim(e.per_token)).indices;
  scores = gather_last(std::move(scores), r.indices);
  Tensor sum = sum_over(scores, -1, true);
  sum = clamp(std::move(sum));
  scores = div(std::move(scores), std::move(sum));
  t.set_autocast(autocast);
  r.weights = to(std::move(scores), hidden.dtype());
  return r;
}

namespace {

constexpr ErnieRouter kGate = {"mlp.gate", "mlp.gate.moe_statics"};

Tensor mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Count shared_width = net.arch.experts.shared_width;
  Tensor shared;
  if (shared_width > 0) shared = gated_mlp(net, kSharedExperts, kBlock, hidden, Dim(shared_width), net.arch.mlp_bias);
  const Routing routing = ernie_routing(net, kGate, hidden);
  keep_router_logits(net, routing.logits);
  Tensor out = run_experts(net, kForm, hidden, routing.indices, routing.weights);
  if (shared.defined()) out = add(std::move(out), shared);
  return as_sequences(net, std::move(out));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, mlp);
}

}  // namespace

const Program kErnie45MoeProgram = {one_stack<embed, layer, llama_norm>, llama_head, kMoeForwards};

const Family kRows[] = {
    {"ernie4_5_moe", "Ernie4_5_Moe", "Ernie4_5_MoeForCausalLM", kLanguageModelOnly, read_ernie4_5_moe_config,
     &kErnie45MoeProgram},
};

extern const FamilyRows ernie4_5_moe_rows;
const FamilyRows ernie4_5_moe_rows = kRows;

}  // namespace tidemark
