// Megatron-Core's GPTModel with Transformer Engine's layers or its own: sequence first, tensor and sequence parallel.
#include "core/families/megatron.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/megatron_layers.hpp"
#include "core/families/megatron_lora.hpp"
#include "core/layers/moe.hpp"
#include "core/layers/program.hpp"
#include "core/tape/megatron_ops.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {

using namespace megatron;

namespace {

constexpr const char* kModel = "megatron_core 0.16.1 models/gpt/gpt_model.py: GPTModel.forward";
constexpr const char* kEmbedding =
    "megatron_core 0.16.1 models/common/embeddings/language_model_embedding.py: LanguageModelEmbedding.forward";
constexpr const char* kLayer = "megatron_core 0.16.1 transformer/transformer_layer.py: TransformerLayer.forward";
constexpr const char* kAttention = "megatron_core 0.16.1 transformer/attention.py: SelfAttention.forward";
constexpr const char* kMlp = "megatron_core 0.16.1 transformer/mlp.py: MLP.forward";
constexpr const char* kExperts = "megatron_core 0.16.1 transformer/moe/{router, token_dispatcher, experts}.py";
constexpr const char* kShared = "megatron_core 0.16.1 transformer/moe/shared_experts.py: SharedExpertMLP.forward";
constexpr const char* kLoss = "megatron_core 0.16.1 models/common/language_module: compute_language_model_loss";
constexpr const char* kSeen =
    "mcore-bridge f020e47 src/mcore_bridge/model/mm_gpts/qwen3_vl.py: Qwen3VLTransformerBlock";
constexpr const char* kBatch = "Megatron-LM megatron/training/utils.py: get_batch_on_this_tp_rank";

// Tokens, labels, their weights, positions and a mask that Transformer Engine's kernels do not read
// (create_attention_mask_in_dataloader is on unless switched off): on the first of the tensor-parallel GPUs all of
// them, in stages in between none.
void inputs(Net& net) {
  if (net.stage != nullptr && !net.stage->first && !net.stage->last) return;
  const Scope in(net.tape, "batch", kBatch);
  const Shape rows{net.B, net.S};
  const auto take = [&](Dtype dtype, const char* name) { return net.tape.allocate(rows, dtype, name); };
  net.input_ids = take(Dtype::kInt64, "tokens");
  net.labels = take(Dtype::kInt64, "labels");
  net.more_inputs.push_back(take(Dtype::kFp32, "loss_mask"));
  net.attention_mask = net.tape.allocate(Shape{net.B, Dim(1), net.S, Dim(net.job.sequence_length, Symbol::kSequence)},
                                         Dtype::kBool, "attention_mask");
  net.more_inputs.push_back(take(Dtype::kInt64, "position_ids"));
}

// mcore-bridge f020e47 src/mcore_bridge/model/mm_gpt_model.py: MultimodalGPTModel._patch_word_embeddings: features take
// their places among all of a sequence's rows, batch first, which are divided behind it, and then by the GPUs' number.
Tensor embed(Net& net) {
  if (net.stage != nullptr && !net.stage->first) return std::move(net.received);
  const Scope in(net.tape, "embedding", kEmbedding);
  net.tied_embedding = net.tape.next_parameter();
  Tensor hidden = embedding(net.input_ids, net.parameter("embedding.word_embeddings", "weight", Shape{net.V, net.H}));
  if (form_of(net.arch.model_type)->learned) {
    const Tensor table =
        net.parameter("embedding.position_embeddings", "weight", Shape{Dim(net.arch.max_positions), net.H});
    const Tensor positions = embedding(net.more_inputs.back(), table);
    hidden = add(std::move(hidden), positions);
  }
  if (net.arch.alibi) hidden = norm(net, "embedding.word_embeddings.norm", std::move(hidden));  // --embed-layernorm
  if (net.merge != nullptr) hidden = net.merge(net, std::move(hidden));
  hidden = contiguous(permute(std::move(hidden), {1, 0, 2}));
  const Count shards = shards_of_sequence(net);
  if (shards > 1) hidden = reduce_scattered(std::move(hidden), shards);
  if (shards > 1 && net.merge != nullptr) hidden = mul_scalar(std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  net.wrapper_locals.push_back(hidden);  // GPTModel.forward: decoder_input
  return begins_graph(net) ? as_leaf(net, std::move(hidden)) : hidden;
}

Tensor attention_of(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attention", kAttention);
  const bool has_gate = form_of(net.arch.model_type)->hybrid;
  const Count queries = (has_gate ? 2 : 1) * net.Q.n(), per_group = queries / net.Kv.n();
  const Dim all(queries + 2 * net.K.n());
  Tensor mixed = column(net, "self_attention.linear_qkv", std::move(hidden), all, net.arch.attention_bias);
  mixed = view(std::move(mixed), Shape{net.S, net.B, net.Kv, Dim(per_group + 2 * net.hd.n())});
  Pieces parts = split(std::move(mixed), 3, {Dim(per_group), net.hd, net.hd});
  const Dim rows_of_heads = has_gate ? Dim(2 * net.A.n()) : net.A;
  Tensor q = reshape(std::move(parts.part[0]), Shape{net.S, net.B, rows_of_heads, net.hd}), gate;
  if (has_gate) {  // query[:, :, ::2] and query[:, :, 1::2]
    Pieces halves = split(view(std::move(q), Shape{net.S, net.B, net.A, Dim(2), net.hd}), 3, {Dim(1), Dim(1)});
    gate = std::move(halves.part[1]);
    q = select(std::move(halves.part[0]), 3);
  }
  Tensor k = std::move(parts.part[1]), v = std::move(parts.part[2]);
  if (net.arch.qk_norm || has_gate) {
    q = norm(net, "self_attention.q_layernorm", std::move(q));
    k = norm(net, "self_attention.k_layernorm", std::move(k));
  }
  if (net.rotates(net.layer_index)) {  // fused_apply_rotary_pos_emb keeps its tables alone
    q = mul_scalar(std::move(q));
    k = mul_scalar(std::move(k));
  }
  Tensor out = core_attention(net, std::move(q),
                              [&net, k, v](Tensor query) { return core_attention_of(net, std::move(query), k, v); });
  out = view(std::move(out), Shape{net.S, net.B, net.Q});
  if (has_gate) {
    Tensor open = sigmoid(reshape(std::move(gate), Shape{net.S, net.B, net.Q}));
    out = mul(std::move(out), std::move(open));
  }
  return row(net, "self_attention.linear_proj", std::move(out), net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  const Scope in(net.tape, "mlp", kMlp);
  const bool gated = form_of(net.arch.model_type)->gated;
  const Dim wide(gated ? 2 * net.F.n() : net.F.n(), Symbol::kFeedForward);
  Tensor h = column(net, "mlp.linear_fc1", std::move(hidden), wide, net.arch.mlp_bias);
  h = gated ? bias_swiglu(std::move(h)) : gelu(std::move(h));
  return row(net, "mlp.linear_fc2", std::move(h), net.arch.mlp_bias);
}

// One of the experts' weights, of which each of the expert-parallel GPUs has an equal part.
Tensor experts_weight(Net& net, const char* name, const Shape& part) {
  const std::int32_t index = net.tape.next_parameter();
  Tensor weight = net.expert_parameter(name, "weight", part);
  const Count gpus = net.job.expert * gpus_of_expert(net.job);
  net.tape.parameters()[static_cast<std::size_t>(index)].whole = part.numel() * gpus;
  return weight;
}

// router.py: TopKRouter, the softmax over the chosen scores; a map of tokens and experts, [T, E], beside the weights.
Routing routed(Net& net, const Tensor& flat) {
  const Scope in(net.tape, "mlp.router", kExperts);
  const Experts& e = net.arch.experts;
  Routing r;
  const Tensor weight = net.parameter("mlp.router", "weight", Shape{Dim(e.count), net.H});
  r.logits = linear(flat, weight);
  // moe_utils.py RouterGatingLinearFunction saves its input, whether the weight is trained or not.
  if (!weight.requires_grad()) net.tape.save(r.logits.edge().node, flat);
  TopK best;
  Tensor scores, biased;
  if (form_of(net.arch.model_type)->sigmoid) {
    scores = to(sigmoid(to(r.logits, Dtype::kFp32)), flat.dtype());
    biased = to(scores, Dtype::kFp32);  // scores + expert_bias
    best = topk(biased, Dim(e.per_token));
    scores = gather_last(scores, best.indices);
    Tensor sum = sum_over(scores, -1, true);
    r.weights = mul_scalar(mul(scores, std::move(sum)));
  } else if (e.normalised) {
    best = topk(r.logits, Dim(e.per_token));
    r.weights = to(softmax(std::move(best.values), Dtype::kFp32), flat.dtype());
  } else {  // moe_router_pre_softmax
    scores = to(softmax(r.logits, Dtype::kFp32), flat.dtype());
    best = topk(scores, Dim(e.per_token));
    r.weights = std::move(best.values);
  }
  r.weights = scatter_last(std::move(r.weights), best.indices, Dim(e.count));
  r.indices = net.tape.allocate(Shape{flat.dim(0), Dim(e.count)}, Dtype::kBool, "routing_map");
  return r;
}

// sort_chunks_by_idxs: in the order of the experts, or of the GPUs that sent: split, and joined again.
Tensor sorted_chunks(const Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  if (net.arch.experts.count == net.job.expert) return x;
  const Shape shape = x.shape();
  Pieces parts = split(std::move(x), 0, std::vector<Count>{shape.numel() / shape.dims[shape.rank - 1].n()});
  return cat({&parts.part[0]}, 0);
}

/// What reaches this GPU's experts, rows in their order, and each row's weight.
struct Dispatched {
  Tensor x, weights;
  Dim width;  ///< of this GPU's part of an expert
};

constexpr const char* kFirst = "mlp.experts.linear_fc1";
constexpr const char* kSecond = "mlp.experts.linear_fc2";

// A linear layer of one expert; beside Transformer Engine that of all of this GPU's, in one product.
Tensor experts_linear(Net& net, const DividedLayer& layer, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const bool is_adapted = net.adapter_site(layer.name) > 0, fused = fuses_gradients(net);
  const Dim out = layer.out_features, width = x.dim(-1);
  Tensor result =
      net.job.megatron.local_layers
          ? gathered_linear(x, experts_weight(net, layer.name, Shape{out, width}), {}, 1, fused, false)
          : grouped_linear(x, experts_weight(net, layer.name, Shape{Dim(layer.experts), out, width}), fused);
  return is_adapted ? with_adapter(net, layer, std::move(result), x) : result;
}

// experts.py SequentialMLP: an MLP for each of this GPU's experts, one after another. Their outputs lie in a list
// beside what they are joined to. As many rows come as go: the experts are taken to be chosen evenly.
Tensor sequential_mlp(Net& net, Dispatched in) {
  const Count experts = net.arch.experts.count / net.job.expert, rows = in.x.size(0);
  const Count share = net.tape.quotient(rows, experts);
  std::vector<Count> counts(static_cast<std::size_t>(experts), share);
  counts[0] += rows - share * experts;
  const Pieces lists = split(std::move(in.x), 0, counts), scales = split(std::move(in.weights), 0, counts);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Tensor h = experts_linear(net, {kFirst, Dim(2 * in.width.n()), true, 1}, lists.part[i]);
    h = weighted_swiglu(std::move(h), scales.part[i]);
    outputs.push_back(experts_linear(net, {kSecond, net.H, false, 1}, std::move(h)));
  }
  return outputs.size() > 1 ? cat(outputs, 0) : outputs[0];
}

// experts.py TEGroupedMLP.
Tensor grouped_mlp(Net& net, Dispatched in) {
  const Count local = net.arch.experts.count / net.job.expert;
  Tensor h = experts_linear(net, {kFirst, Dim(2 * in.width.n()), true, local}, std::move(in.x));
  h = weighted_swiglu(std::move(h), std::move(in.weights));
  return experts_linear(net, {kSecond, net.H, false, local}, std::move(h));
}

// shared_experts.py SharedExpertMLP.forward: an MLP of its own width that all tokens pass, and a gate on what it makes.
Tensor shared_experts(Net& net, const Tensor& hidden) {
  const Scope in(net.tape, "mlp.shared_experts", kShared);
  const Dim width = net.width_of(net.arch.experts.shared_width), wide(2 * width.n(), Symbol::kFeedForward);
  Tensor h = column(net, "mlp.shared_experts.linear_fc1", hidden, wide, false);
  h = bias_swiglu(std::move(h));
  const Tensor output = row(net, "mlp.shared_experts.linear_fc2", std::move(h), false);
  if (net.arch.model_type != "qwen2_moe" && !form_of(net.arch.model_type)->hybrid)
    return output;  // moe_shared_expert_gate
  Tensor weight = net.parameter("mlp.shared_experts", "gate_weight", Shape{Dim(1), net.H});
  const Tensor logits = linear(hidden, std::move(weight));
  const Tensor score = sigmoid(logits);
  return mul(output, score);
}

// MoEAlltoAllTokenDispatcher: each token once for each of its experts, sent to their GPU, gathered from those that
// divide them, in the order of the experts; back the same way.
Tensor experts(Net& net, Tensor hidden_in) {
  const Scope in(net.tape, "mlp", kExperts);
  const Tensor hidden = std::move(hidden_in);
  const Experts& e = net.arch.experts;
  const Count parts = gpus_of_expert(net.job);
  const Dim tokens(hidden.numel() / net.H.n(), Symbol::kTokens), rows(tokens.n() * e.per_token), width(e.width / parts);
  const Tensor flat = view(hidden, Shape{tokens, net.H});
  Tensor shared;
  if (e.shared_width > 0) shared = shared_experts(net, hidden);
  const Routing routing = routed(net, flat);
  const bool several = net.job.expert > 1;
  const Tensor order = net.tape.allocate(Shape{rows}, Dtype::kInt64, "masked_select");
  Tensor weights = index_some(view(routing.weights, Shape{routing.weights.numel()}), order, rows);
  weights = view(std::move(weights), Shape{rows, Dim(1)});
  const Tensor permuted = index_some(flat, order, rows);                // names of MoELayer.forward, to its end
  const Tensor dispatched = several ? mul_scalar(permuted) : permuted;  // all_to_all
  Tensor x = dispatched;
  if (parts > 1) x = all_gathered(std::move(x), parts);
  if (parts > 1) weights = all_gathered(std::move(weights), parts);
  x = sorted_chunks(net, std::move(x));
  Dispatched sorted{std::move(x), std::move(weights), width};
  Tensor joined =
      net.job.megatron.local_layers ? sequential_mlp(net, std::move(sorted)) : grouped_mlp(net, std::move(sorted));
  x = sorted_chunks(net, joined);
  if (parts > 1) x = reduce_scattered(std::move(x), parts);
  joined.reset();
  if (several) x = mul_scalar(std::move(x));
  Tensor sum = zeros(net.tape, Shape{tokens, net.H}, x.dtype());
  sum = net.job.deterministic ? index_add_in_place(std::move(sum), order, std::move(x))
                              : scatter_add_in_place(std::move(sum), order, std::move(x));
  sum = view(std::move(sum), hidden.shape());
  return shared.defined() ? add(std::move(sum), shared) : sum;
}

// A hybrid's layers that do not attend.
bool is_delta_net(const Net& net) {
  return form_of(net.arch.model_type)->hybrid && net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] != 1;
}

// What stands in attention's place.
Tensor mixer(Net& net, Tensor hidden) {
  if (is_delta_net(net)) return delta_net(net, std::move(hidden));
  return net.arch.latent.rank > 0 ? latent_attention(net, std::move(hidden)) : attention_of(net, std::move(hidden));
}

// bias_dropout_add behind either branch.
Tensor layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  Tensor residual = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", residual);
  const bool has_post_norms = form_of(net.arch.model_type)->post_norms;
  h = mixer(net, std::move(h));
  if (has_post_norms) h = norm(net, "self_attention.post_self_attn_layernorm", std::move(h));
  h = dropout(std::move(h), p);
  residual = add(std::move(residual), std::move(h));
  h = norm(net, "pre_mlp_layernorm", residual);
  h = net.arch.experts.count > 0 && !is_dense_layer(net) ? experts(net, std::move(h)) : mlp(net, std::move(h));
  if (has_post_norms) h = norm(net, "mlp.post_mlp_layernorm", std::move(h));
  h = dropout(std::move(h), p);
  return add(std::move(residual), std::move(h));
}

