// LitGPT's GPT, with its own LoRA and Lightning Fabric's plugin for bitsandbytes.
#include <algorithm>
#include <vector>

#include "core/families/implementations.hpp"
#include "core/job/framework.hpp"
#include "core/layers/program.hpp"
#include "core/state/quantised_weight.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "litgpt 0.4.5 litgpt/model.py: GPT.forward";
constexpr const char* kBlock = "litgpt 0.4.5 litgpt/model.py: Block.forward";
constexpr const char* kAttention = "litgpt 0.4.5 litgpt/model.py: CausalSelfAttention.forward";
constexpr const char* kRope = "litgpt 0.4.5 litgpt/model.py: apply_rope";
constexpr const char* kMlp = "litgpt 0.4.5 litgpt/model.py: LLaMAMLP.forward, GptNeoxMLP.forward";
constexpr const char* kNorm = "litgpt 0.4.5 litgpt/model.py: RMSNorm.forward";
constexpr const char* kLora = "litgpt 0.4.5 litgpt/lora.py: LoRALinear.forward";
constexpr const char* kLoraQkv = "litgpt 0.4.5 litgpt/lora.py: LoRAQKVLinear.forward";
constexpr const char* kLoss = "litgpt 0.4.5 litgpt/utils.py: chunked_cross_entropy";

// litgpt 0.4.5 finetune/lora.py: fit calls model(input_ids, lm_head_chunk_size=128); utils.py: chunk_size = 128.
constexpr Count kChunk = 128;

/// What a model type's blocks are made of, as a Config says it, and what transformers calls the matrices that LoRA may
/// be put on.
struct Form {
  std::string_view model_type;
  bool rms = true;           ///< RMSNorm, else LayerNorm
  bool gated = true;         ///< LLaMAMLP, else GptNeoxMLP
  bool shared_norm = false;  ///< shared_attention_norm: one norm before both branches
  bool scaled = false;       ///< scale_embeddings, and norms' weights have one added
  const char *q, *k, *v;     ///< parts of the one projection
  const char* qkv;           ///< all of it, where transformers has it in one, too
  const char* out;
  const char *fc_1, *fc_2, *proj;  ///< of the feed-forward; plain ones have no fc_2
  const char* gate_up;             ///< fc_1 and fc_2, where transformers has them in one
};

#define TIDEMARK_QKV(module) module ".q_proj", module ".k_proj", module ".v_proj"
#define TIDEMARK_GATED "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"
constexpr Form kForms[] = {
    {"llama", true, true, false, false, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED,
     nullptr},
    {"mistral", true, true, false, false, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED,
     nullptr},
    {"qwen2", true, true, false, false, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED,
     nullptr},
    {"gemma", true, true, false, true, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED, nullptr},
    {"gemma2", true, true, false, true, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED,
     nullptr},
    {"phi3", true, true, false, false, TIDEMARK_QKV("self_attn"), "self_attn.qkv_proj", "self_attn.o_proj",
     TIDEMARK_GATED, "mlp.gate_up_proj"},
    {"stablelm", false, true, false, false, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.o_proj", TIDEMARK_GATED,
     nullptr},
    {"phi", false, false, true, false, TIDEMARK_QKV("self_attn"), nullptr, "self_attn.dense", "mlp.fc1", nullptr,
     "mlp.fc2", nullptr},
    {"gpt_neox", false, false, false, false, TIDEMARK_QKV("attention"), "attention.query_key_value", "attention.dense",
     "mlp.dense_h_to_4h", nullptr, "mlp.dense_4h_to_h", nullptr},
    {"falcon", false, false, true, false, TIDEMARK_QKV("self_attention"), "self_attention.query_key_value",
     "self_attention.dense", "mlp.dense_h_to_4h", nullptr, "mlp.dense_4h_to_h", nullptr},
};
#undef TIDEMARK_GATED
#undef TIDEMARK_QKV

const Form* form_of(const Architecture& a) {
  for (const Form& form : kForms) {
    if (form.model_type == a.model_type) return &form;
  }
  return nullptr;
}

