#include "core/step/device_map.hpp"

#include <algorithm>
#include <deque>
#include <string_view>
#include <vector>

#include "core/layers/program.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {
namespace {

// One thing to place: `model` and its list of layers are divided where they do not fit.
enum class Part : std::uint8_t { kModel, kTable, kLayers, kLayer, kNorm, kRotary, kHead };

struct Item {
  Part part = Part::kModel;
  Count layer = 0;
};

class Placing {
 public:
  Placing(const ModuleBytes& modules, Count gpus) : m_(modules), gpus_(gpus), used_(static_cast<std::size_t>(gpus)) {
    const Bytes all = size_of(Part::kModel) + m_.head;
    const auto more = static_cast<Bytes>(1.25 * static_cast<double>(m_.layer));
    room_ = static_cast<Bytes>(static_cast<double>(all / gpus + more) * m_.share);
    map_.layers.assign(static_cast<std::size_t>(gpus), 0);
    todo_ = {{Part::kModel, 0}, {Part::kHead, 0}};
    look_for_largest();
  }

  DeviceMap run() {
    while (!todo_.empty()) {
      const Item item = todo_.front();
      todo_.pop_front();
      // The largest module that is still to come, where it is not in what is looked at.
      std::erase_if(largest_, [&](const Item& one) { return is_within(one, item); });
      if (largest_.empty()) look_for_largest();
      treat(item);
    }
    return map_;
  }

 private:
  Bytes size_of(Part part) const {
    switch (part) {
      case Part::kModel:
        return m_.table + m_.layer * m_.layers + m_.norm + m_.rotary;
      case Part::kLayers:
        return m_.layer * m_.layers;
      case Part::kTable:
        return m_.table;
      case Part::kLayer:
        return m_.layer;
      case Part::kNorm:
        return m_.norm;
      case Part::kRotary:
        return m_.rotary;
      case Part::kHead:
        return m_.head;
    }
    return 0;
  }

  static bool is_within(const Item& one, const Item& whole) {
    if (whole.part == Part::kModel) return one.part != Part::kHead;
    if (whole.part == Part::kLayers) return one.part == Part::kLayer;
    return one.part == whole.part && one.layer == whole.layer;
  }

  std::vector<Item> children(const Item& item) const {
    if (item.part == Part::kModel) {
      return {{Part::kTable, 0}, {Part::kLayers, 0}, {Part::kNorm, 0}, {Part::kRotary, 0}};
    }
    std::vector<Item> list;
    if (item.part == Part::kLayers) {
      for (Count i = 0; i < m_.layers; ++i) list.push_back({Part::kLayer, i});
    }
    return list;
  }

  // get_max_layer_size: of what cannot be divided.
  void look_for_largest() {
    most_ = 0;
    largest_.clear();
    std::deque<Item> list = todo_;
    while (!list.empty()) {
      const Item item = list.front();
      list.pop_front();
      const std::vector<Item> inner = children(item);
      if (!inner.empty()) {
        list.insert(list.begin(), inner.begin(), inner.end());
        continue;
      }
      const Bytes size = size_of(item.part);
      if (size > most_) largest_.clear();
      if (size >= most_) largest_.push_back(item);
      most_ = std::max(most_, size);
    }
  }

  void put(const Item& item) {
    const bool whole = item.part == Part::kModel;
    if (whole || item.part == Part::kTable) map_.table = gpu_;
    if (whole || item.part == Part::kLayers) map_.layers[static_cast<std::size_t>(gpu_)] += m_.layers;
    if (item.part == Part::kLayer) ++map_.layers[static_cast<std::size_t>(gpu_)];
    if (whole || item.part == Part::kNorm) map_.norm = gpu_;
    if (whole || item.part == Part::kRotary) map_.rotary = gpu_;
    if (item.part == Part::kHead) map_.head = gpu_;
    // Tied parameters go together.
    if (m_.tied && (whole || item.part == Part::kTable)) {
      map_.head = gpu_;
      std::erase_if(todo_, [](const Item& one) { return one.part == Part::kHead; });
      std::erase_if(largest_, [](const Item& one) { return one.part == Part::kHead; });
    }
  }

  void treat(const Item& item) {
    const Bytes size = size_of(item.part);
    Bytes& used = used_[static_cast<std::size_t>(gpu_)];
    const bool last = gpu_ + 1 == gpus_;
    const Bytes kept = gpu_ == 0 ? most_ : 0;
    if (last || used + size <= room_ - kept) {
      used += size;
      put(item);
      return;
    }
    const std::vector<Item> inner = children(item);
    if (!inner.empty()) {
      todo_.insert(todo_.begin(), inner.begin(), inner.end());
      look_for_largest();
      return;
    }
    ++gpu_;
    todo_.push_front(item);
  }

  const ModuleBytes& m_;
  Count gpus_;
  Count gpu_ = 0;
  Bytes room_ = 0;
  std::vector<Bytes> used_;
  std::deque<Item> todo_;
  Bytes most_ = 0;
  std::vector<Item> largest_;
  DeviceMap map_;
};

}  // namespace

DeviceMap device_map_of(const ModuleBytes& modules, Count gpus) {
  return Placing(modules, gpus).run();
}

ModuleBytes module_bytes(const Architecture& architecture, const TrainingJob& job) {
  TrainingJob plain;
  plain.framework = job.framework;
  plain.sequence_length = 8;
  Tape tape;
  tape.set_grad_enabled(false);
  Net net(tape, architecture, plain);
  record_micro_step(net, *architecture.program);
  ModuleBytes m;
  const bool packed = job.method == Method::kQlora;
  const Bytes each = size_of(job.recipe.weights);
  m.layers = architecture.num_layers;
  m.tied = architecture.tie_word_embeddings;
  // Two buffers of fp32 frequencies: inv_freq and original_inv_freq.
  m.rotary = architecture.rotary_dim * 4;
  // transformers 5.12 quantizers/quantizer_bnb_{4,8}bit.py: param_element_size, adjust_max_memory.
  if (packed) m.share = 0.9;
  for (const Parameter& p : tape.parameters()) {
    if (!p.counts) continue;
    const std::string_view module = p.module;
    if (p.instance == 0) {
      const bool matrix = packed && p.shape.rank == 2 && std::string_view{p.leaf} == "weight";
      m.layer += matrix ? p.elements() * job.quantization.bits / 8 : p.elements() * each;
    } else if (p.instance < 0) {
      const bool head = module.find("head") != std::string_view::npos;
      Bytes& part = p.is_embedding ? m.table : head ? m.head : m.norm;
      part += p.elements() * each;
    }
  }
  return m;
}

TrainingJob laid_out(const Architecture& architecture, const TrainingJob& job) {
  TrainingJob placed = job;
  if (!job.pipeline.is_device_map() || !job.pipeline.layout.empty()) return placed;
  const DeviceMap map = device_map_of(module_bytes(architecture, job), job.pipeline.stages);
  placed.pipeline.layout = map.layers;
  placed.pipeline.table = map.table;
  placed.pipeline.head = map.head;
  placed.pipeline.norm = map.norm;
  placed.pipeline.rotary = map.rotary;
  return placed;
}

}  // namespace tidemark