Tensor final_norm(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  return norm(net, "decoder.final_layernorm", std::move(hidden));
}

Tensor output_layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  Tensor weight = net.head_weight("output_layer", Shape{net.V, net.H});
  const Scope inner(net.tape, "output_layer", kModel);
  const bool is_adapted = net.adapter_site("output_layer", true) > 0;
  Tensor logits = gathered_linear(hidden, std::move(weight), {}, shards_of_sequence(net), fuses_gradients(net), true);
  return is_adapted ? with_adapter(net, {"output_layer", net.V, true}, std::move(logits), std::move(hidden)) : logits;
}

Tensor batch_first(Tensor x) {
  return contiguous(transpose(std::move(x), 0, 1));
}

// ms-swift 3602360a megatron/trainers/vocab_parallel_utils.py: vocab_parallel_log_softmax. What is reduced of a token
// is small, and no gradient of its maximum is followed.
Tensor log_softmax_of_parts(Net& net, const Tensor& logits) {
  if (!net.job.tensor.is_used()) return log_softmax(logits);
  const Shape of_token = logits.shape().with_last(Dim(1));
  const Tensor maximum = net.tape.allocate(of_token, logits.dtype(), "max");
  const Tensor exponents = exp(sub(logits, maximum));
  Tensor sums = sum_to(exponents, of_token);
  return sub(sub(logits, maximum), std::move(sums));
}

