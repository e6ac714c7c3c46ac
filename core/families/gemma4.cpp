// Gemma 4 (text): two kinds of attention with heads of their own width, norms over q, k and v, and experts beside the
// feed-forward; in small ones (E2B, E4B) a token gives each layer an input of its own, and the last layers take keys
// and values of layers before.
#include "core/families/gemma4.hpp"

#include "core/families/family.hpp"
#include "core/layers/moe.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {

// Gemma4TextAttention.__init__: the last layer of each kind before those that share stores its own.
void read_shared_layers(ConfigFields& fields, Architecture& architecture, Count standard) {
  architecture.shared_kv_layers = fields.count({"num_kv_shared_layers"}, standard, 0);
  if (has_error(fields.issues())) return;
  const Count first = architecture.num_layers - architecture.shared_kv_layers;
  if (first < 2) {
    fields.error("INVALID_VALUE", "num_kv_shared_layers", "Too few layers have keys of their own.");
    return;
  }
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), kOwn);
  bool stored[2] = {false, false}, shared[2] = {false, false};
  for (Count i = architecture.num_layers - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const bool slides = architecture.sliding_layers[at] != 0;
    bool& known = stored[slides ? 1 : 0];
    if (i >= first) {
      architecture.layer_kinds[at] = kShares;
      shared[slides ? 1 : 0] = true;
    }
    if (i < first && !known) {
      known = true;
      architecture.layer_kinds[at] = kStores;
    }
  }
  if ((shared[0] && !stored[0]) || (shared[1] && !stored[1])) {
    fields.error("INVALID_VALUE", "num_kv_shared_layers",
                 "No layer of the same type has keys of its own for those that share.");
  }
}

void read_gemma_text(ConfigFields& fields, Architecture& architecture, const GemmaText& of) {
  read_dimensions(fields, architecture, of.positions);
  read_kv_heads(fields, architecture, of.kv_heads);
  read_head_dim(fields, architecture, 256);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.logit_softcap = fields.number({"final_logit_softcapping"}, of.logit_softcap) != 0.0;
  architecture.sliding_window = fields.count({"sliding_window"}, of.window);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(of.global_every, architecture.num_layers);
}

void read_layer_inputs(ConfigFields& fields, Architecture& architecture) {
  architecture.layer_input_width = fields.count({"hidden_size_per_layer_input"}, 256, 0);
  architecture.layer_input_vocab = fields.count({"vocab_size_per_layer_input"}, 262144);
}

namespace {

// What differs in layers that attend to everything is a part of its own; the last layer is one of them.
void read_global_layers(ConfigFields& fields, Architecture& architecture) {
  if (!architecture.sliding_layers.empty()) architecture.sliding_layers.back() = 0;
  Architecture global;
  global.multi_query = fields.flag({"attention_k_eq_v"}, false);  // its values are its keys
  global.head_dim = fields.nullable({"global_head_dim"}, 512).value_or(architecture.head_dim);
  global.num_kv_heads = fields.nullable({"num_global_key_value_heads"}, std::nullopt).value_or(0);
  if (!global.multi_query || global.num_kv_heads == 0) global.num_kv_heads = architecture.num_kv_heads;
  architecture.parts.push_back(std::move(global));
  architecture.double_wide_mlp = fields.flag({"use_double_wide_mlp"}, false);
  read_shared_layers(fields, architecture, 0);
  if (fields.text({"use_bidirectional_attention"}, "") == "all") {
    fields.error("INVALID_VALUE", "use_bidirectional_attention", "Attention in both directions is not modelled here.");
  }
}

// transformers 5.12.1 models/gemma4/configuration_gemma4.py: Gemma4TextConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_gemma_text(fields, architecture, {131072, 4, 0.0, 6});
  read_global_layers(fields, architecture);
  if (fields.flag({"enable_moe_block"}, false)) {
    fields.accept({"num_experts_per_tok"});
    read_experts(fields, architecture, {128, 8, 704}, {"num_experts"}, {"moe_intermediate_size"});
    architecture.experts.per_token = fields.count({"top_k_experts"}, 8);
  }
  read_layer_inputs(fields, architecture);
  fields.accept({"num_experts", "top_k_experts", "moe_intermediate_size"});
}

// transformers 5.12.1 models/gemma4_unified/configuration_gemma4_unified.py: Gemma4UnifiedTextConfig (12B): neither
// experts nor inputs of layers' own, which published files name nonetheless.
void read_unified_config(ConfigFields& fields, Architecture& architecture) {
  read_gemma_text(fields, architecture, {262144, 4, 0.0, 6, 1024});
  read_global_layers(fields, architecture);
  fields.accept({"enable_moe_block", "num_experts", "top_k_experts", "moe_intermediate_size",
                 "hidden_size_per_layer_input", "vocab_size_per_layer_input"});
}

