// Phi-3.5-MoE: LayerNorms, Llama's attention with biases, and experts that a sampled router chooses.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/phimoe/configuration_phimoe.py: PhimoeConfig.
void read_phimoe_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096 * 32);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.head_bias = fields.flag({"lm_head_bias"}, false);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  slide_everywhere(architecture, fields.nullable({"sliding_window"}, std::nullopt).value_or(0));
  read_experts(fields, architecture, {16, 2, 0}, {"num_local_experts", "num_experts"});
  if (architecture.experts.per_token != 2) {
    fields.error("INVALID_VALUE", "num_experts_per_tok",
                 "sparsemixer chooses two experts per token, whatever \"num_experts_per_tok\" says: state 2.", "2");
  }
  architecture.experts.jitter = fields.number({"input_jitter_noise"}, 0.0) > 0.0;
  read_aux_loss(fields, architecture);
  fields.accept({"router_jitter_noise", "hidden_dropout"});
}

constexpr const char* kLayer = "transformers 5.12 models/phimoe/modeling_phimoe.py: PhimoeDecoderLayer.forward";
constexpr const char* kModel = "transformers 5.12 models/phimoe/modeling_phimoe.py: PhimoeModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/phimoe/modeling_phimoe.py: PhimoeSparseMoeBlock.forward";
constexpr const char* kMixer = "transformers 5.12 models/phimoe/modeling_phimoe.py: sparsemixer";
constexpr ExpertForm kForm = {.source = "transformers 5.12 models/phimoe/modeling_phimoe.py: PhimoeExperts.forward"};

// PhimoeMultiplier.backward: grad · multiplier, then masked_gates times its negative, filled in place.
void multiplier_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& gates = n.saved_tensor(2);
  const Tensor grad = t.allocate(g[0].shape(), g[0].dtype(), "mul");
  const Tensor negative = t.allocate(g[0].shape(), g[0].dtype(), "mul");
  r[0] = t.allocate(gates.shape(), promote(gates, negative), "mul");
}

/// One of the two choices: the weight of the expert and its number.
struct Choice {
  Tensor multiplier, selected;
};

Choice choose(Net& net, const Tensor& scores, const Tensor& candidates) {
  Tape& t = net.tape;
  const Shape one{scores.dim(0), Dim(1)};
  Tensor mask = t.allocate(scores.shape(), Dtype::kBool, "gt");
  Tensor gates = masked_fill(candidates, std::move(mask));
  Choice c;
  {
    const Tensor noise = t.allocate(scores.shape(), gates.dtype(), "log");
    const Tensor sampled = t.allocate(scores.shape(), gates.dtype(), "sub");
    c.selected = t.allocate(one, Dtype::kInt64, "max indices");
  }
  gates = softmax(std::move(gates));
  const Tensor weight = gather_last(gates, c.selected);
  const Tensor mask_for_one = t.allocate(one, gates.dtype(), "to");
  Node* n = t.record("PhimoeMultiplier", multiplier_backward, {&scores});
  t.save(n, weight);
  t.save(n, c.selected);
  t.save(n, gates);
  c.multiplier = t.allocate(one, gates.dtype(), "mul");
  t.attach(n, c.multiplier);
  return c;
}

Routing sparsemixer(Net& net, Tensor scores_in) {
  Scope in(net.tape, "mlp.router", kMixer);
  const Tensor scores = std::move(scores_in);
  const Choice first = choose(net, scores, scores);
  const Tensor masked = masked_fill(scores, first.selected);  // scatter: keeps the index
  const Choice second = choose(net, scores, masked);
  Routing r;
  r.weights = cat({&first.multiplier, &second.multiplier}, -1);
  r.indices = cat({&first.selected, &second.selected}, -1);
  r.logits = scores;
  keep_router_logits(net, r.logits);
  return r;
}

Tensor mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kBlock);
  Tensor hidden = std::move(hidden_in);
  if (net.arch.experts.jitter) hidden = add_noise(std::move(hidden));
  hidden = as_tokens(net, std::move(hidden));
  // PhimoeTopKRouter.forward multiplies by noise once more.
  if (net.arch.experts.jitter) hidden = add_noise(std::move(hidden));
  Tensor logits = net.linear("mlp.router", hidden, Dim(net.arch.experts.count));
  const Routing routing = sparsemixer(net, std::move(logits));
  Tensor out = run_experts(net, kForm, hidden, routing.indices, routing.weights);
  return as_sequences(net, std::move(out));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, mlp, affine_norm);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.norm", std::move(hidden));
}

}  // namespace

const Program kPhimoeProgram = {.forward = one_stack<llama_embed, layer, norm>,
                                .lm_head = llama_head,
                                .heads = kMoeForwards,
                                .check = check_router_is_whole};

const Family kRows[] = {
    {"phimoe", "Phimoe", "PhimoeForCausalLM", kSequenceOnly, read_phimoe_config, &kPhimoeProgram},
};

extern const FamilyRows phimoe_rows;
const FamilyRows phimoe_rows = kRows;

}  // namespace tidemark