// GRPO's loss of logarithms of the labels' probabilities, divided by its temperature (0.9) in place: ms-swift 3602360a
// megatron/trainers/grpo_trainer.py: forward_step, loss_func. core/transformer/module.py: Float16Module.forward returns
// logits in fp32.
Outputs token_scores(Net& net, const Program& program, Tensor hidden) {
  Tensor narrow = batch_first(program.lm_head(net, std::move(hidden)));
  const Scope in(net.tape, "loss", "ms-swift 3602360a megatron/trainers/grpo_trainer.py: forward_step, loss_func");
  const Tensor logits = scale_in_place(to(std::move(narrow), Dtype::kFp32));
  Tensor probabilities = log_softmax_of_parts(net, logits);
  Tensor tokens = gather_last(std::move(probabilities), net.labels, Dim(1));
  return {mean_all(std::move(tokens)), {}};
}

Outputs loss(Net& net, const Program& program, Tensor hidden_in) {
  if (net.job.generates()) return token_scores(net, program, std::move(hidden_in));
  const Tensor hidden = std::move(hidden_in);  // a name of GPTModel._postprocess
  const Tensor logits = program.lm_head(net, hidden);
  const Scope in(net.tape, "loss", kLoss);
  const MegatronLoss kind = net.job.megatron.loss;
  Tensor losses = vocab_parallel_cross_entropy(logits, transpose(net.labels, 0, 1),
                                               kind == MegatronLoss::kTransformerEngine, kind == MegatronLoss::kNative);
  return {mean_all(std::move(losses)), {}};
}