constexpr const char* kModel = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4TextModel.forward";
constexpr const char* kNorm = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4RMSNorm.forward";
constexpr const char* kLayer = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4TextDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4TextAttention.forward";
constexpr const char* kRouter = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4TextRouter.forward";
constexpr const char* kHead = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4ForCausalLM.forward";
constexpr ExpertForm kForm = {.module = "experts",
                              .source = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4TextExperts.forward",
                              .act = "experts.act_fn"};

}  // namespace

// x · (mean(x²) + eps)^-0.5 in fp32, times the weight in fp32 where there is one.
Tensor gemma4_norm(Net& net, const char* name, Tensor x_in, bool scaled) {
  Scope in(net.tape, name, kNorm);
  const Tensor x = std::move(x_in);
  Tensor out = to(x, Dtype::kFp32);
  {
    Tensor mean = power(out);
    mean = add_scalar(mean_last(std::move(mean)));
    Tensor root = power(std::move(mean));
    out = mul(std::move(out), std::move(root));
  }
  if (scaled) {
    Tensor weight = to(net.parameter(name, "weight", Shape{x.dim(-1)}), Dtype::kFp32);
    out = mul(std::move(out), std::move(weight));
  }
  return to(std::move(out), x.dtype());
}

namespace {

/// shared_kv_states, in places of `shared` that checkpoints hold and that Gemma has no other use for.
struct StoredStates {
  Tensor &k, &v;
};
StoredStates stored_states(Net& net, bool slides) {
  if (slides) return {net.shared.bias, net.shared.cross_bias};
  return {net.shared.encoder_states, net.shared.cross_mask};
}

bool stores(const Net& net) {
  return (kind_of(net) & kStores) != 0;
}

/// All layers' checkpoints hold the one dictionary of keys and values. What a recomputation puts there takes the place
/// of what the forward did, and the graph behind it stays, which no backward runs, until the last checkpoint is gone:
/// Axolotl's fused_attn.py keeps it out of them, in its module, where it stays until the next forward has one.
void put_into_dictionary(Net& net, const Tensor& k, const Tensor& v) {
  if (net.job.checkpointing == Checkpointing::kNone) return;
  if (net.tape.phase() != Phase::kBackward) {
    net.leaves.insert(net.leaves.begin(), {k, v});
    return;
  }
  const std::vector<std::uint8_t>& kinds = net.arch.layer_kinds;
  std::size_t at = 0;
  for (auto i = static_cast<std::size_t>(net.layer_index) + 1; i < kinds.size(); ++i) {
    if ((kinds[i] & kStores) != 0) at += 2;
  }
  if (at + 1 >= net.leaves.size()) return;
  net.leaves[at] = net.leaves[at + 1] = Tensor();
  net.tape.hold_in_module(k, v);
}

void first_layer_backward(Tape& t, Node& n, Tensor* grads, Tensor* results) {
  results[0] = std::move(grads[0]);
  t.let_modules_go();
  t.begin_segment(Phase::kBackward, n.instance);
}

}  // namespace

// As the first layer's backward has ended no checkpoint is left that holds the dictionary.
Tensor into_first_layer(Net& net, Tensor hidden) {
  Tensor h = std::move(hidden);
  Tape& t = net.tape;
  if (net.layer_index > 0 || net.job.checkpointing == Checkpointing::kNone) return h;
  if (net.job.fused_attention && t.phase() != Phase::kBackward) t.let_modules_go();
  if (net.job.fused_attention || net.job.use_reentrant) return h;
  Node* node = t.record("shared_kv_states", first_layer_backward, {&h});
  if (node == nullptr) return h;
  h.leave_graph();
  t.attach(node, h);
  return h;
}

std::uint8_t kind_of(const Net& net) {
  const std::vector<std::uint8_t>& kinds = net.arch.layer_kinds;
  return kinds.empty() ? std::uint8_t{kOwn} : kinds[static_cast<std::size_t>(net.layer_index)];
}

