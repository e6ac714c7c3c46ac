// Gated delta nets under Megatron-Core: Qwen 3.5's, which tensor parallelism divides, and Qwen3-Next's, which it does
// not.
#include "core/families/family.hpp"
#include "core/families/megatron_layers.hpp"
#include "core/families/qwen3_next.hpp"
#include "core/layers/program.hpp"
#include "core/layers/ssm.hpp"
#include "core/tape/megatron_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark::megatron {
namespace {

constexpr const char* kDelta = "mcore-bridge f020e47 src/mcore_bridge/model/modules/gated_delta_net.py: GatedDeltaNet";
constexpr const char* kWhole =
    "mcore-bridge f020e47 src/mcore_bridge/model/gpts/qwen3_next.py: Qwen3NextGatedDeltaNet.forward";

// transformers' own module, batch first, whole on every GPU, of all rows; its result is divided by the GPUs' number.
Tensor whole_delta_net(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attention", kWhole);
  const Count shards = shards_of_sequence(net);
  if (shards > 1) hidden = all_gathered(std::move(hidden), shards);
  const Tensor mask = std::move(net.attention_mask);  // of scores; the module's own would be of rows
  net.attention_mask = {};
  Tensor out = joined_delta_net(net, transpose(std::move(hidden), 0, 1));
  net.attention_mask = mask;
  out = contiguous(transpose(std::move(out), 0, 1));
  return shards > 1 ? mul_scalar(reduce_scattered(std::move(out), shards)) : out;
}

// -A_log.exp() * softplus(alpha.float() + dt_bias)
Tensor decay(Net& net, const Tensor& alpha, Dim heads) {
  const Tensor dt_bias = part_of(net, "self_attention", "dt_bias", Shape{heads});
  Tensor rate = to(part_of(net, "self_attention", "A_log", Shape{heads}), Dtype::kFp32);
  return delta_decay(std::move(rate), alpha, dt_bias);
}

}  // namespace

// Queries' and keys' norms run within fla's rule, as transformers has it. One projection makes all, group by group; its
// result has a name to the end.
Tensor delta_net(Net& net, Tensor hidden) {
  if (net.arch.model_type == "qwen3_next") return whole_delta_net(net, std::move(hidden));
  const Scope in(net.tape, "self_attention", kDelta);
  const StateSpace& s = net.arch.ssm;
  const Count groups = s.groups / net.job.tensor.degree, heads = s.heads / net.job.tensor.degree;
  const Count share = heads / groups, values = share * s.head_dim, mixed_width = 2 * s.state + values;
  const Dim each(share), width(s.head_dim), all_heads(heads), all_groups(groups);
  const Count per_group = mixed_width + values + 2 * share;
  Tensor all = column(net, "self_attention.in_proj", std::move(hidden), Dim(groups * per_group), false);
  all = view(std::move(all), Shape{net.S, net.B, all_groups, Dim(per_group)});
  const Tensor joined = transpose(std::move(all), 0, 1);
  Tensor qkv, gate, beta, alpha;
  {
    const Pieces four = split(joined, 3, {Dim(mixed_width), Dim(values), each, each});
    gate = reshape(four.part[1], Shape{net.B, net.S, all_heads, width});
    beta = reshape(four.part[2], Shape{net.B, net.S, all_heads});
    alpha = reshape(four.part[3], Shape{net.B, net.S, all_heads});
    qkv = reshape(four.part[0], Shape{net.B, net.S, Dim(groups * mixed_width)});
  }
  const Dim channels(groups * mixed_width);
  Tensor taps = part_of(net, "self_attention.conv1d", "weight", Shape{channels, Dim(1), Dim(s.kernel)});
  taps = view(std::move(taps), Shape{channels, Dim(s.kernel)});
  qkv = causal_conv1d(transpose(std::move(qkv), 1, 2), std::move(taps), {});
  qkv = contiguous(transpose(std::move(qkv), 1, 2));
  qkv = view(std::move(qkv), Shape{net.B, net.S, all_groups, Dim(mixed_width)});
  Tensor query, key, value;
  {
    const Pieces three = split(qkv, 3, {Dim(s.state), Dim(s.state), Dim(values)});
    query = repeat_heads(contiguous(three.part[0]), share);
    key = repeat_heads(contiguous(three.part[1]), share);
    value = reshape(three.part[2], Shape{net.B, net.S, all_heads, width});
  }
  const Tensor g = decay(net, alpha, all_heads);
  beta = sigmoid(std::move(beta));
  Tensor out = chunk_gated_delta_rule(query, key, value, g, beta);
  const Shape rows{Dim(net.B.n() * net.S.n() * heads), width};
  out = norm(net, "self_attention.out_norm", reshape(std::move(out), rows));
  out = mul(std::move(out), reshape(gate, rows));  // _apply_gated_norm: one kernel of torch.compile's
  out = reshape(std::move(out), Shape{net.B, net.S, Dim(heads * s.head_dim)});
  out = contiguous(transpose(std::move(out), 0, 1));
  return row(net, "self_attention.out_proj", std::move(out), false);
}

}  // namespace tidemark::megatron
