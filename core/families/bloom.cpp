// BLOOM: alibi inside baddbmm, a GELU of its own, a norm behind the token table. Its attention is always the eager one.
#include "core/families/family.hpp"
#include "core/layers/kv_cache.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/bloom/configuration_bloom.py: BloomConfig. `n_embed` counts before `hidden_size`; the
// feed-forward is four times as wide in the code, everything but the head has a bias (modeling_bloom.py).
void read_bloom_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"n_embed", "hidden_size"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = Activation::kGelu;  // BloomGelu: its own autograd function, saves its input
  architecture.alibi = true;
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  // Without a dropout of its own the token classifier takes this one.
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, architecture.residual_dropout);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  // Where the residual starts from decides no size.
  fields.accept({"apply_residual_connection_post_layernorm", "unk_token_id", "seq_length", "n_inner"});
}

constexpr const char* kModel = "transformers 5.12 models/bloom/modeling_bloom.py: BloomModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/bloom/modeling_bloom.py: BloomBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/bloom/modeling_bloom.py: BloomAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/bloom/modeling_bloom.py: BloomMLP.forward";
constexpr const char* kGelu = "transformers 5.12 models/bloom/modeling_bloom.py: GeLUFunction";
constexpr const char* kHead = "transformers 5.12 models/bloom/modeling_bloom.py: BloomForCausalLM.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/bloom/modeling_bloom.py: BloomForSequenceClassification.forward",
    .token = "transformers 5.12 models/bloom/modeling_bloom.py: BloomForTokenClassification.forward",
    .span = "transformers 5.12 models/bloom/modeling_bloom.py: BloomForQuestionAnswering.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

// tanh(0.79788456 * x * (1 + 0.044715 * x * x)): outside autograd.
Tensor tanh_of_cubic(const Tensor& x) {
  Tensor left = mul_scalar(x);
  Tensor right = mul_scalar(x);
  right = mul(std::move(right), x);
  right = add_scalar(std::move(right));
  left = mul(std::move(left), std::move(right));
  return tanh(std::move(left));
}

// bloom_gelu_back
void gelu_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  const Tensor& x = n.saved_tensor(0);
  const Tensor tanh_out = tanh_of_cubic(x);
  Tensor half = mul_scalar(x);
  Tensor slope = mul(tanh_out, tanh_out);
  slope = add_scalar(std::move(slope));
  Tensor inner = mul_scalar(x);
  inner = mul(std::move(inner), x);
  inner = add_scalar(std::move(inner));
  slope = mul(std::move(slope), std::move(inner));
  half = mul(std::move(half), std::move(slope));
  Tensor rest = add_scalar(tanh_out);
  rest = mul_scalar(std::move(rest));
  const Tensor ff = add(std::move(half), std::move(rest));
  r[0] = mul(ff, g[0]);
}

// GeLUFunction: forward runs without grad and keeps its input.
Tensor bloom_gelu(Net& net, Tensor x_in) {
  Scope in(net.tape, "mlp.gelu_impl", kGelu);
  const Tensor x = std::move(x_in);
  Tape& t = net.tape;
  Node* n = t.record("GeLUFunction", gelu_backward, {&x});
  t.save(n, x);
  const bool before = t.grad_enabled();
  t.set_grad_enabled(false);
  Tensor half = mul_scalar(x);
  Tensor right = tanh_of_cubic(x);
  right = add_scalar(std::move(right));
  Tensor out = mul(std::move(half), std::move(right));
  t.set_grad_enabled(before);
  t.attach(n, out);
  return out;
}

Tensor dropout_add(Tensor x, const Tensor& residual, double p) {
  Tensor out = dropout(std::move(x), p);
  return add(residual, std::move(out));
}