Count site(Net& net, const char* name) {
  return name == nullptr ? 0 : net.adapter_site(name);
}

// Its own modules are no targets: adapters are told by transformers' names alone.
Tensor weight_of(Net& net, const char* module, const char* leaf, const Shape& shape, bool adapts = false) {
  Parameter p;
  p.module = module;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = adapts ? net.job.adapter.dtype : net.job.recipe.weights;
  p.is_adapter = adapts;
  p.requires_grad = adapts || net.treatments == nullptr;
  return net.tape.parameter(p);
}

Tensor adapter_weight(Net& net, const char* module, const char* leaf, const Shape& shape) {
  return weight_of(net, module, leaf, shape, true);
}

// Fabric's module_init_context puts its Linear4bit in the place of every nn.Linear, the head's included; it packs from
// fp16, to which it unpacks again, whatever the activations' dtype (fabric/plugins/precision/bitsandbytes.py:
// _Linear4bit.quantize). bitsandbytes 0.41 and 0.42, which LitGPT asks for, keep the product's input as ctx.tensors.
constexpr Unpacking kFabric = {.through = Dtype::kFp16, .keeps_input = true};

Tensor base_linear(Net& net, const char* name, Tensor x, Dim out, bool has_bias) {
  const Shape shape{out, x.dim(-1)};
  if (!net.quantised()) {
    Tensor weight = weight_of(net, name, "weight", shape), bias;
    if (has_bias) bias = weight_of(net, name, "bias", Shape{out});
    return linear(std::move(x), std::move(weight), std::move(bias));
  }
  const QuantisedWeight packed = net.packed_weight(name, shape);
  Tensor bias;
  if (has_bias) bias = weight_of(net, name, "bias", Shape{out});
  return dequantised_linear(std::move(x), out, packed, std::move(bias), kFabric);
}

Tensor lora_linear(Net& net, const char* name, Count rank, Tensor x_in, Dim out, bool has_bias) {
  const Scope in(net.tape, name, kLora);
  const Tensor x = std::move(x_in);
  Tensor pretrained = base_linear(net, name, x, out, has_bias);
  if (rank == 0) return pretrained;
  const Dim r(rank, Symbol::kRank);
  const Tensor a = adapter_weight(net, name, "lora_A", Shape{r, x.dim(-1)});
  const Tensor b = adapter_weight(net, name, "lora_B", Shape{out, r});
  Tensor lora = dropout(x, net.job.adapter.lora_dropout);
  lora = linear(std::move(lora), a);
  lora = linear(std::move(lora), b);
  lora = mul_scalar(std::move(lora));
  return add(pretrained, lora);
}

// derivatives.yaml index_copy: grad.index_select(dim, index).expand_as(source), which keeps the source.
void index_copy_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, g[0].dtype(), "index_select");
}

// LoRAQKVLinear.zero_pad: zeros, into which the columns that are there are copied.
Tensor zero_pad(Tensor x_in, Dim columns) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("index_copy_", index_copy_backward, {&x});
  Tensor out = t.allocate(x.shape().with_last(columns), x.dtype(), "new_zeros");
  t.save(n, x);
  t.attach(n, out);
  return out;
}

/// Which parts of the fused projection are adapted (lora_query, lora_key, lora_value), and by which rank.
struct Enabled {
  Count q = 0, k = 0, v = 0;
  Count rank = 0;
  int parts() const { return (q > 0) + (k > 0) + (v > 0); }
};

// transformers' name of the whole projection stands for LitGPT's defaults, query and value; where the feed-forward is
// adapted as well, for all three, as in its configurations that adapt all matrices.
Enabled enabled_parts(Net& net, const Form& form, bool feed_forward) {
  Enabled e{site(net, form.q), site(net, form.k), site(net, form.v)};
  const Count whole = site(net, form.qkv);
  if (whole > 0) e.q = e.v = whole;
  if (whole > 0 && feed_forward) e.k = whole;
  e.rank = std::max({e.q, e.k, e.v});
  return e;
}

