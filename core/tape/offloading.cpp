// trl 1.9 models/activation_offloading.py: OffloadActivations, hooks on all tensors that autograd saves, which copy
// them on a stream of their own. Memory counts as free with the last reference, whatever streams still wait for it, so
// that the dictionaries of that class alone decide.
#include <algorithm>

#include "core/tape/tape.hpp"

namespace tidemark {
namespace {

constexpr Count kLeastBytes = 1024;     // min_offload_size
constexpr std::int32_t kStashSize = 5;  // max_fwd_stash_size

bool is_broadcast(const Shape& shape, int dimension) {
  return shape.strides[dimension] == 0 && shape.size(dimension) > 1;
}

}  // namespace

// The first tensor that is packed behind the last one that was asked for begins a new pass.
void Tape::ask() {
  Offloading& o = offloading_;
  if (o.waiting++ == 0) {
    o.known.clear();
    o.graph = nullptr;
  }
  ++o.asked;
}

void Tape::answered() {
  --offloading_.waiting;
}

// A checkpoint's input goes at once, because the tape has few of the layers; where they end, those that the loss sees
// are there again.
void Tape::hold_leaving_inputs() {
  Offloading& o = offloading_;
  if (o.inputs.empty()) return;
  let_leave(o.inputs.back().packed - kStashSize);
  for (const OnHost& input : o.inputs) {
    if (input.packed <= o.inputs.back().packed - kStashSize) continue;
    auto at = o.leaving.end();
    while (at != o.leaving.begin() && std::prev(at)->packed > input.packed) --at;
    o.leaving.insert(at, {input.packed, allocate(input.shape, input.dtype, "input on its way to the host")});
  }
  o.inputs.clear();
}

// pack_tensor
void Tape::offload(Saved& saved, const Tensor& tensor) {
  Offloading& o = offloading_;
  ask();
  saved.packed = o.asked;
  saved.tensor = without_edge(tensor);
  const std::int32_t storage = tensor.storage();
  const Dtype dtype = tensor.dtype();
  const Count offset = saved.tensor.body().offset;
  for (Offloading::Known& known : o.known) {
    if (known.storage != storage || known.offset != offset || known.dtype != dtype) continue;
    known.packed = saved.packed;  // it was saved a moment ago: this time it stays where it is
    return;
  }
  if (storage < 0) return;
  const Site& site = sites()[static_cast<std::size_t>(storages()[static_cast<std::size_t>(storage)].site)];
  if (site.category == Category::kWeights || !above(tensor.numel(), (kLeastBytes - 1) / size_of(dtype))) return;
  const Tensor last = let_leave(saved.packed - kStashSize);  // pack_tensor's own variable holds it to its end
  TensorBody body = saved.tensor.body();
  bool broadcast = false;
  for (int i = 0; i < body.shape.rank; ++i) broadcast = broadcast || is_broadcast(body.shape, i);
  if (!broadcast && (!body.shape.is_contiguous() || offset != 0)) {
    body.shape.make_contiguous();
    body.offset = 0;
    saved.tensor = allocate(body.shape, dtype, "contiguous");
  }
  o.known.push_back({saved.packed, storage, offset, dtype});
  o.leaving.push_back({saved.packed, std::move(saved.tensor)});
  offloaded_.emplace_back(instance_, round_to_block(body.shape.numel() * size_of(dtype)));
  body.storage = -1;
  saved.tensor = handle(body);
  saved.on_host = true;
}

// What was saved so long ago is in host memory by now. The last of these.
Tensor Tape::let_leave(std::int32_t until) {
  Offloading& o = offloading_;
  Tensor last;
  std::size_t gone = 0;
  while (gone < o.leaving.size() && o.leaving[gone].packed <= until) {
    last = o.leaving[gone].tensor;
    const std::int32_t packed = o.leaving[gone++].packed;
    o.known.erase(std::remove_if(o.known.begin(), o.known.end(), [&](const auto& k) { return k.packed == packed; }),
                  o.known.end());
  }
  o.leaving.erase(o.leaving.begin(), o.leaving.begin() + static_cast<std::ptrdiff_t>(gone));
  return last;
}

// curr_autograd_node is not reset behind a backward. Its graph ends in the leaf that the inputs are, where the table is
// not trained, and a leaf has its gradient.
void Tape::keep_behind_last_node(Tensor leaf) {
  if (!behind_last_node_.empty()) return;
  Tensor gradient = allocate(leaf.shape(), leaf.dtype(), "gradient of the inputs");
  behind_last_node_.push_back(std::move(leaf));
  behind_last_node_.push_back(std::move(gradient));
}

// unpack_tensor_with_streams
void Tape::unpack(Saved& saved) {
  Offloading& o = offloading_;
  const auto is_it = [&](const auto& one) { return one.packed == saved.packed; };
  if (saved.on_host) {
    let_last_node_go();
    ++o.unpacked;
    const auto leaving = std::find_if(o.leaving.begin(), o.leaving.end(), is_it);
    if (leaving != o.leaving.end()) {
      saved.tensor = leaving->tensor;
    } else {
      TensorBody body = saved.tensor.body();
      Shape stored = body.shape;
      for (int i = 0; i < stored.rank; ++i) {
        if (is_broadcast(body.shape, i)) stored.dims[i] = Dim(1);
      }
      stored.make_contiguous();
      const Tensor back = allocate(stored, body.dtype, "back from the host");
      body.storage = back.storage();
      saved.tensor = handle(body);
      o.back.push_back({saved.packed, saved.tensor});
    }
  }
  o.known.erase(std::remove_if(o.known.begin(), o.known.end(), is_it), o.known.end());
  answered();
}

// The hook behind a node whose tensors came back: those of the node before go, and what others still hold is theirs.
void Tape::after_unpacking(std::size_t before) {
  Offloading& o = offloading_;
  let_leave(o.asked);
  o.back.erase(o.back.begin(), o.back.begin() + static_cast<std::ptrdiff_t>(std::min(before, o.back.size())));
  const auto is_held = [this](const Offloading::Held& one) {
    return storages()[static_cast<std::size_t>(one.tensor.storage())].references > 1;
  };
  o.back.erase(std::remove_if(o.back.begin(), o.back.end(), is_held), o.back.end());
}

}  // namespace tidemark
