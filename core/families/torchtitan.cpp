// torchtitan's Llama 3 and Qwen 3: complex or paired rotation, its own activation checkpointing per operation,
// torch.compile of each layer. What changed with time is told apart by the date of the release or commit.
#include "core/families/implementations.hpp"

#include <algorithm>

#include "core/families/shared.hpp"
#include "core/job/framework.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/layers/moe.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/program.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/tape/collective_ops.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "torchtitan 0.2 models/llama3/model/model.py: Transformer.forward";
constexpr const char* kLayer = "torchtitan 0.2 models/llama3/model/model.py: TransformerBlock.forward";
constexpr const char* kAttention = "torchtitan 0.2 models/llama3/model/model.py: Attention.forward";
constexpr const char* kMlp = "torchtitan 0.2 models/llama3/model/model.py: FeedForward.forward";
constexpr const char* kMoe = "torchtitan 0.2 models/moe/moe.py: MoE.forward";
constexpr const char* kRouter = "torchtitan 0.2 models/moe/moe.py: TokenChoiceTopKRouter.forward";
constexpr const char* kExperts =
    "torchtitan 0.2 models/moe/{moe.py: GroupedExperts.forward, utils.py: _permute, _unpermute}";
constexpr const char* kDispatch =
    "torchtitan 0.2 distributed/expert_parallel.py: ExpertParallel._token_dispatch, _token_combine";
constexpr const char* kLoss = "torchtitan 0.2 components/loss.py: cross_entropy_loss";

// Commits of torchtitan, and a release of PyTorch's nightly builds, which move memory.
constexpr int kNativeNorm = date_of(2025, 3, 19);        // 3b39d7ab0: nn.RMSNorm
constexpr int kNoEarlyStop = date_of(2025, 8, 29);       // 25413d224: activation_checkpoint.early_stop, off
constexpr int kFusedNorm = date_of(2025, 8, 1);          // pytorch#153666: aten::_fused_rms_norm
constexpr int kCompiledLoss = date_of(2025, 4, 2);       // bbb1b616e: build_cross_entropy_loss
constexpr int kAllAttentionKept = date_of(2025, 12, 1);  // b39377f9f: every backend of attention in the save list
constexpr int kGroupedHeads = date_of(2026, 1, 27);      // ff0829c10: enable_gqa

bool before(const Net& net, int date) {
  const int own = net.job.framework.date;
  return own > 0 && own < date;
}

/// The products of a layer in the order of their calls, of which torchtitan's policy keeps every other one
/// (distributed/activation_checkpoint.py: _custom_policy); compiled, the last one is not needed by backward and goes.
enum Product { kQuery = 1, kKey, kValue, kOutput, kGate, kUp, kDown };

bool keeps(const Net& net, Product product) {
  return net.job.selective_op && product % 2 == 1 && !(net.job.compiled && product == kDown);
}

// Blackwell runs cuDNN's kernel, which the policy did not know at first.
bool keeps_attention(const Net& net) {
  return net.job.selective_op && (net.job.compute_capability < 100 || !before(net, kAllAttentionKept));
}

/// What is made while one lives is kept by the layer's checkpoint, if it has one.
class Keep {
 public:
  Keep(Net& net, bool keep) : tape_(net.tape) { tape_.keep_results(keep); }
  ~Keep() { tape_.keep_results(false); }
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;

 private:
  Tape& tape_;
};

Tensor norm(Net& net, const char* name, Tensor x) {
  if (net.job.compiled || !before(net, kFusedNorm)) {
    const Scope in(net.tape, name, kLayer);
    Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
    return fused_rms_norm(std::move(x), std::move(weight));
  }
  return before(net, kNativeNorm) ? rms_norm(net, name, std::move(x)) : olmo2_norm(net, name, std::move(x));
}

Tensor project(Net& net, Product product, const char* name, Tensor x, Dim out, bool bias = false) {
  const Scope in(net.tape, name, net.source());
  x = before_projection(net, name, std::move(x));
  Tensor weight = net.linear_weight(name, out, x.dim(-1));
  Tensor b;
  if (bias) b = net.parameter(name, "bias", Shape{out});
  {
    const Keep kept(net, keeps(net, product));
    x = linear(std::move(x), std::move(weight), std::move(b));
  }
  // Reduce-scatters are kept, too.
  return behind_projection(net, name, std::move(x), net.job.selective_op);
}