// LoRAQKVLinear.conv1d: one product in groups where the parts are of one width, else one for each and a cat.
Tensor after_b(Net& net, const Enabled& e, const Tensor& after_a, const Tensor& b) {
  const Tensor rows = transpose(after_a, 1, 2);
  const auto convolved = [](Tensor x, Tensor weight) {
    weight = unsqueeze(std::move(weight), 2);
    return patch_convolution(std::move(x), std::move(weight));
  };
  if (net.A.n() == net.Kv.n() || e.parts() == 1) return convolved(rows, b);
  const Dim r(e.rank, Symbol::kRank);
  std::vector<Tensor> parts;
  Count at = 0;
  const auto part = [&](Count is_on, Dim width) {
    if (is_on == 0) return;
    Tensor x = narrow(rows, 1, static_cast<Count>(parts.size()) * r.n(), r);
    Tensor weight = narrow(b, 0, at, width);
    parts.push_back(convolved(std::move(x), std::move(weight)));
    at += width.n();
  };
  part(e.q, net.Q);
  part(e.k, net.K);
  part(e.v, net.K);
  return cat(parts, 1);
}

Tensor qkv_linear(Net& net, const Enabled& e, Tensor x_in) {
  const Scope in(net.tape, "attn.attn", kLoraQkv);
  const Tensor x = std::move(x_in);
  const Dim columns(net.Q.n() + 2 * net.K.n());
  const Tensor pretrained = base_linear(net, "attn.attn", x, columns, net.arch.attention_bias);
  if (e.rank == 0) return pretrained;
  const Dim r(e.rank * e.parts()), width((e.q > 0 ? net.Q.n() : 0) + ((e.k > 0) + (e.v > 0)) * net.K.n());
  const Tensor a = adapter_weight(net, "attn.attn", "lora_A", Shape{r, x.dim(-1)});
  const Tensor b = adapter_weight(net, "attn.attn", "lora_B", Shape{width, Dim(e.rank, Symbol::kRank)});
  Tensor dropped = dropout(x, net.job.adapter.lora_dropout);
  const Tensor after_a = linear(std::move(dropped), a);
  Tensor lora = after_b(net, e, after_a, b);
  const Tensor after_b = transpose(std::move(lora), 1, 2);
  lora = e.parts() == 3 ? after_b : zero_pad(after_b, columns);
  lora = mul_scalar(std::move(lora));
  return add(pretrained, lora);
}

Tensor norm(Net& net, const char* name, Tensor x_in) {
  const Form& form = *form_of(net.arch);
  const Scope in(net.tape, name, kNorm);
  const Dtype dtype = x_in.dtype();
  Tensor weight = weight_of(net, name, "weight", Shape{x_in.dim(-1)});
  if (!form.rms) {
    Tensor bias = weight_of(net, name, "bias", Shape{x_in.dim(-1)});
    return layer_norm(std::move(x_in), std::move(weight), std::move(bias));
  }
  Tensor x = to(std::move(x_in), Dtype::kFp32);
  Tensor norm_x = mul(x, x);
  norm_x = mean_last(std::move(norm_x));
  Tensor scale = add_scalar(norm_x);
  scale = rsqrt(std::move(scale));
  x = mul(std::move(x), std::move(scale));
  if (form.scaled) weight = add_scalar(std::move(weight));
  weight = to(std::move(weight), Dtype::kFp32);
  Tensor out = mul(x, std::move(weight));
  return to(std::move(out), dtype);
}

// The tables are in fp32, and so are the products with them.
Tensor apply_rope(Net& net, Tensor x_in) {
  const Scope in(net.tape, "attn", kRope);
  const Tensor x = std::move(x_in);
  const Tensor rotated = rotate_half(x);
  Tensor roped = mul(x, net.shared.cos);
  Tensor turned = mul(rotated, net.shared.sin);
  roped = add(std::move(roped), std::move(turned));
  return to(std::move(roped), x.dtype());
}

