// LoHa and LoKr: peft/tuners/loha/layer.py, peft/tuners/lokr/layer.py (peft 0.18). Each forward makes the whole update
// to the weight, and a product with it.
#include <algorithm>
#include <utility>

#include "core/layers/adapter.hpp"
#include "core/tape/adapter_ops.hpp"

namespace tidemark {
namespace {

// _get_delta_activations: its locals go when it returns.
Tensor product_with(const Tensor& x_in, const Tensor& delta) {
  const Tensor x = to(x_in, delta.dtype());
  return linear(x, delta);
}

Tensor added(Tensor result_in, Tensor product, Dtype dtype) {
  Tensor result = add(std::move(result_in), std::move(product));
  return to(std::move(result), dtype);
}

Tensor hadamard(Net& net, const Net::Base& base, Tensor result, const Tensor& x) {
  const Dim r(net.rank_of(base.name), Symbol::kRank);
  const Tensor w1a = net.adapter_weight(base.name, "hada_w1_a", Shape{base.out_features, r});
  const Tensor w1b = net.adapter_weight(base.name, "hada_w1_b", Shape{r, base.in_features});
  const Tensor w2a = net.adapter_weight(base.name, "hada_w2_a", Shape{base.out_features, r});
  const Tensor w2b = net.adapter_weight(base.name, "hada_w2_b", Shape{r, base.in_features});
  if (!x.defined()) return result;
  Tensor product;
  {
    const Tensor delta = hadamard_weight(w1a, w1b, w2a, w2b);
    product = product_with(x, delta);
  }
  return added(std::move(result), std::move(product), x.dtype());
}

// factorization(dimension, factor): two factors, the first one the smaller.
std::pair<Count, Count> factors(Count dimension, Count factor) {
  if (factor > 0 && dimension % factor == 0) return {factor, dimension / factor};
  if (factor == -1) factor = dimension;
  Count m = 1, n = dimension;
  const Count length = m + n;
  while (m < n) {
    Count next = m + 1;
    while (dimension % next != 0) ++next;
    if (next + dimension / next > length || next > factor) break;
    m = next;
    n = dimension / next;
  }
  return {std::min(m, n), std::max(m, n)};
}

/// A factor of the Kronecker product, whole or as a product of low rank.
struct Factor {
  Tensor a, b;  // b undefined: a is the factor
};

Factor factor_of(Net& net, const Net::Base& base, const char* const names[3], Count rows, Count columns, bool whole) {
  const Dim r(net.rank_of(base.name), Symbol::kRank);
  if (whole) return {net.adapter_weight(base.name, names[0], Shape{Dim(rows), Dim(columns)}), {}};
  Factor f;
  f.a = net.adapter_weight(base.name, names[1], Shape{Dim(rows), r});
  f.b = net.adapter_weight(base.name, names[2], Shape{r, Dim(columns)});
  return f;
}

Tensor multiplied(Factor f) {
  return f.b.defined() ? matmul(std::move(f.a), std::move(f.b)) : std::move(f.a);
}

// LoKrLayer.get_delta_weight; ATen/native/LinearAlgebra.cpp kron: a product of views that broadcast.
Tensor kronecker(Net& net, const Net::Base& base, Tensor result, const Tensor& x) {
  static constexpr const char* kLeft[] = {"lokr_w1", "lokr_w1_a", "lokr_w1_b"};
  static constexpr const char* kRight[] = {"lokr_w2", "lokr_w2_a", "lokr_w2_b"};
  const Adapter& adapter = net.job.adapter;
  const auto [in_m, in_n] = factors(base.in_features.n(), adapter.decompose_factor);
  const auto [out_l, out_k] = factors(base.out_features.n(), adapter.decompose_factor);
  const Count twice = 2 * net.rank_of(base.name);
  Factor left = factor_of(net, base, kLeft, out_l, in_m, !(adapter.decompose_both && twice < std::max(out_l, in_m)));
  Factor right = factor_of(net, base, kRight, out_k, in_n, twice >= std::max(out_k, in_n));
  if (!x.defined()) return result;
  Tensor delta;
  {
    const Tensor w1 = multiplied(std::move(left));
    const Tensor w2 = multiplied(std::move(right));
    Tensor rows = view(w1, Shape{Dim(out_l), Dim(1), Dim(in_m), Dim(1)});
    Tensor columns = view(w2, Shape{Dim(1), Dim(out_k), Dim(1), Dim(in_n)});
    delta = mul(std::move(rows), std::move(columns));
    delta = view(std::move(delta), Shape{base.out_features, base.in_features});
    delta = mul_scalar(std::move(delta));
  }
  Tensor product = product_with(x, delta);
  delta.reset();
  return added(std::move(result), std::move(product), x.dtype());
}

constexpr AdapterLayer kRows[] = {{AdapterKind::kLoHa, nullptr, hadamard}, {AdapterKind::kLoKr, nullptr, kronecker}};

}  // namespace

extern const AdapterLayerRows lycoris_rows;
const AdapterLayerRows lycoris_rows{kRows};

}  // namespace tidemark
