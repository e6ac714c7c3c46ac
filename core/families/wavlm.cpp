// WavLM: Wav2Vec2 with a table of distances, of which each layer takes as much as a gate of its input says.
#include "core/families/wav2vec2.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr std::uint8_t kFirst = 1;   // the layer with the table
constexpr Count kGateNumbers = 8;    // nn.Linear(head_dim, 8): two gates,
constexpr Count kNumbersOfGate = 4;  // each the sum of four

// transformers 5.12.1 models/wavlm/configuration_wavlm.py: WavLMConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_wav2vec2_config(fields, architecture);
  architecture.num_buckets = fields.count({"num_buckets"}, 320);
  fields.accept({"max_bucket_distance", "num_ctc_classes", "replace_prob", "normalize", "normalized"});
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  if (!architecture.layer_kinds.empty()) architecture.layer_kinds.front() = kFirst;
}

constexpr const char* kAttention = "transformers 5.12 models/wavlm/modeling_wavlm.py: WavLMAttention.forward";
constexpr const char* kBias = "transformers 5.12 models/wavlm/modeling_wavlm.py: WavLMAttention.compute_bias";
constexpr const char* kProducts = "torch.nn.functional: multi_head_attention_forward";

// transformers 5.16 models/wavlm/modeling_wavlm.py: distances are made where the table is, and the attention always
// asks for its weights.
bool is_revised(const Net& net) {
  return net.job.framework.at_least(5, 16);
}

// WavLMAttention._relative_positions_bucket, of distances
Tensor bucketed(Net& net) {
  Tape& t = net.tape;
  const Shape square{net.S, net.S};
  const auto whole = [&](const char* op) { return t.allocate(square, Dtype::kInt64, op); };
  const auto real = [&](const char* op) { return t.allocate(square, Dtype::kFp32, op); };
  Tensor result;
  {
    Tensor behind = t.allocate(square, Dtype::kBool, "gt");
    const Tensor ones = whole("to");
    behind.reset();
    result = whole("mul");
  }
  const Tensor distance = whole("abs"), small = t.allocate(square, Dtype::kBool, "lt");
  Tensor step = real("float");
  for (const char* op : {"div", "log", "div", "mul"}) step = real(op);
  Tensor far;
  {
    const Tensor sum = real("add");
    far = whole("to");
  }
  {
    const Tensor last = whole("full_like");
    far = whole("min");
  }
  const Tensor chosen = whole("where");
  return result;
}

// What the first layer makes and hands on: [B * heads, S, S]. Until 5.15 buckets are found on the host.
Tensor position_bias(Net& net) {
  constexpr const char* kTable = "attention.rel_attn_embed";
  Scope in(net.tape, kTable, kBias);
  const Tensor distances = is_revised(net) ? net.tape.allocate(Shape{net.S, net.S}, Dtype::kInt64, "sub") : Tensor();
  const Tensor buckets = is_revised(net) ? bucketed(net) : net.tape.allocate(Shape{net.S, net.S}, Dtype::kInt64, "to");
  Tensor values = net.embedding(kTable, buckets, Dim(net.arch.num_buckets), net.A);
  return repeat_rows(permute(std::move(values), {2, 0, 1}), net.B);
}

// need_weights=True: the scores are written out. q, k are [B * heads, S, hd]; the result is [B * heads, S, S].
Tensor probabilities(Net& net, const Tensor& q, Tensor k, const Tensor& bias) {
  Tensor weights;
  {
    const Tensor scaled = mul_scalar(q);
    weights = baddbmm(bias, scaled, transpose(std::move(k), 1, 2));
  }
  weights = softmax(weights);
  return dropout(std::move(weights), net.arch.attention_dropout);
}