Tensor rope(Net& net, const Tensor& x) {
  const Dim turned(net.arch.rotary_dim), rest(net.hd.n() - net.arch.rotary_dim);
  if (rest.n() == 0) return clone(apply_rope(net, x));  // cat with nothing
  const Tensor roped = apply_rope(net, narrow(x, -1, 0, turned));
  const Tensor as_it_is = narrow(x, -1, turned.n(), rest);
  return cat({&roped, &as_it_is}, -1);
}

// With attention_logit_softcapping: scores and probabilities, and a mask for each layer.
Tensor capped_attention(Net& net, Tensor q, Tensor k, Tensor v) {
  const Dtype dtype = q.dtype();
  const Shape square{net.S, net.S};
  Tensor mask = net.tape.allocate(square, dtype, "mask");
  { const Tensor as_bool = net.tape.allocate(square, Dtype::kBool, "mask.bool()"); }
  if (net.is_sliding_layer(net.layer_index)) {
    const Tensor bias = net.tape.allocate(square, dtype, "sliding_window_bias");
  }
  Tensor scores = matmul(std::move(q), transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  scores = mul_scalar(std::move(scores));
  scores = tanh(std::move(scores));
  scores = mul_scalar(std::move(scores));
  scores = add(std::move(scores), mask);
  scores = softmax(std::move(scores), Dtype::kFp32);
  scores = to(std::move(scores), dtype);
  net.attention_kernel = "eager";
  return matmul(std::move(scores), std::move(v));
}

Tensor attention(Net& net, const Enabled& e, Tensor x) {
  const Scope in(net.tape, "attn", kAttention);
  const Dim groups = net.Kv, per_kv(net.A.n() / net.Kv.n());
  Tensor qkv = qkv_linear(net, e, std::move(x));
  qkv = view(std::move(qkv), Shape{net.B, net.S, groups, Dim(per_kv.n() + 2), net.hd});
  qkv = permute(std::move(qkv), {0, 2, 3, 1, 4});
  Pieces parts = split(std::move(qkv), 2, {per_kv, Dim(1), Dim(1)});
  Tensor q = std::move(parts.part[0]), k = std::move(parts.part[1]), v = std::move(parts.part[2]);
  const Shape repeated{net.B, groups, per_kv, net.S, net.hd}, heads{net.B, net.A, net.S, net.hd};
  k = reshape(expand(std::move(k), repeated), heads);
  v = reshape(expand(std::move(v), repeated), heads);
  q = reshape(std::move(q), heads);
  q = rope(net, q);
  k = rope(net, k);
  Tensor y = net.arch.attention_softcap
                 ? capped_attention(net, std::move(q), std::move(k), std::move(v))
                 : scaled_dot_product_attention(net, std::move(q), std::move(k), std::move(v), {}, 0.0, true, false);
  y = transpose(std::move(y), 1, 2);
  y = reshape(std::move(y), Shape{net.B, net.S, net.Q});
  const Count rank = site(net, form_of(net.arch)->out);
  return lora_linear(net, "attn.proj", rank, std::move(y), net.H, net.arch.attention_out_bias);
}

/// The ranks of the feed-forward's adapters.
struct FeedForward {
  Count fc_1 = 0, fc_2 = 0, proj = 0;
};

FeedForward feed_forward_of(Net& net, const Form& form) {
  const Count both = site(net, form.gate_up);
  return {std::max(both, site(net, form.fc_1)), std::max(both, site(net, form.fc_2)), site(net, form.proj)};
}

Tensor mlp(Net& net, const FeedForward& ranks, Tensor x_in) {
  const Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(x_in);
  const bool bias = net.arch.mlp_bias;
  if (!form_of(net.arch)->gated) {
    Tensor h = lora_linear(net, "mlp.fc", ranks.fc_1, x, net.F, bias);
    h = gelu(std::move(h));
    return lora_linear(net, "mlp.proj", ranks.proj, std::move(h), net.H, bias);
  }
  const Tensor x_fc_1 = lora_linear(net, "mlp.fc_1", ranks.fc_1, x, net.F, bias);
  const Tensor x_fc_2 = lora_linear(net, "mlp.fc_2", ranks.fc_2, x, net.F, bias);
  Tensor h = form_of(net.arch)->scaled ? gelu(x_fc_1) : silu(x_fc_1);
  h = mul(std::move(h), x_fc_2);
  return lora_linear(net, "mlp.proj", ranks.proj, std::move(h), net.H, bias);
}

Tensor block(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kBlock);
  const Form& form = *form_of(net.arch);
  const FeedForward ranks = feed_forward_of(net, form);
  const Enabled enabled = enabled_parts(net, form, ranks.fc_1 > 0);
  Tensor x = std::move(hidden);
  Tensor x_normed = norm(net, "norm_1", x);
  Tensor attention_output = attention(net, enabled, x_normed);
  const bool post_norms = net.arch.model_type == "gemma2";
  if (post_norms) attention_output = norm(net, "post_attention_norm", std::move(attention_output));
  if (net.arch.parallel_residual) {
    if (!form.shared_norm) x_normed = norm(net, "norm_2", x);
    Tensor sum = mlp(net, ranks, x_normed);
    sum = add(std::move(sum), attention_output);
    return add(std::move(sum), std::move(x));
  }
  x = add(attention_output, std::move(x));
  Tensor normed = norm(net, "norm_2", x);
  Tensor fed = mlp(net, ranks, std::move(normed));
  if (post_norms) fed = norm(net, "post_mlp_norm", std::move(fed));
  return add(std::move(fed), std::move(x));
}

