// Llama 4's text model: layers that look at a chunk and turn, and layers that look at everything and do not; every
// expert sees every token.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// A list of numbers, one per layer.
bool listed(const Value* list, Count number) {
  if (list == nullptr || !list->is_array()) return false;
  for (const Value& item : list->items) {
    if (item.is_number() && item.real == static_cast<double>(number)) return true;
  }
  return false;
}

// Which layers turn (`no_rope_layers` has a one for those), which of them look at a chunk alone, which have experts.
void read_kinds_of_layers(ConfigFields& fields, Architecture& architecture) {
  const Count interval = fields.count({"no_rope_layer_interval"}, 4);
  const Count step = fields.count({"interleave_moe_layer_step"}, 1);
  const Value* turning = fields.find({"no_rope_layers"});
  const Value* with_experts = fields.find({"moe_layers"});
  const Value* types = fields.find({"layer_types"});
  const auto per_layer = [&](const Value* list) {
    return list != nullptr && list->is_array() && static_cast<Count>(list->items.size()) == architecture.num_layers;
  };
  const bool stated = with_experts != nullptr && with_experts->is_array();
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool turns = per_layer(turning) ? turning->items[at].real != 0.0 : (i + 1) % interval != 0;
    architecture.no_rope_layers.push_back(!turns);
    architecture.sliding_layers.push_back(per_layer(types) ? types->items[at].string == "chunked_attention" : turns);
    architecture.experts.dense_layers.push_back(stated ? !listed(with_experts, i) : (i + 1) % step != 0);
  }
}

// transformers 5.12.1 models/llama4/configuration_llama4.py: Llama4TextConfig. The feed-forward of layers without
// experts has a width of its own; that of experts is `intermediate_size`.
void read_llama4_text_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096 * 32);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = fields.flag({"use_qk_norm"}, true);
  architecture.query_scale = fields.flag({"attn_temperature_tuning"}, true);
  architecture.sliding_window = fields.nullable({"attention_chunk_size"}, 8192).value_or(0);
  read_kinds_of_layers(fields, architecture);
  read_experts(fields, architecture, {16, 1, 0}, {"num_local_experts"});
  architecture.experts.shared_width = architecture.experts.width;
  architecture.intermediate_size = fields.count({"intermediate_size_mlp"}, 16384);
  // Llama4ForCausalLM adds no loss of its routers.
  fields.accept({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "floor_scale", "attn_scale",
                 "for_llm_compressor"});
}

constexpr const char* kModel = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextModel.forward";
constexpr const char* kRotary = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextRotaryEmbedding.forward";
constexpr const char* kLayer = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextAttention.forward";
constexpr const char* kMoe = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextMoe.forward";
constexpr const char* kRouter = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4Router.forward";
constexpr const char* kExperts = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextExperts.forward";
constexpr const char* kMlp = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextMLP.forward";
constexpr GatedNames kDense = {"feed_forward", "feed_forward.gate_proj", "feed_forward.activation_fn",
                               "feed_forward.up_proj", "feed_forward.down_proj"};
constexpr GatedNames kShared = {"feed_forward.shared_expert", "feed_forward.shared_expert.gate_proj",
                                "feed_forward.shared_expert.activation_fn", "feed_forward.shared_expert.up_proj",
                                "feed_forward.shared_expert.down_proj"};

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  complex_rotary_table(net, kRotary);
  return embeds;
}

