// Hy4 (Tencent): DeepSeek-V3.2's latent attention to chosen tokens, whose choice the layers behind one may share, with
// a learned number in each head's softmax and a gate; several residual streams, each read and written by weights of its
// own; experts as DeepSeek-V3 chooses them, their activations clamped.
#include "core/families/family.hpp"
#include "core/families/latent.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/model_call.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4Model.forward";
constexpr const char* kLayer = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4Attention.forward";
constexpr const char* kEager = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: eager_attention_forward";
constexpr const char* kIndexer = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4Indexer.forward";
constexpr const char* kHead = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4ForCausalLM.forward";
constexpr const char* kHyper = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4HyperConnection.forward";
constexpr const char* kHyperHead = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4HyperHead.forward";

// transformers 5.24 models/hy_v4/configuration_hy_v4.py: HYV4Config. Layers of kind 1 take the choice of one before.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 262144);
  architecture.num_kv_heads = architecture.num_heads;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  if (fields.flag({"tie_word_embeddings"}, false)) {
    fields.error("INVALID_VALUE", "tie_word_embeddings", "The head stays in fp32: a tied one is not modelled.",
                 "false");
  }
  read_latent_attention(fields, architecture, 1536, 192, 256);
  LatentAttention& a = architecture.latent;
  a.index_heads = fields.count({"index_n_heads"}, 16);
  a.index_dim = fields.count({"index_head_dim"}, 128);
  a.index_tokens = fields.count({"index_topk"}, 2048);
  if (a.query_rank == 0 || a.index_dim <= a.rope_dim) {
    fields.error("INVALID_VALUE", "q_lora_rank",
                 "\"q_lora_rank\" is needed, and more columns of an indexer than turn.");
  }
  read_routed_experts(fields, architecture, {256, 8, 768}, 1);
  read_mlp_layer_types(fields, architecture);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  architecture.compressed.streams = fields.count({"hc_mult"}, 4);
  const Value* const types = list_of_layers(fields, "indexer_types", architecture.num_layers);
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const std::string word = types != nullptr ? types->items[static_cast<std::size_t>(i)].string : "";
    const bool shares = types != nullptr ? word == "shared" : i > 0 && (i - 1) % 4 != 0;
    if (types != nullptr && word != "shared" && word != "full") {
      fields.error("INVALID_VALUE", "indexer_types",
                   "Only \"full\" and \"shared\" are modelled, not \"" + word + "\".");
    }
    if (shares && i == 0) fields.error("INVALID_VALUE", "indexer_types", "The first layer has no choice to share.");
    architecture.layer_kinds.push_back(shares ? 1 : 0);
  }
  refuse_router_logits(fields);
  fields.accept({"num_key_value_heads", "layer_types", "hc_magnitude", "hc_eps", "learnable_sink_init", "swiglu_limit",
                 "rope_parameters", "rope_theta", "rope_scaling"});
}

// -- residual streams ------------------------------------------------------------------------------------------------

