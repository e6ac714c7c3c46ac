// Unsloth's FastLanguageModel: forwards, kernels and loss of its own around transformers' modules and PEFT's LoRA.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/families/implementations.hpp"
#include "core/job/framework.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/program.hpp"
#include "core/layers/rows_loss.hpp"
#include "core/state/quantised_weight.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "unsloth 2026.8.19 models/llama.py: LlamaModel_fast_forward";
constexpr const char* kLayer = "unsloth 2026.8.19 models/llama.py: LlamaDecoderLayer_fast_forward";
constexpr const char* kAttention = "unsloth 2026.8.19 models/llama.py: LlamaAttention_fast_forward";
constexpr const char* kDispatch = "unsloth 2026.8.19 utils/attention_dispatch.py: run_attention";
constexpr const char* kNorm = "unsloth 2026.8.19 kernels/rms_layernorm.py: Fast_RMS_Layernorm";
constexpr const char* kMlp = "transformers 5.12 models/llama/modeling_llama.py: LlamaMLP.forward";
constexpr const char* kLoss = "unsloth_zoo 2026.8.13 fused_losses/cross_entropy_loss.py: UnslothFusedLoss";
constexpr const char* kLogProbabilities = "unsloth_zoo 2026.10.9 fused_losses/fused_linear.py: fused_linear_logprobs";
constexpr const char* kFusedLinear = "unsloth_zoo 2026.10.9 fused_losses/fused_linear.py: fused_linear_cross_entropy";

// -- kernels ----------------------------------------------------------------------------------------------------------

bool is_gemma(const Net& net) {
  return net.arch.model_type == "gemma";
}

bool is_granite(const Net& net) {
  return net.arch.model_type == "granite";
}

// Fast_RMS_Layernorm.backward: the gradient takes the place of what came; Gemma's gets room of its own.
void norm_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = std::move(g[0]);
}

void gemma_norm_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(g[0].shape().contiguous(), g[0].dtype(), "empty_like");
}

Tensor norm(Net& net, const char* name, Tensor x_in) {
  const Scope in(net.tape, name, kNorm);
  const Tensor x = std::move(x_in);
  Tape& t = net.tape;
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  Node* const n = t.record("Fast_RMS_Layernorm", is_gemma(net) ? gemma_norm_backward : norm_backward, {&x});
  Tensor y = t.allocate(x.shape().contiguous(), x.dtype(), "fast_rms_layernorm");
  const Tensor r = t.allocate(x.shape().with_last(Dim(1)), Dtype::kFp32, "fast_rms_layernorm: one by root");
  t.save(n, x);
  t.save(n, weight);
  t.save(n, r);
  t.attach(n, y);
  return y;
}

Tensor copy_of(const Tensor& x) {
  return x.tape().allocate(elementwise_shape({&x}), x.dtype(), "clone");
}

// kernels/rope_embedding.py: Fast_RoPE_Embedding_QK: in place, where heads do not lie behind positions; else in a copy.
void rope_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  for (int i = 0; i < 2; ++i) r[i] = g[i].shape().is_contiguous() ? g[i] : copy_of(g[i]);
}

// q and k [B, heads, S, hd]. Without positions of their own the rows of both are turned in place
// (Fast_RoPE_Embedding on [B, S, heads, hd]).
void rotate_both(Net& net, Tensor& q, Tensor& k) {
  Tape& t = net.tape;
  if (net.job.padding) {
    q = liger_rope(std::move(q), net.shared.cos, net.shared.sin);
    k = liger_rope(std::move(k), net.shared.cos, net.shared.sin);
    return;
  }
  Node* const n = t.record("Fast_RoPE_Embedding_QK", rope_backward, {&q, &k});
  t.save(n, net.shared.position_ids);
  Tensor rotated_q = q.shape().is_contiguous() ? q : copy_of(q);
  Tensor rotated_k = k.shape().is_contiguous() ? k : copy_of(k);
  rotated_q.leave_graph();
  rotated_k.leave_graph();
  t.attach(n, rotated_q, 0);
  t.attach(n, rotated_k, 1);
  q = std::move(rotated_q);
  k = std::move(rotated_k);
}