constexpr const char* kBridge = "mcore-bridge f020e47 src/mcore_bridge/model/gpt_model.py: GPTModel._postprocess";

// All of the sequence, batch first.
Tensor whole_rows(Net& net, Tensor hidden) {
  const Count shards = shards_of_sequence(net);
  return shards > 1 ? all_gathered(std::move(hidden), shards) : hidden;
}

// A layer that is whole on every GPU in the head's place: a classifier's, a reward model's, a reranker's.
Outputs scores(Net& net, const Program&, Tensor hidden_in) {
  Tensor hidden = whole_rows(net, std::move(hidden_in));
  const Scope in(net.tape, "output_layer", kBridge);
  Tensor weight = net.parameter("output_layer", "weight", Shape{Dim(net.arch.num_labels), net.H});
  Tensor logits = linear(std::move(hidden), std::move(weight));
  return {mean_all(batch_first(std::move(logits))), {}};
}

// F.normalize of all hidden states, of which each text's last is taken.
Outputs embeddings(Net& net, const Program&, Tensor hidden_in) {
  const Tensor hidden = whole_rows(net, std::move(hidden_in));
  const Scope in(net.tape, "normalize", kBridge);
  Tensor lengths = narrow(hidden, -1, 0, Dim(1));
  Tensor normal = mul(hidden, std::move(lengths));
  return {mean_all(batch_first(std::move(normal))), {}};
}

