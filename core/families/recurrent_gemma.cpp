// RecurrentGemma (Griffin): of three layers two hand a gated linear state from token to token, in a loop in Python, and
// one attends.
#include "core/families/family.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/ssm.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

void read_blocks(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"block_types", "layers_block_type"});
  const bool stated = types != nullptr && types->is_array() && !types->items.empty();
  const auto period = stated ? types->items.size() : 3;
  for (std::size_t i = 0; i < static_cast<std::size_t>(architecture.num_layers); ++i) {
    const bool attends = stated ? types->items[i % period].string == "attention" : i % period == 2;
    architecture.layer_kinds.push_back(attends ? 1 : 0);
  }
}

// transformers 5.12.1 models/recurrent_gemma/configuration_recurrent_gemma.py: RecurrentGemmaConfig. The feed-forward
// is half as wide as the file says.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  architecture.intermediate_size /= 2;
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.logit_softcap = true;
  StateSpace& s = architecture.ssm;
  s.width = fields.nullable({"lru_width"}, std::nullopt).value_or(architecture.hidden_size);
  s.kernel = fields.count({"conv1d_width"}, 4);
  s.conv_bias = true;
  read_blocks(fields, architecture);
  fields.accept({"attention_window_size", "sliding_window", "logits_soft_cap", "w_init_variance_scale",
                 "final_w_init_variance_scale", "embeddings_scale_by_sqrt_dim"});
}

constexpr const char* kModel =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaSdpaAttention.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaRecurrentBlock.forward";
constexpr const char* kLru =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaRglru.forward";
constexpr const char* kMlp =
    "transformers 5.12 models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaMlp.forward";

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "temporal_block", kAttention);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("temporal_block.q_proj", x, net.Q, bias);
  Tensor k = net.linear("temporal_block.k_proj", x, net.K, bias);
  Tensor v = net.linear("temporal_block.v_proj", x, net.K, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  rotary_tables(net, v.dtype(), net.arch.rotary_dim);
  const Tensor cos = std::move(net.shared.cos), sin = std::move(net.shared.sin);
  net.shared.cos = cos;
  net.shared.sin = sin;
  const Parts parts = rotate_parts(net, q, k);
  net.shared.cos.reset();
  net.shared.sin.reset();
  k = repeat_kv(std::move(k), net.A.n() / net.Kv.n());
  v = repeat_kv(std::move(v), net.A.n() / net.Kv.n());
  Tensor out;
  {
    const Tensor q1 = contiguous(q);
    const Tensor k1 = contiguous(k);
    const Tensor v1 = contiguous(v);
    out =
        scaled_dot_product_attention(net, q1, k1, v1, net.shared.causal_mask, net.arch.attention_dropout, false, false);
  }
  out = contiguous(transpose(std::move(out), 1, 2));
  out = view(std::move(out), Shape{net.B, net.S, net.Q});
  return net.linear("temporal_block.o_proj", std::move(out), net.H, true);
}

// SqrtBoundDerivative.backward: grad / sqrt(clip(4 x))
void bounded_root_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& x = n.saved_tensor(0);
  Tensor clipped = t.allocate(x.shape(), x.dtype(), "mul");
  clipped = t.allocate(x.shape(), x.dtype(), "clip");
  const Tensor root = t.allocate(x.shape(), x.dtype(), "sqrt");
  r[0] = t.allocate(x.shape(), promote(g[0], root), n.name);
}

Tensor bounded_root(const Tensor& x) {
  Tape& t = x.tape();
  Node* n = t.record("SqrtBoundDerivative", bounded_root_backward, {&x});
  t.save(n, x);
  Tensor out = t.allocate(x.shape(), x.dtype(), "sqrt");
  t.attach(n, out);
  return out;
}

// One of the two gates: a product per head, its sigmoid.
Tensor gate(Net& net, const char* weight_name, const char* bias_name, const Tensor& x, const Tensor& by_head) {
  const Dim width(net.arch.ssm.width / net.A.n());
  const Tensor bias = net.parameter("temporal_block.rg_lru", bias_name, Shape{net.A, width});
  const Tensor weight = net.parameter("temporal_block.rg_lru", weight_name, Shape{net.A, width, width});
  const Tensor res = baddbmm(unsqueeze(bias, 1), by_head, weight);
  return sigmoid(reshape(transpose(res, 0, 1), x.shape()));
}

// RecurrentGemmaRglru._rnn_scan: a state in fp32, written out token by token. The module keeps the last one.
Tensor scan_tokens(Net& net, const Tensor& hidden, const Tensor& decay) {
  const Shape row{net.B, hidden.dim(2)};
  Tensor state = zeros(net.tape, row, Dtype::kFp32);
  Tensor out = zeros(net.tape, elementwise_shape({&hidden}), hidden.dtype(), "zeros_like");
  const Count tokens = net.tape.quotient(net.S.n(), 1);
  for (Count i = 0; i < tokens; ++i) {
    Tensor a = to(select(decay, 1), Dtype::kFp32);
    state = mul(std::move(a), std::move(state));
    Tensor add_on = to(select(hidden, 1), Dtype::kFp32);
    state = add(std::move(state), std::move(add_on));
    out = copy_into(std::move(out), row, to(state, hidden.dtype()));
  }
  net.tape.hold_in_module(state);
  return out;
}

