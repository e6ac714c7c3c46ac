// Qwen3-MoE: Qwen3's attention before a mixture of experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/qwen3_moe/configuration_qwen3_moe.py: Qwen3MoeConfig. It has no `head_dim` of its own: the
// modelling file takes it where the file has it (Qwen3MoeAttention). No layer slides by its kind.
void read_qwen3_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_qwen3_sizes(fields, architecture, 32768, 4, std::nullopt);
  const bool slides = fields.flag({"use_sliding_window"}, false);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  slide_everywhere(architecture, slides ? window : 0);
  fields.accept({"max_window_layers"});
  read_experts(fields, architecture, {128, 8, 768}, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"});
  read_sparse_step(fields, architecture);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, false);
  read_aux_loss(fields, architecture);
}

constexpr const char* kLayer = "transformers 5.12 models/qwen3_moe/modeling_qwen3_moe.py: Qwen3MoeDecoderLayer.forward";

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, qwen3_attention, qwen3_moe_mlp);
}

}  // namespace

Tensor qwen3_moe_mlp(Net& net, Tensor hidden_in) {
  constexpr const char* kBlock =
      "transformers 5.12 models/qwen3_moe/modeling_qwen3_moe.py: Qwen3MoeSparseMoeBlock.forward";
  constexpr ExpertForm kForm = {
      .source = "transformers 5.12 models/qwen3_moe/modeling_qwen3_moe.py: Qwen3MoeExperts.forward"};
  constexpr SoftmaxRouter kRouter = {
      .source = "transformers 5.12 models/qwen3_moe/modeling_qwen3_moe.py: Qwen3MoeTopKRouter.forward"};
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = std::move(hidden_in);
  const Tensor tokens = as_tokens(net, hidden);
  const Routing routing = softmax_routing(net, kRouter, tokens);
  Tensor out = run_experts(net, kForm, tokens, routing.indices, routing.weights);
  return as_sequences(net, std::move(out));
}

const Program kQwen3MoeProgram = {.forward = one_stack<llama_embed, layer, llama_norm>,
                                  .lm_head = llama_head,
                                  .heads = kMoeForwards,
                                  .has_tp_plan = true};

const Family kRows[] = {
    {"qwen3_moe", "Qwen3Moe", "Qwen3MoeForCausalLM", kFourHeads, read_qwen3_moe_config, &kQwen3MoeProgram},
};

extern const FamilyRows qwen3_moe_rows;
const FamilyRows qwen3_moe_rows = kRows;

}  // namespace tidemark
