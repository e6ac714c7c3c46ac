// Mixtral: Mistral's attention before eight experts, of which two see a token.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/mixtral/configuration_mixtral.py: MixtralConfig. No bias anywhere.
void read_mixtral_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096 * 32);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  slide_everywhere(architecture, fields.nullable({"sliding_window"}, std::nullopt).value_or(0));
  read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts", "num_experts"});
  architecture.experts.normalised = true;
  architecture.experts.jitter = fields.number({"router_jitter_noise"}, 0.0) > 0.0;
  read_aux_loss(fields, architecture);
}

constexpr const char* kLayer = "transformers 5.12 models/mixtral/modeling_mixtral.py: MixtralDecoderLayer.forward";
constexpr const char* kBlock = "transformers 5.12 models/mixtral/modeling_mixtral.py: MixtralSparseMoeBlock.forward";
constexpr ExpertForm kForm = {
    .source = "transformers 5.12 models/mixtral/modeling_mixtral.py: MixtralExperts.forward",
    .listed = {"block_sparse_moe.experts", "block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.act_fn",
               "block_sparse_moe.experts.0.w3", "block_sparse_moe.experts.0.w2"}};
// The weights stay in fp32, and so do the weighted rows.
constexpr SoftmaxRouter kRouter = {
    .source = "transformers 5.12 models/mixtral/modeling_mixtral.py: MixtralTopKRouter.forward",
    .casts_logits = true,
    .casts_back = false,
    .listed = "block_sparse_moe.gate"};

}  // namespace

Tensor mixtral_mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kBlock);
  Tensor hidden = std::move(hidden_in);
  if (net.arch.experts.jitter) hidden = add_noise(std::move(hidden));
  hidden = as_tokens(net, std::move(hidden));
  const Routing routing = softmax_routing(net, kRouter, hidden);
  hidden = run_experts(net, kForm, std::move(hidden), routing.indices, routing.weights);
  return as_sequences(net, std::move(hidden));
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, mixtral_mlp);
}

}  // namespace

const Program kMixtralProgram = {.forward = one_stack<llama_embed, layer, llama_norm>,
                                 .lm_head = llama_head,
                                 .heads = kMoeForwards,
                                 .has_tp_plan = true};

const Family kRows[] = {
    {"mixtral", "Mixtral", "MixtralForCausalLM", kFourHeads, read_mixtral_config, &kMixtralProgram},
};

extern const FamilyRows mixtral_rows;
const FamilyRows mixtral_rows = kRows;

}  // namespace tidemark
