// GPT-J and CodeGen: rotation by pairs with tables gathered in every layer, scores in fp32, attention and feed-forward
// side by side.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/gptj/configuration_gptj.py: GPTJConfig; models/codegen/configuration_codegen.py:
// CodeGenConfig has the same keys and defaults. No bias in the attention, one in the feed-forward
// and in the head (modeling_gptj.py).
void read_gptj_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 2048);
  read_openai_dropouts(fields, architecture, 0.0);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  // Without `rotary_dim` the whole head rotates, with tables as wide as the model.
  architecture.rotary_dim = fields.nullable({"rotary_dim"}, 64).value_or(architecture.head_dim);
  architecture.parallel_residual = true;
  architecture.mlp_bias = true;
  architecture.head_bias = true;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kModel = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJAttention.forward";
constexpr const char* kRotate = "transformers 5.12 models/gptj/modeling_gptj.py: apply_rotary_pos_emb";
constexpr const char* kFp32 = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJAttention._attn";
constexpr const char* kCodeGenAttention =
    "transformers 5.12 models/codegen/modeling_codegen.py: CodeGenAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJForCausalLM.forward";

/// The release 5.N that wrote both again.
constexpr int kByInterface = 24;

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJForSequenceClassification.forward",
    .span = "transformers 5.12 models/gptj/modeling_gptj.py: GPTJForQuestionAnswering.forward"};

// x·cos + rotate_every_two(x)·sin: x is [B, S, heads, dim]; each call repeats the tables for itself.
Tensor rotate_pairs(Net& net, Tensor x_in, Count dim, Dtype dtype) {
  Scope in(net.tape, "attn", kRotate);
  const Tensor x = std::move(x_in);
  const Shape table{Dim(1), net.S, Dim(1), Dim(dim)};
  const Tensor sin = net.tape.allocate(table, dtype, "repeat_interleave");
  const Tensor cos = net.tape.allocate(table, dtype, "repeat_interleave");
  Tensor straight = mul(x, cos);
  Tensor turned;
  {
    const Tensor x1 = narrow(x, -1, 0, Dim(dim / 2));
    const Tensor x2 = narrow(x, -1, dim / 2, Dim(dim / 2));
    Tensor negative = neg(x2);
    turned = cat({&negative, &x1}, -1);
  }
  turned = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(turned));
}

// Since then the model looks the table's rows up once for all layers, and attention runs by its interface.
bool by_interface(const Net& net) {
  return net.job.framework.at_least(5, kByInterface);
}

// `rotary_dim`: null rotates whole heads with a table as wide as the model.
Dim table_width(const Net& net) {
  return Dim(net.arch.rotary_dim < net.hd.n() ? net.arch.rotary_dim : net.H.n());
}

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  Tape& t = net.tape;
  const Tensor x = std::move(hidden);
  const Shape heads{net.B, net.S, net.A, net.hd};
  Tensor q = net.linear("attn.q_proj", x, net.H);
  Tensor k = net.linear("attn.k_proj", x, net.H);
  Tensor v = net.linear("attn.v_proj", x, net.H);
  q = view(std::move(q), heads);
  k = view(std::move(k), heads);
  v = view(std::move(v), heads);
  v = transpose(std::move(v), 1, 2);
  const bool partial = net.arch.rotary_dim < net.hd.n();
  const Dim width = table_width(net);
  const Dim rows(net.arch.max_positions), ids = rows_of_positions(net);
  Tensor embed_positions, repeated_ids, sincos = net.shared.cos;
  if (!sincos.defined()) {
    t.buffer("attn.embed_positions", rows.n() * width.n() * 4);
    embed_positions = t.allocate(Shape{ids, rows, width}, Dtype::kFp32, "repeat");
    repeated_ids = t.allocate(Shape{ids, net.S, width}, Dtype::kInt64, "repeat");
    sincos = t.allocate(Shape{ids, net.S, width}, Dtype::kFp32, "gather");
    sincos = to(std::move(sincos), k.dtype());
  }
  const Dim rot(net.arch.rotary_dim), rest(net.hd.n() - net.arch.rotary_dim);
  Tensor k_rot = narrow(k, -1, 0, rot);
  Tensor k_pass, q_pass;
  if (partial) k_pass = narrow(k, -1, rot.n(), rest);
  Tensor q_rot = narrow(q, -1, 0, rot);
  if (partial) q_pass = narrow(q, -1, rot.n(), rest);
  k_rot = rotate_pairs(net, std::move(k_rot), rot.n(), sincos.dtype());
  q_rot = rotate_pairs(net, std::move(q_rot), rot.n(), sincos.dtype());
  k = partial ? cat({&k_rot, &k_pass}, -1) : std::move(k_rot);
  q = partial ? cat({&q_rot, &q_pass}, -1) : std::move(q_rot);
  k = transpose(std::move(k), 1, 2);
  q = transpose(std::move(q), 1, 2);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention_fp32_scores(net, q, k, v, options, false);
  out = net.linear("attn.out_proj", std::move(out), net.H);
  return dropout(std::move(out), net.arch.residual_dropout);
}

