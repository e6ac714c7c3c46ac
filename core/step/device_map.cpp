#include "core/step/device_map.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/layers/full_name.hpp"
#include "core/layers/program.hpp"
#include "core/step/simulation.hpp"
#include "core/units/letters.hpp"

namespace tidemark {
namespace {

class Placing {
 public:
  Placing(const ModuleTree& tree, Count gpus) : tree_(tree), gpus_(gpus), used_(static_cast<std::size_t>(gpus)) {
    const auto more = static_cast<Bytes>(1.25 * static_cast<double>(tree.largest_block));
    room_ = static_cast<Bytes>(static_cast<double>(tree.nodes.front().bytes / gpus + more) * tree.share);
    const auto& top = tree.nodes.front().children;
    todo_.assign(top.rbegin(), top.rend());
    look_for_largest();
  }

  std::vector<Pipeline::Place> run() {
    while (!todo_.empty()) {
      const std::size_t item = todo_.back();
      todo_.pop_back();
      // The largest module that is still to come, where it is not in what is looked at.
      std::erase_if(largest_, [&](std::size_t one) { return lies_in(name(one), name(item)); });
      if (largest_.empty()) look_for_largest();
      treat(item);
    }
    return std::move(places_);
  }

 private:
  const std::string& name(std::size_t node) const { return tree_.nodes[node].name; }

  // get_max_layer_size: of what cannot be divided.
  void look_for_largest() {
    most_ = 0;
    largest_.clear();
    std::vector<std::size_t> list = todo_;
    while (!list.empty()) {
      const std::size_t item = list.back();
      list.pop_back();
      const std::vector<std::size_t>& inner = tree_.nodes[item].children;
      if (!inner.empty()) {
        list.insert(list.end(), inner.rbegin(), inner.rend());
        continue;
      }
      const Bytes size = tree_.nodes[item].bytes;
      if (size > most_) largest_.clear();
      if (size >= most_) largest_.push_back(item);
      most_ = std::max(most_, size);
    }
  }

  void put(std::size_t item) {
    places_.push_back({name(item), static_cast<std::int16_t>(gpu_)});
    // Tied parameters go together.
    if (!tree_.tied || !tree_.holds(item, tree_.table) || tree_.holds(item, tree_.head)) return;
    places_.push_back({tree_.head, static_cast<std::int16_t>(gpu_)});
    const auto is_head = [this](std::size_t one) { return name(one) == tree_.head; };
    std::erase_if(todo_, is_head);
    std::erase_if(largest_, is_head);
  }

  void treat(std::size_t item) {
    const Bytes size = tree_.nodes[item].bytes;
    Bytes& used = used_[static_cast<std::size_t>(gpu_)];
    const bool last = gpu_ + 1 == gpus_;
    const Bytes kept = gpu_ == 0 ? most_ : 0;
    if (last || used + size <= room_ - kept) {
      used += size;
      put(item);
      return;
    }
    const std::vector<std::size_t>& inner = tree_.nodes[item].children;
    if (!inner.empty()) {
      todo_.insert(todo_.end(), inner.rbegin(), inner.rend());
      look_for_largest();
      return;
    }
    ++gpu_;
    todo_.push_back(item);
  }