/// Code that switches autocast off for itself.
class Plain {
 public:
  explicit Plain(Tape& tape) : tape_(tape), before_(tape.autocast()) { tape_.set_autocast(std::nullopt); }
  ~Plain() { tape_.set_autocast(before_); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

 private:
  Tape& tape_;
  std::optional<Dtype> before_;
};

// F.linear(flat, fn) * rsqrt(flat.square().mean(-1) + eps)
Tensor mixes_of(const Tensor& flat, const Tensor& fn) {
  const Tensor product = linear(flat, fn);
  Tensor root = power(flat);
  root = mean_last(std::move(root));
  root = add_scalar(std::move(root));
  root = rsqrt(std::move(root));
  return mul(product, std::move(root));
}

Tensor collapsed(const Tensor& weights, const Tensor& streams) {
  Tensor weighted = mul(unsqueeze(weights, -1), streams);
  return sum_over(std::move(weighted), 2, false);
}

/// How a half of the layer reads the streams, and by what its result is added to them.
struct Mixed {
  Tensor post, hidden;
};

Mixed hyper_connection(Net& net, const char* module, const Tensor& streams) {
  Scope in(net.tape, module, kHyper);
  const Plain plain(net.tape);
  const Dim n(net.arch.compressed.streams), both(2 * n.n()), wide(n.n() * net.H.n());
  const Tensor fn = net.fp32_parameter(module, "fn", Shape{both, wide}, true);
  const Tensor base = net.fp32_parameter(module, "base", Shape{both}, true);
  const Tensor scale = net.fp32_parameter(module, "scale", Shape{Dim(2)}, true);
  const Tensor flat = to(view(streams, Shape{net.B, net.S, wide}), Dtype::kFp32);
  const Tensor mixes = mixes_of(flat, fn);
  const Pieces b = split(base, -1, {n, n}), s = unbind(scale, 0), w = split(mixes, -1, {n, n});
  const auto opened = [&](std::size_t i) {
    Tensor x = mul(w.part[i], s.part[i]);
    x = add(std::move(x), b.part[i]);
    return sigmoid(std::move(x));
  };
  const Tensor pre = add_scalar(opened(0));
  Mixed made;
  made.post = mul_scalar(opened(1));
  made.post = add_scalar(std::move(made.post));
  Tensor out = collapsed(pre, streams);
  made.hidden = to(out, streams.dtype());
  return made;
}

// (post · out + residual).to(dtype), in fp32.
Tensor spread(const Tensor& post, const Tensor& out, const Tensor& streams) {
  Tensor added = to(out, Dtype::kFp32);
  added = mul(unsqueeze(post, -1), unsqueeze(std::move(added), -2));
  Tensor sum;
  {
    const Tensor wide = to(streams, Dtype::kFp32);
    sum = add(std::move(added), wide);
  }
  return to(std::move(sum), streams.dtype());
}

// -- attention -------------------------------------------------------------------------------------------------------

// Which tokens each token attends to, [B, S, k] int32; nothing here is ever trained.
Tensor chosen_tokens(Net& net, const Tensor& x, const Tensor& narrow_queries, const Tensor& mask) {
  Scope in(net.tape, "self_attn.indexer", kIndexer);
  Tape& t = net.tape;
  const WithoutGradients quiet(t);
  const LatentAttention& a = net.arch.latent;
  const Dim heads(a.index_heads), width(a.index_dim), rope(a.rope_dim), rest(a.index_dim - a.rope_dim), one(1);
  Tensor q = net.linear("self_attn.indexer.wq_b", narrow_queries, Dim(a.index_heads * a.index_dim));
  q = view(std::move(q), Shape{net.B, net.S, heads, width});
  const Pieces q_parts = split(q, -1, {rest, rope});
  Tensor k = net.linear("self_attn.indexer.wk", x, width);
  const Tensor weight = net.fp32_parameter("self_attn.indexer.k_norm", "weight", Shape{width}, true);
  const Tensor bias = net.fp32_parameter("self_attn.indexer.k_norm", "bias", Shape{width}, true);
  k = to(std::move(k), weight.dtype());
  k = layer_norm(std::move(k), weight, bias);
  k = unsqueeze(to(std::move(k), x.dtype()), 2);
  const Pieces k_parts = split(k, -1, {rest, rope});
  const Tensor cos = unsqueeze(net.shared.cos, 2), sin = unsqueeze(net.shared.sin, 2);
  const Tensor q_turned = rotate_by(q_parts.part[1], cos, sin), k_turned = rotate_by(k_parts.part[1], cos, sin);
  q = cat({&q_parts.part[0], &q_turned}, -1);
  k = view(cat({&k_parts.part[0], &k_turned}, -1), Shape{net.B, net.S, width});
  Tensor scores = index_products(net, q, k);
  {
    Tensor positive = relu(scores);
    scores = std::move(positive);
  }
  Tensor weights = net.fp32_linear("self_attn.indexer.weights_proj", x, heads);
  weights = to(std::move(weights), Dtype::kFp32);
  weights = mul_scalar(std::move(weights));
  weights = mul_scalar(std::move(weights));
  Tensor index_scores = matmul(view(weights, Shape{net.T, one, heads}), scores);
  index_scores = view(std::move(index_scores), Shape{net.B, net.S, net.S});
  index_scores = add(index_scores, view(mask, Shape{net.B, net.S, net.S}));
  const Dim k_best(t.above(net.S.n(), a.index_tokens) ? a.index_tokens : net.S.n());
  const TopK best = topk(index_scores, k_best);
  return t.allocate(best.indices.shape(), Dtype::kInt32, "to");
}

Tensor self_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn", kAttention);
  const LatentAttention& a = net.arch.latent;
  const Dim rope(a.rope_dim), plain(a.plain_dim), value(a.value_dim), out_width(net.A.n() * a.value_dim);
  const bool bias = net.arch.attention_bias;
  const Tensor gate = view(net.linear("self_attn.gate_proj", x, out_width), Shape{net.B, net.S, net.A, value});
  Tensor resid = net.linear("self_attn.q_a_proj", x, Dim(a.query_rank), bias);
  resid = rms_norm(net, "self_attn.q_a_layernorm", std::move(resid));
  Tensor q_states = net.linear("self_attn.q_b_proj", resid, Dim(net.A.n() * net.hd.n()));
  q_states = split_heads(net, std::move(q_states), net.A, net.hd);
  const Pieces q_parts = split(q_states, -1, {plain, rope});
  const Tensor compressed = net.linear("self_attn.kv_a_proj_with_mqa", x, Dim(a.rank + a.rope_dim), bias);
  const Pieces parts = split(compressed, -1, {Dim(a.rank), rope});
  const Tensor latent = rms_norm(net, "self_attn.kv_a_layernorm", parts.part[0]);
  Tensor q_turned = q_parts.part[1], k_turned = view(parts.part[1], Shape{net.B, Dim(1), net.S, rope});
  rotate_both(net, q_turned, k_turned);
  const Tensor q = cat({&q_parts.part[0], &q_turned}, -1);
  const KeysAndValues kv = expand_kv(net, latent, k_turned);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  const bool shares =
      net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1 && !net.shared.captured.empty();
  const Tensor chosen = shares ? net.shared.captured.front() : chosen_tokens(net, x, resid, options.mask);
  net.shared.captured = {chosen};  // it returns them, for the next layer
  const Shape pairs{net.B, Dim(1), net.S, net.S};
  Tensor hidden = net.tape.allocate(pairs, Dtype::kBool, "new_ones");
  {
    const Tensor wide = net.tape.allocate(chosen.shape(), Dtype::kInt64, "long");
    hidden = net.tape.allocate(pairs, Dtype::kBool, "scatter");
  }
  options.mask = masked_fill(options.mask, hidden);
  const Tensor sinks = net.fp32_parameter("self_attn", "sinks", Shape{net.A}, true);
  Tensor out = attend_with_sinks(net, kEager, q, kv.k, kv.v, sinks, options);
  Tensor open = sigmoid(gate);
  out = mul(std::move(out), std::move(open));
  return net.linear("self_attn.o_proj", view(std::move(out), Shape{net.B, net.S, out_width}), net.H, bias);
}

