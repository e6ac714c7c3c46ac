// accelerate 1.14.0 commands/launch.py: launch_command_parser, utils/launch.py: prepare_multi_gpu_env and
// prepare_deepspeed_cmd_env: each flag is the key of the YAML of that name, and sections count where --use_fsdp or
// --use_deepspeed switches them on.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/exchange/accelerate_keys.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::string_view kOfDeepspeed[] = {
    "zero_stage",        "offload_optimizer_device",    "offload_param_device", "offload_optimizer_nvme_path",
    "gradient_clipping", "gradient_accumulation_steps", "zero3_init_flag",      "deepspeed_config_file"};

/// Where launch.py's flag of that name stands in accelerate's YAML; empty for flags of the launcher alone.
std::string path_of(const std::string& key, bool shards, bool deepspeed) {
  if (shards && key.starts_with("fsdp_")) return "fsdp_config." + key;
  if (shards && key.starts_with("parallelism_config_")) return "parallelism_config." + key;
  if (deepspeed && std::find(std::begin(kOfDeepspeed), std::end(kOfDeepspeed), key) != std::end(kOfDeepspeed))
    return "deepspeed_config." + key;
  return key == "mixed_precision" ? key : std::string{};
}

}  // namespace

void put_node(Node& map, std::string_view dotted, Node value) {
  map.kind = Node::Kind::kObject;
  const std::size_t dot = dotted.find('.');
  const std::string key{dotted.substr(0, dot)};
  const auto known = std::find(map.keys.begin(), map.keys.end(), key);
  const std::size_t at = static_cast<std::size_t>(known - map.keys.begin());
  if (known == map.keys.end()) {
    map.keys.push_back(key);
    map.items.emplace_back();
    map.items.back().line = map.items.back().last = value.line;
  }
  if (dot == std::string_view::npos) {
    map.items[at] = std::move(value);
  } else {
    put_node(map.items[at], dotted.substr(dot + 1), std::move(value));
  }
}

Node text_node(std::string_view text, int line) {
  Node node;
  node.kind = Node::Kind::kString;
  node.text = text;
  node.line = node.last = line;
  return node;
}

bool read_accelerate_flags(Args& options, const std::string& file, Reading& reading) {
  const bool shards = options.on("use_fsdp");
  const bool deepspeed = options.on("use_deepspeed");
  Node tree;
  tree.kind = Node::Kind::kObject;
  const auto line_of = [](const Arg& arg) { return arg.origins.empty() ? 0 : arg.origins.front().first; };
  for (const auto& [flag, word] : {std::pair{"use_fsdp", "FSDP"}, {"use_deepspeed", "DEEPSPEED"}}) {
    const Arg* said = options.on(flag) ? options.find(flag) : nullptr;
    if (said != nullptr) put_node(tree, "distributed_type", text_node(word, line_of(*said)));
  }
  for (Arg& arg : options.all) {
    const std::string path = path_of(arg.key, shards, deepspeed);
    if (path.empty() || !arg.unresolved.empty()) continue;
    arg.read = true;
    Node value = arg.value;
    value.line = value.last = line_of(arg);
    put_node(tree, path, std::move(value));
  }
  Reading told;
  Keys keys(tree, file, told);
  if (const Node* mixed = keys["mixed_precision"]; mixed != nullptr)
    keys.state("mixed_precision", of(mixed->is_bool() ? std::string{"no"} : mixed->text), {mixed});
  read_accelerate_sharding(keys);
  keys.tell_unread();
  const bool is_open = keys["mixed_precision"] == nullptr;  // the program decides
  for (Finding& one : told.findings) {
    if (is_open && one.path == "precision") continue;
    state(reading, one.path, std::move(one.value), std::move(one.origins), std::move(one.assumed));
  }
  reading.unread.insert(reading.unread.end(), told.unread.begin(), told.unread.end());
  reading.unknowns.insert(reading.unknowns.end(), told.unknowns.begin(), told.unknowns.end());
  reading.companions.insert(reading.companions.end(), told.companions.begin(), told.companions.end());
  return shards || deepspeed;
}

}  // namespace tidemark::exchange