// repeat_kv, until scaled_dot_product_attention was told of groups: [B, S, Kv, hd] to [B, S, A, hd], a copy.
Tensor repeated(Net& net, Tensor x) {
  if (net.A.n() == net.Kv.n() || !before(net, kGroupedHeads)) return x;
  const Dim rows = x.dim(1), times(net.A.n() / net.Kv.n());
  x = unsqueeze(std::move(x), 3);
  x = expand(std::move(x), Shape{net.B, rows, net.Kv, times, net.hd});
  return reshape(std::move(x), Shape{net.B, rows, net.A, net.hd});
}

bool is_qwen3(const Net& net) {
  return net.arch.model_type != "llama";
}

// apply_rotary_emb: a product of complex numbers, of which the table alone is kept; compiled, one kernel.
void turn(Net& net, Tensor& q, Tensor& k) {
  if (is_qwen3(net) && !net.job.compiled) {  // models/qwen3/model/model.py: apply_rotary_emb
    const Dtype dtype = q.dtype();
    const Tensor both = view(net.shared.local_cos, Shape{Dim(1), q.dim(1), Dim(1), Dim(2 * net.hd.n())});
    Tensor cos = narrow(both, -1, 0, net.hd), sin = narrow(both, -1, net.hd.n(), net.hd);
    cos = to(std::move(cos), dtype);
    sin = to(std::move(sin), dtype);
    q = rotate_by(std::move(q), cos, sin);
    k = rotate_by(std::move(k), cos, sin);
    return;
  }
  if (net.job.compiled) {
    q = mul_scalar(std::move(q));
    k = mul_scalar(std::move(k));
    return;
  }
  Rotated turned = rotate_complex(net, std::move(q), std::move(k), false);
  q = std::move(turned.q);
  k = std::move(turned.k);
}

// torchtitan 0.2 models/attention.py ScaledDotProductAttentionWrapper: of cuDNN's, flash and the math kernel, the first
// that takes them. What the math kernel is made of is not in the save list.
Tensor scaled_dot_product(Net& net, Tensor q, Tensor k, Tensor v) {
  if (is_half(q.dtype()) && net.job.compute_capability >= 80) {
    net.attention_kernel = "flash";
    const Keep kept(net, keeps_attention(net));
    return flash_attention(q, k, v, 0.0);
  }
  net.attention_kernel = "math";
  const bool grouped = q.size(1) != k.size(1);
  return math_attention(std::move(q), std::move(k), std::move(v), {}, true, 0.0, grouped);
}

Tensor attention_of(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = project(net, kQuery, "self_attn.q_proj", x, net.Q, bias);
  Tensor k = project(net, kKey, "self_attn.k_proj", x, net.K, bias);
  Tensor v = project(net, kValue, "self_attn.v_proj", x, net.K, bias);
  const Dim rows = q.dim(1);
  q = view(std::move(q), Shape{net.B, rows, net.A, net.hd});
  k = view(std::move(k), Shape{net.B, rows, net.Kv, net.hd});
  v = view(std::move(v), Shape{net.B, rows, net.Kv, net.hd});
  if (net.arch.qk_norm) {
    q = norm(net, "self_attn.q_norm", std::move(q));
    k = norm(net, "self_attn.k_norm", std::move(k));
  }
  turn(net, q, k);
  k = repeated(net, std::move(k));
  v = repeated(net, std::move(v));
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  q = scaled_dot_product(net, std::move(q), std::move(k), std::move(v));
  q = contiguous(transpose(std::move(q), 1, 2));
  q = view(std::move(q), Shape{net.B, rows, net.Q});
  return project(net, kOutput, "self_attn.o_proj", std::move(q), net.H, net.arch.attention_out_bias);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  const Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor gate = project(net, kGate, "mlp.gate_proj", x, net.F);
  if (!net.job.compiled) gate = silu(std::move(gate));
  Tensor up = project(net, kUp, "mlp.up_proj", x, net.F);
  gate = net.job.compiled ? liger_swiglu(std::move(gate), std::move(up)) : mul(std::move(gate), std::move(up));
  return project(net, kDown, "mlp.down_proj", std::move(gate), net.H);
}

Tensor numbers(Net& net, const Shape& shape, const char* op, Dtype dtype = Dtype::kInt64) {
  return net.tape.allocate(shape, dtype, op);
}

