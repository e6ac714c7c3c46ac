// InternLM, InternLM2 and Baichuan: their modelling files live beside the weights on the Hugging Face Hub, not in
// transformers. Read from public copies of internlm/internlm2-7b modeling_internlm2.py and of
// baichuan-inc/Baichuan2-7B-Base modeling_baichuan.py; no oracle record covers either. InternLM's file is recorded.
#include "core/families/remote_code.hpp"

#include <optional>

#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// internlm/internlm-7b configuration_internlm.py: InternLMConfig. One switch `bias` for all four projections.
void read_internlm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"bias"}, true);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// internlm/internlm2-7b configuration_internlm2.py: InternLM2Config; modeling_internlm2.py: one fused `wqkv`, one
// switch `bias` for the attention projections only.
void read_internlm2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// baichuan-inc/Baichuan2-7B-Base and -13B-Base configuration_baichuan.py, modeling_baichuan.py: one fused `W_pack`. The
// 13B models have the same `model_type` and code of their own, with alibi instead of rotation; they are recognised by
// their width. The second generation normalises the head's weight (NormHead); it has the larger vocabulary.
void read_baichuan_config(ConfigFields& fields, Architecture& architecture) {
  constexpr Count kWidthWithAlibi = 5120;
  constexpr Count kFirstVocabulary = 64000;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings", "model_max_length"}, 4096);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.alibi = architecture.hidden_size == kWidthWithAlibi;
  architecture.rotary_dim = architecture.alibi ? 0 : architecture.head_dim;
  architecture.norm_head = architecture.vocab_size != kFirstVocabulary;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"_from_model_config"});
}

constexpr const char* kFirstModel = "internlm-7b modeling_internlm.py: InternLMModel.forward";
constexpr const char* kFirstLayer = "internlm-7b modeling_internlm.py: InternLMDecoderLayer.forward";
constexpr const char* kFirstAttention = "internlm-7b modeling_internlm.py: InternLMAttention.forward";
constexpr const char* kFirstNorm = "internlm-7b modeling_internlm.py: InternLMRMSNorm.forward";
constexpr const char* kInternLayer = "internlm2-7b modeling_internlm2.py: InternLM2DecoderLayer.forward";
constexpr const char* kInternAttention = "internlm2-7b modeling_internlm2.py: InternLM2Attention.forward";
constexpr const char* kInternModel = "internlm2-7b modeling_internlm2.py: InternLM2Model.forward";
constexpr const char* kInternMlp = "internlm2-7b modeling_internlm2.py: InternLM2MLP.forward";
constexpr const char* kInternHead = "internlm2-7b modeling_internlm2.py: InternLM2ForCausalLM.forward";
constexpr const char* kBaichuanLayer = "Baichuan2-7B-Base modeling_baichuan.py: DecoderLayer.forward";
constexpr const char* kBaichuanAttention = "Baichuan2-7B-Base modeling_baichuan.py: Attention.forward";
constexpr const char* kBaichuanHead = "Baichuan2-7B-Base modeling_baichuan.py: NormHead.forward";

// _prepare_decoder_attention_mask: causal and padding masks are added up, whether rows are padded or not.
void make_old_mask(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  const Shape square{net.S, net.S}, whole{net.B, Dim(1), net.S, net.S};
  Tensor causal = t.allocate(square, Dtype::kFp32, "full");
  causal = t.allocate(square, dtype, "to");
  Tensor expanded = t.allocate(whole, dtype, "expand");
  Tensor inverted = t.allocate(whole, dtype, "rsub");
  {
    const Tensor marks = t.allocate(whole, Dtype::kBool, "to");
    expanded = t.allocate(whole, dtype, "masked_fill");
  }
  inverted.reset();
  net.shared.causal_mask = t.allocate(whole, dtype, "add");
}

Tensor first_embed(Net& net) {
  Scope in(net.tape, "model", kFirstModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_old_mask(net, embeds.dtype());
  return embeds;
}

// The product is turned into the weight's dtype where that is of 16 bits, and stays fp32 elsewhere.
Tensor first_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kFirstNorm);
  Tensor x = std::move(x_in);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  MeanSquare square = mean_square(to(x, Dtype::kFp32));
  x = mul(std::move(x), std::move(square.root));
  if (is_half(weight.dtype())) x = to(std::move(x), weight.dtype());
  return mul(weight, std::move(x));
}