// HYV4Experts._apply_gate
Tensor apply_gate(Net&, const ExpertForm&, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  const Dim half(gate_up.size(-1) / 2);
  const Pieces halves = split(gate_up, -1, {half, half});
  const Tensor gate = clamp(halves.part[0]), up = clamp(halves.part[1]);
  Tensor active = silu(gate);
  return mul(std::move(active), up);
}

constexpr ExpertForm kForm = {.source = "transformers 5.24 models/hy_v4/modeling_hy_v4.py: HYV4Experts.forward",
                              .gate = apply_gate};

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Mixed by = hyper_connection(net, "attn_hc", residual);
  Tensor h = rms_norm(net, "input_layernorm", std::move(by.hidden));
  h = self_attention(net, h);
  residual = spread(by.post, h, residual);
  h.reset();
  by = hyper_connection(net, "ffn_hc", residual);
  h = rms_norm(net, "post_attention_layernorm", std::move(by.hidden));
  h = wide_router_mlp(net, std::move(h), kForm);
  return spread(by.post, h, residual);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {true});
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  const Shape streams{net.B, net.S, Dim(net.arch.compressed.streams), net.H};
  return contiguous(expand(unsqueeze(embeds, 2), streams));
}

Tensor leave(Net& net, Tensor streams_in) {
  const Tensor streams = std::move(streams_in);
  Tensor h;
  {
    Scope in(net.tape, "model.hc_head", kHyperHead);
    const Plain plain(net.tape);
    const Dim n(net.arch.compressed.streams), wide(n.n() * net.H.n());
    const Tensor fn = net.fp32_parameter("model.hc_head", "hc_fn", Shape{n, wide}, true);
    const Tensor base = net.fp32_parameter("model.hc_head", "hc_base", Shape{n}, true);
    const Tensor scale = net.fp32_parameter("model.hc_head", "hc_scale", Shape{Dim(1)}, true);
    const Tensor flat = to(view(streams, Shape{net.B, net.S, wide}), Dtype::kFp32);
    const Tensor mixes = mixes_of(flat, fn);
    Tensor pre = mul(mixes, scale);
    pre = sigmoid(add(std::move(pre), base));
    pre = add_scalar(std::move(pre));
    h = to(collapsed(pre, streams), streams.dtype());
  }
  return llama_norm(net, std::move(h));
}

// HYV4ForCausalLM.forward: the head stays in fp32, and so is what it reads.
Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "lm_head", kHead);
  Tensor weight = net.fp32_parameter("lm_head", "weight", Shape{net.V, net.H}, true);
  Tensor wide = to(std::move(hidden), Dtype::kFp32);
  return net.logits(std::move(wide), std::move(weight));
}

// HYV4Indexer.forward casts what "weights_proj" reads to its weight's dtype, which is that of packed numbers.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "transformers 5.24 fails here: Hy4's indexer casts its input to the dtype of a packed weight. Use "
                    "\"lora\".",
                    "lora"});
}

// HYV4PreTrainedModel: _supports_sdpa and _supports_flash_attn are false.
const Program kProgram = {
    .forward = one_stack<embed, layer, leave>, .lm_head = head, .attention = kEagerAlone, .check = check};

}  // namespace

const Family kRows[] = {
    {"hy_v4", "HYV4", "HYV4ForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows hy_v4_rows;
const FamilyRows hy_v4_rows = kRows;

}  // namespace tidemark
