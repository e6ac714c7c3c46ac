// torchtune's TransformerDecoder: rotation in pairs and in fp32, heads repeated before attention, a head in eight
// chunks.
#include <string>
#include <vector>

#include "core/families/implementations.hpp"
#include "core/layers/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "torchtune 0.4.0 modules/transformer.py: TransformerDecoder.forward";
constexpr const char* kLayer = "torchtune 0.4.0 modules/transformer.py: TransformerSelfAttentionLayer.forward";
constexpr const char* kAttention = "torchtune 0.4.0 modules/attention.py: MultiHeadAttention.forward";
constexpr const char* kRope = "torchtune 0.4.0 modules/position_embeddings.py: RotaryPositionalEmbeddings.forward";
constexpr const char* kMlp = "torchtune 0.4.0 modules/feed_forward.py: FeedForward.forward";
constexpr const char* kNorm = "torchtune 0.4.0 modules/rms_norm.py: RMSNorm.forward";
constexpr const char* kLoss = "torchtune 0.4.0 recipes/full_finetune_single_device.py: _loss_step";
constexpr const char* kChunks = "torchtune 0.4.0 modules/loss/ce_chunked_output_loss.py: CEWithChunkedOutputLoss";

constexpr int kOutputChunks = 8;  // CEWithChunkedOutputLoss: num_output_chunks

// training/_compile.py: each layer is compiled by itself. Inductor is taken to make one kernel of what lies between two
// products, and to keep the inputs of products and of these kernels: an assumption, which the range allows for.
Tensor norm(Net& net, const char* name, Tensor x_in) {
  const Scope in(net.tape, name, kNorm);
  const Tensor x = std::move(x_in);
  Tensor scale = net.parameter(name, "scale", Shape{x.dim(-1)});
  if (net.job.compiled && net.tape.in_layer()) return fused_rms_norm(x, std::move(scale));
  const Tensor x_fp32 = to(x, Dtype::kFp32);
  Tensor r = power(x_fp32);
  r = mean_last(std::move(r));
  r = add_scalar(std::move(r));
  r = rsqrt(std::move(r));
  r = mul(x_fp32, std::move(r));
  const Tensor x_normed = to(std::move(r), x.dtype());
  return mul(x_normed, std::move(scale));
}

// x [B, S, heads, hd]. Samples that share a row look their positions up: a table of its own for each call.
Tensor rope(Net& net, Tensor x_in) {
  const Scope in(net.tape, "self_attn.pos_embeddings", kRope);
  if (net.job.compiled) return mul_scalar(std::move(x_in));
  const Tensor x = std::move(x_in);
  Tensor cache = net.shared.cos;
  if (net.job.packing) cache = net.tape.allocate(Shape{net.B, net.S, Dim(1), net.hd}, Dtype::kFp32, "rope cache");
  const Tensor cos = every_other(cache, 0), sin = every_other(std::move(cache), 1);
  const Tensor xshaped = to(x, Dtype::kFp32);
  const Tensor even = every_other(xshaped, 0), odd = every_other(xshaped, 1);
  Tensor left = mul(even, cos);
  Tensor right = mul(odd, sin);
  Tensor first = sub(std::move(left), std::move(right));
  left = mul(odd, cos);
  right = mul(even, sin);
  Tensor second = add(std::move(left), std::move(right));
  Tensor out = stack_last(std::move(first), std::move(second));
  out = view(std::move(out), x.shape());
  return to(std::move(out), x.dtype());
}

// [B, S, Kv, hd] to [B, A, S, hd]: a copy where heads are grouped.
Tensor repeated(Net& net, Tensor x) {
  const Dim times(net.A.n() / net.Kv.n());
  x = view(std::move(x), Shape{net.B, net.S, net.Kv, Dim(1), net.hd});
  x = expand(std::move(x), Shape{net.B, net.S, net.Kv, times, net.hd});
  x = reshape(std::move(x), Shape{net.B, net.S, net.A, net.hd});
  return transpose(std::move(x), 1, 2);
}