// flash-attn 2.8 csrc/flash_attn/flash_api.cpp: mha_bwd, mha_varlen_bwd; xformers 0.0.35 ops/fmha/{flash, cutlass}.py.
// q, k, v are [B, S, heads, hd]; Node::lengths: whether samples share a row.
void attention_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (int i = 0; i < 3; ++i) {
    const Tensor& x = n.saved_tensor(i);
    r[i] = t.allocate(x.shape().contiguous(), x.dtype(), "attention backward");
  }
  const Shape& q = n.saved_tensor(0).shape();
  const Count b = q.size(0), s = q.size(1), heads = q.size(2), hd = q.size(3);
  if (n.lengths[1] < 80) {
    t.scratch({{4 * b * heads * s, "delta"}, {4 * b * heads * s * hd, "grad_q accumulator"}});
    return;
  }
  const Count wide = hd <= 128 ? (hd + 31) / 32 * 32 : (hd + 63) / 64 * 64;
  const Count rows = n.lengths[0] != 0 ? b * s + 128 * b : b * t.round_up(s, 128);
  const Count expanded = n.saved_tensor(1).size(2) != heads ? 2 * b * s * heads * hd : 0;
  t.scratch({{4 * heads * rows, "softmax_d"},
             {4 * heads * rows * wide, "dq_accum"},
             {expanded, "dk_expanded"},
             {expanded, "dv_expanded"}});
}

Tensor kernel(Net& net, Tensor q_in, Tensor k_in, Tensor v_in) {
  const Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in);
  Tape& t = net.tape;
  Node* const n = t.record("attention", attention_backward, {&q, &k, &v});
  if (n != nullptr) n->lengths = {net.job.padding ? 0 : 1, net.job.compute_capability};
  Tensor out = t.allocate(q.shape().contiguous(), q.dtype(), "attention");
  const Tensor lse = t.allocate(Shape{q.dim(0), q.dim(2), q.dim(1)}, Dtype::kFp32, "attention logsumexp");
  Tensor seed;
  if (net.job.compute_capability >= 80) seed = t.allocate(Shape{Dim(2)}, Dtype::kInt64, "attention rng_state");
  for (const Tensor* x : {&q, &k, &v, static_cast<const Tensor*>(&out), &lse}) t.save(n, *x);
  if (seed.defined()) t.save(n, seed);
  t.attach(n, out);
  return out;
}

// [B, S, Kv, hd] of each head: what xFormers' op gets where a gradient is asked for.
Tensor of_each_head(Net& net, Tensor x) {
  const Dim times(net.A.n() / net.Kv.n());
  x = view(std::move(x), Shape{net.B, net.S, net.Kv, Dim(1), net.hd});
  x = expand(std::move(x), Shape{net.B, net.S, net.Kv, times, net.hd});
  return reshape(std::move(x), Shape{net.B, net.S, net.A, net.hd});
}

// -- a layer ----------------------------------------------------------------------------------------------------------

Tensor attention(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  qkv_at_once(net, x, bias);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  v = view(std::move(v), Shape{net.B, net.S, net.Kv, net.hd});
  if (net.arch.qk_norm) {
    q = norm(net, "self_attn.q_norm", std::move(q));
    k = norm(net, "self_attn.k_norm", std::move(k));
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  rotate_both(net, q, k);
  Tensor a;
  {
    const Scope dispatch(net.tape, "self_attn", kDispatch);
    Tensor keys = transpose(k, 1, 2), values = v;
    if (!wants_flash(net.job) && net.A.n() != net.Kv.n() && x.requires_grad()) {
      keys = of_each_head(net, std::move(keys));
      values = of_each_head(net, std::move(values));
    }
    a = kernel(net, transpose(q, 1, 2), std::move(keys), std::move(values));
  }
  Tensor output = view(a, Shape{net.B, net.S, net.Q});
  return net.linear("self_attn.o_proj", std::move(output), net.H, net.arch.attention_out_bias);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  const Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor at_once = net.gated_at_once(x, net.F);
  if (at_once.defined()) return at_once;
  Tensor gate = net.linear("mlp.gate_proj", x, net.F, bias);
  gate = activate(net.arch.activation, std::move(gate));
  Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
  Tensor product = mul(std::move(gate), std::move(up));
  return net.linear("mlp.down_proj", std::move(product), net.H, bias);
}

// torch.add(residual, x, alpha=…), of which backward multiplies the gradient of x.
void scaled_addition_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[1] = t.allocate(n.input_shapes[1].contiguous(), n.input_dtypes[1], "mul");
  r[0] = std::move(g[0]);
}

