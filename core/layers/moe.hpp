#pragma once

#include <vector>

#include "core/layers/heads.hpp"
#include "core/layers/net.hpp"

/// Mixtures of experts: what routers choose, and the forms in which experts compute (transformers 5.12
/// integrations/moe.py).
namespace tidemark {

/// The weights of one projection of all experts.
struct Projection {
  Tensor weight, bias;
  Net* packs = nullptr;  ///< whose experts are packed: the weight is unpacked at the first access, of the shape
  QuantisedWeight packed;
  Shape shape;
  ParameterUpdate update;  ///< an adapter, or undefined
  Tensor cached;           ///< the sum, where PEFT keeps it until the experts have run (parametrize.cached)
  /// module.weight: with an adapter, a sum that is made at each access, with PEFT 0.21 at the first
  /// (torch.nn.utils.parametrize).
  Tensor used();
};
struct Projections {
  Projection up, down;
};
/// PEFT's adapters on both, where `adapter.target_parameters` names them.
void adapt(Net& net, const char* module, Projections& p);

/// What a router returns.
struct Routing {
  Tensor logits;   ///< [T, E]: many blocks hold them in a name ("_") until they return
  Tensor weights;  ///< [T, k]
  Tensor indices;  ///< [T, k] int64
};

/// A gated feed-forward of modules with other names or another width than llama_mlp's.
struct GatedNames {
  const char *scope, *gate, *act, *up, *down;
};

/// Where families' experts differ. Their weights are [E, 2F, H] and [E, H, F] parameters of one module.
struct ExpertForm {
  const char* module = "mlp.experts";                                          ///< its path inside the layer
  const char* source = "";                                                     ///< of the family's own loop
  Tensor (*gate)(Net& net, const ExpertForm& form, Tensor gate_up) = nullptr;  ///< _apply_gate; null: the default one
  bool transposed = false;                                                     ///< [E, H, 2F] and [E, F, H]
  bool bias = false;                                                           ///< both projections carry one
  bool gated = true;                                                           ///< else up_proj [E, F, H], no gate
  const char* act = "mlp.experts.act_fn";                                      ///< path of the activation's module
  Count (*width)(const Net& net) = nullptr;                                    ///< of each; null: the architecture's
  /// Before transformers 5, where each expert is a module of linear layers: its names. All have those of the first, so
  /// that a pattern reaches all of them or none.
  GatedNames listed = {"mlp.experts", "mlp.experts.0.gate_proj", "mlp.experts.0.act_fn", "mlp.experts.0.up_proj",
                       "mlp.experts.0.down_proj"};
};

/// Under transformers' expert parallelism: the weights and indices of others' experts are masked.
void mask_others(Net& net, Routing& r);

/// softmax in fp32, the k best, their weights divided by their sum where the architecture says so.
struct SoftmaxRouter {
  const char* module = "mlp.gate";  ///< path of the router
  const char* source = "";          ///< its forward
  bool casts_logits = false;        ///< router_logits.float() (Mixtral), else softmax(dtype=float)
  bool casts_back = true;           ///< .to(router_logits.dtype)
  const char* listed = "mlp.gate";  ///< before transformers 5, where it is an nn.Linear
};
Routing softmax_routing(Net& net, const SoftmaxRouter& router, const Tensor& hidden);

/// hidden x weight^T: an nn.Linear's until transformers 5.`since`, then a parameter of a router that returns its
/// choice.
Tensor router_logits(Net& net, const char* module, const Tensor& hidden, int since);

/// F.linear(hidden.type(fp32), weight.type(fp32)): `is_linear` where the router is an nn.Linear whose weight is read.
Tensor fp32_router(Net& net, const char* module, const char* source, Tensor hidden, bool is_linear);
/// DeepSeek's choice among groups: `choice` where a token's best groups are, something hopeless elsewhere. A group's
/// score is the sum of its two best, or its best.
Tensor limit_to_groups(Net& net, const Tensor& choice, bool sum_of_two);

/// The k experts whose scores are best with a correction, which is for the choice alone; they share by the scores.
/// `guarded`: the sum that these are divided by gets a small number more.
void choose_corrected(Routing& routing, const Tensor& scores, const Tensor& correction, Dim k, bool guarded);

/// The experts on [T, H], as `moe.implementation` says.
Tensor run_experts(Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights);
/// The same by a loop over them, of classes that have no other way (ClassFacts::one_experts_form).
Tensor run_experts_in_turn(Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights);

/// The same of any such module.
Tensor gated_mlp(Net& net, const GatedNames& names, const char* source, Tensor x, Dim width, bool bias = false);

/// How many rows each expert gets: dealt in turn, but the first gets `moe.load_imbalance` times its share, taken from
/// the first choices of tokens that have not chosen it (a token cannot choose one expert twice).
std::vector<Count> rows_of_experts(Net& net, Count tokens, Count k);

/// output_router_logits: a hook on the router keeps its logits until the model's outputs go.
void keep_router_logits(Net& net, const Tensor& logits);
/// A decoder's heads, with load_balancing_loss_func added to the language model's loss where it is asked for.
extern const HeadForwards kMoeForwards;

/// Is layer `net.layer_index` one without experts?
bool is_dense_layer(const Net& net);

/// [B, S, H] seen as [T, H], and back.
Tensor as_tokens(Net& net, Tensor hidden);
Tensor as_sequences(Net& net, Tensor tokens);

}  // namespace tidemark
