// gpt-oss: attention with a learned sink per head, which no fused kernel of torch has; experts with biases, whose gate
// and up columns alternate.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/job/expert_lists.hpp"
#include "core/layers/kv_cache.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/vision.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/gpt_oss/configuration_gpt_oss.py: GptOssConfig.
void read_gpt_oss_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 64);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 128).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(2, architecture.num_layers);
  read_experts(fields, architecture, {128, 4, 0}, {"num_local_experts", "num_experts"});
  read_aux_loss(fields, architecture);
  fields.accept({"experts_per_token", "initial_context_length", "swiglu_limit"});
  const Value* quantised = fields.find({"quantization_config"});
  if (quantised != nullptr && quantised->is_object()) {
    fields.note(
        "ASSUMED_DEFAULT", "quantization_config",
        "The checkpoint's experts are in MXFP4, which cannot be trained: they are taken as dequantised to 16 bits "
        "(Mxfp4Config(dequantize=True)).");
  }
}

constexpr const char* kModel = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssModel.forward";
constexpr const char* kRotary = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssRotaryEmbedding.forward";
constexpr const char* kLayer = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssAttention.forward";
constexpr const char* kEager = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: eager_attention_forward";
constexpr const char* kMlp = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssMLP.forward";
constexpr const char* kRouter = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssTopKRouter.forward";

constexpr const char* kUnsloth =
    "unsloth_zoo 2026.10.9 temporary_patches/gpt_oss.py: GptOssExpertsBnb4bit, torch_native_forward";

}  // namespace

Tensor clamped_glu(Tensor gate_in, Tensor up_in) {
  Tensor gate = clamp(std::move(gate_in));
  Tensor up = clamp(std::move(up_in));
  Tensor glu = mul_scalar(gate);
  glu = sigmoid(std::move(glu));
  glu = mul(gate, std::move(glu));
  Tensor plus_one = add_scalar(up);
  return mul(std::move(plus_one), glu);
}

namespace {

Tensor apply_gate(Net&, const ExpertForm&, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  Tensor gate = every_other(gate_up, 0), up = every_other(gate_up, 1);
  return clamped_glu(std::move(gate), std::move(up));
}

constexpr ExpertForm kForm = {.source = "transformers 5.12 models/gpt_oss/modeling_gpt_oss.py: GptOssExperts.forward",
                              .gate = apply_gate,
                              .transposed = true,
                              .bias = true};

// unsloth_zoo 2026.10.9 flex_attention/attention_sink.py: flex_attention_with_sink keeps what a flash kernel keeps.
bool is_fused(const TrainingJob& job) {
  return wants_flash(job) || job.framework.name == "unsloth";
}

// Tables of half a head: the two halves turn by the same angles.
Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {!is_fused(net.job), false, false});
  half_rotary_tables(net, kRotary, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

// combined_logits - combined_logits.max(dim=-1, keepdim=True).values
Tensor less_their_maximum(Tensor logits_in) {
  const Tensor logits = std::move(logits_in);
  Tensor maximum = topk(logits, Dim(1)).values;
  return sub(logits, std::move(maximum));
}

}  // namespace

Tensor attend_with_sinks(Net& net, const char* source, const Tensor& q, const Tensor& k_in, const Tensor& v_in,
                         const Tensor& sinks_in, const AttentionOptions& o) {
  Scope in(net.tape, "self_attn", source);
  net.attention_kernel = "eager";
  const Count times = q.size(1) / k_in.size(1);
  const Tensor k = repeat_kv(k_in, times);
  const Tensor v = repeat_kv(v_in, times);
  Tensor weights = matmul(q, transpose(k, 2, 3));
  weights = mul_scalar(std::move(weights));
  if (o.mask.defined()) weights = add(std::move(weights), o.mask);
  Tensor sinks = view(sinks_in, Shape{Dim(1), net.A, Dim(1), Dim(1)});
  sinks = expand(std::move(sinks), Shape{net.B, net.A, net.S, Dim(1)});
  Tensor combined = cat({&weights, &sinks}, -1);
  combined = less_their_maximum(std::move(combined));
  const Tensor probabilities = softmax(combined, combined.dtype());
  const Tensor scores = narrow(probabilities, -1, 0, k.dim(2));
  weights = dropout(scores, o.dropout);
  weights = to(std::move(weights), v.dtype());
  net.attention_weights = weights;
  Tensor out = matmul(weights, v);
  return contiguous(transpose(std::move(out), 1, 2));
}