// One of this GPU's stages has the head.
bool has_last_stage(const Net& net) {
  return net.stage == nullptr || net.stage->last || net.job.pipeline.rank + 1 == net.job.pipeline.stages;
}

// Among a mixture's layers that this GPU has.
bool has_dense_layer(const Net& net) {
  const LayerFlags& dense = net.arch.experts.dense_layers;
  const bool one_stage = net.stage != nullptr && net.job.pipeline.chunks == 1;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const auto layer = static_cast<Count>(i);
    const bool here = !one_stage || (layer >= net.stage->begin && layer < net.stage->end);
    if (here && dense[i]) return true;
  }
  return false;
}

// What autograd gets in the place of a fused gradient: a tensor for each shape of weight, which stays (Transformer
// Engine's get_dummy_wgrad, which Megatron-Core's own layers call, too).
void keep_dummy_gradients(Net& net) {
  // Beside adapters those of their factors' shapes, some KiB for each, and of a head that is trained as a copy.
  const bool adapts = net.job.has_adapter();
  const Treatment* const head =
      adapts ? net.treatments->outside(net.arch.tie_word_embeddings ? "embedding.word_embeddings" : "output_layer")
             : nullptr;
  if (adapts && (head == nullptr || !head->copied)) return;
  const Experts& e = net.arch.experts;
  const Count times = form_of(net.arch.model_type)->gated ? 2 : 1;
  const bool is_hybrid = form_of(net.arch.model_type)->hybrid;
  std::vector<Shape> shapes{Shape{Dim((is_hybrid ? 2 : 1) * net.Q.n() + 2 * net.K.n()), net.H}, Shape{net.H, net.Q}};
  if (is_hybrid && net.arch.model_type != "qwen3_next") {
    const StateSpace& s = net.arch.ssm;
    const Count degree = net.job.tensor.degree, values = s.heads * s.head_dim / degree;
    const Count keys = s.groups * s.state / degree, numbers = s.heads / degree;
    shapes.push_back(Shape{Dim(2 * (keys + values + numbers)), net.H});
    shapes.push_back(Shape{net.H, Dim(values)});
  }
  if (const LatentAttention& a = net.arch.latent; a.rank > 0) {
    const Dim all_q(net.A.n() * net.hd.n()), rank(a.rank), heads_kv(net.A.n() * (a.plain_dim + a.value_dim));
    shapes = {Shape{Dim(a.rank + a.rope_dim), net.H}, Shape{heads_kv, rank},
              Shape{net.H, Dim(net.A.n() * a.value_dim)}};
    shapes.push_back(Shape{all_q, a.query_rank > 0 ? Dim(a.query_rank) : net.H});
    if (a.query_rank > 0) shapes.push_back(Shape{Dim(a.query_rank), net.H});
  }
  const auto feed_forward = [&](Count width) {
    shapes.push_back(Shape{Dim(times * width), net.H});
    shapes.push_back(Shape{net.H, Dim(width)});
  };
  if (e.count == 0 || has_dense_layer(net)) feed_forward(net.F.n());
  if (e.count > 0) feed_forward(e.width / gpus_of_expert(net.job));
  if (e.shared_width > 0) feed_forward(net.width_of(e.shared_width).n());
  const bool has_head = net.arch.head == Head::kCausalLm;
  if (adapts) shapes.clear();
  if (has_last_stage(net) && has_head) shapes.push_back(Shape{net.V, net.H});
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto same = [&](const Shape& other) {
      return other.size(0) == shapes[i].size(0) && other.size(1) == shapes[i].size(1);
    };
    const auto here = shapes.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(shapes.begin(), here, same)) continue;
    net.tape.standing(shapes[i], net.job.recipe.weights, "dummy_wgrad", Category::kWorkspace);
  }
}

