// What a mixture's leaf modules change in ZeRO-3's order of modules. Before a leaf module is let go, what comes next is
// counted as it counts itself, with all that lies in a module (`__params_to_release`: iter_params(module,
// recurse=z3_leaf_module(submodule_to_release))), so that modules around others count as well. In every model each
// module that only holds others gathers ahead as they do.
#include "core/plan/zero_leaf.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/plan/zero_gather.hpp"

namespace tidemark {
namespace {

constexpr int kPlacesInLeaf = 5;  // that place_in_leaf knows

std::string_view name_of(const Parameter& p) {
  const std::string_view path = p.module;
  return path.substr(path.rfind('.') + 1);
}

// Whether an activation, a module without parameters, lies between these (transformers' ACT2FN makes modules).
bool activates_between(const Parameter& p, const Parameter& other) {
  const std::string_view a = name_of(p), b = name_of(other);
  return (a == "gate_proj" && b == "up_proj") || (a == "fc1" && b == "fc2");
}

}  // namespace

bool has_leaf_modules(std::string_view model_type) {
  return model_type == "mixtral" || model_type == "qwen2_moe" || model_type == "qwen3_moe";
}

int place_in_leaf(std::string_view module, bool experts_first) {
  const std::size_t dot = module.find('.');
  if (dot == std::string_view::npos) return -1;
  const std::string_view block = module.substr(0, dot), name = module.substr(dot + 1);
  if (block != "mlp" && block != "block_sparse_moe") return -1;
  if (name == "gate") return experts_first ? 2 : 0;
  if (name.substr(0, 7) == "experts") return 1;
  if (name.substr(0, 13) != "shared_expert") return -1;
  return name == "shared_expert_gate" ? 4 : 3;
}

const Parameter& ZeroGather::first_of(std::size_t module) const {
  return tape_.parameters()[static_cast<std::size_t>(forward_[module].front())];
}

bool ZeroGather::is_leaf(const Parameter& p) const {
  return leaves_ && place_in_leaf(p.module, false) >= 0;
}

// record_parameters: in the order of ds_id.
void ZeroGather::sort_leaves(bool experts_first) {
  const auto place = [&](std::int32_t p) {
    return place_in_leaf(tape_.parameters()[static_cast<std::size_t>(p)].module, experts_first);
  };
  for (std::vector<std::int32_t>& module : forward_) {
    if (place(module.front()) < 0) continue;
    std::vector<std::int32_t> sorted;
    for (int at = 0; at < kPlacesInLeaf; ++at) {
      std::copy_if(module.begin(), module.end(), std::back_inserter(sorted),
                   [&](std::int32_t p) { return place(p) == at; });
    }
    module = std::move(sorted);
  }
}

// Whether a module lies in what the first `length` letters of another's path name: a layer (none), "self_attn", or, all
// of them, what PEFT has put around a linear layer.
bool ZeroGather::shares(std::size_t module, std::size_t other, std::size_t length) const {
  if (other >= forward_.size() || instances_[other] != instances_[module]) return false;
  if (length == 0) return true;
  const char *a = first_of(module).module, *b = first_of(other).module;
  return !is_leaf(first_of(other)) && std::strncmp(a, b, length) == 0 && (b[length] == '.' || b[length] == '\0');
}

// lora_A's weight, where it is not whole all the time: the first of the adapter's that a linear layer's wrapper has.
std::int32_t ZeroGather::read_by_wrapper(std::size_t module, std::size_t length) const {
  if (job_.adapter.kind != AdapterKind::kLora) return -1;
  std::size_t i = module;
  while (i > 0 && shares(module, i - 1, length)) --i;
  while (shares(module, i, length) && !first_of(i).is_adapter) ++i;
  if (!shares(module, i, length)) return -1;
  const std::int32_t first = forward_[i].front();
  return parts_[static_cast<std::size_t>(first) - first_].persists ? -1 : first;
}

// The modules around this one that begin before it, where `from` has run last.
void ZeroGather::open_containers(std::size_t module, std::size_t from) {
  const Parameter& p = first_of(module);
  if (instances_[module] < 0) {
    // PeftModel, LoraModel and the model with a head before the first and the last of all; the model without, too.
    const Count around = job_.has_adapter() && !reference_ ? 3 : 1;
    if (module == 0)
      ahead_ += around + 1;
    else
      ahead_ += module + 1 == forward_.size() && from == kNone ? around : 1;
    // transformers 5.12 models/{clip,siglip,siglip2}: …TextEmbeddings.forward asks for the length of its table of
    // positions before it calls anything.
    const std::size_t next = module + 1;
    if (from != kNone && next < forward_.size() &&
        std::strcmp(first_of(next).module, "text_model.embeddings.position_embedding") == 0 &&
        !parts_[static_cast<std::size_t>(forward_[next].front()) - first_].persists) {
      read_around_ = forward_[next].front();
      ++ahead_;
    }
    return;
  }
  const std::size_t size = is_leaf(p) ? 0 : std::strlen(p.module);
  for (std::size_t length = 0; length <= size; ++length) {
    const bool whole = length == size && length > 0;
    if (length > 0 && !whole && p.module[length] != '.') continue;
    if (shares(module, from, length)) continue;
    Count inside = 0;
    std::size_t modules = 0;
    for (std::size_t i = module; i > 0 && shares(module, i - 1, length); --i) inside += elements_of(i - 1), ++modules;
    for (std::size_t i = module; shares(module, i, length); ++i) inside += elements_of(i), ++modules;
    if (whole && modules == 1) continue;
    if (length == 0) layer_ = deep_;
    deep_ += inside;
    ++ahead_;
    if (whole) read_around_ = read_by_wrapper(module, length);
  }
  // lora_dropout lies between a linear layer and its lora_A.
  const bool forward = from != kNone && from < module;
  if (job_.has_adapter() && from != kNone && shares(module, from, size) && size > 0) {
    const Parameter& last = first_of(from);
    ahead_ += (forward ? p.is_adapter && !last.is_adapter : !p.is_adapter && last.is_adapter) ? 1 : 0;
  }
  if (from != kNone && shares(module, from, 0)) {
    const Parameter& last = first_of(from);
    ahead_ += activates_between(p, last) || activates_between(last, p) ? 1 : 0;
  }
}

// stage3.py reduce_leaf_module_grads: as the backward of the whole is through.
void ZeroGather::reduce_held() {
  std::sort(held_.begin(), held_.end());
  for (const std::int32_t p : held_) {
    Tensor grad = std::move(part_of(p).grad);
    add_to_bucket(p, std::move(grad));
  }
  held_.clear();
}

}  // namespace tidemark