Tensor embed(Net& net) {
  const Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  Tensor x = net.token_embedding("transformer.wte", net.H);
  if (form_of(net.arch)->scaled) x = mul_scalar(std::move(x));
  // rope_cache: as long as the longest sample.
  const Shape table{Dim(1), Dim(1), net.S, Dim(net.arch.rotary_dim)};
  for (Tensor* const each : {&net.shared.cos, &net.shared.sin}) {
    t.buffer("rope_cache", table.numel() * size_of(Dtype::kFp32));
    *each = t.part_of_buffer(table, Dtype::kFp32);
  }
  return x;
}

Tensor final_norm(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  return norm(net, "transformer.ln_f", std::move(hidden));
}

Tensor lm_head(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  const Count rank = net.adapter_site("lm_head", true);
  return lora_linear(net, "lm_head", rank, std::move(hidden), net.V, net.arch.head_bias);
}

// SplitBackward: a cat of the chunks' gradients. A trained head has had a second gradient beside the first one for each
// further chunk.
void chunks_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.attributes[0] > 0) {
    const Shape weight{Dim(n.attributes[0]), n.input_shapes[0].dim(-1)};
    const Tensor part = t.allocate(weight, g[0].dtype(), "head gradient of one chunk");
  }
  const Tensor parts = t.allocate(n.input_shapes[0], g[0].dtype(), "gradients of the chunks");
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "split_backward");
}

// Nodes run from the youngest: all chunks' losses, then all conversions, then all products. So the gradients of all
// chunks wait for the next kind of node, in place of the log-probabilities where it has saved those.
void others_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.saved.empty()) n.saved[0].tensor.reset();
  Shape all = n.input_shapes[0];
  all.dims[1] = Dim(n.attributes[0], Symbol::kSequence);
  all.make_contiguous();
  r[0] = t.allocate(all, g[0].dtype(), "gradients of the chunks' logits");
  r[0].change().shape = g[0].shape();
}

// A node that stands for those of the other chunks beside the one that runs.
Node* others(Net& net, Tensor& chunk, const char* name, BackwardFn rule) {
  const Tensor input = chunk;
  chunk.leave_graph();
  Node* const n = net.tape.record(name, rule, {&input});
  if (n != nullptr && !net.tape.stopped()) n->attributes[0] = net.S.n();
  net.tape.attach(n, chunk);
  return n;
}