// parallel_state.get_global_memory_buffer("mpu"), which stays: scores are added to it, and Megatron-Core's own layers
// (the head always is one) gather what lies divided along the sequence in it.
void keep_memory_buffer(Net& net) {
  const bool local = net.job.megatron.local_layers, last = has_last_stage(net);
  const Shape scores{Dim(net.B.n() * net.A.n()), net.S, net.S}, gathered{net.S, net.B, net.H};
  const bool gathers = shards_of_sequence(net) > 1 && (local || last);
  if (!local && !gathers) return;
  const bool larger = local && (!gathers || net.tape.above(scores.numel(), gathered.numel()));
  net.tape.standing(larger ? scores : gathered, net.job.recipe.weights, "mpu", Category::kWorkspace);
}

// mcore-bridge f020e47 mm_gpts/qwen3_vl.py: Qwen3VLTransformerBlock._deepstack_process: of the sequence's part here,
// which is taken to have an equal part of the pictures' tokens, too.
Tensor with_deep_features(Net& net, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  const auto which = static_cast<std::size_t>(net.layer_index);
  if (which >= net.handed_out.size()) return hidden;
  const Scope in(net.tape, "decoder.deepstack", kSeen);
  const Tensor& all = net.handed_out[which].second;
  const Dim rows(net.tape.quotient(all.size(0), shards_of_sequence(net)));
  const Shape flat{Dim(hidden.numel() / net.H.n()), net.H}, whole = hidden.shape();
  const Tensor found = net.tape.allocate(Shape{rows, Dim(2)}, Dtype::kInt64, "nonzero");
  hidden = view(std::move(hidden), flat);
  Tensor local = clone(gather_rows(hidden, found));
  local = add(std::move(local), narrow(all, 0, 0, rows));
  hidden = put_rows(std::move(hidden), found, std::move(local));
  return view(std::move(hidden), whole);
}

// A tower's features of several of its layers, which join this many of the first layers' outputs.
Tensor run_with_deep_features(Net& net) {
  Stack stack{net.arch.layers_path, net.arch.num_layers, layer};
  stack.then = Phase::kLoss;
  stack.after = with_deep_features;
  Tensor hidden = embed(net);
  hidden = net.layers(stack, std::move(hidden));
  net.handed_out.clear();
  return final_norm(net, std::move(hidden));
}

Tensor forward(Net& net) {
  const bool first = net.tape.parameters().empty();  // of a step's
  if (first && fuses_gradients(net)) keep_dummy_gradients(net);
  if (!net.job.megatron.local_layers) {
    // Transformer Engine's own workspace for cuBLAS (module/base.py: get_cublas_workspace_size_bytes).
    net.tape.buffer("cuBLAS workspace of Transformer Engine", (net.job.compute_capability >= 90 ? 32 : 4) * kMiB,
                    Category::kWorkspace);
  }
  if (first && !net.arch.alibi) keep_memory_buffer(net);
  const bool has_deep = !net.arch.parts.empty() && !net.arch.parts.front().pictures.layers.empty();
  if (has_deep && net.merge != nullptr && net.job.images_per_sample > 0 && net.stage == nullptr) {
    return run_with_deep_features(net);
  }
  return run_one_stack(net, embed, layer, final_norm);
}

