#include "core/layers/moe.hpp"

#include <algorithm>
#include <vector>

#include "core/job/expert_lists.hpp"
#include "core/layers/host_experts.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kGrouped = "transformers 5.12 integrations/moe.py: grouped_mm_experts_forward";
constexpr const char* kBalance = "transformers 5.12 models/mixtral/modeling_mixtral.py: load_balancing_loss_func";
constexpr const char* kBatched = "transformers 5.12 integrations/moe.py: batched_mm_experts_forward";

// GroupedGemmParallel: of expert-parallel GPUs each has an equal part.
Count experts_here(const Net& net) {
  return net.arch.experts.count / (net.job.divides_experts_alone() ? net.job.expert : 1);
}

Tensor ints(Net& net, const Shape& shape, const char* op, Dtype dtype = Dtype::kInt64) {
  return net.tape.allocate(shape, dtype, op);
}

Count width_of_expert(const Net& net, const ExpertForm& form) {
  return form.width != nullptr ? form.width(net) : net.arch.experts.width;
}

// `h`: columns of what they are given, which they return.
Projections projections(Net& net, const ExpertForm& form, Dim h) {
  const Count of_one = width_of_expert(net, form);
  const Dim width = net.width_of(of_one), both = form.gated ? net.width_of(2 * of_one) : width,
            count(experts_here(net));
  Projections p;
  const auto weigh = [&](Projection& one, const char* leaf, Dim out, Dim in) {
    one.shape = form.transposed ? Shape{count, in, out} : Shape{count, out, in};
    if (!net.packs_experts()) {
      one.weight = net.expert_parameter(form.module, leaf, one.shape);
      return;
    }
    one.packs = &net;
    one.packed = net.packed_expert(form.module, leaf, one.shape);
  };
  weigh(p.up, form.gated ? "gate_up_proj" : "up_proj", both, h);
  if (form.bias) p.up.bias = net.expert_parameter(form.module, "gate_up_proj_bias", Shape{count, both});
  weigh(p.down, "down_proj", h, width);
  if (form.bias) p.down.bias = net.expert_parameter(form.module, "down_proj_bias", Shape{count, h});
  adapt(net, form.module, p);
  return p;
}

// _default_apply_gate
Tensor apply_gate(Net& net, const ExpertForm& form, Tensor gate_up_in) {
  if (form.gate != nullptr) return form.gate(net, form, std::move(gate_up_in));
  const Tensor gate_up = std::move(gate_up_in);
  const Dim width = net.width_of(width_of_expert(net, form));
  if (!form.gated) {
    Scope act(net.tape, form.act, net.source());
    return activate(net.arch.activation, gate_up);
  }
  const Pieces pieces = split(gate_up, -1, {width, width});
  Tensor gate;
  {
    Scope act(net.tape, form.act, net.source());
    gate = activate(net.arch.activation, pieces.part[0]);
  }
  return mul(std::move(gate), pieces.part[1]);
}

// _grouped_linear
Tensor grouped_linear(Tensor x, const Tensor& selected, const Tensor& offsets, const Tensor& bias, bool transposed) {
  Tensor weight = selected;
  if (!transposed) weight = transpose(std::move(weight), -2, -1);
  Tensor out = grouped_mm(std::move(x), std::move(weight), offsets);
  return bias.defined() ? add_in_place(std::move(out), bias) : out;
}