Tensor gemma4_attention(Net& net, Tensor hidden, bool values_last) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool slides = net.is_sliding_layer(net.layer_index), bias = net.arch.attention_bias;
  const Architecture& kind = slides ? net.arch : net.arch.parts.front();
  const Dim width = slides ? net.hd : Dim(kind.head_dim), groups = slides ? net.Kv : Dim(kind.num_kv_heads);
  const Tensor& cos = slides ? net.shared.local_cos : net.shared.cos;
  const Tensor& sin = slides ? net.shared.local_sin : net.shared.sin;
  const Shape heads{net.B, net.S, net.A, width}, kv_heads{net.B, net.S, groups, width};
  const Dim queries(net.A.n() * width.n()), keys(groups.n() * width.n());
  const std::uint8_t shared = kind_of(net) & (kStores | kShares);
  const bool own_values = slides || !kind.multi_query, shares = shared == kShares;
  const bool fused = net.job.fused_attention;
  const auto turned = [&](const char* name, Tensor t) {
    if (fused) return normed_and_turned(net, name, std::move(t), cos, sin);
    t = gemma4_norm(net, name, std::move(t));
    return transpose(rotate_by(std::move(t), unsqueeze(cos, 2), unsqueeze(sin, 2)), 1, 2);
  };
  if (!shares) qkv_at_once(net, x, queries, keys, bias, own_values);  // k's node is then q's as well
  net.tape.note_saved(false);
  Tensor q = view(net.linear("self_attn.q_proj", x, queries, bias), heads);
  q = turned("self_attn.q_norm", std::move(q));
  net.tape.note_saved(stores(net));
  const StoredStates stored = stored_states(net, slides);
  Tensor k = stored.k, v = stored.v;
  if (!shares) {
    const auto values = [&] { v = view(net.linear("self_attn.v_proj", x, keys, bias), kv_heads); };
    k = view(net.linear("self_attn.k_proj", x, keys, bias), kv_heads);
    v = k;
    if (!values_last && own_values) values();
    k = turned("self_attn.k_norm", std::move(k));
    if (values_last) values();
    v = fused ? norm_without_weight(std::move(v)) : gemma4_norm(net, "self_attn.v_norm", std::move(v), false);
    v = transpose(std::move(v), 1, 2);
  }
  if (shared == kStores) {
    stored.k = k;
    stored.v = v;
    put_into_dictionary(net, k, v);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

namespace {

Routing routed(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "router", kRouter);
  const Experts& e = net.arch.experts;
  const Dim experts(e.count), k(e.per_token), rows(hidden.size(0) * k.n());
  Tensor x = gemma4_norm(net, "router.norm", hidden, false);
  const Tensor scale = net.parameter("router", "scale", Shape{net.H});
  x = mul_scalar(mul(std::move(x), scale));
  Routing r;
  r.logits = softmax(net.linear("router.proj", x, experts));
  TopK best = topk(r.logits, k);
  Tensor sum = sum_over(best.values, -1, true);
  best.values = div_in_place(std::move(best.values), std::move(sum));
  const Tensor each = net.parameter("router", "per_expert_scale", Shape{experts});
  Tensor chosen = index_some(each, view(best.indices, Shape{rows}), rows);
  chosen = view(std::move(chosen), best.indices.shape());
  r.weights = mul(std::move(best.values), std::move(chosen));
  r.indices = std::move(best.indices);
  return r;
}

Tensor with_experts(Net& net, Tensor hidden, const Tensor& residual) {
  const Tensor first = gemma4_norm(net, "post_feedforward_layernorm_1", std::move(hidden));
  const Tensor flat = view(residual, Shape{net.T, net.H});
  const Routing routing = routed(net, flat);
  Tensor second = gemma4_norm(net, "pre_feedforward_layernorm_2", flat);
  second = run_experts(net, kForm, std::move(second), routing.indices, routing.weights);
  second = view(std::move(second), residual.shape());
  second = gemma4_norm(net, "post_feedforward_layernorm_2", std::move(second));
  return add(first, second);
}

constexpr GatedNames kMlp = {"mlp", "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"};

Tensor feed_forward(Net& net, Tensor hidden) {
  if (!net.arch.double_wide_mlp || kind_of(net) != kShares) return llama_mlp(net, std::move(hidden));
  const Dim wide(2 * net.F.n());
  Tensor fused = net.gated_at_once(hidden, wide);
  return fused.defined() ? fused : gated_mlp(net, kMlp, kLayer, std::move(hidden), wide);
}

}  // namespace

Tensor through_layer_input(Net& net, Tensor hidden) {
  Tensor h = net.linear("per_layer_input_gate", std::move(hidden), Dim(net.arch.layer_input_width));
  h = activate(net.arch.activation, std::move(h));
  h = mul(std::move(h), select(net.leaves.back(), 2));
  h = net.linear("per_layer_projection", std::move(h), net.H);
  return gemma4_norm(net, "post_per_layer_input_norm", std::move(h));
}