Tensor self_attention(Net& net, Tensor hidden, const Tensor& residual) {
  Scope in(net.tape, "self_attention", kAttention);
  net.attention_kernel = "eager";
  const Tensor x = std::move(hidden);
  const Dim outer(net.B.n() * net.A.n());
  const Shape flat{outer, net.S, net.hd};
  Tensor fused = net.linear("self_attention.query_key_value", x, Dim(3 * net.H.n()), true);
  const Tensor fused_qkv = view(std::move(fused), Shape{net.B, net.S, net.A, Dim(3), net.hd});
  Tensor q = select(fused_qkv, 3);
  q = transpose(std::move(q), 1, 2);
  Tensor k = select(fused_qkv, 3);
  k = transpose(std::move(k), 1, 2);
  Tensor v = select(fused_qkv, 3);
  v = transpose(std::move(v), 1, 2);
  keep_keys(net, k, v, true);
  q = reshape(std::move(q), flat);
  k = reshape(std::move(k), flat);
  k = transpose(std::move(k), -1, -2);
  v = reshape(std::move(v), flat);
  const Tensor attention_scores = baddbmm(net.shared.bias, q, k);
  Tensor weights = view(attention_scores, Shape{net.B, net.A, net.S, net.S});
  const Tensor attn_weights = add(std::move(weights), net.shared.causal_mask);
  Tensor probs = softmax(attn_weights, Dtype::kFp32);
  probs = to(std::move(probs), q.dtype());
  probs = dropout(std::move(probs), net.arch.attention_dropout);
  const Tensor probs_reshaped = view(probs, Shape{outer, net.S, net.S});
  Tensor context = matmul(probs_reshaped, v);
  net.attn_weights = probs;
  context = view(std::move(context), Shape{net.B, net.A, net.S, net.hd});
  context = transpose(std::move(context), 1, 2);
  context = reshape(std::move(context), Shape{net.B, net.S, net.H});
  Tensor out = net.linear("self_attention.dense", context, net.H, true);
  return dropout_add(std::move(out), residual, net.arch.residual_dropout);
}

Tensor mlp(Net& net, Tensor hidden, const Tensor& residual) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.dense_h_to_4h", x, net.F, true);
  h = bloom_gelu(net, std::move(h));
  Tensor out = net.linear("mlp.dense_4h_to_h", h, net.H, true);
  return dropout_add(std::move(out), residual, net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor residual = std::move(hidden);
  Tensor normed = net.layer_norm("input_layernorm", residual);
  const Tensor attention_output = self_attention(net, normed, residual);
  normed = net.layer_norm("post_attention_layernorm", attention_output);
  Tensor out = mlp(net, normed, attention_output);
  net.return_weights();
  return out;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  Tensor embeds = net.token_embedding("transformer.word_embeddings", net.H);
  Tensor h = net.layer_norm("transformer.word_embeddings_layernorm", embeds);
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(Shape{net.B, net.S}, Dtype::kFp32, "attention_mask");
  Tensor alibi = t.allocate(Shape{net.B, net.A, net.S}, Dtype::kFp32, "alibi");
  alibi = view(std::move(alibi), Shape{Dim(net.B.n() * net.A.n()), Dim(1), net.S});
  net.shared.bias = to(std::move(alibi), h.dtype());
  make_causal_masks(net, embeds, {true, true, false});
  net.model_locals = {std::move(embeds), std::move(mask)};
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.ln_f", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kBloomProgram = {.forward = one_stack<embed, layer, norm>,
                               .lm_head = head,
                               .own_loss = OwnLoss::kModelDtype,
                               .decoder_heads = kClasses,
                               .attention = kEagerAlone,
                               .dropout_calls = DropoutCalls::kNone};

constexpr ClassFacts kFacts = {.flex_attention = false, .norms_first = true};

const Family kRows[] = {
    {"bloom", "Bloom", "BloomForCausalLM", kFourHeads, read_bloom_config, &kBloomProgram, "transformer.h", kFacts},
};

extern const FamilyRows bloom_rows;
const FamilyRows bloom_rows = kRows;

}  // namespace tidemark
