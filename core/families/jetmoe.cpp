// JetMoE: Granite's mixture of experts, and the same in the attention, whose queries and output projections are
// experts, too; keys and values are one for all of a token's experts.
#include "core/families/family.hpp"
#include "core/families/granite.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer = "transformers 5.24 models/jetmoe/modeling_jetmoe.py: JetMoeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/jetmoe/modeling_jetmoe.py: JetMoeAttention.forward";
constexpr const char* kMap = "transformers 5.24 models/jetmoe/modeling_jetmoe.py: JetMoeMoA.map";
constexpr const char* kReduce = "transformers 5.24 models/jetmoe/modeling_jetmoe.py: JetMoeMoA.reduce";

constexpr ExpertNames kMlp = {"mlp", "mlp.router", "mlp.router.layer", "mlp.input_linear", "mlp.output_linear"};
constexpr ExpertNames kQueries = {"self_attention.experts", "self_attention.experts.router",
                                  "self_attention.experts.router.layer", "self_attention.experts.input_linear",
                                  "self_attention.experts.output_linear"};

// transformers 5.24 models/jetmoe/configuration_jetmoe.py: JetMoeConfig: as many query heads as a token's experts have.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.num_kv_heads = fields.count({"num_key_value_heads"}, 16);
  architecture.head_dim = fields.count({"kv_channels", "head_dim"}, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.max_positions = fields.count({"max_position_embeddings"}, 4096);
  architecture.activation = read_activation(fields, {"activation_function"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts"});
  architecture.num_heads = architecture.num_kv_heads * architecture.experts.per_token;
  fields.accept({"num_attention_heads", "aux_loss_coef", "glu", "moe_num_experts", "moe_top_k", "bias", "hidden_act"});
  refuse_router_logits(fields);
}

Tensor with_bias(Net& net, const ExpertNames& names, Tensor sum) {
  Tensor bias = net.parameter(names.module, "bias", Shape{net.H});
  return add(std::move(sum), std::move(bias));
}

Tensor attention_of_experts(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attention", kAttention);
  Tape& t = net.tape;
  const Tensor x = std::move(hidden);
  const Count k = net.arch.experts.per_token;
  const Dim width(net.Kv.n() * net.hd.n()), n(x.size(0) * x.size(1) * k);
  const std::vector<Dim> rows = expert_lists(net, n.n() / k);
  ExpertLists lists;
  Tensor q;
  {
    Scope map(t, kQueries.module, kMap);
    const Tensor tokens = as_tokens(net, x);
    lists = granite_route(net, kQueries, tokens);
    const Tensor inputs = index_some(tokens, lists.batch_index, n);
    const Tensor outputs = parallel_experts(net, kQueries.input, inputs, width, rows);
    const Shape all{n, width};
    const Tensor zeros = tidemark::zeros(t, all, outputs.dtype());
    q = index_add_in_place(tidemark::zeros(t, all, outputs.dtype(), "index_add"), lists.order, outputs);
  }
  const Pieces kv = split(net.linear("self_attention.kv_proj", x, Dim(2 * width.n())), -1, {width, width});
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor keys = split_heads(net, kv.part[0], net.Kv, net.hd);
  Tensor values = split_heads(net, kv.part[1], net.Kv, net.hd);
  rotate_both(net, q, keys);
  // keys.repeat(1, k, 1, 1): the heads lie in another order there.
  keys = repeat_kv(std::move(keys), k);
  values = repeat_kv(std::move(values), k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, keys, values, options);
  Scope reduce(t, kQueries.module, kReduce);
  out = view(std::move(out), Shape{n, width});
  const Tensor inputs = index_some(std::move(out), lists.order, n);
  Tensor made = parallel_experts(net, kQueries.output, inputs, net.H, rows);
  return with_bias(net, kQueries, gated_sum(net, lists, std::move(made), Shape{Dim(n.n() / k), net.H}));
}

Tensor mlp(Net& net, Tensor hidden) {
  return with_bias(net, kMlp, granite_moe(net, kMlp, std::move(hidden)));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, attention_of_experts, mlp);
}

const Program kProgram = {.forward = one_stack<llama_embed, layer, llama_norm>,
                          .lm_head = llama_head,
                          .attention = {.core_alone = false},
                          .checkpoints = false};

}  // namespace

// JetMoeParallelExperts.forward: a loop.
const Family kRows[] = {
    {"jetmoe",
     "JetMoe",
     "JetMoeForCausalLM",
     kSequenceOnly,
     read_config,
     &kProgram,
     kModelLayers,
     {.one_experts_form = true, .layer_first = "mlp.input mlp.output mlp"}},
};

extern const FamilyRows jetmoe_rows;
const FamilyRows jetmoe_rows = kRows;

}  // namespace tidemark