// models/granite.py: GraniteDecoderLayer_fast_forward has a residual_multiplier.
Tensor added(Net& net, const Tensor& residual, Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (!is_granite(net)) return add(residual, x);
  Node* const n = net.tape.record("add", scaled_addition_backward, {&residual, &x});
  Tensor sum = net.tape.allocate(residual.shape().contiguous(), residual.dtype(), "add");
  net.tape.attach(n, sum);
  return sum;
}

Tensor layer(Net& net, Tensor hidden_in) {
  const Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden_in);
  Tensor hidden = norm(net, "input_layernorm", residual);
  hidden = attention(net, std::move(hidden));
  hidden = added(net, residual, std::move(hidden));
  residual = hidden;
  hidden = norm(net, "post_attention_layernorm", std::move(hidden));
  hidden = feed_forward(net, std::move(hidden));
  return added(net, residual, std::move(hidden));
}

// -- around the layers ------------------------------------------------------------------------------------------------

// kernels/utils.py: WEIGHT_BUFFERS and ABSMAX_BUFFERS, which matmul_lora unpacks every weight into: as large as the
// largest of them.
void unpacking_buffers(Net& net) {
  if (!net.uses_bitsandbytes() || net.treatments == nullptr) return;
  const auto adapted = [&net](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&net](const char* name) {
      const Treatment* const how = net.treatments->inside(net.first_layer, name);
      return how != nullptr && how->rank > 0;
    });
  };
  Count largest = 0;
  if (net.job.lora_kernels.qkv && adapted({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}))
    largest = net.Q.n() * net.H.n();
  if (net.job.lora_kernels.o && adapted({"self_attn.o_proj"})) largest = net.Q.n() * net.H.n();
  if (net.job.lora_kernels.mlp && adapted({"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}))
    largest = std::max(largest, net.F.n() * net.H.n());
  if (largest == 0) return;
  net.tape.buffer("unpacked weight", largest * size_of(net.job.recipe.weights));
  if (!is_unsloth_by_rows(net.job.framework)) net.tape.buffer("unpacked scales", largest / 64 * size_of(Dtype::kFp32));
}

// models/llama.py: LlamaRotaryEmbedding.extend_rope_embedding: in steps of 8192, once 32768 positions are not enough.
// models/gemma.py: GemmaFixedRotaryEmbedding's tables are fp32.
void rotary_cache(Net& net) {
  Tape& t = net.tape;
  constexpr Count kFirst = 4 * 8192, kStep = 8192;
  const Count length = net.job.padding ? net.S.n() : net.T.n();
  Count rows = net.arch.max_positions;
  if (t.above(length, rows)) rows = t.round_up(length, kStep);
  if (rows > kFirst) rows = (rows + kStep - 1) / kStep * kStep;
  const Dtype dtype = is_gemma(net) ? Dtype::kFp32 : net.job.recipe.weights;
  const Bytes bytes = rows * net.hd.n() * size_of(dtype);
  t.buffer("rotary cos", bytes);
  t.buffer("rotary sin", bytes);
  const Shape table{net.S, net.hd};
  net.shared.cos = t.part_of_buffer(table, dtype);
  net.shared.sin = t.part_of_buffer(table, dtype);
}

// unsloth_zoo 2026.8.13 gradient_checkpointing.py: UnslothCheckpointFunction,
// initialize_unsloth_gradient_checkpointing: two buffers that inputs come back into; inputs of 2 MiB and less stay on
// the card.
void checkpoint_buffers(Net& net) {
  if (net.job.checkpointing != Checkpointing::kOffload) return;
  const Count numbers = net.T.n() * net.H.n();
  const bool offloads = net.tape.above(numbers, kUnslothKeeps);
  const Bytes bytes = (offloads ? numbers : kUnslothKeeps) * size_of(net.job.recipe.weights);
  net.tape.buffer("inputs back from the host", bytes);
  net.tape.buffer("inputs back from the host, two", bytes);
}

void inputs(Net& net) {
  Tape& t = net.tape;
  const Shape rows{net.B, net.S};
  net.input_ids = t.allocate(rows, Dtype::kInt64, "input_ids");
  net.labels = t.allocate(rows, Dtype::kInt64, "labels");
  // TRL's collator without padding: one row, with positions.
  net.more_inputs.push_back(t.allocate(rows, Dtype::kInt64, net.job.padding ? "attention_mask" : "position_ids"));
}

Tensor embed(Net& net) {
  const Scope in(net.tape, "model", kModel);
  unpacking_buffers(net);
  rotary_cache(net);
  checkpoint_buffers(net);
  if (!net.job.padding) net.shared.position_ids = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt32, "position_ids");
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  // Gemma's are scaled in place where the table is frozen.
  const std::vector<std::string>& saved = net.job.adapter.modules_to_save;
  const bool trained = std::find(saved.begin(), saved.end(), "embed_tokens") != saved.end();
  return is_granite(net) || (is_gemma(net) && trained) ? mul_scalar(std::move(embeds)) : embeds;
}

Tensor final_norm(Net& net, Tensor hidden) {
  return norm(net, "model.norm", std::move(hidden));
}

// -- the loss ---------------------------------------------------------------------------------------------------------

// UnslothFusedLoss.backward: what forward made of it, scaled.
void loss_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (std::size_t i = 0; i < n.input_shapes.size(); ++i)
    r[i] = t.allocate(n.input_shapes[i].contiguous(), n.input_dtypes[i], "mul");
}

