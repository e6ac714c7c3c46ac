// Granite 3's mixtures of experts, with or without a feed-forward that all tokens share: Granite's layer, and experts
// that run one after the other on a sorted list, since transformers 5.13 as all experts do. Granite 4's hybrids: the
// same with Mamba-2 in most layers' attention's place, and with or without experts.
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/granite.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// What all of them share.
void read_granite(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.embedding_scale = true;
  architecture.residual_scale = true;
  architecture.logit_scale = true;
  read_aux_loss(fields, architecture);
  fields.accept({"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
  // Until 5.12 its classes record no router logits: the loss function returns a plain zero.
  if (architecture.experts.aux_loss) {
    fields.error("INVALID_VALUE", "output_router_logits",
                 "transformers 5.12 records no router logits for Granite's experts and fails where the loss asks for "
                 "them: leave \"output_router_logits\" out.");
  }
}

// transformers 5.12.1 models/granitemoe/configuration_granitemoe.py: GraniteMoeConfig.
void read_granitemoe_config(ConfigFields& fields, Architecture& architecture) {
  read_granite(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts", "num_experts"});
}

// transformers 5.12.1 models/granitemoeshared/configuration_granitemoeshared.py: GraniteMoeSharedConfig.
void read_granitemoeshared_config(ConfigFields& fields, Architecture& architecture) {
  read_granitemoe_config(fields, architecture);
  architecture.experts.shared_width = fields.count({"shared_intermediate_size"}, 0, 0);
}

// transformers 5.12.1 models/granitemoehybrid/configuration_granitemoehybrid.py: GraniteMoeHybridConfig.
void read_granitemoehybrid_config(ConfigFields& fields, Architecture& architecture) {
  read_granite(fields, architecture);
  const std::string positions = fields.text({"position_embedding_type"}, "");
  if (positions == "rope") architecture.rotary_dim = architecture.head_dim;
  architecture.positions_by_token = false;
  if (fields.count({"num_local_experts", "num_experts"}, 8, 0) > 0) {
    read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts", "num_experts"});
  }
  fields.accept({"num_experts_per_tok"});
  architecture.experts.shared_width = fields.count({"shared_intermediate_size"}, 1024);
  read_layer_kinds(fields, architecture, {"mamba", "attention"}, architecture.num_layers + 1);
  StateSpace& s = architecture.ssm;
  s.width = fields.count({"mamba_expand"}, 2) * architecture.hidden_size;
  read_mamba2_sizes(fields, s);
  if (s.heads * s.head_dim != s.width || s.width % s.groups != 0) {
    fields.error("INVALID_VALUE", "mamba_n_heads", "The heads' columns do not add up to the mixer's width.");
  }
  fields.accept({"time_step_min", "time_step_max", "time_step_limit", "normalization_function", "init_method",
                 "rms_norm_eps", "layers_block_type"});
}

constexpr const char* kLayer =
    "transformers 5.12 models/granitemoeshared/modeling_granitemoeshared.py: GraniteMoeSharedDecoderLayer.forward";
constexpr const char* kMoe = "transformers 5.12 models/granitemoe/modeling_granitemoe.py: GraniteMoeMoE.forward";
constexpr const char* kRouter =
    "transformers 5.12 models/granitemoe/modeling_granitemoe.py: GraniteMoeTopKGating.forward";
constexpr const char* kExperts =
    "transformers 5.12 models/granitemoe/modeling_granitemoe.py: GraniteMoeParallelExperts.forward";
constexpr const char* kShared =
    "transformers 5.12 models/granitemoeshared/modeling_granitemoeshared.py: GraniteMoeSharedMLP.forward";

constexpr Mamba2Form kMixer = {.module = "mamba",
                               .in_proj = "mamba.in_proj",
                               .conv1d = "mamba.conv1d",
                               .norm = "mamba.norm",
                               .out_proj = "mamba.out_proj",
                               .source =
                                   "transformers 5.12 models/granitemoehybrid/modeling_granitemoehybrid.py: "
                                   "GraniteMoeHybridMambaLayer.torch_forward",
                               .gated_norm = gate_then_norm};

// From this release on a router that returns its choice, and @use_experts_implementation.
constexpr int kTopKRelease = 13;
constexpr TopKMoe kTopKMoe = {
    .block = "transformers 5.13 models/granitemoe/modeling_granitemoe.py: GraniteMoeMoE.forward",
    .router = "transformers 5.13 models/granitemoe/modeling_granitemoe.py: GraniteMoeTopKRouter.forward",
    .experts = {.module = "block_sparse_moe.experts",
                .source = "transformers 5.13 models/granitemoe/modeling_granitemoe.py: GraniteMoeExperts.forward",
                .act = "block_sparse_moe.experts.act_fn"}};

constexpr ExpertNames kNames = {"block_sparse_moe", "block_sparse_moe.router", "block_sparse_moe.router.layer",
                                "block_sparse_moe.input_linear", "block_sparse_moe.output_linear"};

}  // namespace

ExpertLists granite_route(Net& net, const ExpertNames& names, const Tensor& hidden) {
  Scope in(net.tape, names.router, kRouter);
  Tape& t = net.tape;
  const Dim experts(net.arch.experts.count), k(net.arch.experts.per_token), n(hidden.size(0) * k.n());
  ExpertLists r;
  r.logits = net.linear(names.layer, hidden, experts);
  r.logits = to(std::move(r.logits), Dtype::kFp32);
  TopK best = topk(r.logits, k);
  Tensor gates = softmax(std::move(best.values));
  gates = to(std::move(gates), hidden.dtype());
  const Shape all{hidden.dim(0), experts};
  const Tensor zeros = t.allocate(all, gates.dtype(), "zeros");
  const Tensor chosen = t.allocate(all, gates.dtype(), "scatter");
  { const Tensor counted = t.allocate(all, Dtype::kInt64, "to"); }
  r.order = t.allocate(Shape{n}, Dtype::kInt64, "sort indices");
  r.batch_index = t.allocate(Shape{n}, Dtype::kInt64, "div");
  gates = view(std::move(gates), Shape{n});
  r.batch_gates = index_some(std::move(gates), r.order, n);
  return r;
}

Tensor parallel_experts(Net& net, const char* module, Tensor inputs_in, Dim width, const std::vector<Dim>& rows) {
  Scope in(net.tape, module, kExperts);
  const Tensor inputs = std::move(inputs_in);
  const Tensor weight =
      net.expert_parameter(module, "weight", Shape{Dim(net.arch.experts.count), width, inputs.dim(1)});
  const Pieces pieces = split(inputs, 0, rows);
  std::vector<Tensor> outputs;
  for (const Tensor& piece : pieces.part) outputs.push_back(linear(piece, select(weight, 0)));
  std::vector<const Tensor*> parts;
  for (const Tensor& output : outputs) parts.push_back(&output);
  return cat(parts.data(), parts.size(), 0);
}

std::vector<Dim> expert_lists(Net& net, Count tokens) {
  std::vector<Dim> rows;
  for (const Count count : rows_of_experts(net, tokens, net.arch.experts.per_token)) rows.push_back(Dim(count));
  return rows;
}

Tensor gated_sum(Net& net, const ExpertLists& lists, Tensor out_in, const Shape& tokens) {
  const Tensor out = mul(std::move(out_in), unsqueeze(lists.batch_gates, -1));
  const Tensor zeros = tidemark::zeros(net.tape, tokens, out.dtype());
  Tensor sum = tidemark::zeros(net.tape, tokens, out.dtype(), "index_add");
  sum = index_add_in_place(std::move(sum), lists.batch_index, out);
  return as_sequences(net, std::move(sum));
}

Tensor granite_moe(Net& net, const ExpertNames& names, Tensor hidden_in) {
  Scope in(net.tape, names.module, kMoe);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Experts& e = net.arch.experts;
  ExpertLists lists = granite_route(net, names, hidden);
  lists.order.reset();
  const std::vector<Dim> rows = expert_lists(net, hidden.size(0));
  const Dim width(e.width), n(hidden.size(0) * e.per_token);
  const Tensor inputs = index_some(hidden, lists.batch_index, n);
  Tensor out = parallel_experts(net, names.input, inputs, Dim(2 * width.n()), rows);
  const Pieces halves = split(out, -1, {width, width});
  out = activate(net.arch.activation, halves.part[0]);
  out = mul(std::move(out), halves.part[1]);
  out = parallel_experts(net, names.output, out, net.H, rows);
  return gated_sum(net, lists, std::move(out), hidden.shape());
}

// The best experts' logits alone become weights.
Tensor granite_topk_moe(Net& net, const TopKMoe& of, Tensor hidden_in) {
  Scope in(net.tape, "block_sparse_moe", of.block);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  Routing routing;
  {
    Scope router(net.tape, "block_sparse_moe.router", of.router);
    const Experts& e = net.arch.experts;
    const Tensor weight = net.parameter("block_sparse_moe.router", "weight", Shape{Dim(e.count), net.H});
    routing.logits = to(linear(hidden, weight), Dtype::kFp32);
    TopK best = topk(routing.logits, Dim(e.per_token));
    routing.weights = softmax(std::move(best.values));
    routing.weights = to(std::move(routing.weights), hidden.dtype());
    routing.indices = std::move(best.indices);
  }
  return as_sequences(net, run_experts(net, of.experts, hidden, routing.indices, routing.weights));
}

Tensor granite_shared_mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "shared_mlp", kShared);
  const Tensor hidden = std::move(hidden_in);
  const Dim width(net.arch.experts.shared_width);
  Tensor h = net.linear("shared_mlp.input_linear", hidden, Dim(2 * width.n()));
  const Pieces halves = split(h, -1, {width, width});
  h = activate(net.arch.activation, halves.part[0]);
  h = mul(std::move(h), halves.part[1]);
  return net.linear("shared_mlp.output_linear", std::move(h), net.H);
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  const auto i = static_cast<std::size_t>(net.layer_index);
  const bool scans = i < net.arch.layer_kinds.size() && net.arch.layer_kinds[i] == 0;
  h = scans ? mamba2_mixer(net, kMixer, std::move(h)) : llama_attention(net, std::move(h));
  Tensor scaled = mul_scalar(h);
  h = add(residual, std::move(scaled));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  // `moe_hidden_states` keeps its name where a shared feed-forward follows.
  Tensor mixed;
  if (net.arch.experts.count > 0) {
    const bool chooses = net.job.framework.at_least(5, kTopKRelease);
    mixed = chooses ? granite_topk_moe(net, kTopKMoe, h) : granite_moe(net, kNames, h);
  }
  if (net.arch.experts.shared_width > 0) {
    Tensor shared = granite_shared_mlp(net, h);
    h = mixed.defined() ? add(mixed, std::move(shared)) : std::move(shared);
  } else {
    h = mixed;
  }
  scaled = mul_scalar(h);
  return add(std::move(residual), std::move(scaled));
}

}  // namespace

