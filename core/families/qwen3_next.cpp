// Qwen3-Next and Qwen3.5 (text): three gated delta nets to one gated attention; a feed-forward or experts.
#include "core/families/qwen3_next.hpp"

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/qwen3_5/configuration_qwen3_5.py: Qwen3_5TextConfig; the other files' are alike.
void read_hybrid(ConfigFields& fields, Architecture& architecture, Count kv_heads) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 32768);
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, 256);
  read_rotary_factor(fields, architecture, 0.25);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_delta_net(fields, architecture);
  fields.accept({"attn_output_gate", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype",
                 "use_sliding_window"});
}

void read_next_experts(ConfigFields& fields, Architecture& architecture, const ExpertDefaults& defaults) {
  read_experts(fields, architecture, defaults, {"num_experts"}, {"moe_intermediate_size"});
  architecture.experts.shared_width = fields.count({"shared_expert_intermediate_size"}, 512);
  read_aux_loss(fields, architecture);
}

// transformers 5.12.1 models/qwen3_next/configuration_qwen3_next.py: Qwen3NextConfig.
void read_qwen3_next(ConfigFields& fields, Architecture& architecture) {
  read_hybrid(fields, architecture, 2);
  architecture.intermediate_size = fields.count({"intermediate_size"}, 5632);
  read_next_experts(fields, architecture, {512, 10, 512});
  read_sparse_step(fields, architecture);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
}

void read_qwen3_5(ConfigFields& fields, Architecture& architecture) {
  read_hybrid(fields, architecture, 4);
  architecture.intermediate_size = fields.required({"intermediate_size"});
  fields.accept({"mlp_only_layers"});
}

// transformers 5.12.1 models/qwen3_5_moe/configuration_qwen3_5_moe.py: Qwen3_5MoeTextConfig; its router always
// normalises.
void read_qwen3_5_moe(ConfigFields& fields, Architecture& architecture) {
  read_hybrid(fields, architecture, 2);
  read_next_experts(fields, architecture, {256, 8, 512});
  architecture.experts.normalised = true;
  fields.accept({"mlp_only_layers", "intermediate_size", "norm_topk_prob", "decoder_sparse_step"});
}

constexpr const char* kModel = "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: Qwen3NextModel.forward";
constexpr const char* kModel5 = "transformers 5.12 models/qwen3_5/modeling_qwen3_5.py: Qwen3_5TextModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: Qwen3NextDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: Qwen3NextAttention.forward";
constexpr const char* kDeltaNet =
    "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: Qwen3NextGatedDeltaNet.forward";
constexpr const char* kDeltaNet5 = "transformers 5.12 models/qwen3_5/modeling_qwen3_5.py: Qwen3_5GatedDeltaNet.forward";