// The head and the loss run over chunks of 128 tokens of each row. The chunk whose backward comes first runs as such;
// of the others that is counted what waits beside it: logits, which Fabric returns in fp32 (convert_output) and the
// loop has a name for, log-probabilities, and what the head's adapter keeps of its input.
Outputs loss(Net& net, const Program& program, Tensor hidden_in) {
  const Scope in(net.tape, "loss", kLoss);
  Tape& t = net.tape;
  Tensor hidden = std::move(hidden_in);
  Outputs out;
  if (!t.above(net.S.n(), kChunk)) {
    Tensor logits = program.lm_head(net, std::move(hidden));
    logits = to(std::move(logits), Dtype::kFp32);
    net.let_last_iteration_go();
    out.loss = cross_entropy(view(logits, Shape{net.T, net.V}), net.labels);
    out.rest = {std::move(logits)};
    return out;
  }
  const Dim rest(net.S.n() - kChunk, Symbol::kSequence), chunk(kChunk);
  const Shape rows{net.B, rest, net.V};
  Node* const split = others(net, hidden, "split", chunks_backward);
  if (split != nullptr && !t.stopped()) split->attributes[0] = net.treatments == nullptr ? net.V.n() : 0;
  if (const Treatment* how = net.treatment("lm_head"); how != nullptr && how->rank > 0) {
    const Shape inputs{net.B, rest, net.H};
    t.save(split, t.allocate(inputs, hidden.dtype(), "dropout of other chunks"));
    if (net.job.adapter.lora_dropout > 0.0) t.save(split, t.allocate(inputs, Dtype::kBool, "masks of other chunks"));
  }
  const Dtype dtype = t.autocast().value_or(hidden.dtype());
  Tensor before = t.allocate(rows, dtype, "logits of other chunks");
  Tensor logits = narrow(std::move(hidden), 1, rest.n(), chunk);
  logits = program.lm_head(net, std::move(logits));
  Tensor wide = before;
  if (dtype != Dtype::kFp32) {
    others(net, logits, "to of other chunks", others_backward);
    wide = t.allocate(rows, Dtype::kFp32, "logits of other chunks (fp32)");
    logits = to(std::move(logits), Dtype::kFp32);
  }
  before.reset();
  net.let_last_iteration_go();
  out.rest = {logits, std::move(wide)};
  Node* const losses = others(net, logits, "cross_entropy of other chunks", others_backward);
  t.save(losses, t.allocate(rows, Dtype::kFp32, "log_softmax of other chunks"));
  logits = view(std::move(logits), Shape{Dim(net.B.n() * kChunk), net.V});
  out.loss = cross_entropy(std::move(logits), net.labels);
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, loss}};

const Program kProgram = {
    .forward = one_stack<embed, block, final_norm>, .lm_head = lm_head, .heads = kHeads, .implementation = "litgpt"};

}  // namespace

bool as_litgpt(TrainingJob& job, Architecture& architecture) {
  const Architecture& a = architecture;
  if (job.compiled) return false;
  // Without chunks the logits are capped, too: not modelled.
  if (a.model_type == "gemma2" && (!job.has_adapter() || !a.attention_softcap)) return false;
  if (form_of(a) == nullptr || a.qk_norm || a.alibi || a.query_scale || a.experts.count > 0 || a.rotary_dim == 0) {
    return false;
  }
  if (a.model_type == "falcon" && (a.new_decoder || !a.parallel_attention)) return false;
  // Its tables are always two, and it prepares nothing for packed weights.
  architecture.tie_word_embeddings = false;
  job.quantization.prepare_kbit = PrepareKbit::kOff;
  // Until its data modules came (PR #950, February 2024) the longest sample's batch came first, behind no other.
  constexpr int kDataModules = date_of(2024, 2, 29);
  const bool data_modules = job.framework.date == 0 || job.framework.date >= kDataModules;
  job.outputs_stay = data_modules && (job.has_adapter() || job.gradient_accumulation_steps > 1);
  architecture.program = &kProgram;
  return true;
}

}  // namespace tidemark