Tensor grouped(Net& net, const ExpertForm& form, Tensor hidden_in, Tensor indices_in, Tensor weights_in) {
  Scope in(net.tape, form.module, kGrouped);
  const Tensor hidden = std::move(hidden_in), indices = std::move(indices_in), weights = std::move(weights_in);
  const Dim tokens = hidden.dim(0), k = indices.dim(1), n(tokens.n() * k.n()), experts(experts_here(net));
  Projections p = projections(net, form, hidden.dim(1));
  const Shape list{n};
  const Tensor sample_weights = reshape(weights, list);
  const Tensor sorted = ints(net, list, "sort"), permutation = ints(net, list, "sort indices");
  Tensor selected;
  {
    Tensor rows = ints(net, list, "floor_divide");
    selected = index_some(hidden, std::move(rows), n);
  }
  const Tensor sorted_weights = index_some(sample_weights, permutation, n);
  const Tensor histc_input = ints(net, list, "to", Dtype::kInt32);
  const Tensor tokens_per_expert = ints(net, Shape{experts}, "histc", Dtype::kInt32);
  const Tensor offsets = ints(net, Shape{experts}, "cumsum", Dtype::kInt32);
  // From 5.18 on others' tokens are masked where there are some alone.
  const bool masks = net.job.divides_experts_alone() || !net.job.framework.at_least(5, 18);
  const Tensor mask = masks ? unsqueeze(ints(net, list, "ge", Dtype::kBool), -1) : Tensor();
  Tensor bias = form.bias ? index_some(p.up.bias, sorted, n) : Tensor();
  if (masks) selected = masked_fill_in_place(std::move(selected), mask);
  Tensor selected_weights = p.up.used();
  Tensor out = grouped_linear(selected, selected_weights, offsets, bias, form.transposed);
  out = apply_gate(net, form, std::move(out));
  if (form.bias) bias = index_some(p.down.bias, sorted, n);
  selected_weights = p.down.used();
  out = grouped_linear(std::move(out), selected_weights, offsets, bias, form.transposed);
  Tensor weighted = mul(out, unsqueeze(sorted_weights, -1));
  if (masks) weighted = masked_fill_in_place(std::move(weighted), mask);
  const Tensor inverse = ints(net, list, "empty_like");
  { const Tensor order = ints(net, list, "arange"); }
  weighted = index_some(std::move(weighted), inverse, n);
  Tensor sum = view(weighted, Shape{tokens, k, hidden.dim(1)});
  sum = sum_over(std::move(sum), 1, false);
  return to(std::move(sum), hidden.dtype());
}

// _batched_linear
Tensor batched_linear(Tensor x, const Tensor& weight, const Tensor& bias, bool transposed) {
  Tensor out;
  if (transposed) {
    out = matmul(unsqueeze(std::move(x), 1), weight);
  } else {
    Tensor column = unsqueeze(std::move(x), -1);
    out = matmul(weight, std::move(column));
  }
  out = view(out, Shape{out.dim(0), transposed ? out.dim(2) : out.dim(1)});
  return bias.defined() ? add_in_place(std::move(out), bias) : out;
}

Tensor batched(Net& net, const ExpertForm& form, Tensor hidden_in, Tensor indices_in, Tensor weights_in) {
  Scope in(net.tape, form.module, kBatched);
  const Tensor hidden = std::move(hidden_in), indices = std::move(indices_in), weights = std::move(weights_in);
  const Dim tokens = hidden.dim(0), k = indices.dim(1), n(tokens.n() * k.n());
  Projections p = projections(net, form, hidden.dim(1));
  Tensor selected = unsqueeze(hidden, 1);
  selected = expand(std::move(selected), Shape{tokens, k, hidden.dim(1)});
  selected = contiguous(std::move(selected));  // repeat_interleave
  selected = view(std::move(selected), Shape{n, hidden.dim(1)});
  const Tensor sample_weights = reshape(weights, Shape{n});
  const Tensor ids = ints(net, Shape{n}, "clamp");
  const auto chosen = [&](const Tensor& all) { return all.defined() ? index_some(all, ids, n) : Tensor(); };
  Tensor weight = chosen(p.up.used()), bias = chosen(p.up.bias);
  Tensor out = batched_linear(selected, weight, bias, form.transposed);
  out = apply_gate(net, form, std::move(out));
  weight = chosen(p.down.used());
  bias = chosen(p.down.bias);
  out = batched_linear(std::move(out), weight, bias, form.transposed);
  const Tensor weighted = mul(out, unsqueeze(sample_weights, -1));
  Tensor sum = view(weighted, Shape{tokens, k, hidden.dim(1)});
  sum = sum_over(std::move(sum), 1, false);
  return to(std::move(sum), hidden.dtype());
}

