// torchtitan's Llama 3 and Qwen 3: complex or paired rotation, its own activation checkpointing per operation,
// torch.compile of each layer. What changed with time is told apart by the date of the release or commit.
#include "core/families/implementations.hpp"

#include "core/families/shared.hpp"
#include "core/job/framework.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/program.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/tape/collective_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "torchtitan 0.2 models/llama3/model/model.py: Transformer.forward";
constexpr const char* kLayer = "torchtitan 0.2 models/llama3/model/model.py: TransformerBlock.forward";
constexpr const char* kAttention = "torchtitan 0.2 models/llama3/model/model.py: Attention.forward";
constexpr const char* kMlp = "torchtitan 0.2 models/llama3/model/model.py: FeedForward.forward";
constexpr const char* kLoss = "torchtitan 0.2 components/loss.py: cross_entropy_loss";

// Commits of torchtitan, and a release of PyTorch's nightly builds, which move memory.
constexpr int kNativeNorm = date_of(2025, 3, 19);        // 3b39d7ab0: nn.RMSNorm
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

// apply_rotary_emb: a product of complex numbers, of which the table alone is kept; compiled, one kernel.
void turn(Net& net, Tensor& q, Tensor& k) {
  if (net.job.compiled) {
    q = mul_scalar(std::move(q));
    k = mul_scalar(std::move(k));
    return;
  }
  Rotated turned = rotate_complex(net, std::move(q), std::move(k), false);
  q = std::move(turned.q);
  k = std::move(turned.k);
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
  net.attention_kernel = "flash";
  {
    const Keep kept(net, keeps_attention(net));
    q = flash_attention(q, k, v, 0.0);
  }
  q = contiguous(transpose(std::move(q), 1, 2));
  q = view(std::move(q), Shape{net.B, rows, net.Q});
  return project(net, kOutput, "self_attn.o_proj", std::move(q), net.H);
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

Tensor layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", x);
  h = run_divided(net, std::move(h), attention_of);
  const Tensor middle = add(x, std::move(h));
  h = norm(net, "post_attention_layernorm", middle);
  h = run_divided(net, std::move(h), feed_forward);
  return add(middle, std::move(h));
}

Tensor embed(Net& net) {
  const Scope in(net.tape, "model", kModel);
  if (net.tape.parameters().empty()) {  // freqs_cis, of as many positions as a sample has
    net.tape.standing(Shape{Dim(net.job.sequence_length, Symbol::kSequence), net.hd}, Dtype::kFp32, "freqs_cis",
                      Category::kBuffers);
  }
  net.shared.cos = net.tape.part_of_buffer(Shape{Dim(1), net.S, net.hd}, Dtype::kFp32);
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

// models/{llama3, qwen3}/model/args.py: what their modules are made of.
bool has_program(const Architecture& a) {
  return (a.model_type == "llama" || a.model_type == "qwen3") && a.head == Head::kCausalLm && !a.attention_out_bias &&
         !a.mlp_bias && a.sliding_window == 0;
}

bool is_known(const TrainingJob& job) {
  const bool checkpoints = job.checkpointing == Checkpointing::kNone || job.checkpointing == Checkpointing::kFull ||
                           job.checkpointing == Checkpointing::kEvery;
  const bool flash = job.attention != AttentionKernel::kEager && job.compute_capability >= 80;
  const bool plain = job.preference == Preference::kNone && !job.liger_rms_norm && !job.liger_swiglu && !job.liger_rope;
  return !job.has_adapter() && checkpoints && flash && plain && !job.padding &&
         (job.loss == Loss::kDefault || (job.loss == Loss::kChunked && !job.tensor.is_used()));
}

}  // namespace

bool as_torchtitan(const TrainingJob& job, Architecture& architecture) {
  if (!has_program(architecture) || !is_known(job)) return false;
  architecture.program = &kProgram;
  return true;
}

}  // namespace tidemark