// get_chunk_size: logits in fp32 of at most 4 GiB (half of what is free, where that is less), in multiples of four.
Count chunks_of(Net& net) {
  constexpr Bytes kTarget = Bytes{4} << 30;
  const Bytes all = net.T.n() * net.V.n() * size_of(Dtype::kFp32);
  return net.tape.above(all, kTarget) ? net.tape.quotient_up(all, 4 * kTarget) * 4 : 1;
}

// accumulate_chunk, compiled: Inductor's code makes the logits, overwrites them with their gradients beside three
// numbers for each row, and multiplies them by the head and, where it is trained, by the states. A chunk is like the
// one before.
void one_chunk(Net& net, Dim rows, const Tensor& weight) {
  const Dtype dtype = weight.dtype();
  Tape& t = net.tape;
  Tensor logits = t.allocate(Shape{rows, net.V}, dtype, "mm (logits)");
  t.set_category(logits, Category::kLogitsLoss);
  for (int i = 0; i < 3; ++i) t.scratch({{size_of(Dtype::kFp32) * rows.n(), "of each row"}});
  const Tensor states = t.allocate(Shape{rows, net.H}, dtype, "mm (input gradient)");
  if (weight.requires_grad()) t.allocate(weight.shape(), dtype, "mm (weight gradient)");
}

// -- since 2026.10.9 --------------------------------------------------------------------------------------------------

// fused_linear_logprobs: per token, and what a gradient of one is to the states, made in the same pass.
Outputs log_probabilities(Net& net, Tensor hidden_in) {
  const Tensor hidden = kept_tokens(net, std::move(hidden_in));
  const Scope in(net.tape, "log-probabilities", kLogProbabilities);
  Tape& t = net.tape;
  const Tensor weight = net.head_weight("lm_head", Shape{net.V, net.H});
  Node* const n = t.record("fused_linear_logprobs", loss_backward, {&hidden});
  const Shape rows{hidden.dim(0), hidden.dim(1)};
  Tensor tokens = t.allocate(rows, Dtype::kFp32, "zeros (log-probabilities)");
  const Tensor sums = t.allocate(rows, Dtype::kFp32, "zeros (lse)");
  Tensor gradient;
  if (hidden.requires_grad()) gradient = t.allocate(hidden.shape().contiguous(), hidden.dtype(), "zeros (of states)");
  logits_by_rows(net, weight, hidden.size(0) * hidden.size(1));
  t.save(n, sums);
  if (gradient.defined()) t.save(n, gradient);
  t.attach(n, tokens);
  Outputs outputs;
  outputs.rest = {std::move(tokens)};
  return outputs;
}