Count common_divisor(Count a, Count b) {
  while (b != 0) {
    const Count rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// One projection of one expert in the loop.
Tensor expert_linear(Tensor x, Projection& p, const ExpertForm& form) {
  Tensor weight = select(p.used(), 0);
  if (!form.transposed) return linear(std::move(x), std::move(weight));
  Tensor out = matmul(std::move(x), std::move(weight));
  Tensor bias = select(p.bias, 0);
  return add(std::move(out), std::move(bias));
}

// MixtralExperts.forward: the released loop, which all families have word for word.
Tensor loop(Net& net, const ExpertForm& form, Tensor hidden_in, Tensor indices_in, Tensor weights_in) {
  Scope in(net.tape, form.module, form.source);
  const Tensor hidden = std::move(hidden_in), indices = std::move(indices_in), weights = std::move(weights_in);
  const Dim tokens = hidden.dim(0), k = indices.dim(1), experts(net.arch.experts.count);
  Projections p = projections(net, form, hidden.dim(1));
  Tensor sum = zeros(net.tape, hidden.shape(), hidden.dtype(), "zeros_like");
  const Tensor mask = ints(net, Shape{tokens, k, experts}, "one_hot");
  const std::vector<Count> rows = rows_of_experts(net, tokens.n(), k.n());
  Tensor hit = ints(net, Shape{experts}, "sum");
  hit = ints(net, Shape{experts}, "nonzero");
  const Tensor three = unsqueeze(weights, 2);
  Tensor where, state, out;
  for (const Count count : rows) {
    if (count <= 0) continue;
    const Dim n(count);
    where = ints(net, Shape{n, Dim(2)}, "nonzero");
    state = index_some(hidden, where, n);
    out = expert_linear(state, p.up, form);
    out = apply_gate(net, form, std::move(out));
    out = expert_linear(std::move(out), p.down, form);
    Tensor scale = index_pairs(three, where, where, n);
    out = mul(std::move(out), std::move(scale));
    Tensor added = to(out, hidden.dtype());
    sum = index_add_in_place(std::move(sum), where, std::move(added));
  }
  return sum;
}

constexpr const char* kListed = "transformers 4.57 models/mixtral/modeling_mixtral.py: MixtralSparseMoeBlock.forward";

// The loop over a list of modules, which MixtralSparseMoeBlock, Qwen2MoeSparseMoeBlock, Qwen3MoeSparseMoeBlock,
// OlmoeSparseMoeBlock and DeepseekV3MoE have alike. Rows are summed in the weights' dtype: the hidden states',
// DeepSeek's in fp32.
Tensor listed(Net& net, const ExpertForm& form, Tensor hidden_in, Tensor indices_in, Tensor weights_in) {
  Scope in(net.tape, form.listed.scope, kListed);
  const Tensor hidden = std::move(hidden_in), indices = std::move(indices_in), weights = std::move(weights_in);
  const Experts& e = net.arch.experts;
  const Dim tokens = hidden.dim(0), k = indices.dim(1), width(e.width);
  Tensor sum = zeros(net.tape, hidden.shape(), weights.dtype(), "zeros");
  const Tensor mask = ints(net, Shape{tokens, k, Dim(e.count)}, "one_hot");
  const Tensor three = unsqueeze(weights, 2);
  std::vector<Parameter>& parameters = net.tape.parameters();
  const std::size_t known = parameters.size();
  Tensor where, state, out;
  for (const Count count : rows_of_experts(net, tokens.n(), k.n())) {
    const Declared idle(net, count <= 0);
    const Dim n(std::max<Count>(count, 1));
    where = ints(net, Shape{n, Dim(2)}, "nonzero");
    state = index_some(hidden, where, n);
    out = gated_mlp(net, form.listed, kListed, state, width);
    if (idle) continue;
    Tensor scale = index_pairs(three, where, where, n);
    out = mul(std::move(out), std::move(scale));
    Tensor added = to(out, sum.dtype());
    sum = index_add_in_place(std::move(sum), where, std::move(added));
  }
  for (std::size_t i = known; i < parameters.size(); ++i) parameters[i].is_expert = !parameters[i].is_adapter;
  return to(std::move(sum), hidden.dtype());
}

}  // namespace

std::vector<Count> rows_of_experts(Net& net, Count tokens, Count k) {
  const Count experts = net.arch.experts.count;
  // A list's length is that of no other number of tokens.
  const Count rows = net.tape.quotient(tokens * k, 1);
  std::vector<Count> dealt;
  for (Count e = 0; e < experts; ++e) dealt.push_back((rows + experts - 1 - e) / experts);
  if (net.job.load_imbalance <= 1.0 || experts <= k) return dealt;
  const double share = net.job.load_imbalance * static_cast<double>(rows) / static_cast<double>(experts);
  const Count wanted = std::min(tokens, static_cast<Count>(share + 0.5));
  std::vector<Count> first_choices;  // of tokens without the first expert, over the cycle in which choices repeat
  const Count cycle = experts / common_divisor(k, experts);
  for (Count token = 0; token < cycle; ++token) {
    const Count first = token * k % experts;
    if (first != 0 && first + k <= experts) first_choices.push_back(first);
  }
  const Count missing = wanted - dealt[0], kinds = static_cast<Count>(first_choices.size());
  if (missing <= 0 || kinds == 0) return dealt;
  for (Count i = 0; i < kinds; ++i) {
    const Count taken = (missing + kinds - 1 - i) / kinds;
    dealt[static_cast<std::size_t>(first_choices[static_cast<std::size_t>(i)])] -= taken;
    dealt[0] += taken;
  }
  return dealt;
}

Tensor Projection::used() {
  if (packs != nullptr) {  // the cache of parametrizations holds what all of a weight's come to
    if (cached.defined()) return cached;
    cached = packs->unpacked_expert(packed, shape);
    if (update.defined()) cached = update.sum(cached);
    return cached;
  }
  if (!update.defined()) return weight;
  if (update.delta.defined()) return update.sum(weight);
  if (!cached.defined()) cached = update.sum(weight);
  return cached;
}

// The wrapper of the second parameter lies around that of the first.
void adapt(Net& net, const char* module, Projections& p) {
  const auto update = [&](Projection& one, const char* leaf) {
    if (net.expert_rank(module, leaf) == 0) return;
    one.update =
        net.expert_update(module, leaf, one.packs != nullptr ? net.unpacked_expert(one.packed, one.shape) : one.weight);
  };
  update(p.down, "down_proj");
  update(p.up, "gate_up_proj");
}

// transformers 5.12 integrations/tensor_parallel.py RouterParallel._prepare_output_fn. Rows of others' experts are
// sorted behind this GPU's and computed with them in the end (MoeTensorParalellExperts reduces in place).
void mask_others(Net& net, Routing& r) {
  if (!net.job.divides_experts_alone()) return;
  const Shape shape = r.indices.shape();
  const Tensor chosen = r.indices;  // the hook's `outputs`
  const Tensor weights = r.weights;
  Tensor owner = ints(net, shape, "floor_divide");
  const Tensor others = ints(net, shape, "ne", Dtype::kBool);
  owner.reset();
  r.weights = masked_fill(weights, others);
  r.indices = ints(net, shape, "masked_fill");
  r.indices = ints(net, shape, "fmod");
  const Tensor none = ints(net, shape, "eq", Dtype::kBool);
  r.indices = ints(net, shape, "masked_fill");
}

namespace {

Tensor computed(Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights) {
  if (net.job.has_experts_on_host()) {
    const Dim width(width_of_expert(net, form));
    return run_on_host(net, form, width, std::move(hidden), std::move(indices), std::move(weights));
  }
  if (lists_experts(net.arch, net.job))
    return listed(net, form, std::move(hidden), std::move(indices), std::move(weights));
  switch (net.job.experts) {
    case ExpertsKernel::kGroupedMm:
      return grouped(net, form, std::move(hidden), std::move(indices), std::move(weights));
    case ExpertsKernel::kBatchedMm:
      return batched(net, form, std::move(hidden), std::move(indices), std::move(weights));
    default:
      break;
  }
  return loop(net, form, std::move(hidden), std::move(indices), std::move(weights));
}

// All GPUs' experts together are the model's.
Tensor run_by(decltype(loop)& way, Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights) {
  std::vector<Parameter>& parameters = net.tape.parameters();
  const std::size_t known = parameters.size();
  Tensor out = way(net, form, std::move(hidden), std::move(indices), std::move(weights));
  net.experts_stay_unpacked |= net.packs_experts() && net.tape.recomputing() && net.tape.stopped();
  for (std::size_t i = known; i < parameters.size() && net.job.divides_experts_alone(); ++i) {
    parameters[i].whole = parameters[i].shape.numel() * net.job.expert;
  }
  return out;
}

}  // namespace

Tensor run_experts(Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights) {
  return run_by(computed, net, form, std::move(hidden), std::move(indices), std::move(weights));
}

Tensor run_experts_in_turn(Net& net, const ExpertForm& form, Tensor hidden, Tensor indices, Tensor weights) {
  return run_by(loop, net, form, std::move(hidden), std::move(indices), std::move(weights));
}

Routing softmax_routing(Net& net, const SoftmaxRouter& router, const Tensor& hidden) {
  Scope in(net.tape, router.module, router.source);
  const Experts& e = net.arch.experts;
  Routing r;
  const bool is_module = lists_experts(net.arch, net.job);
  if (is_module) {
    r.logits = net.linear(router.listed, hidden, Dim(e.count));
  } else {
    const Tensor weight = net.parameter(router.module, "weight", Shape{Dim(e.count), net.H});
    r.logits = linear(hidden, weight);
  }
  Tensor probabilities =
      router.casts_logits && !is_module ? softmax(to(r.logits, Dtype::kFp32)) : softmax(r.logits, Dtype::kFp32);
  TopK best = topk(probabilities, Dim(e.per_token));
  if (e.normalised) {
    Tensor sum = sum_over(best.values, -1, true);
    best.values = div_in_place(std::move(best.values), std::move(sum));
  }
  const Dtype narrow = is_module ? hidden.dtype() : r.logits.dtype();
  r.weights = router.casts_back || is_module ? to(std::move(best.values), narrow) : std::move(best.values);
  r.indices = std::move(best.indices);
  mask_others(net, r);
  keep_router_logits(net, r.logits);
  return r;
}

Tensor router_logits(Net& net, const char* module, const Tensor& hidden, int since) {
  const Dim experts(net.arch.experts.count);
  if (!net.job.framework.at_least(5, since)) return net.linear(module, hidden, experts);
  return linear(hidden, net.parameter(module, "weight", Shape{experts, net.H}));
}

Tensor fp32_router(Net& net, const char* module, const char* source, Tensor hidden, bool is_linear) {
  Scope in(net.tape, module, source);
  const Dim experts(net.arch.experts.count);
  Tensor weight =
      is_linear ? net.linear_weight(module, experts, net.H) : net.parameter(module, "weight", Shape{experts, net.H});
  Tensor wide = to(std::move(hidden), Dtype::kFp32);
  weight = to(std::move(weight), Dtype::kFp32);
  return linear(std::move(wide), std::move(weight));
}

void choose_corrected(Routing& routing, const Tensor& scores, const Tensor& correction, Dim k, bool guarded) {
  routing.indices = topk(add(scores, correction), k).indices;
  routing.weights = gather_last(scores, routing.indices);
  Tensor sum = sum_over(routing.weights, -1, true);
  if (guarded) sum = add_scalar(std::move(sum));
  routing.weights = div(std::move(routing.weights), std::move(sum));
}

Tensor limit_to_groups(Net& net, const Tensor& choice, bool sum_of_two) {
  const Experts& e = net.arch.experts;
  const Dim tokens = choice.dim(0), groups(e.groups), size(e.count / e.groups);
  Tensor scores = view(choice, Shape{tokens, groups, size});
  scores = topk(std::move(scores), Dim(sum_of_two ? 2 : 1)).values;
  scores = sum_of_two ? sum_over(std::move(scores), -1, false) : view(std::move(scores), Shape{tokens, groups});
  const Tensor best = topk(scores, Dim(e.groups_per_token)).indices;
  const Tensor mask = net.tape.allocate(Shape{tokens, groups}, scores.dtype(), "zeros_like");
  Tensor wide = expand(unsqueeze(mask, -1), Shape{tokens, groups, size});
  const Tensor score_mask = reshape(std::move(wide), Shape{tokens, Dim(e.count)});
  Tensor excluded = ints(net, choice.shape(), "to", Dtype::kBool);
  excluded = ints(net, choice.shape(), "bitwise_not", Dtype::kBool);
  return masked_fill(choice, std::move(excluded));
}

Tensor gated_mlp(Net& net, const GatedNames& names, const char* source, Tensor x_in, Dim width, bool bias) {
  Scope in(net.tape, names.scope, source);
  const Tensor x = std::move(x_in);
  Tensor gate = net.linear(names.gate, x, width, bias);
  {
    Scope act(net.tape, names.act, source);
    gate = activate(net.arch.activation, std::move(gate));
  }
  Tensor up = net.linear(names.up, x, width, bias);
  gate = mul(std::move(gate), std::move(up));
  return net.linear(names.down, std::move(gate), net.H, bias);
}

void keep_router_logits(Net& net, const Tensor& logits) {
  if (net.arch.experts.aux_loss && net.arch.head == Head::kCausalLm && !net.tape.recomputing()) {
    net.router_logits.push_back(logits);
    net.router_instances.push_back(net.tape.instance());
  }
}

bool is_dense_layer(const Net& net) {
  const LayerFlags& dense = net.arch.experts.dense_layers;
  const auto i = static_cast<std::size_t>(net.layer_index);
  return i < dense.size() && dense[i];
}

Tensor as_tokens(Net& net, Tensor hidden) {
  return view(std::move(hidden), Shape{net.T, net.H});
}

Tensor as_sequences(Net& net, Tensor tokens) {
  return view(std::move(tokens), Shape{net.B, net.S, net.H});
}

namespace {

// Layers with a router.
Count balanced_layers(const Net& net) {
  Count layers = net.arch.num_layers;
  for (const char dense : net.arch.experts.dense_layers) layers -= dense != 0 ? 1 : 0;
  return layers;
}

// load_balancing_loss_func, from the logits of all layers at once. Only some of the layers are on the tape: its row
// count is the model's.
Tensor balance_loss(Net& net) {
  Scope in(net.tape, "aux_loss", kBalance);
  const Experts& e = net.arch.experts;
  const Dim experts(e.count), k(e.per_token), rows(balanced_layers(net) * net.T.n());
  const Tensor gates = stack_layers(net.router_logits, rows);
  const Tensor weights = softmax(gates);
  const Tensor selected = topk(weights, k).indices;
  const Tensor mask = ints(net, Shape{rows, k, experts}, "one_hot");
  Tensor wide = ints(net, Shape{rows, k, experts}, "to", Dtype::kFp32);
  Tensor probability;
  if (net.attention_mask.defined()) {
    const Tensor expert_mask = ints(net, Shape{rows, k, experts}, "clone");
    const Tensor masked = ints(net, Shape{rows, k, experts}, "mul", Dtype::kFp32);
    wide.reset();
    const Tensor router_mask = ints(net, Shape{rows, experts}, "clone");
    probability = mul(weights, router_mask);
    probability = sum_over(std::move(probability), 0, false);
  } else {
    wide.reset();
    probability = sum_over(weights, 0, false);
  }
  probability = mul_scalar(std::move(probability));
  const Tensor per_expert = ints(net, Shape{k, experts}, "mean", Dtype::kFp32);
  Tensor loss = mul(unsqueeze(std::move(probability), 0), per_expert);
  loss = mean_all(std::move(loss));
  return mul_scalar(std::move(loss));
}

Outputs moe_causal_lm(Net& net, const Program& program, Tensor hidden) {
  Outputs out = causal_lm(net, program, std::move(hidden));
  if (!net.arch.experts.aux_loss || net.router_logits.empty()) return out;
  Tensor balance = balance_loss(net);
  Tensor weighted = mul_scalar(balance);
  if (out.loss.defined()) out.loss = add_in_place(std::move(out.loss), std::move(weighted));
  out.rest.push_back(std::move(balance));
  // What the outputs hold of all layers, in one piece: the layers' own go, each where it was made.
  const Experts& e = net.arch.experts;
  Tape& t = net.tape;
  const Tensor& one = net.router_logits.front();
  Tensor all = t.allocate(Shape{Dim(balanced_layers(net) * net.T.n()), Dim(e.count)}, one.dtype(), "router_logits");
  while (!net.router_logits.empty()) {
    t.begin_segment(t.phase(), net.router_instances.back());
    net.router_logits.pop_back();
    net.router_instances.pop_back();
  }
  t.begin_segment(t.phase(), -1);
  out.rest.push_back(std::move(all));
  return out;
}

constexpr HeadForward kForwards[] = {{Head::kCausalLm, moe_causal_lm},
                                     {Head::kSequenceClassification, sequence_classification},
                                     {Head::kTokenClassification, token_classification},
                                     {Head::kQuestionAnswering, question_answering},
                                     {Head::kNone, body_alone}};

}  // namespace

const HeadForwards kMoeForwards = kForwards;

}  // namespace tidemark