// Every layer has tables of its own, of which it copies what it needs, twice: by dtype, then by position.
Tensor first_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kFirstAttention);
  const Tensor x = std::move(hidden);
  Tape& t = net.tape;
  const bool bias = net.arch.attention_bias;
  const Count tables = net.arch.max_positions * net.hd.n() * size_of(Dtype::kFp32);
  t.buffer("self_attn.rotary_emb.inv_freq", net.hd.n() / 2 * size_of(Dtype::kFp32));
  t.buffer("self_attn.rotary_emb.cos_cached", tables);
  t.buffer("self_attn.rotary_emb.sin_cached", tables);
  Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("self_attn.k_proj", x, net.Q, bias), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.Q, bias), net.A, net.hd);
  const Shape rows{Dim(1), Dim(1), net.S, net.hd};
  Tensor own_cos, own_sin;
  if (is_half(v.dtype())) {
    own_cos = t.allocate(rows, v.dtype(), "to");
    own_sin = t.allocate(rows, v.dtype(), "to");
  }
  {
    const Tensor cos = t.allocate(rows, v.dtype(), "index"), sin = t.allocate(rows, v.dtype(), "index");
    Tensor q_turned = rotate_by(q, cos, sin);
    Tensor k_turned = rotate_by(k, cos, sin);
    q = std::move(q_turned);
    k = std::move(k_turned);
  }
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  scores = add(std::move(scores), net.shared.causal_mask);
  const Tensor least = t.allocate(Shape{}, Dtype::kFp32, "finfo.min");
  scores = maximum(std::move(scores), least);
  scores = softmax(std::move(scores), Dtype::kFp32);
  scores = to(std::move(scores), q.dtype());
  Tensor out = matmul(scores, v);
  out = reshape(transpose(std::move(out), 1, 2), Shape{net.B, net.S, net.Q});
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

Tensor first_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kFirstLayer);
  Tensor residual = std::move(hidden);
  Tensor h = first_norm(net, "input_layernorm", residual);
  h = first_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = first_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor first_last_norm(Net& net, Tensor hidden) {
  return first_norm(net, "model.norm", std::move(hidden));
}

Tensor intern_embed(Net& net) {
  Scope in(net.tape, "model", kInternModel);
  Tensor embeds = net.token_embedding("model.tok_embeddings", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

// One matrix for q, k, v, ordered by groups: each group's queries, then its key, then its value.
Tensor intern_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kInternAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Count times = net.A.n() / net.Kv.n();
  Tensor qkv = net.linear("attention.wqkv", x, Dim(net.Q.n() + 2 * net.K.n()), bias);
  qkv = view(std::move(qkv), Shape{net.B, net.S, net.Kv, Dim(times + 2), net.hd});
  Tensor q = narrow(qkv, 3, 0, Dim(times));
  q = reshape(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  q = transpose(std::move(q), 1, 2);
  Tensor k = select(qkv, 3);
  k = transpose(std::move(k), 1, 2);
  Tensor v = select(qkv, 3);
  v = transpose(std::move(v), 1, 2);
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  k = repeat_kv(std::move(k), times);
  v = repeat_kv(std::move(v), times);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.wo", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor intern_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "feed_forward", kInternMlp);
  const Tensor x = std::move(hidden);
  Tensor gate = net.linear("feed_forward.w1", x, net.F);
  gate = activate(net.arch.activation, std::move(gate));
  Tensor up = net.linear("feed_forward.w3", x, net.F);
  gate = mul(std::move(gate), std::move(up));
  return net.linear("feed_forward.w2", std::move(gate), net.H);
}

Tensor intern_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kInternLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "attention_norm", residual);
  h = intern_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "ffn_norm", std::move(h));
  h = intern_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor intern_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kInternHead);
  return net.lm_head("output", std::move(hidden), net.V);
}