/// Where a token goes, by what weight; in the order of the experts.
struct Chosen {
  Tensor scores;  ///< [T, k] fp32
  Tensor order;   ///< [T·k] int64
};

Chosen route(Net& net, const Tensor& x) {
  const Scope in(net.tape, "mlp.gate", kRouter);
  const Experts& e = net.arch.experts;
  const Dim experts(e.count);
  Tensor scores = linear(x, net.linear_weight("mlp.gate", experts, net.H));
  scores = to(std::move(scores), Dtype::kFp32);
  scores = softmax(std::move(scores));
  const Tensor biased = add_scalar(scores);  // expert_bias
  const TopK best = topk(biased, Dim(e.per_token));
  Chosen chosen;
  chosen.scores = gather_last(scores, best.indices);
  if (e.normalised) {
    Tensor sum = sum_over(chosen.scores, -1, true);
    sum = add_scalar(std::move(sum));
    chosen.scores = div(std::move(chosen.scores), std::move(sum));
  }
  chosen.scores = mul_scalar(std::move(chosen.scores));
  return chosen;
}

/// What the call of the module has by name until it returns, with the hooks behind it.
struct Held {
  Tensor input, output;
};

// Rows for each of this GPU's experts are padded to multiples of eight. With expert parallelism they come from all
// GPUs, whose tokens choose alike.
Tensor padded_experts(Net& net, Tensor x_in, Count local, Held& held) {
  const Scope in(net.tape, "mlp.experts", kExperts);
  constexpr Count kAlignment = 8;
  Tensor x = std::move(x_in);
  const Dim rows = x.dim(0), padded(net.tape.round_up(rows.n() + local * kAlignment, kAlignment));
  const Dim width(net.arch.experts.width), count(local);
  const Shape with_zeros{Dim(rows.n() + 1), net.H};
  Tensor indices, permuted;
  {
    const Tensor zero = net.tape.allocate(Shape{Dim(1), net.H}, x.dtype(), "new_zeros");
    indices = numbers(net, Shape{padded}, "full", Dtype::kInt32);
    Tensor joined = cat({&x, &zero}, 0);
    permuted = index_some(std::move(joined), indices, padded);
  }
  x.reset();
  const std::size_t first = net.tape.parameters().size();
  const Tensor w1 = net.expert_parameter("mlp.experts", "w1", Shape{count, width, net.H});
  const Tensor w2 = net.expert_parameter("mlp.experts", "w2", Shape{count, net.H, width});
  const Tensor w3 = net.expert_parameter("mlp.experts", "w3", Shape{count, width, net.H});
  for (std::size_t i = first; i < net.tape.parameters().size(); ++i) {
    Parameter& p = net.tape.parameters()[i];
    if (p.whole == 0) p.whole = p.shape.numel() * (net.arch.experts.count / local);
  }
  const Tensor offsets = numbers(net, Shape{count}, "cumsum", Dtype::kInt32);
  Tensor h = silu(grouped_mm(permuted, transpose(w1, -2, -1), offsets));
  {
    const Tensor up = grouped_mm(permuted, transpose(w3, -2, -1), offsets);
    h = mul(h, up);
  }
  h = grouped_mm(std::move(h), transpose(w2, -2, -1), offsets);
  held = {permuted, h};
  Tensor out = net.tape.allocate(with_zeros, h.dtype(), "new_empty");
  out = scatter_add_in_place(std::move(out), indices, std::move(h));
  return narrow(std::move(out), 0, 0, rows);
}

Tensor routed_experts(Net& net, Tensor x) {
  const Count experts = net.arch.experts.count, gpus = net.job.expert, local = experts / gpus;
  Held held;
  if (gpus == 1) return padded_experts(net, std::move(x), local, held);
  const Dim sent = x.dim(0), k(net.arch.experts.per_token);
  const std::vector<Count> dealt = rows_of_experts(net, sent.n() / k.n(), k.n());
  Count come = 0;
  for (Count i = 0; i < local; ++i) come += dealt[static_cast<std::size_t>(i)] * gpus;
  x = enter_unit(std::move(x));
  const Scope in(net.tape, "mlp.experts", kDispatch);
  x = all_to_all(std::move(x), Dim(come));
  x = padded_experts(net, std::move(x), local, held);
  x = all_to_all(std::move(x), sent);
  return leave_unit(std::move(x));
}