const Program kGraniteMoeProgram = {one_stack<granite_embed, layer, llama_norm>, granite_head};

// GraniteMoeParallelExperts.forward, until 5.12: a loop.
constexpr ClassFacts kFacts = {.one_experts_form = true, .experts_forms_since = kTopKRelease};
constexpr ClassFacts kHybridFacts = {
    .one_experts_form = true, .experts_forms_since = kTopKRelease, .layer_first = "shared_mlp"};

const Family kRows[] = {
    {"granitemoe", "GraniteMoe", "GraniteMoeForCausalLM", kLanguageModelOnly, read_granitemoe_config,
     &kGraniteMoeProgram, kModelLayers, kFacts},
    {"granitemoeshared", "GraniteMoeShared", "GraniteMoeSharedForCausalLM", kLanguageModelOnly,
     read_granitemoeshared_config, &kGraniteMoeProgram, kModelLayers, kFacts},
    {"granitemoehybrid", "GraniteMoeHybrid", "GraniteMoeHybridForCausalLM", kLanguageModelOnly,
     read_granitemoehybrid_config, &kGraniteMoeProgram, kModelLayers, kHybridFacts},
};

extern const FamilyRows granitemoe_rows;
const FamilyRows granitemoe_rows = kRows;

}  // namespace tidemark