Tensor lru(Net& net, Tensor x_in) {
  Scope in(net.tape, "temporal_block.rg_lru", kLru);
  Tape& t = net.tape;
  const Tensor x = std::move(x_in);
  const Shape ones{Dim(1), net.S, Dim(1)};
  const Tensor reset = t.allocate(ones, Dtype::kBool, "eq");
  const Dim width(net.arch.ssm.width / net.A.n());
  const Tensor by_head = permute(reshape(x, Shape{net.T, net.A, width}), {1, 0, 2});
  const Tensor recurrent = net.parameter("temporal_block.rg_lru", "recurrent_param", Shape{x.dim(2)});
  const Tensor input_gate = gate(net, "input_gate_weight", "input_gate_bias", x, by_head);
  Tensor decay = gate(net, "recurrent_gate_weight", "recurrent_gate_bias", x, by_head);
  Tensor log_decay = mul_scalar(decay);
  log_decay = mul(std::move(log_decay), softplus(recurrent));
  decay = exp(log_decay);
  const Tensor square = exp(mul_scalar(log_decay));
  const Tensor gated = mul(x, input_gate);
  Tensor multiplier = bounded_root(neg(square));
  {
    const Tensor kept = t.allocate(ones, Dtype::kBool, "bitwise_not");
    multiplier = mul(kept, std::move(multiplier));
    multiplier = add(reset, std::move(multiplier));
  }
  const Tensor normalised = mul(gated, to(multiplier, x.dtype()));
  const Tensor kept = t.allocate(ones, Dtype::kBool, "bitwise_not");
  const Tensor open = mul(decay, kept);
  return scan_tokens(net, normalised, open);
}

// self.rg_lru.recurrent_states: from one forward to the next, and with it the graph that a recomputation made of norm,
// linear_x, convolution and scan.
Tensor recur(Net& net, const Tensor& x) {
  Scope in(net.tape, "temporal_block", kBlock);
  const Dim width(net.arch.ssm.width);
  net.tape.note_saved(false);
  Tensor y = net.linear("temporal_block.linear_y", x, width, true);
  y = activate(net.arch.activation, std::move(y));
  net.tape.note_saved(true);
  Tensor h = transpose(net.linear("temporal_block.linear_x", x, width, true), 1, 2);
  net.tape.let_module_go();
  h = causal_convolution(net, "temporal_block.conv_1d", std::move(h), true, false, false);
  h = lru(net, transpose(std::move(h), 1, 2));
  const Tensor product = mul(h, y);
  return net.linear("temporal_block.linear_out", product, net.H, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp_block", kMlp);
  const Tensor x = std::move(hidden);
  const Tensor open = activate(net.arch.activation, net.linear("mlp_block.gate_proj", x, net.F, true));
  const Tensor up = net.linear("mlp_block.up_proj", x, net.F, true);
  return net.linear("mlp_block.down_proj", mul(open, up), net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor raw = std::move(hidden);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  net.tape.note_saved(!attends);
  const Tensor normed = gemma_norm(net, "temporal_pre_norm", raw);
  Tensor h = attends ? attend(net, normed) : recur(net, normed);
  const Tensor residual = add(h, raw);
  h = gemma_norm(net, "channel_pre_norm", residual);
  h = mlp(net, std::move(h));
  return add(std::move(h), residual);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  const Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  make_position_ids(net);
  make_causal_masks(net, embeds, {.eager = true});
  net.tape.buffer("model.normalizer", 2);
  net.model_locals = {embeds};
  return mul_scalar(embeds);
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma_norm(net, "model.final_norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Tensor logits = llama_head(net, std::move(hidden));
  if (net.fuse_loss) return logits;
  logits = mul_scalar(std::move(logits));
  logits = tanh(std::move(logits));
  return mul_scalar(std::move(logits));
}

// The class asks for all hidden states: they go with its outputs.
Tensor forward(Net& net) {
  Stack stack{net.arch.layers_path, net.arch.num_layers, layer};
  stack.then = Phase::kLoss;
  if (net.arch.head == Head::kCausalLm) stack.after = keep_hidden;
  return norm(net, net.layers(stack, embed(net)));
}

Outputs language_model(Net& net, const Program& program, Tensor hidden) {
  Outputs out = causal_lm(net, program, std::move(hidden));
  net.let_handed_out_go();
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, language_model}, {Head::kNone, body_alone}};

// The only attention there is calls the kernel itself; the class says that it has no other.
const Program kProgram = {.forward = forward, .lm_head = head, .heads = kHeads, .attention = sdpa_alone_since(13)};

}  // namespace

const Family kRows[] = {
    {"recurrent_gemma", "RecurrentGemma", "RecurrentGemmaForCausalLM", kLanguageModelOnly, read_config, &kProgram,
     kModelLayers, kNoFlex},
};

extern const FamilyRows recurrent_gemma_rows;
const FamilyRows recurrent_gemma_rows = kRows;

}  // namespace tidemark
