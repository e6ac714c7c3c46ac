// The first Qwen: code beside the weights, one fused `c_attn`, a causal mask made in each layer, rotation in fp32. No
// oracle record covers it.
#include "core/families/family.hpp"
#include "core/families/remote_code.hpp"
#include "core/layers/heads.hpp"
#include "core/layers/losses.hpp"

namespace tidemark {
namespace {

// Qwen/Qwen-7B configuration_qwen.py: QWenConfig; `intermediate_size` counts w1 and w2 together.
void read_qwen_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"}) / 2;
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.num_kv_heads = architecture.num_heads;
  architecture.head_dim = fields.count({"kv_channels"}, 128);
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings", "seq_length"}, 8192);
  architecture.mlp_bias = !fields.flag({"no_bias"}, true);
  architecture.embedding_dropout = fields.probability({"emb_dropout_prob"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  if (fields.number({"rotary_pct"}, 1.0) != 1.0) {
    fields.error("INVALID_VALUE", "rotary_pct", "Qwen that rotates a part of each head is not modelled.");
  }
  fields.accept({"attn_dropout_prob", "bf16", "fp16", "fp32", "layer_norm_epsilon", "onnx_safe", "rotary_emb_base",
                 "scale_attn_weights", "seq_length", "softmax_in_fp32", "use_cache_kernel", "use_cache_quantization",
                 "use_dynamic_ntk", "use_flash_attn", "use_logn_attn"});
}

constexpr const char* kModel = "Qwen-7B modeling_qwen.py: QWenModel.forward";
constexpr const char* kLayer = "Qwen-7B modeling_qwen.py: QWenBlock.forward";
constexpr const char* kAttention = "Qwen-7B modeling_qwen.py: QWenAttention.forward";
constexpr const char* kMlp = "Qwen-7B modeling_qwen.py: QWenMLP.forward";
constexpr const char* kHead = "Qwen-7B modeling_qwen.py: QWenLMHeadModel.forward";

// RotaryEmbedding keeps tables for twice the longest sequence, in fp32.
Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  if (net.job.padding) {
    net.shared.causal_mask = t.allocate(Shape{net.B, Dim(1), Dim(1), net.S}, net.weight_dtype(2), "padding mask");
  }
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  net.model_locals = {embeds};
  const Shape tables{Dim(1), Dim(2 * net.S.n()), Dim(1), net.hd};
  net.shared.cos = t.allocate(tables, Dtype::kFp32, "rotary cos");
  net.shared.sin = t.allocate(tables, Dtype::kFp32, "rotary sin");
  net.shared.cos = narrow(net.shared.cos, 1, 0, net.S);
  net.shared.sin = narrow(net.shared.sin, 1, 0, net.S);
  return dropout(std::move(embeds), net.arch.embedding_dropout);
}

// apply_rotary_pos_emb without flash-attn's own kernel: the part that does not turn is empty, and joined all the same.
Tensor turned(Net& net, const Tensor& x) {
  const Tensor wide = to(x, Dtype::kFp32);
  Tensor rotated = rotate_by(wide, net.shared.cos, net.shared.sin);
  rotated = cat({&rotated}, -1);
  return to(std::move(rotated), x.dtype());
}

// torch.tril(torch.ones(S, S)), and with padding its complement filled into a copy of the padding mask.
Tensor causal_mask(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  const Shape square{Dim(1), Dim(1), net.S, net.S};
  Tensor mask = t.allocate(square, Dtype::kBool, "ones");
  mask = t.allocate(square, Dtype::kBool, "tril");
  if (!net.shared.causal_mask.defined()) return mask;
  const Tensor inverse = t.allocate(square, Dtype::kBool, "bitwise_not");
  return t.allocate(Shape{net.B, Dim(1), net.S, net.S}, dtype, "masked_fill");
}

Tensor attend(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor x = std::move(hidden);
  const Tensor mixed = net.linear("attn.c_attn", x, Dim(3 * net.Q.n()), true);
  const Shape heads{net.B, net.S, net.A, net.hd};
  Tensor q = view(narrow(mixed, 2, 0, net.Q), heads);
  Tensor k = view(narrow(mixed, 2, net.Q.n(), net.Q), heads);
  Tensor v = view(narrow(mixed, 2, 2 * net.Q.n(), net.Q), heads);
  q = turned(net, q);
  k = turned(net, k);
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  Tensor out;
  if (wants_flash(net.job)) {
    out = flash_attention_forward(net, q, k, v, {});
  } else {
    Tensor mask = causal_mask(net, q.dtype());
    out = scaled_dot_product_attention(net, q, k, v, std::move(mask), 0.0, false, false);
    out = contiguous(transpose(std::move(out), 1, 2));
    out = view(std::move(out), Shape{net.B, net.S, net.Q});
  }
  return net.linear("attn.c_proj", out, net.H, net.arch.mlp_bias);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  const Tensor a1 = net.linear("mlp.w1", x, net.F, bias), a2 = net.linear("mlp.w2", x, net.F, bias);
  Tensor gate = activate(Activation::kSilu, a2);
  const Tensor product = mul(a1, std::move(gate));
  return net.linear("mlp.c_proj", product, net.H, bias);
}

// Each name keeps what it holds until the block returns or it is given something else.
Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor normed = rms_norm(net, "ln_1", residual);
  const Tensor attended = attend(net, normed);
  residual = add(attended, residual);
  normed = rms_norm(net, "ln_2", residual);
  Tensor out = feed_forward(net, normed);
  return add(std::move(residual), std::move(out));
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "transformer.ln_f", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

// The class's own loss, whatever transformers is: a shifted copy in the logits' dtype.
Outputs language_model(Net& net, const Program& program, Tensor hidden) {
  if (net.job.loss != Loss::kDefault) return causal_lm(net, program, std::move(hidden));
  Outputs out;
  Tensor logits = head(net, std::move(hidden));
  out.loss = shifted_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, language_model}, {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"LMHeadModel", Head::kCausalLm}, {"Model", Head::kNone}};

}  // namespace

// The file asks for no attention implementation: it calls flash-attn where that is installed, SDPA elsewhere.
const Program kQwenProgram = {.forward = one_stack<embed, layer, norm>,
                              .lm_head = head,
                              .heads = kHeads,
                              .attention = {.flash_attention_3 = false, .core_alone = false},
                              .remote_code = true,
                              .check = check_own_code};

const Family kRows[] = {
    {"qwen", "QWen", "QWenLMHeadModel", kClasses, read_qwen_config, &kQwenProgram, "transformer.h"},
};

extern const FamilyRows qwen_rows;
const FamilyRows qwen_rows = kRows;

}  // namespace tidemark