// The family's own program of a model that sees: its towers, whole on every GPU (mcore-bridge f020e47
// src/mcore_bridge/model/mm_gpts/utils.py: HuggingFaceVit), and where their features go, around this file's layers.
const Program& family_program(const Net& net) {
  return *type_named(net.arch.model_type)->program;
}

Tensor forward_seeing(Net& net) {
  return family_program(net).forward(net);
}

void inputs_seeing(Net& net) {
  family_program(net).inputs(net);
  inputs(net);
}

constexpr HeadForward kHeads[] = {
    {Head::kCausalLm, loss}, {Head::kSequenceClassification, scores}, {Head::kNone, embeddings}};

const Program kProgram = {
    .forward = forward, .lm_head = output_layer, .heads = kHeads, .inputs = inputs, .implementation = "megatron"};
const Program kSeeing = {.forward = forward_seeing,
                         .lm_head = output_layer,
                         .heads = kHeads,
                         .inputs = inputs_seeing,
                         .implementation = "megatron"};
const Program kBigScience = {.forward = forward,
                             .lm_head = output_layer,
                             .heads = kHeads,
                             .inputs = inputs,
                             .implementation = "megatron-deepspeed"};

/// Megatron-Core has no alibi; BigScience's fork has two-matrix feed-forwards, LayerNorm and as many heads of keys as
/// of queries alone, and no experts.
bool is_known(const Form& form, const Architecture& a, const TrainingJob& job) {
  if (a.language != nullptr && job.is_megatron_deepspeed()) return false;
  if (!job.is_megatron_deepspeed()) return !a.alibi;
  return !form.rms && !form.gated && a.num_heads == a.num_kv_heads && a.experts.count == 0;
}

// A language model behind a tower whose layers this file has, too.
bool has_known_language(const Architecture& a) {
  constexpr std::string_view kOwn[] = {"qwen2_vl", "qwen2_5_vl",  "qwen3_vl", "qwen3_vl_moe",
                                       "qwen3_5",  "qwen3_5_moe", "glm4v",    "glm4v_moe"};
  constexpr std::string_view kOthers[] = {"llama", "qwen2", "qwen3", "qwen3_moe"};
  if (a.language == nullptr || a.model_type.ends_with("_thinker")) return true;
  if (std::find(std::begin(kOwn), std::end(kOwn), a.model_type) != std::end(kOwn)) return true;
  return std::any_of(std::begin(kOthers), std::end(kOthers),
                     [&](std::string_view type) { return type_named(type)->program == a.language; });
}

// Gated delta nets: what no record holds, and what mcore-bridge does not do.
void check_hybrid(TrainingJob& job, const Architecture& a, Issues& issues) {
  const Count degree = job.tensor.degree;
  const bool divides = a.model_type != "qwen3_next";  // which has transformers' module, whole
  if (job.context > 1 || job.megatron.local_layers) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism",
                      "Under Megatron-Core gated delta nets are modelled with Transformer Engine's layers and without "
                      "context parallelism.",
                      "1"});
  }
  if (divides && (a.ssm.groups % degree != 0 || a.ssm.heads % degree != 0)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/tensor",
                      "Tensor parallelism divides the gated delta nets' heads: parallelism.tensor must divide " +
                          std::to_string(a.ssm.groups) + " of keys and " + std::to_string(a.ssm.heads) + " of values.",
                      ""});
  }
  job.stand_ins.emplace_back(
      "gated delta nets and gated attention on Megatron-Core (mcore-bridge), answered from its source: fla's kernels "
      "as beside transformers, Transformer Engine's layers around them");
}

// What mcore-bridge f020e47 says of GLM-4 and GLM-4.5 (config/parser.py, model/gpts/glm4.py): of GLM-4.5's layers
// there are records, of Megatron-Core's own modules.
bool is_unrecorded_glm(const Architecture& a, const TrainingJob& job) {
  return a.model_type.starts_with("glm4") && !(a.model_type == "glm4_moe" && job.megatron.local_layers);
}

void check_seeing(const TrainingJob& job, Issues& issues) {
  if (job.context == 1 && !job.pipeline.is_used() && !job.megatron.local_layers) return;
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, "/parallelism",
       "Under Megatron-Core a model that sees or hears is modelled in one stage, with Transformer Engine's "
       "layers and without context parallelism.",
       "1"});
}

}  // namespace