  const ModuleTree& tree_;
  Count gpus_;
  Count gpu_ = 0;
  Bytes room_ = 0;
  std::vector<Bytes> used_;
  std::vector<std::size_t> todo_;  // the next one last
  Bytes most_ = 0;
  std::vector<std::size_t> largest_;
  std::vector<Pipeline::Place> places_;
};

// The module around it.
std::string around(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string{} : name.substr(0, dot);
}

// transformers 5.12 quantizers/quantizer_bnb_{4,8}bit.py: param_element_size.
Bytes size_at_load(const Parameter& p, const Module* module, const TrainingJob& job) {
  const bool packed = job.method == Method::kQlora && module != nullptr && module->is_quantised &&
                      !module->is_output_head && std::string_view{p.leaf} == "weight";
  return packed ? p.elements() * job.quantization.bits / 8 : p.elements() * size_of(job.recipe.weights);
}

const Module* found(const std::vector<Module>& modules, std::string_view path) {
  for (const Module& module : modules) {
    if (module.path == path) return &module;
  }
  return nullptr;
}

}  // namespace

void ModuleTree::add(const std::string& name, Bytes bytes) {
  std::size_t at = 0;
  nodes[at].bytes += bytes;
  for (std::size_t end = 0; end < name.size(); ++end) {
    end = std::min(name.find('.', end), name.size());
    const std::string prefix = name.substr(0, end);
    const std::vector<std::size_t>& inner = nodes[at].children;
    const auto known = std::find_if(inner.begin(), inner.end(), [&](std::size_t i) { return nodes[i].name == prefix; });
    std::size_t next = nodes.size();
    if (known != inner.end()) {
      next = *known;
    } else {
      nodes[at].children.push_back(next);
      nodes.push_back({prefix, 0, {}});
    }
    at = next;
    nodes[at].bytes += bytes;
  }
}

bool ModuleTree::holds(std::size_t node, const std::string& name) const {
  return lies_in(name, nodes[node].name);
}

std::vector<Pipeline::Place> device_map_of(const ModuleTree& tree, Count gpus) {
  return Placing(tree, gpus).run();
}

ModuleTree module_tree(const Architecture& architecture, const TrainingJob& job) {
  TrainingJob plain;
  plain.framework = job.framework;
  plain.sequence_length = 8;
  Tape tape;
  tape.set_grad_enabled(false);
  Net net(tape, architecture, plain);
  Census census;
  std::vector<std::size_t> kinds;
  net.census = &census;
  net.run_kinds(kinds);
  record_micro_step(net, *architecture.program);

  ModuleTree tree;
  if (job.method == Method::kQlora) tree.share = 0.9;  // adjust_max_memory
  std::vector<Bytes> of_kind(census.layers.size());
  for (const Parameter& p : tape.parameters()) {
    if (!p.counts || p.instance < 0) continue;
    const auto kind = static_cast<std::size_t>(p.instance);
    of_kind[kind] += size_at_load(p, found(census.layers[kind], p.module), job);
  }
  // A model's own parts in the order of their forward, behind the towers of one that sees.
  const std::vector<LayerPlan::Stack>& stacks = net.plan().stacks;
  const std::string language = around(full_name(architecture, architecture.layers_path));
  std::vector<std::pair<std::string, Bytes>> own, towers;
  const auto add = [&](const std::string& name, Bytes bytes, bool is_head) {
    (is_head || lies_in(name, language) ? own : towers).emplace_back(name, bytes);
  };
  // integrations/accelerate.py get_balanced_memory: until 5.17 room for the first of the blocks that are not divided,
  // from 5.18 on for the largest of them or of the modules that hold weights.
  const bool of_all = job.framework.at_least(5, 18);
  std::size_t next = 0;
  for (const Parameter& p : tape.parameters()) {
    if (!p.counts) continue;
    if (p.instance < 0) {
      const Module* module = found(census.outside, p.module);
      const std::string name = full_name(architecture, p.module);
      if (module != nullptr && module->is_token_table) tree.table = name;
      if (module != nullptr && module->is_output_head) tree.head = name;
      add(name, size_at_load(p, module, job), module != nullptr && module->is_output_head);
    }
    while (next < stacks.size() && p.instance >= stacks[next].tape_begin) {
      const LayerPlan::Stack& stack = stacks[next++];
      const std::string path = full_name(architecture, stack.path);
      for (Count i = 0; i < stack.layers; ++i) {
        const Bytes bytes = of_kind[kinds[static_cast<std::size_t>(stack.first + i)]];
        if (i == 0 || of_all) tree.largest_block = std::max(tree.largest_block, bytes);
        add(path + "." + std::to_string(i), bytes, false);
      }
    }
  }
  tree.tied = architecture.tie_word_embeddings;
  if (tree.tied) {
    const auto head =
        std::find_if(census.outside.begin(), census.outside.end(), [](const Module& m) { return m.is_output_head; });
    tree.head = head == census.outside.end() ? "lm_head" : full_name(architecture, head->path);
  }
  for (const auto& [name, bytes] : towers) tree.add(name, bytes);
  const auto is_own = [&](const auto& one) { return one.first != tree.head; };
  const auto heads = std::stable_partition(own.begin(), own.end(), is_own);
  for (auto it = own.begin(); it != heads; ++it) tree.add(it->first, it->second);
  // Two buffers of fp32 frequencies behind the last norm: inv_freq and original_inv_freq.
  const std::string prefix = language.empty() ? "" : language + ".";
  if (architecture.rotary_dim > 0) tree.add(prefix + "rotary_emb", architecture.rotary_dim * 4);
  if (tree.tied) tree.add(tree.head, 0);
  for (auto it = heads; it != own.end(); ++it) tree.add(it->first, it->second);
  for (const ModuleTree::Node& node : tree.nodes) {
    if (of_all && node.children.empty()) tree.largest_block = std::max(tree.largest_block, node.bytes);
  }
  return tree;
}

TrainingJob laid_out(const Architecture& architecture, const TrainingJob& job) {
  TrainingJob placed = job;
  if (!job.pipeline.is_device_map() || !job.pipeline.places.empty()) return placed;
  const NoSplit named = architecture.facts.no_split;
  if (named == NoSplit::kOtherParts || named == NoSplit::kNotTower || architecture.facts.divides_tower_layers) {
    placed.stand_ins.emplace_back("layers that accelerate divides between GPUs, answered by whole ones");
  }
  const ModuleTree tree = module_tree(architecture, job);
  Pipeline& how = placed.pipeline;
  how.places = device_map_of(tree, job.pipeline.stages);
  const std::string path = full_name(architecture, architecture.layers_path);
  how.layout.assign(static_cast<std::size_t>(how.stages), 0);
  for (Count i = 0; i < architecture.num_layers; ++i) {
    ++how.layout[static_cast<std::size_t>(how.card_of(path + "." + std::to_string(i)))];
  }
  how.table = how.card_of(tree.table);
  how.head = how.card_of(tree.head);
  const std::string prefix = around(path).empty() ? "" : around(path) + ".";
  how.rotary = how.card_of(prefix + "rotary_emb");
  how.norm = how.rotary;
  // The last norm is what comes behind the layers.
  bool behind = false;
  for (const ModuleTree::Node& node : tree.nodes) {
    if (behind && around(node.name) == around(path)) {
      how.norm = how.card_of(node.name);
      break;
    }
    behind = behind || node.name == path;
  }
  return placed;
}

}  // namespace tidemark