// CodeGenAttention.forward: one matrix for q, v and k, cut in four groups for as many accelerators; taking the heads of
// a group apart copies them. Its output and the halves of q and k are names of the method, and so live as long.
Tensor codegen_attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kCodeGenAttention);
  Tape& t = net.tape;
  const Tensor x = std::move(hidden);
  const Dim groups(4), local(net.H.n() / 4), rot(net.arch.rotary_dim), rest(net.hd.n() - net.arch.rotary_dim);
  const Shape grouped{net.B, net.S, groups, Dim(net.A.n() / 4), net.hd}, heads{net.B, net.S, net.A, net.hd};
  const Tensor qkv = net.linear("attn.qkv_proj", x, Dim(3 * net.H.n()));
  const Tensor qkv_split = view(qkv, Shape{net.B, net.S, groups, Dim(3 * local.n())});
  const Pieces parts = split(qkv_split, 3, {local, local, local});
  Tensor q = reshape(view(parts.part[0], grouped), heads);
  Tensor k = reshape(view(parts.part[2], grouped), heads);
  Tensor v = reshape(view(parts.part[1], grouped), heads);
  v = transpose(std::move(v), 1, 2);
  Tensor sincos = net.shared.cos;
  if (!sincos.defined()) {
    t.buffer("attn.embed_positions", net.arch.max_positions * rot.n() * 4);
    sincos = t.allocate(Shape{rows_of_positions(net), net.S, rot}, Dtype::kFp32, "index");
  }
  const Tensor k_pass = narrow(k, -1, rot.n(), rest), q_pass = narrow(q, -1, rot.n(), rest);
  const auto turned = [&](const Tensor& whole) {
    const Tensor part = narrow(whole, -1, 0, rot);
    const Shape table{rows_of_positions(net), net.S, Dim(1), rot};
    const Tensor sin = t.allocate(table, Dtype::kFp32, "repeat_interleave");
    const Tensor cos = t.allocate(table, Dtype::kFp32, "repeat_interleave");
    return turn_pairs(part, cos, sin);
  };
  const Tensor k_rot = turned(k), q_rot = turned(q);
  k = cat({&k_rot, &k_pass}, -1);
  q = cat({&q_rot, &q_pass}, -1);
  k = transpose(std::move(k), 1, 2);
  q = transpose(std::move(q), 1, 2);
  if (by_interface(net)) {
    q = to(std::move(q), v.dtype());
    k = to(std::move(k), v.dtype());
  }
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention_fp32_scores(net, q, k, v, options, false);
  out = net.linear("attn.out_proj", std::move(out), net.H);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.fc_in", x, net.F, true);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.linear("mlp.fc_out", std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor block(Net& net, Tensor hidden, Branch attention) {
  Scope in(net.tape, "", kBlock);
  const Tensor residual = std::move(hidden);
  const Tensor h = net.layer_norm("ln_1", residual);
  const Tensor attn_outputs = attention(net, h);
  const Tensor feed_forward = mlp(net, h);
  Tensor sum = add(attn_outputs, feed_forward);
  sum = add(std::move(sum), residual);
  net.return_weights();
  return sum;
}

Tensor layer(Net& net, Tensor hidden) {
  return block(net, std::move(hidden), attn);
}

