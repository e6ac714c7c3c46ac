// Megatron-Core's latent attention: projections down and up again.
#include "core/families/family.hpp"
#include "core/families/megatron_layers.hpp"
#include "core/layers/program.hpp"
#include "core/tape/megatron_ops.hpp"

namespace tidemark::megatron {
namespace {

constexpr const char* kLatent = "megatron_core 0.16.1 transformer/multi_latent_attention.py: MLASelfAttention";

// rope_utils.py _apply_rotary_pos_emb_bshd, unfused: of neighbouring columns, put apart, and joined with none behind.
Tensor turned(Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  const Shape table{net.S, Dim(1), Dim(1), Dim(net.arch.latent.rope_dim)};
  const Tensor first = every_other(x, 0), second = every_other(x, 1);
  x = cat({&first, &second}, -1);
  const Tensor cos = net.tape.allocate(table, x.dtype(), "cos"), sin = net.tape.allocate(table, x.dtype(), "sin");
  x = rotate_by(std::move(x), cos, sin);
  return cat({&x}, -1);
}

}  // namespace

// MLASelfAttention.get_query_key_value_tensors: what is projected down has its names until the attention returns.
Tensor latent_attention(Net& net, Tensor hidden_in) {
  const Scope in(net.tape, "self_attention", kLatent);
  const LatentAttention& a = net.arch.latent;
  const Dim rope(a.rope_dim), plain(a.plain_dim), value(a.value_dim), one(1);
  const Dim all_q(net.A.n() * net.hd.n()), all_kv(net.A.n() * (a.plain_dim + a.value_dim));
  Tensor narrow_q = std::move(hidden_in);
  const Tensor hidden = narrow_q;
  if (a.query_rank > 0) {
    narrow_q = column(net, "self_attention.linear_q_down_proj", hidden, Dim(a.query_rank), false);
  }
  Tensor joined = column(net, "self_attention.linear_kv_down_proj", hidden, Dim(a.rank + a.rope_dim), false);
  Pieces parts = split(joined, -1, {Dim(a.rank), rope});
  if (a.query_rank > 0) narrow_q = norm(net, "self_attention.q_layernorm", std::move(narrow_q));
  const Tensor narrow_kv = norm(net, "self_attention.kv_layernorm", std::move(parts.part[0]));
  Tensor query, key, values;
  {
    const char* const name = a.query_rank > 0 ? "self_attention.linear_q_up_proj" : "self_attention.linear_q_proj";
    const Tensor q = view(column(net, name, narrow_q, all_q, false), Shape{net.S, net.B, net.A, net.hd});
    Tensor kv = column(net, "self_attention.linear_kv_up_proj", narrow_kv, all_kv, false);
    kv = view(std::move(kv), Shape{net.S, net.B, net.A, Dim(a.plain_dim + a.value_dim)});
    const Pieces q_parts = split(q, -1, {plain, rope}), kv_parts = split(kv, -1, {plain, value});
    const Tensor q_turned = turned(net, q_parts.part[1]);
    Tensor k_turned = turned(net, view(std::move(parts.part[1]), Shape{net.S, net.B, one, rope}));
    k_turned = expand(std::move(k_turned), Shape{net.S, net.B, net.A, rope});
    query = cat({&q_parts.part[0], &q_turned}, -1);
    key = cat({&kv_parts.part[0], &k_turned}, -1);
    values = contiguous(kv_parts.part[1]);
  }
  joined.reset();
  Tensor out = core_attention(net, std::move(query), [&net, key, values](Tensor q) {
    return core_attention_of(net, std::move(q), key, values);
  });
  out = reshape(std::move(out), Shape{net.S, net.B, Dim(net.A.n() * a.value_dim)});
  return row(net, "self_attention.linear_proj", std::move(out), false);
}

}  // namespace tidemark::megatron