namespace {

Tensor with_layer_input(Net& net, Tensor residual_in) {
  const Tensor residual = std::move(residual_in);
  Tensor h = through_layer_input(net, residual);
  return add(residual, std::move(h));
}

void scalar_backward(Tape& t, Node& n, Tensor* grads, Tensor* results) {
  results[0] = t.allocate(grads[0].shape(), grads[0].dtype(), n.name);
}

// hidden_states *= self.layer_scalar: the node saves the buffer, which a checkpoint runs the layer again for.
Tensor scale_by_buffer(Tensor hidden) {
  Tensor h = std::move(hidden);
  Tape& t = h.tape();
  Node* node = t.record("mul_backward", scalar_backward, {&h});
  t.save(node, t.on_storage({.dtype = h.dtype(), .tape = &t}));
  h.leave_graph();
  t.attach(node, h);
  return h;
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  net.tape.buffer("layer_scalar", size_of(net.weight_dtype(1)));
  Tensor residual = into_first_layer(net, std::move(hidden));
  net.tape.note_saved(stores(net));
  Tensor h = gemma4_norm(net, "input_layernorm", residual);
  h = gemma4_attention(net, std::move(h), false);
  h = gemma4_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = gemma4_norm(net, "pre_feedforward_layernorm", std::move(h));
  h = feed_forward(net, std::move(h));
  if (net.arch.experts.count > 0) h = with_experts(net, std::move(h), residual);
  h = gemma4_norm(net, "post_feedforward_layernorm", std::move(h));
  h = add(residual, std::move(h));
  if (net.arch.layer_input_width > 0) h = with_layer_input(net, std::move(h));
  return scale_by_buffer(std::move(h));
}

Tensor scaled(Net& net, Tensor embeds) {
  net.tape.buffer("model.embed_tokens.embed_scale", 4);
  Tensor scale = net.tape.allocate(Shape{}, embeds.dtype(), "to");
  return mul(std::move(embeds), std::move(scale));
}

Tensor layer_scaled(Net& net, Tensor rows) {
  net.tape.buffer("model.embed_tokens_per_layer.embed_scale", 4);
  Tensor scale = net.tape.allocate(Shape{}, rows.dtype(), "to");
  return mul(std::move(rows), std::move(scale));
}

// get_per_layer_inputs and project_per_layer_inputs: [B, S, layers, width].
Tensor layer_inputs(Net& net, const Tensor& embeds, bool in_place) {
  const Dim layers(net.arch.num_layers), width(net.arch.layer_input_width), all(layers.n() * width.n());
  const Shape four{net.B, net.S, layers, width};
  Tensor rows =
      net.embedding("model.embed_tokens_per_layer", net.input_ids, Dim(net.arch.layer_input_vocab), all, layer_scaled);
  const Tensor inputs = view(std::move(rows), four);
  if (net.merge != nullptr) net.outer_locals.push_back(inputs);
  Tensor projected = net.linear("model.per_layer_model_projection", embeds, all);
  projected = in_place ? scale_in_place(std::move(projected)) : mul_scalar(std::move(projected));
  projected = view(std::move(projected), four);
  projected = gemma4_norm(net, "model.per_layer_projection_norm", std::move(projected));
  return mul_scalar(add(projected, inputs));
}

}  // namespace

Tensor gemma4_embeds(Net& net, bool in_place) {
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H, scaled);
  net.model_locals = {embeds};
  if (net.arch.layer_input_width > 0) net.leaves.push_back(layer_inputs(net, embeds, in_place));
  make_position_ids(net);
  // Gemma4Model.forward: tokens of a picture attend to each other, by masks that are always there and differ by sample.
  make_causal_masks(net, embeds, {false, net.arch.bidirectional, net.arch.bidirectional});
  return embeds;
}

void gemma4_tables(Net& net, Dtype dtype) {
  rotary_tables(net, dtype, net.arch.head_dim);
  net.shared.local_cos = std::move(net.shared.cos);
  net.shared.local_sin = std::move(net.shared.sin);
  rotary_tables(net, dtype, net.arch.parts.front().head_dim);
}

namespace {

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = gemma4_embeds(net, false);
  gemma4_tables(net, embeds.dtype());
  return embeds;
}

Tensor final_norm(Net& net, Tensor hidden) {
  return gemma4_norm(net, "model.norm", std::move(hidden));
}

}  // namespace

Tensor gemma4_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor logits = net.lm_head("lm_head", std::move(hidden), net.V);
  if (!net.arch.logit_softcap || net.fuse_loss) return logits;
  logits = mul_scalar(std::move(logits));
  logits = tanh(std::move(logits));
  return mul_scalar(std::move(logits));
}

namespace {

constexpr ClassSuffix kClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};

const Program kProgram = {one_stack<embed, layer, final_norm>, gemma4_head};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo,
                               .behind_language = "model.embed_tokens_per_layer model.per_layer"};

}  // namespace

const Family kRows[] = {
    {"gemma4_text", "Gemma4", "Gemma4ForCausalLM", kClasses, read_config, &kProgram, kModelLayers, kFacts},
    {"gemma4_unified_text", "Gemma4Unified", "Gemma4UnifiedForCausalLM", kClasses, read_unified_config, &kProgram},
};

extern const FamilyRows gemma4_rows;
const FamilyRows gemma4_rows = kRows;

}  // namespace tidemark