namespace {

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  qkv_at_once(net, x, bias);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  Tensor q_embed = rotate_halves(net, q);
  Tensor k_embed = rotate_halves(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  keep_keys(net, k, v, true);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  const Tensor sinks = net.parameter("self_attn", "sinks", Shape{net.A});
  Tensor out = is_fused(net.job)
                   ? flash_attention_forward(net, q, k, v, options)
                   : reshape(attend_with_sinks(net, kEager, q, k, v, sinks, options), Shape{net.B, net.S, net.Q});
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Routing route(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "mlp.router", kRouter);
  const Experts& e = net.arch.experts;
  const Tensor weight = net.parameter("mlp.router", "weight", Shape{Dim(e.count), net.H});
  const Tensor bias = net.parameter("mlp.router", "bias", Shape{Dim(e.count)});
  Routing r;
  r.logits = linear(hidden, weight, bias);
  TopK best = topk(r.logits, Dim(e.per_token));
  const Dtype dtype = best.values.dtype();
  r.weights = softmax(std::move(best.values), dtype);
  r.indices = std::move(best.indices);
  mask_others(net, r);
  keep_router_logits(net, r.logits);
  return r;
}

// Where it is asked for 4 bits, unsloth makes lists of linear layers of the experts, which bitsandbytes packs; between
// them it works in fp32. All have the names of the first.
Tensor packed_experts(Net& net, Tensor hidden_in, Routing routing) {
  Scope in(net.tape, "mlp.experts", kUnsloth);
  const Tensor hidden = std::move(hidden_in);
  const Dim tokens = hidden.dim(0), k = routing.indices.dim(1), width(net.arch.experts.width);
  std::vector<Parameter>& parameters = net.tape.parameters();
  const std::size_t known = parameters.size();
  Tensor sum = zeros(net.tape, hidden.shape(), Dtype::kFp32, "zeros_like");
  const Tensor sorted = net.tape.allocate(Shape{Dim(tokens.n() * k.n())}, Dtype::kInt64, "sorted_tokens");
  const Tensor weights = unsqueeze(routing.weights, 2);
  Tensor state, gated, out;  // names of the loop, which the next expert's take
  for (const Count count : rows_of_experts(net, tokens.n(), k.n())) {
    const Declared idle(net, count <= 0);
    const Dim n(std::max<Count>(count, 1));
    const Tensor where = narrow(sorted, 0, 0, n);
    state = index_some(hidden, where, n);
    Tensor both = net.linear("mlp.experts.gate_up_projs.0", state, Dim(2 * width.n()), true);
    gated = apply_gate(net, kForm, to(std::move(both), Dtype::kFp32));
    const std::optional<Dtype> cast = net.tape.autocast();
    net.tape.set_autocast(std::nullopt);
    out = net.linear("mlp.experts.down_projs.0", to(gated, hidden.dtype()), net.H, true);
    net.tape.set_autocast(cast);
    if (idle) continue;
    out = to(std::move(out), Dtype::kFp32);
    Tensor scale = to(index_pairs(weights, where, where, n), Dtype::kFp32);
    Tensor weighted = mul(out, std::move(scale));
    sum = index_add_in_place(std::move(sum), where, std::move(weighted));
  }
  for (std::size_t i = known; i < parameters.size(); ++i) parameters[i].is_expert = !parameters[i].is_adapter;
  return to(std::move(sum), hidden.dtype());
}

Tensor mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor hidden = as_tokens(net, std::move(hidden_in));
  Routing routing = route(net, hidden);
  if (lists_experts(net.arch, net.job))
    return as_sequences(net, packed_experts(net, std::move(hidden), std::move(routing)));
  hidden = run_experts(net, kForm, std::move(hidden), routing.indices, routing.weights);
  return as_sequences(net, std::move(hidden));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = olmo2_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = olmo2_norm(net, "post_attention_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return olmo2_norm(net, "model.norm", std::move(hidden));
}

}  // namespace

// GptOssPreTrainedModel: _supports_sdpa = False; of the flash kernels only those of version 3 on know sinks
// (_compatible_flash_implementations).
const Program kGptOssProgram = {.forward = one_stack<embed, layer, norm>,
                                .lm_head = llama_head,
                                .heads = kMoeForwards,
                                .attention = {.sdpa = false, .flash_attention_2 = false, .core_alone = false}};

const Family kRows[] = {
    {"gpt_oss", "GptOss", "GptOssForCausalLM", kSequenceAndToken, read_gpt_oss_config, &kGptOssProgram},
};

extern const FamilyRows gpt_oss_rows;
const FamilyRows gpt_oss_rows = kRows;

}  // namespace tidemark
