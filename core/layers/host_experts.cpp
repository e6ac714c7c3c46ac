// KTransformers 95009ea, kt-kernel/python/sft: layer.py KTMoELayerWrapper._submit_and_compute_gpu, autograd.py
// KTMoEFunction, dist_utils.py.
#include "core/layers/host_experts.hpp"

#include <initializer_list>
#include <utility>

namespace tidemark {
namespace {

constexpr const char* kExperts = "KTransformers kt-kernel/python/sft/layer.py: KTMoELayerWrapper.forward";
constexpr Dtype kDtype = Dtype::kBf16;  ///< base.py KExpertsSFTBuffer

Shape rows_of_all(const Shape& rows, Count ranks) {
  Shape shape = rows;
  shape.dims[0] = Dim(rows.dim(0).n() * ranks);
  shape.make_contiguous();
  return shape;
}

/// Of several ranks the first has the backend: the others' rows, and those of all in one piece, which are there while
/// the CPU takes them.
Tensor gathered(Tape& t, const Shape& rows, Dtype dtype, Count ranks) {
  if (ranks == 1) return {};
  Tensor others = t.allocate(rows_of_all(rows, ranks - 1), dtype, "irecv");
  const Tensor all = t.allocate(rows_of_all(rows, ranks), dtype, "cat");
  return others;
}

/// What the CPU has made of all ranks' rows, and of it this rank's.
Tensor returned(Tape& t, const Shape& rows, Dtype dtype, Count ranks) {
  Tensor all = t.allocate(rows_of_all(rows, ranks), dtype, "output_cpu.to(device)");
  return ranks == 1 ? all : t.allocate(rows, dtype, "local_out");
}

// Inputs of the node: 0 = rows, 1 = their weights. Nothing of them is saved.
void backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Count ranks = n.attributes[0];
  const Tensor others = gathered(t, n.input_shapes[0], g[0].dtype(), ranks);
  Tensor rows = returned(t, n.input_shapes[0], kDtype, ranks);
  if (n.needs(0)) r[0] = to(std::move(rows), n.input_dtypes[0]);
  Tensor weights = returned(t, n.input_shapes[1], kDtype, ranks);
  if (n.needs(1)) r[1] = to(std::move(weights), n.input_dtypes[1]);
}

/// A weight in host memory. lora.py _create_fused_expert_lora_buffers: adapters of all experts, too, whatever the
/// targets.
void declare(Net& net, const ExpertForm& form, const char* leaf, const Shape& shape, bool adapter) {
  Parameter p;
  p.module = form.module;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = kDtype;
  p.requires_grad = p.is_adapter = adapter;
  p.is_expert = true;
  p.storage_bytes = kOnHost;
  net.tape.parameter(p);
}

void declare_all(Net& net, const ExpertForm& form, Dim h, Dim width) {
  const Dim experts(net.arch.experts.count), r(net.job.adapter.r, Symbol::kRank);
  declare(net, form, "gate_proj", Shape{experts, width, h}, false);
  declare(net, form, "up_proj", Shape{experts, width, h}, false);
  declare(net, form, "down_proj", Shape{experts, h, width}, false);
  for (const auto& [a, b] : {std::pair{"gate_lora_a", "gate_lora_b"}, {"up_lora_a", "up_lora_b"}}) {
    declare(net, form, a, Shape{experts, r, h}, true);
    declare(net, form, b, Shape{experts, width, r}, true);
  }
  declare(net, form, "down_lora_a", Shape{experts, r, width}, true);
  declare(net, form, "down_lora_b", Shape{experts, h, r}, true);
}

}  // namespace

Tensor run_on_host(Net& net, const ExpertForm& form, Dim width, Tensor hidden_in, Tensor indices_in,
                   Tensor weights_in) {
  Scope in(net.tape, form.module, kExperts);
  Tape& t = net.tape;
  const Tensor hidden = std::move(hidden_in), indices = std::move(indices_in);
  const Tensor weights = to(std::move(weights_in), kDtype);
  const Count ranks = net.job.data_parallel.degree;
  declare_all(net, form, hidden.dim(1), width);
  Node* n = t.record("KTMoEFunction", backward, {&hidden, &weights});
  if (n != nullptr) n->attributes[0] = ranks;
  {
    const Tensor rows = gathered(t, hidden.shape(), hidden.dtype(), ranks);
    const Tensor chosen = gathered(t, indices.shape(), Dtype::kInt64, ranks);
    const Tensor scales = gathered(t, weights.shape(), kDtype, ranks);
    // _copy_inputs_to_buffer: weights.to(torch.float32)
    const Tensor wide = t.allocate(rows_of_all(weights.shape(), ranks), Dtype::kFp32, "to");
  }
  Tensor out = to(returned(t, hidden.shape(), kDtype, ranks), hidden.dtype());
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