// (query_states * attn_scales).to(query_states.dtype)
Tensor scale_by_position(Net& net, Tensor q_in) {
  const Tensor q = std::move(q_in);
  Tensor scale = net.tape.allocate(Shape{net.S}, Dtype::kFp32, "to");
  for (const char* step : {"add", "div", "floor", "log1p", "mul", "add"}) {
    scale = net.tape.allocate(Shape{net.S}, Dtype::kFp32, step);
  }
  scale = view(std::move(scale), Shape{Dim(1), net.S, Dim(1), Dim(1)});
  scale = expand(std::move(scale), Shape{net.B, net.S, Dim(1), Dim(1)});
  Tensor scaled = mul(q, std::move(scale));
  return to(std::move(scaled), q.dtype());
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias, turns = net.rotates(net.layer_index);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (turns) {
    Rotated turned = rotate_complex(net, q, k, false);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  if (net.arch.qk_norm && turns) {
    q = l2_norm(net, "self_attn.qk_norm", std::move(q));
    k = l2_norm(net, "self_attn.qk_norm", std::move(k));
  }
  if (net.arch.query_scale && !turns) q = scale_by_position(net, std::move(q));
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.softmax_fp32 = false;
  options.cast_back = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

struct Scores {
  Tensor scores, logits;
};

Scores route(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "feed_forward.router", kRouter);
  const Dim experts(net.arch.experts.count);
  Scores r;
  const Tensor weight = net.parameter("feed_forward.router", "weight", Shape{experts, net.H});
  r.logits = linear(hidden, weight);
  const TopK best = topk(r.logits, Dim(net.arch.experts.per_token));
  Tensor scores = scatter_last(best.values, best.indices, experts);
  Tensor wide = to(scores, Dtype::kFp32);
  wide = sigmoid(std::move(wide));
  r.scores = to(std::move(wide), scores.dtype());
  return r;
}

Tensor experts(Net& net, Tensor rows_in) {
  Scope in(net.tape, "feed_forward.experts", kExperts);
  const Dim count(net.arch.experts.count), width(net.arch.experts.width);
  Projections p;
  p.up.weight = net.expert_parameter("feed_forward.experts", "gate_up_proj", Shape{count, net.H, Dim(2 * width.n())});
  p.down.weight = net.expert_parameter("feed_forward.experts", "down_proj", Shape{count, width, net.H});
  adapt(net, "feed_forward.experts", p);
  { const Tensor asked_for_its_shape = p.up.used(); }
  const Tensor rows = view(std::move(rows_in), Shape{count, net.T, net.H});
  const Tensor gate_up = matmul(rows, p.up.used());
  const Pieces pieces = split(gate_up, -1, {width, width});
  Tensor gate = activate(net.arch.activation, pieces.part[0]);
  gate = mul(pieces.part[1], std::move(gate));
  Tensor out = matmul(std::move(gate), p.down.used());
  return view(std::move(out), Shape{Dim(count.n() * net.T.n()), net.H});
}

Tensor moe(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "feed_forward", kMoe);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Scores routing = route(net, hidden);
  const Dim count(net.arch.experts.count), rows(count.n() * net.T.n());
  // hidden_states.repeat(E, 1)
  Tensor routed = expand(unsqueeze(hidden, 0), Shape{count, net.T, net.H});
  routed = contiguous(std::move(routed));
  routed = view(std::move(routed), Shape{rows, net.H});
  Tensor scales = transpose(routing.scores, 0, 1);
  scales = reshape(std::move(scales), Shape{rows, Dim(1)});
  routed = mul(std::move(routed), std::move(scales));
  const Tensor routed_out = experts(net, routed);
  Tensor out = gated_mlp(net, kShared, kMlp, hidden, Dim(net.arch.experts.shared_width));
  Tensor sum = view(routed_out, Shape{count, net.T, net.H});
  sum = sum_over(std::move(sum), 0, false);
  out = add_in_place(std::move(out), std::move(sum));
  return as_sequences(net, std::move(out));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = llama4_norm(net, "input_layernorm", residual);
  // `attention_states` is a name of its own: it lives until the layer returns.
  const Tensor attention_states = self_attention(net, std::move(h));
  h = add(residual, attention_states);
  residual = h;
  h = llama4_norm(net, "post_attention_layernorm", std::move(h));
  h = is_dense_layer(net) ? gated_mlp(net, kDense, kMlp, std::move(h), net.F) : moe(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return llama4_norm(net, "model.norm", std::move(hidden));
}

}  // namespace

constexpr ClassSuffix kClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};

const Program kLlama4Program = {one_stack<embed, layer, norm>, llama_head};

const Family kRows[] = {
    {"llama4_text", "Llama4", "Llama4ForCausalLM", kClasses, read_llama4_text_config, &kLlama4Program},
};

extern const FamilyRows llama4_rows;
const FamilyRows llama4_rows = kRows;

}  // namespace tidemark
