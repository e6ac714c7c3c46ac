// Qwen1.5-MoE and Qwen2-MoE: Qwen2's attention before experts and one shared by all tokens, weighed by a gate.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/qwen2_moe/configuration_qwen2_moe.py: Qwen2MoeConfig. Without `layer_types` every other of
// the first `max_window_layers` slides, where any does.
void read_qwen2_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 16);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"qkv_bias"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  const bool slides = fields.flag({"use_sliding_window"}, false);
  // transformers 5.12 writes 0 where none slides (Qwen2MoeConfig.__post_init__).
  const Count window = fields.nullable({"sliding_window"}, 4096, 0).value_or(0);
  const Count sliding = fields.count({"max_window_layers"}, 28, 0);
  architecture.sliding_window = slides ? window : 0;
  const auto types = read_layer_types(fields, architecture);
  for (Count i = 0; i < architecture.num_layers && architecture.sliding_window > 0; ++i) {
    architecture.sliding_layers.push_back(types ? (*types)[static_cast<std::size_t>(i)] : i % 2 == 0 && i < sliding);
  }
  read_experts(fields, architecture, {60, 4, 1408}, {"num_experts"}, {"moe_intermediate_size"});
  architecture.experts.shared_width = fields.count({"shared_expert_intermediate_size"}, 5632);
  read_sparse_step(fields, architecture);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, false);
  read_aux_loss(fields, architecture);
}

constexpr const char* kLayer = "transformers 5.12 models/qwen2_moe/modeling_qwen2_moe.py: Qwen2MoeDecoderLayer.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/qwen2_moe/modeling_qwen2_moe.py: Qwen2MoeSparseMoeBlock.forward";
constexpr ExpertForm kForm = {.source =
                                  "transformers 5.12 models/qwen2_moe/modeling_qwen2_moe.py: Qwen2MoeExperts.forward"};
constexpr SoftmaxRouter kRouter = {
    .source = "transformers 5.12 models/qwen2_moe/modeling_qwen2_moe.py: Qwen2MoeTopKRouter.forward"};
constexpr GatedNames kShared = {"mlp.shared_expert", "mlp.shared_expert.gate_proj", "mlp.shared_expert.act_fn",
                                "mlp.shared_expert.up_proj", "mlp.shared_expert.down_proj"};

}  // namespace

Tensor qwen2_moe_mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = std::move(hidden_in);
  const Tensor tokens = as_tokens(net, hidden);
  Tensor shared = gated_mlp(net, kShared, kBlock, tokens, Dim(net.arch.experts.shared_width));
  const Routing routing = softmax_routing(net, kRouter, tokens);
  Tensor out = run_experts(net, kForm, tokens, routing.indices, routing.weights);
  Tensor scale = net.linear("mlp.shared_expert_gate", tokens, Dim(1));
  scale = sigmoid(std::move(scale));
  shared = mul(std::move(scale), std::move(shared));
  out = add(std::move(out), shared);
  return as_sequences(net, std::move(out));
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, qwen2_moe_mlp);
}

}  // namespace

const Program kQwen2MoeProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head, kMoeForwards};

const Family kRows[] = {
    {"qwen2_moe", "Qwen2Moe", "Qwen2MoeForCausalLM", kFourHeads, read_qwen2_moe_config, &kQwen2MoeProgram},
};

extern const FamilyRows qwen2_moe_rows;
const FamilyRows qwen2_moe_rows = kRows;

}  // namespace tidemark