// F.multi_head_attention_forward reads the weights of q, k, v and out: adapters on them are idle.
Tensor products(Net& net, const Tensor& hidden, const Tensor& bias) {
  Scope in(net.tape, "attention", kProducts);
  const Tensor x = transpose(hidden, 0, 1);
  const char* const names[] = {"attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.out_proj"};
  Tensor weights[4], biases[4];
  for (int i = 0; i < 4; ++i) {
    weights[i] = net.linear_weight(names[i], net.H, net.H);
    biases[i] = net.parameter(names[i], "bias", Shape{net.H});
  }
  const Tensor all = cat({&biases[0], &biases[1], &biases[2]}, 0);
  const Pieces parts = split(all, 0, {net.H, net.H, net.H});
  Tensor q = linear(x, weights[0], parts.part[0]);
  Tensor k = linear(x, weights[1], parts.part[1]);
  Tensor v = linear(x, weights[2], parts.part[2]);
  const Dim rows(net.B.n() * net.S.n());
  Tensor out, weighed;
  if (is_revised(net)) {
    const auto heads = [&](Tensor y) {
      return transpose(view(std::move(y), Shape{net.S, Dim(net.B.n() * net.A.n()), net.hd}), 0, 1);
    };
    q = heads(std::move(q));
    k = heads(std::move(k));
    v = heads(std::move(v));
    weighed = probabilities(net, q, std::move(k), bias);
    out = matmul(weighed, std::move(v));
    out = reshape(transpose(std::move(out), 0, 1), Shape{rows, net.H});
  } else {
    const auto heads = [&](Tensor y) {
      return permute(view(std::move(y), Shape{net.S, net.B, net.A, net.hd}), {1, 2, 0, 3});
    };
    q = heads(std::move(q));
    k = heads(std::move(k));
    v = heads(std::move(v));
    const Tensor mask = view(bias, Shape{net.B, net.A, net.S, net.S});
    out = scaled_dot_product_attention(net, std::move(q), std::move(k), std::move(v), mask, net.arch.attention_dropout,
                                       false, false);
    out = reshape(permute(std::move(out), {2, 0, 1, 3}), Shape{rows, net.H});
  }
  out = linear(std::move(out), weights[3], biases[3]);
  if (weighed.defined()) {  // the heads' mean is returned, too
    net.attention_weights = mean_over(view(std::move(weighed), Shape{net.B, net.A, net.S, net.S}), 1);
  }
  return transpose(view(std::move(out), Shape{net.S, net.B, net.H}), 0, 1);
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.method == Method::kQlora) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                      "WavLM hands the weights of its attention to a function of PyTorch, which cannot read packed "
                      "ones: use \"lora\".",
                      "lora"});
  }
  if (job.use_reentrant && job.checkpointing != Checkpointing::kNone) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/use_reentrant",
                      "The first layer's table of distances is read by every layer: re-entrant checkpoints would pass "
                      "it backward once for each, which PyTorch refuses. Use \"use_reentrant\": false.",
                      "false"});
  }
}

}  // namespace

Tensor wavlm_attention(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "attention", kAttention);
  if (!net.shared.bias.defined()) net.shared.bias = position_bias(net);
  const Tensor bias = net.shared.bias;
  const Tensor heads = permute(view(hidden, Shape{net.B, net.S, net.A, net.hd}), {0, 2, 1, 3});
  const Dim rows(net.B.n() * net.A.n());
  const Shape four{net.B, net.A, net.S, Dim(1)},
      pairs{rows, net.S, Dim(kGateNumbers / kNumbersOfGate), Dim(kNumbersOfGate)};
  Tensor projected = net.linear("attention.gru_rel_pos_linear", heads, Dim(kGateNumbers), true);
  projected = sum_over(view(std::move(projected), pairs), -1, false);
  const Pieces gates = split(sigmoid(projected), 2, {Dim(1), Dim(1)});
  // gate_a * (gate_b * gru_rel_pos_const - 1.0) + 2.0
  const Tensor constant = net.parameter("attention", "gru_rel_pos_const", Shape{Dim(1), net.A, Dim(1), Dim(1)});
  Tensor gate = mul(view(gates.part[1], four), constant);
  gate = add_scalar(std::move(gate));
  gate = mul(view(gates.part[0], four), gate);
  gate = add_scalar(std::move(gate));
  const Tensor gated = mul(view(gate, Shape{rows, net.S, Dim(1)}), bias);
  return products(net, hidden, gated);
}

namespace {

const Program kProgram = {
    .forward = wav2vec2_forward, .heads = kWaveHeads, .inputs = wave_inputs, .attention = kEagerAlone, .check = check};

constexpr ClassFacts kFacts = {
    .flex_attention = false, .text_input = false, .input_embeddings = false, .no_split = NoSplit::kNone};

}  // namespace

const Family kRows[] = {
    {"wavlm", "WavLM", "WavLMForCTC", kWav2Vec2Classes, read_config, &kProgram, "wavlm.encoder.layers", kFacts},
};

extern const FamilyRows wavlm_rows;
const FamilyRows wavlm_rows = kRows;

}  // namespace tidemark