// W_pack's output is taken apart as views; the 13B models add alibi to the scores instead of rotating.
Tensor baichuan_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kBaichuanAttention);
  const Tensor x = std::move(hidden);
  Tensor packed = net.linear("self_attn.W_pack", x, Dim(3 * net.H.n()));
  Tensor q = narrow(packed, -1, 0, net.Q);
  Tensor k = narrow(packed, -1, net.Q.n(), net.K);
  Tensor v = narrow(packed, -1, net.Q.n() + net.K.n(), net.K);
  packed.reset();
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.has_groups = false;
  if (!net.arch.alibi) {
    Rotated turned = rotate_in_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor baichuan_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBaichuanLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = baichuan_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

// torch.nn.functional.normalize(weight): the weight over its rows' norms, one more [V, H] each step.
Tensor baichuan_head(Net& net, Tensor hidden) {
  if (!net.arch.norm_head) return llama_head(net, std::move(hidden));
  Scope in(net.tape, "lm_head", kBaichuanHead);
  Tensor weight = net.parameter("lm_head", "weight", Shape{net.V, net.H});
  Tensor norms = net.tape.allocate(Shape{net.V, Dim(1)}, weight.dtype(), "linalg_vector_norm");
  Tensor expanded = expand(norms, Shape{net.V, net.H});
  weight = div(std::move(weight), std::move(expanded));
  return net.logits(std::move(hidden), std::move(weight));
}

constexpr HeadForward kOwnHeads[] = {{Head::kCausalLm, own_causal_lm}, {Head::kNone, body_alone}};

}  // namespace

Outputs own_causal_lm(Net& net, const Program& program, Tensor hidden) {
  if (net.job.loss != Loss::kDefault || net.job.has_outer_loss()) {
    return causal_lm(net, program, std::move(hidden));
  }
  Outputs out;
  const Dtype dtype = hidden.dtype();
  Tensor logits = program.lm_head(net, std::move(hidden));
  if (program.own_loss != OwnLoss::kModelDtype) logits = to(std::move(logits), Dtype::kFp32);
  // Both shifted copies have names that last until the forward returns.
  const Dim kept(net.S.n() - 1, Symbol::kSequence);
  const Tensor shift = contiguous(narrow(logits, 1, 0, kept));
  const Tensor target = net.tape.allocate(Shape{net.B, kept}, Dtype::kInt64, "shift_labels");
  const Dim rows(net.B.n() * kept.n(), Symbol::kTokens);
  out.loss = cross_entropy(view(shift, Shape{rows, net.V}), view(target, Shape{rows}));
  if (program.own_loss == OwnLoss::kFp32AndBack) logits = to(std::move(logits), dtype);
  out.rest = {std::move(logits)};
  return out;
}

void check_own_code(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const bool generates = job.evaluation.generates;
  if (!job.generates() && !generates) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, generates ? "/evaluation/generate" : "/task",
                    "Generated answers are not modelled of " + architecture.model_type +
                        ", whose own code gives all tokens' logits where the last ones' are asked for.",
                    ""});
}

// InternLM's file has one attention, written out. INTERNLM2_ATTENTION_CLASSES: eager, flash_attention_2, sdpa.
// Baichuan's file calls scaled_dot_product_attention alone.
const Program kInternLmProgram = {.forward = one_stack<first_embed, first_layer, first_last_norm>,
                                  .lm_head = llama_head,
                                  .heads = kOwnHeads,
                                  .own_loss = OwnLoss::kModelDtype,
                                  .attention = kEagerAlone,
                                  .remote_code = true,
                                  .check = check_own_code};
const Program kInternLm2Program = {.forward = one_stack<intern_embed, intern_layer, llama_norm>,
                                   .lm_head = intern_head,
                                   .heads = kOwnHeads,
                                   .attention = {.flash_attention_3 = false},
                                   .remote_code = true,
                                   .check = check_own_code};
const Program kBaichuanProgram = {.forward = one_stack<llama_embed, baichuan_layer, llama_norm>,
                                  .lm_head = baichuan_head,
                                  .attention = kNoFlash,
                                  .remote_code = true,
                                  .check = check_own_code};

const Family kRows[] = {
    {"internlm", "InternLM", "InternLMForCausalLM", kLanguageModelOnly, read_internlm_config, &kInternLmProgram},
    {"internlm2", "InternLM2", "InternLM2ForCausalLM", kLanguageModelOnly, read_internlm2_config, &kInternLm2Program},
    {"baichuan", "Baichuan", "BaichuanForCausalLM", kLanguageModelOnly, read_baichuan_config, &kBaichuanProgram},
};

extern const FamilyRows remote_code_rows;
const FamilyRows remote_code_rows = kRows;

}  // namespace tidemark