Tensor codegen_layer(Net& net, Tensor hidden) {
  return block(net, std::move(hidden), codegen_attn);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  make_position_ids(net);
  make_causal_masks(net, embeds, {runs_eagerly(net), false, false});
  net.model_locals = {embeds};
  Tensor hidden = dropout(std::move(embeds), net.arch.embedding_dropout);
  if (!by_interface(net)) return hidden;
  const Dim width = table_width(net);
  net.tape.buffer("transformer.rotary_emb.embed_positions", net.arch.max_positions * width.n() * 4);
  Tensor rows = net.tape.allocate(Shape{rows_of_positions(net), net.S, width}, Dtype::kFp32, "index");
  net.shared.cos = net.arch.model_type == "gptj" ? to(std::move(rows), hidden.dtype()) : std::move(rows);
  return hidden;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.ln_f", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V, net.arch.head_bias);
}

Tensor fp32_scores(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, const AttentionOptions& o, bool masked_by_buffer) {
  Scope in(net.tape, "attn", kFp32);
  net.attention_kernel = "eager";
  const Tensor v = std::move(v_in);
  const Tensor q = to(std::move(q_in), Dtype::kFp32);
  const Tensor k = to(std::move(k_in), Dtype::kFp32);
  Tensor kt = transpose(k, -1, -2);
  Tensor weights = matmul(q, std::move(kt));
  if (!masked_by_buffer) {
    weights = mul_scalar(std::move(weights));
  } else {
    // GPT-Neo: torch.where(causal_mask, weights, mask_value); the mask is a slice of a buffer.
    const Tensor slice = net.tape.part_of_buffer(Shape{Dim(1), Dim(1), net.S, net.S}, Dtype::kBool);
    Tensor mask_value = net.tape.allocate(Shape{}, weights.dtype(), "mask_value");
    weights = where(slice, std::move(weights), std::move(mask_value));
  }
  if (o.mask.defined()) weights = add(std::move(weights), o.mask);
  weights = softmax(std::move(weights));
  weights = to(std::move(weights), v.dtype());
  weights = dropout(std::move(weights), o.dropout);
  Tensor out = matmul(weights, v);
  net.attn_weights = std::move(weights);
  out = transpose(std::move(out), 1, 2);
  out = contiguous(std::move(out));
  return view(std::move(out), Shape{net.B, net.S, net.Q});
}

}  // namespace

Tensor attention_fp32_scores(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                             bool masked_by_buffer) {
  if (wants_flash(net.job) || !runs_eagerly(net))
    return attention(net, std::move(q), std::move(k), std::move(v), options);
  const auto core = [&net, k = std::move(k), v = std::move(v), options, masked_by_buffer](Tensor query) {
    return fp32_scores(net, std::move(query), k, v, options, masked_by_buffer);
  };
  return core_attention(net, std::move(q), core);
}

// Until 5.23 GPTJ_ATTENTION_CLASSES: eager and flash_attention_2.
const Program kGptJProgram = {.forward = one_stack<embed, layer, norm>,
                              .lm_head = head,
                              .own_loss = OwnLoss::kFp32Head,
                              .decoder_heads = kClasses,
                              .attention = {.flash_attention_3 = false, .sdpa_since = kByInterface},
                              .dropout_calls = DropoutCalls::kNone};
// Until then CodeGenPreTrainedModel named no attention kernels at all.
const Program kCodeGenProgram = {.forward = one_stack<embed, codegen_layer, norm>,
                                 .lm_head = head,
                                 .own_loss = OwnLoss::kFp32Head,
                                 .attention = {.sdpa_since = kByInterface, .flash_since = kByInterface},
                                 .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"gptj", "GPTJ", "GPTJForCausalLM", kSequenceAndSpan, read_gptj_config, &kGptJProgram, "transformer.h", kNoFlex},
    {"codegen", "CodeGen", "CodeGenForCausalLM", kLanguageModelOnly, read_gptj_config, &kCodeGenProgram,
     "transformer.h", kNoFlex},
};

extern const FamilyRows gptj_rows;
const FamilyRows gptj_rows = kRows;

}  // namespace tidemark