Outputs loss(Net& net, const Program&, Tensor hidden_in) {
  if (net.job.preference != Preference::kNone) return log_probabilities(net, std::move(hidden_in));
  const Tensor hidden = std::move(hidden_in);
  const Scope in(net.tape, "loss", is_unsloth_by_rows(net.job.framework) ? kFusedLinear : kLoss);
  Tape& t = net.tape;
  net.adapter_site("lm_head", true);
  const Tensor weight = net.head_weight("lm_head", Shape{net.V, net.H});
  const Shape rows{net.B, net.S};
  Tensor masked;
  if (!net.job.padding) masked = t.allocate(rows, Dtype::kInt64, "mask_packed_boundary_labels");
  const Tensor shifted = t.allocate(rows, Dtype::kInt64, "empty_like (labels)");
  Node* const n = weight.requires_grad() ? t.record("UnslothFusedLoss", loss_backward, {&hidden, &weight})
                                         : t.record("UnslothFusedLoss", loss_backward, {&hidden});
  const Tensor gradient = t.allocate(hidden.shape().contiguous(), hidden.dtype(), "empty_like (input gradient)");
  Tensor of_weight;
  if (weight.requires_grad()) of_weight = zeros(t, weight.shape(), weight.dtype());
  Tensor total = t.allocate(Shape{}, Dtype::kFp32, "loss");
  if (is_unsloth_by_rows(net.job.framework)) {
    logits_by_rows(net, weight, net.T.n());
  } else {
    const Count chunks = chunks_of(net);
    one_chunk(net, Dim(t.quotient_up(net.T.n(), chunks)), weight);
  }
  t.save(n, gradient);
  if (of_weight.defined()) t.save(n, of_weight);
  t.attach(n, total);
  return {std::move(total), {}};
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, loss}};

Tensor output(Net& net, Tensor hidden) {
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

const Program kProgram = {.forward = one_stack<embed, layer, final_norm>,
                          .lm_head = output,
                          .heads = kHeads,
                          .inputs = inputs,
                          .implementation = "unsloth",
                          .recorded = true};

}  // namespace

bool as_unsloth(TrainingJob& job, Architecture& architecture) {
  const Architecture& a = architecture;
  constexpr std::string_view kKnown[] = {"llama", "mistral", "qwen2", "qwen3", "gemma", "granite"};
  if (std::find(std::begin(kKnown), std::end(kKnown), a.model_type) == std::end(kKnown)) return false;
  const Activation own = a.model_type == "gemma" ? Activation::kGelu : Activation::kSilu;
  if (a.activation != own || a.rotary_dim != a.head_dim || !job.has_adapter()) return false;
  if (job.loss != Loss::kDefault || job.attention == AttentionKernel::kMath) return false;
  const bool half = is_half(job.recipe.weights) && job.recipe.autocast == job.recipe.weights;
  if (!half || job.checkpointing == Checkpointing::kEvery ||
      job.checkpointing == Checkpointing::kSelectiveCoreAttention)
    return false;
  if (job.preference != Preference::kNone) {
    job.padding = true;  // TRL's collators of preferences fill rows up
    // What differs is recorded nowhere: blocks are compiled as they meet a mask, prompts of one group are run once.
    job.stand_ins.emplace_back("Unsloth's trainers of preferences, answered by TRL's with its layers and its loss");
  }
  const std::vector<std::string>& saved = job.adapter.modules_to_save;
  if (is_unsloth_by_rows(job.framework) && a.tie_word_embeddings && saved.size() > 1) {
    // Measured (tests/measured/own.jsonl): PEFT 0.21 has one trained copy of both, beside a frozen table.
    job.stand_ins.emplace_back("a token table that is also the head and is trained, answered by two copies of it");
  }
  // models/llama.py: FastLlamaModel.patch_peft_model.
  const bool fast = job.adapter.lora_dropout == 0.0;
  job.lora_kernels = {};
  job.lora_kernels.mlp = fast && !a.mlp_bias;
  job.lora_kernels.qkv = fast && !a.attention_bias;
  job.lora_kernels.o = fast && !a.attention_out_bias;
  if (job.checkpointing == Checkpointing::kOffload) job.use_reentrant = true;
  job.keep_outputs = false;
  // 75e0d7ce: rows without padding; 806bee24 before it: the loss in chunks.
  if (job.framework.date > 0 && job.framework.date < date_of(2025, 12, 10))
    job.stand_ins.emplace_back("Unsloth before December 2025, answered by 2026.8");
  architecture.program = &kProgram;
  return true;
}

}  // namespace tidemark