Tensor moe(Net& net, Tensor hidden_in) {
  const Scope in(net.tape, "mlp", kMoe);
  const Tensor hidden = std::move(hidden_in);
  const Dim tokens = net.T, k(net.arch.experts.per_token), rows(tokens.n() * k.n());
  const Tensor x = view(hidden, Shape{tokens, net.H});
  Chosen chosen = route(net, x);
  { const Tensor sorted = numbers(net, Shape{rows}, "sort"); }
  const Tensor order = numbers(net, Shape{rows}, "argsort");
  const Tensor sorted_scores = index_some(view(chosen.scores, Shape{rows}), order, rows);
  Tensor routed;
  {
    Tensor token = numbers(net, Shape{rows}, "floor_divide");
    routed = index_some(x, std::move(token), rows);
  }
  const Tensor routed_output = routed_experts(net, routed);
  Tensor unsorted = zeros(net.tape, Shape{rows, net.H}, routed_output.dtype());
  unsorted = scatter_add_in_place(std::move(unsorted), order, routed_output);
  unsorted = view(std::move(unsorted), Shape{tokens, k, net.H});
  Tensor wide = to(unsorted, Dtype::kFp32);
  Tensor out = matmul(view(chosen.scores, Shape{tokens, Dim(1), k}), std::move(wide));
  out = to(std::move(out), hidden.dtype());
  return view(std::move(out), hidden.shape());
}

Tensor layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", x);
  h = run_divided(net, std::move(h), attention_of);
  const Tensor middle = add(x, std::move(h));
  h = norm(net, "post_attention_layernorm", middle);
  const bool mixes = net.arch.experts.count > 0 && !is_dense_layer(net);
  h = mixes ? moe(net, std::move(h)) : run_divided(net, std::move(h), feed_forward);
  h = add(middle, std::move(h));
  if (net.job.checkpointing != Checkpointing::kNone && !before(net, kNoEarlyStop)) compute_to_the_end(h);
  return h;
}

Tensor embed(Net& net) {
  const Scope in(net.tape, "model", kModel);
  // freqs_cis, of as many positions as a sample has; Qwen3's rope_cache, which layers are handed.
  const bool is_cache = is_qwen3(net);
  const Dim columns = is_cache ? Dim(2 * net.hd.n()) : net.hd;
  if (net.tape.parameters().empty()) {
    net.tape.standing(Shape{Dim(net.job.sequence_length, Symbol::kSequence), columns}, Dtype::kFp32, "freqs_cis",
                      Category::kBuffers);
  }
  Tensor& table = is_cache ? net.shared.local_cos : net.shared.cos;
  table = net.tape.part_of_buffer(Shape{Dim(1), net.S, columns}, Dtype::kFp32);
  return net.token_embedding("model.embed_tokens", net.H);
}

Tensor final_norm(Net& net, Tensor hidden) {
  return norm(net, "model.norm", std::move(hidden));
}

Tensor output(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  return net.lm_head("lm_head", std::move(hidden), net.V, false);
}

// Compiled: the logits as they are and a logarithm for each row wait; their gradient is made in their dtype at once.
void compiled_loss_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "compiled cross_entropy backward");
}

Tensor compiled_loss(Net& net, Tensor logits_in) {
  const Tensor logits = std::move(logits_in);
  Tape& t = net.tape;
  Node* n = t.record("compiled cross_entropy", compiled_loss_backward, {&logits});
  t.save(n, logits);
  const Tensor rows = t.allocate(Shape{net.T}, Dtype::kFp32, "logsumexp");
  t.save(n, rows);
  Tensor loss = t.allocate(Shape{}, Dtype::kFp32, "loss");
  t.attach(n, loss);
  return loss;
}

// chunked_cross_entropy_loss (e23bb707d): eight chunks of the whole model's logits, each with its own fp32 copy.
Tensor chunked_loss_of_logits(Net& net, Tensor logits) {
  constexpr int kChunks = 8;
  const Dim rows(net.tape.quotient(net.S.n(), kChunks));
  Pieces chunks = split(std::move(logits), 1, std::vector<Dim>(kChunks, rows));
  const Dim tokens(net.B.n() * rows.n());
  Tensor total;
  for (Tensor& chunk : chunks.part) {
    Tensor wide = reshape(std::move(chunk), Shape{tokens, net.V});
    wide = to(std::move(wide), Dtype::kFp32);
    const Tensor target = net.tape.allocate(Shape{tokens}, Dtype::kInt64, "labels");
    Tensor loss = cross_entropy(std::move(wide), target);
    total = total.defined() ? add(std::move(total), std::move(loss)) : std::move(loss);
  }
  return total;
}