Tensor gated_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Dim with_gate(2 * net.Q.n());
  qkv_at_once(net, x, with_gate, bias);
  Tensor q = net.linear("self_attn.q_proj", x, with_gate, bias);
  Pieces halves = split(view(std::move(q), Shape{net.B, net.S, net.A, Dim(2 * net.hd.n())}), -1, {net.hd, net.hd});
  const Tensor gate = reshape(std::move(halves.part[1]), Shape{net.B, net.S, net.Q});
  q = std::move(halves.part[0]);  // both are one storage, which goes as q's name does
  const bool fused = net.job.fused_attention;
  if (!fused) q = transpose(gemma_norm(net, "self_attn.q_norm", q), 1, 2);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  if (!fused) k = transpose(gemma_norm(net, "self_attn.k_norm", std::move(k)), 1, 2);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (fused) {
    turn_at_once(net, q, k);
  } else {
    turn_leading(net, q, k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  Tensor open = sigmoid(gate);
  out = mul(std::move(out), std::move(open));
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

}  // namespace

// fix_query_key_value_ordering: what a head of keys and its heads of values need lies together.
Tensor joined_delta_net(Net& net, Tensor hidden) {
  Scope in(net.tape, "linear_attn", kDeltaNet);
  const Tensor x = mask_padding(net, std::move(hidden));
  const StateSpace& s = net.arch.ssm;
  const Count share = s.heads / s.groups;
  const Dim groups(s.groups), dk(s.state), dv(share * s.head_dim), both(2 * (dk.n() + dv.n())), each(share);
  const Dim heads(s.heads), width(s.head_dim);
  Tensor qkvz = net.linear("linear_attn.in_proj_qkvz", x, Dim(groups.n() * both.n()));
  Tensor ba = net.linear("linear_attn.in_proj_ba", x, Dim(2 * s.heads));
  qkvz = view(std::move(qkvz), Shape{net.B, net.S, groups, both});
  ba = view(std::move(ba), Shape{net.B, net.S, groups, Dim(2 * share)});
  const Pieces four = split(std::move(qkvz), 3, {dk, dk, dv, dv}), two = split(std::move(ba), 3, {each, each});
  const Shape values{net.B, net.S, heads, width}, numbers{net.B, net.S, heads};
  Tensor value = reshape(four.part[2], values);
  DeltaInputs inputs;
  inputs.z = reshape(four.part[3], values);
  inputs.b = reshape(two.part[0], numbers);
  inputs.a = reshape(two.part[1], numbers);
  Tensor query = reshape(four.part[0], Shape{net.B, net.S, Dim(groups.n() * dk.n())});
  Tensor key = reshape(four.part[1], Shape{net.B, net.S, Dim(groups.n() * dk.n())});
  Tensor flat = reshape(std::move(value), Shape{net.B, net.S, Dim(s.heads * s.head_dim)});
  inputs.mixed = transpose(cat({&query, &key, &flat}, -1), 1, 2);
  inputs.apart = {std::move(query), std::move(key), std::move(flat)};
  return gated_delta_net(net, kDeltaNet, std::move(inputs));
}

namespace {

Tensor plain_delta_net(Net& net, Tensor hidden) {
  Scope in(net.tape, "linear_attn", kDeltaNet5);
  const Tensor x = mask_padding(net, std::move(hidden));
  const StateSpace& s = net.arch.ssm;
  const Dim heads(s.heads), values(s.heads * s.head_dim);
  DeltaInputs inputs;
  inputs.mixed = net.linear("linear_attn.in_proj_qkv", x, Dim(2 * s.groups * s.state + values.n()));
  inputs.mixed = transpose(std::move(inputs.mixed), 1, 2);
  inputs.z = net.linear("linear_attn.in_proj_z", x, values);
  inputs.z = reshape(std::move(inputs.z), Shape{net.B, net.S, heads, Dim(s.head_dim)});
  inputs.b = net.linear("linear_attn.in_proj_b", x, heads);
  inputs.a = net.linear("linear_attn.in_proj_a", x, heads);
  return gated_delta_net(net, kDeltaNet5, std::move(inputs));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  const bool joined = net.arch.model_type == "qwen3_next";
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual);
  if (attends) {
    h = gated_attention(net, std::move(h));
  } else {
    h = joined ? joined_delta_net(net, std::move(h)) : plain_delta_net(net, std::move(h));
  }
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = net.arch.experts.count > 0 ? qwen2_moe_mlp(net, std::move(h)) : llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor embed(Net& net) {
  if (net.arch.model_type == "qwen3_next") return decoder_embed(net, kModel, false);
  Scope in(net.tape, "model", kModel5);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_positions_3d(net);
  make_causal_masks(net, embeds);
  rotary_tables_from_3d(net, embeds.dtype(), 1);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma_norm(net, "model.norm", std::move(hidden));
}

const Program kProgram = {one_stack<embed, layer, norm>, llama_head, kMoeForwards};

constexpr ClassSuffix kTextClasses[] = {{"ForCausalLM", Head::kCausalLm},
                                        {"ForTokenClassification", Head::kTokenClassification},
                                        {"TextForSequenceClassification", Head::kSequenceClassification},
                                        {"TextModel", Head::kNone}};
constexpr ClassSuffix kMoeTextClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};

constexpr ClassFacts kFacts = {
    .flex_attention = false, .no_split = NoSplit::kAbsentToo, .layer_first = "linear_attn.out_proj"};

}  // namespace

const Family kRows[] = {
    {"qwen3_next", "Qwen3Next", "Qwen3NextForCausalLM", kFourHeads, read_qwen3_next, &kProgram, kModelLayers, kNoFlex},
    {"qwen3_5_text", "Qwen3_5", "Qwen3_5ForCausalLM", kTextClasses, read_qwen3_5, &kProgram, kModelLayers, kFacts},
    {"qwen3_5_moe_text", "Qwen3_5Moe", "Qwen3_5MoeForCausalLM", kMoeTextClasses, read_qwen3_5_moe, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows qwen3_next_rows;
const FamilyRows qwen3_next_rows = kRows;

}  // namespace tidemark