Tensor attention(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  q = rope(net, std::move(q));
  q = transpose(std::move(q), 1, 2);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  k = rope(net, std::move(k));
  k = repeated(net, std::move(k));
  v = repeated(net, std::move(v));
  // Samples in one row: flex attention, which keeps the same.
  Tensor output = scaled_dot_product_attention(net, std::move(q), std::move(k), std::move(v), {}, 0.0, true, false);
  output = contiguous(transpose(std::move(output), 1, 2));
  output = view(std::move(output), Shape{net.B, net.S, net.Q});
  return net.linear("self_attn.o_proj", std::move(output), net.H, net.arch.attention_out_bias);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  const Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.gate_proj", x, net.F, net.arch.mlp_bias);
  if (!net.job.compiled) h = silu(std::move(h));
  Tensor up = net.linear("mlp.up_proj", x, net.F, net.arch.mlp_bias);
  h = net.job.compiled ? liger_swiglu(std::move(h), std::move(up)) : mul(std::move(h), std::move(up));
  return net.linear("mlp.down_proj", std::move(h), net.H, net.arch.mlp_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", x);
  const Tensor attn_out = attention(net, h);
  h = add(attn_out, x);
  Tensor mlp_out = norm(net, "post_attention_layernorm", h);
  mlp_out = feed_forward(net, std::move(mlp_out));
  return add(std::move(h), std::move(mlp_out));
}

Tensor embed(Net& net) {
  const Scope in(net.tape, "model", kModel);
  Tape& t = net.tape;
  // One cache for all layers, as long as the model's context.
  t.buffer("rope.cache", net.arch.max_positions * net.hd.n() * size_of(Dtype::kFp32));
  net.shared.cos = t.part_of_buffer(Shape{Dim(1), net.S, Dim(1), net.hd}, Dtype::kFp32);
  if (net.job.packing) net.more_inputs.push_back(t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "input_pos"));
  return net.token_embedding("model.embed_tokens", net.H);
}

Tensor final_norm(Net& net, Tensor hidden) {
  return norm(net, "model.norm", std::move(hidden));
}

Tensor output(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

// torch/_decomp/decompositions.py nll_loss_backward: zeros, into which a scatter writes; then one kernel.
void compiled_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor scattered = t.allocate(n.input_shapes[0], Dtype::kFp32, "nll_loss_backward (compiled)");
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "log_softmax_backward (compiled)");
}

// compile_loss: the logits as they are and a number for each row wait.
Tensor compiled_cross_entropy(Tensor logits_in) {
  const Tensor logits = std::move(logits_in);
  Tape& t = logits.tape();
  Node* const n = t.record("cross_entropy (compiled)", compiled_backward, {&logits});
  t.save(n, logits);
  t.save(n, t.allocate(Shape{logits.dim(0)}, Dtype::kFp32, "logsumexp"));
  Tensor loss = t.allocate(Shape{}, Dtype::kFp32, "loss");
  t.attach(n, loss);
  return loss;
}

// compute_cross_entropy, on rows of logits.
Tensor cross_entropy_of(Net& net, Tensor logits) {
  if (net.job.compiled) return compiled_cross_entropy(std::move(logits));
  logits = to(std::move(logits), Dtype::kFp32);
  const Tensor target = net.tape.allocate(Shape{logits.dim(0)}, Dtype::kInt64, "labels");
  return cross_entropy(std::move(logits), target);
}

// chunked_output, then one chunk after the other; the recipe deletes the list of logits behind the loss.
Tensor chunked(Net& net, const Program& program, Tensor hidden) {
  const Dim rows(net.tape.quotient(net.S.n(), kOutputChunks));
  Pieces chunks = split(std::move(hidden), 1, std::vector<Dim>(kOutputChunks, rows));
  std::vector<Tensor> logits;
  const std::size_t head = net.tape.parameter_place();
  for (const Tensor& chunk : chunks.part) {
    net.tape.set_parameter_place(head);  // one head, used eight times
    logits.push_back(program.lm_head(net, chunk));
  }
  const Scope in(net.tape, "loss", kChunks);
  const Shape flattened{Dim(net.B.n() * rows.n()), net.V};
  Tensor total;
  for (const Tensor& each : logits) {
    Tensor loss = cross_entropy_of(net, reshape(each, flattened));
    total = total.defined() ? add(std::move(total), std::move(loss)) : std::move(loss);
  }
  return total;
}

Outputs loss(Net& net, const Program& program, Tensor hidden) {
  if (net.job.loss == Loss::kChunked) return {chunked(net, program, std::move(hidden)), {}};
  Tensor logits = program.lm_head(net, std::move(hidden));
  logits = to(std::move(logits), Dtype::kFp32);
  const Scope in(net.tape, "loss", kLoss);
  return {cross_entropy_of(net, view(std::move(logits), Shape{net.T, net.V})), {}};
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, loss}};

const Program kProgram = {
    .forward = one_stack<embed, layer, final_norm>, .lm_head = output, .heads = kHeads, .implementation = "torchtune"};

}  // namespace

bool as_torchtune(TrainingJob& job, Architecture& architecture) {
  const Architecture& a = architecture;
  const bool known = a.model_type == "llama" || a.model_type == "mistral" || a.model_type == "qwen2";
  if (!known || a.activation != Activation::kSilu || a.rotary_dim != a.head_dim) return false;
  if (job.loss != Loss::kDefault && job.loss != Loss::kChunked) return false;
  job.quantization.prepare_kbit = PrepareKbit::kOff;
  job.keep_outputs = false;
  architecture.program = &kProgram;
  return true;
}

}  // namespace tidemark