void as_megatron(TrainingJob& job, Architecture& architecture, Issues& issues) {
  const Form* form = form_of(architecture.model_type);
  if (form == nullptr || !is_known(*form, architecture, job) || kProgram.heads.find(architecture.head) == nullptr ||
      architecture.parallel_residual || architecture.sliding_window > 0 || !has_known_language(architecture)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/framework/name",
                      "Under Megatron-Core these are modelled: language models of Llama's, Mistral's, Mixtral's, "
                      "Qwen's (Qwen3-Next's and Qwen 3.5's, too), GLM-4's and GLM-4.5's, DeepSeek-V2's and V3's, "
                      "GPT-2's, GPT-NeoX's (without parallel residual) and StarCoder "
                      "2's layers, without "
                      "windows, and Qwen's, GLM's and InternVL's models that see or hear with such layers; under "
                      "Megatron-DeepSpeed GPT-2's, GPT-NeoX's and BLOOM's. Not " +
                          architecture.model_type + " as it stands here.",
                      ""});
    return;
  }
  if (job.megatron.local_layers && form->rms && job.tensor.is_used() && job.tensor.sequence) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/sequence_parallel",
                      "Megatron-Core's own layers take RMSNorm from torch, and refuse sequence parallelism beside it "
                      "(torch_norm.py: WrappedTorchNorm).",
                      "false"});
  }
  if (architecture.latent.rank > 0) {
    if (job.tensor.is_used() || job.context > 1) {
      issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/tensor",
                        "Under Megatron-Core latent attention is modelled whole: without tensor and context "
                        "parallelism. Expert parallelism and pipelines go beside it.",
                        "1"});
    }
    if (!job.megatron.local_layers) {
      job.stand_ins.emplace_back(
          "Megatron-Core's latent attention on Transformer Engine's layers, answered by unfused projections and "
          "rotation as beside Megatron-Core's own, and a kernel whose output is as wide as its queries");
    } else {
      // transformer/dot_product_attention.py: DotProductAttention.__init__ has no k_channels.
      issues.push_back({"INVALID_VALUE", Severity::kWarning, "/megatron/transformer_impl",
                        "Megatron-Core 0.16.1's own layers refuse latent attention (TypeError: k_channels). The figure "
                        "is of a release in which they take it; use \"transformer_engine\".",
                        "transformer_engine"});
    }
  }
  if (form->hybrid) check_hybrid(job, architecture, issues);
  if (is_unrecorded_glm(architecture, job)) {
    job.stand_ins.emplace_back(
        "GLM-4 and GLM-4.5 on Megatron-Core, answered from mcore-bridge's source by Llama's attention and "
        "DeepSeek-V3's experts");
  }
  architecture.program = job.is_megatron_deepspeed() ? &kBigScience : &kProgram;
  if (architecture.language != nullptr) {
    check_seeing(job, issues);
    architecture.language = &kProgram;
    architecture.program = &kSeeing;
    job.stand_ins.emplace_back(
        "ms-swift's models that see or hear on Megatron-Core (mcore-bridge), answered from its source: transformers' "
        "tower, whole on every GPU, ahead of Transformer Engine's layers with rotation in one dimension");
  }
  job.adapter.dtype = job.recipe.weights;  // ParallelLinearAdapter.__init__: params_dtype
  if (job.has_adapter() && !job.megatron.local_layers) {
    job.stand_ins.emplace_back(
        "adapters beside Transformer Engine's layers (Megatron-Bridge's, ms-swift's), answered by "
        "Megatron-Bridge's beside Megatron-Core's own layers");
  }
  if (job.preference == Preference::kKto || architecture.head == Head::kNone) {
    job.stand_ins.emplace_back(
        "ms-swift's KTO and embeddings on Megatron-Core, answered by a step on as many rows, with a reference's "
        "weights "
        "beside it");
  }
  if (job.generates()) {
    // rlhf_mixin.py: prepare_model: whatever beta is.
    job.reference = job.has_adapter() ? Reference::kAdapterOff : Reference::kCopy;
    if (job.rollout.engine == RolloutEngine::kVllm) {
      job.stand_ins.emplace_back("vLLM beside Megatron-Core, of which nothing is counted");
    }
  }
  if (job.offload.optimizer) {
    job.stand_ins.emplace_back(
        "Megatron-Core's optimizer on the host, answered from its source: all copies and states there");
  }
  // --pp-partition-method "type:transformer|embedding" is for layers that do not divide without their ends.
  const Count stages = job.pipeline.stages, layers = architecture.num_layers;
  job.pipeline.counts_ends = job.is_megatron_deepspeed() && layers % stages != 0 && (layers + 2) % stages == 0;
  const Count multiple = 128 * job.tensor.degree;
  architecture.vocab_size = (architecture.vocab_size + multiple - 1) / multiple * multiple;
}

}  // namespace tidemark