Tensor loss_of_logits(Net& net, const Tensor& logits) {
  const Scope in(net.tape, "loss", kLoss);
  if (net.job.compiled && !before(net, kCompiledLoss)) return compiled_loss(net, logits);
  return plain_cross_entropy(net, to(view(logits, Shape{net.T, logits.dim(-1)}), Dtype::kFp32));
}

Outputs loss(Net& net, const Program& program, Tensor hidden) {
  Tensor logits = program.lm_head(net, std::move(hidden));
  const Tensor named = logits;  // pred, until the loss is there
  // train.py forward_backward_step makes the loss outside of the model, which FSDP has left by then.
  if (Placement* const placement = net.tape.placement()) placement->leave_model();
  if (net.job.loss != Loss::kChunked) return {loss_of_logits(net, named), {}};
  const Scope in(net.tape, "loss", kLoss);
  return {chunked_loss_of_logits(net, std::move(logits)), {}};
}

void inputs(Net& net) {
  const Shape rows{net.B, net.S};
  net.input_ids = net.tape.allocate(rows, Dtype::kInt64, "input_ids");
  net.labels = net.tape.allocate(rows, Dtype::kInt64, "labels");
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, loss}};

const Program kProgram = {.forward = one_stack<embed, layer, final_norm>,
                          .lm_head = output,
                          .heads = kHeads,
                          .inputs = inputs,
                          .is_divisible = true,
                          .chunks_logits = true,
                          .implementation = "torchtitan",
                          .loss_of_logits = loss_of_logits};

// models/{llama3, qwen3}/model/args.py: what their modules are made of. A bias behind attention is its layers' own with
// one more vector.
bool has_program(const TrainingJob& job, const Architecture& a) {
  return (a.model_type == "llama" || a.model_type == "qwen3" || a.model_type == "qwen3_moe") &&
         a.head == Head::kCausalLm && !(a.attention_out_bias && job.tensor.is_used()) && !a.mlp_bias &&
         a.sliding_window == 0;
}

// Records of mixtures are of FSDP 2 beside expert parallelism, or without; of the loop over experts there is none.
bool is_known_mixture(const TrainingJob& job, const Architecture& a) {
  const LayerFlags& dense = a.experts.dense_layers;
  const bool mixes_everywhere = std::find(dense.begin(), dense.end(), true) == dense.end();
  const int date = job.framework.date;
  const bool is_new = date == 0 || date >= date_of(2025, 12, 26);  // 0.2.1
  // _run_experts_grouped_mm casts what is not in bf16.
  const bool casts = mixed_precision(job).gathered.value_or(job.recipe.weights) != Dtype::kBf16;
  return is_new && !casts && mixes_everywhere && !job.tensor.is_used() && !job.pipeline.is_used() && job.context == 1 &&
         !job.compiled && job.experts == ExpertsKernel::kGroupedMm && !job.recipe.autocast;
}

bool is_known(const TrainingJob& job) {
  const bool checkpoints = job.checkpointing == Checkpointing::kNone || job.checkpointing == Checkpointing::kFull ||
                           job.checkpointing == Checkpointing::kEvery;
  const bool sdpa = job.attention != AttentionKernel::kEager;
  const bool plain = job.preference == Preference::kNone && !job.liger_rms_norm && !job.liger_swiglu && !job.liger_rope;
  return !job.has_adapter() && checkpoints && sdpa && plain && !job.padding &&
         (job.loss == Loss::kDefault || (job.loss == Loss::kChunked && !job.tensor.is_used()));
}

}  // namespace

bool as_torchtitan(const TrainingJob& job, Architecture& architecture) {
  if (!has_program(job, architecture) || !is_known(job)) return false;
  if (architecture.experts.count > 0 ? !is_known_mixture(job, architecture) : job.expert > 1) return false;
  architecture.program = &kProgram;
  return true;
}

}  // namespace tidemark
