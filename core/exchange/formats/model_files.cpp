// What lies beside the weights: safetensors headers, the index of a sharded checkpoint, GGUF headers.
#include <algorithm>

#include "core/exchange/fields.hpp"
#include "core/exchange/model_files/gguf.hpp"
#include "core/exchange/model_files/safetensors.hpp"
#include "core/units/sorted.hpp"

namespace tidemark::exchange {
namespace {

void refuse(Reading& reading, const Source& source, const std::string& why) {
  reading.issues.push_back(
      {"UNREADABLE_FILE", Severity::kError, source.name, "\"" + source.name + "\" is not read: " + why + ".", ""});
}

Origin head_of(const Source& source) {
  return {source.name, 1, 1};
}

std::vector<std::string_view> names_of(const std::vector<FileTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const FileTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

bool any_ends(const std::vector<std::string_view>& names, std::string_view with) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return ends(name, with); });
}

bool any_holds(const std::vector<std::string_view>& names, std::string_view word) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return name.find(word) != std::string_view::npos; });
}

/// Whether the file is one of several: "model-00001-of-00004.safetensors".
bool is_shard(const Source& source) {
  return base_name(source.name).find("-of-") != std::string_view::npos;
}

/// How the weights are packed, by the names of what is stored beside them.
std::string_view packing_of(const std::vector<std::string_view>& names) {
  if (any_ends(names, "quant_state.bitsandbytes__nf4")) return "bitsandbytes nf4";
  if (any_ends(names, "quant_state.bitsandbytes__fp4")) return "bitsandbytes fp4";
  if (any_ends(names, ".SCB")) return "bitsandbytes int8";
  if (any_ends(names, ".g_idx")) return "gptq";
  if (any_ends(names, ".qweight")) return "awq";
  if (any_ends(names, ".weight_scale_inv")) return "fp8";
  return {};
}

// safetensors ---------------------------------------------------------------------------------------------------------

int recognise_safetensors(const Look& look) {
  const bool named = name_ends(look.source, ".safetensors");
  return named ? 96 : looks_like_safetensors(look.source.bytes) ? 92 : 0;
}

Value header_of(std::string_view format, const ModelHeader& header) {
  Value by_dtype = empty_object();
  Count elements = 0;
  for (const auto& [dtype, count] : elements_by_dtype(header.tensors)) {
    by_dtype.members.push_back({dtype, of(count)});
    elements += count;
  }
  return object({{"format", of(format)},
                 {"tensors", of(static_cast<std::int64_t>(header.tensors.size()))},
                 {"elements", of(elements)},
                 {"elements_by_dtype", std::move(by_dtype)},
                 {"data_bytes", of(header.data_bytes)},
                 {"metadata", header.metadata}});
}

/// "self_attn.q_proj" of "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": its last part.
std::string_view adapted_module(std::string_view name) {
  name = name.substr(0, name.find(".lora_A"));
  return name.substr(name.rfind('.') + 1);
}

/// Adapters tell their rank and modules (peft 0.18.0 utils/save_and_load.py: get_peft_model_state_dict).
void read_adapter(const ModelHeader& header, const Source& source, Reading& reading) {
  std::vector<std::string> modules;
  Count rank = 0;
  for (const FileTensor& tensor : header.tensors) {
    if (tensor.name.find(".lora_A") == std::string::npos || tensor.shape.empty()) continue;
    rank = std::max(rank, tensor.shape[0]);
    modules.emplace_back(adapted_module(tensor.name));
  }
  if (rank == 0) return;
  std::vector<Value> targets;
  for (const std::string& module : ascending(std::move(modules))) targets.push_back(of(module));
  state(reading, "method", of("lora"), {head_of(source)});
  state(reading, "adapter.r", of(rank), {head_of(source)});
  state(reading, "adapter.target_modules", of(std::move(targets)), {head_of(source)});
  if (any_holds(names_of(header.tensors), "lora_magnitude_vector")) {
    state(reading, "adapter.use_dora", of(true), {head_of(source)});
  }
  reading.unknowns.emplace_back("lora or qlora: adapters do not record how their base was quantised");
}

/// A whole model that is not packed has as many parameters as elements.
void read_parameters(const ModelHeader& header, const Source& source, Reading& reading) {
  const auto names = names_of(header.tensors);
  const bool adapter = any_holds(names, ".lora_A");
  if (adapter || is_shard(source) || !packing_of(names).empty() || layers_of(names) == 0) return;
  Count elements = 0;
  for (const FileTensor& tensor : header.tensors) elements += tensor.elements;
  state(reading, "parameters", of(elements), {head_of(source)},
        "the elements that the header counts; config.json beside it says more than names and shapes do");
}

void read_names(const std::vector<std::string_view>& names, Value& out) {
  if (const Count layers = layers_of(names); layers > 0) {
    out.members.push_back({"layers", of(layers)});
    out.members.push_back({"tied_embeddings", of(!any_ends(names, "lm_head.weight"))});
  }
  if (const Count experts = highest_number(names, {"experts"}); experts > 0) {
    out.members.push_back({"experts", of(experts)});
  }
  if (const std::string_view packing = packing_of(names); !packing.empty()) {
    out.members.push_back({"packing", of(packing)});
  }
}

void read_safetensors_file(const Look& look, Sources, Reading& reading) {
  const Source& source = look.source;
  const std::uint64_t size = source.size == 0 ? source.bytes.size() : source.size;
  ModelHeader header;
  if (const std::string why = read_safetensors(source.bytes, size, header); !why.empty()) {
    return refuse(reading, source, why);
  }
  Value files = header_of("safetensors", header);
  const auto names = names_of(header.tensors);
  const bool adapter = any_holds(names, ".lora_A");
  if (!adapter && !is_shard(source)) read_names(names, files);
  state(reading, "model_files", std::move(files), {head_of(source)});
  read_adapter(header, source, reading);
  read_parameters(header, source, reading);
  reading.unknowns.emplace_back("everything about training");
}

// model.safetensors.index.json ----------------------------------------------------------------------------------------

int recognise_index(const Look& look) {
  const Node* map = look.find("weight_map");
  return map != nullptr && map->is_map() ? 95 : 0;
}

Count shards_of(const Node& map) {
  std::vector<std::string> shards;
  for (const Node& shard : map.items) shards.push_back(shard.text);
  return static_cast<Count>(ascending(std::move(shards)).size());
}

/// total_size is in the file's own metadata; it may lack, or be of before a merge.
void read_index(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  const Node& map = *look.find("weight_map");
  keys.touch("weight_map");
  keys.copy("model_files.total_size", "metadata.total_size");
  keys.copy("model_files.total_parameters", "metadata.total_parameters");
  const std::vector<std::string_view> names(map.keys.begin(), map.keys.end());
  Value files = object({{"tensors", of(static_cast<std::int64_t>(names.size()))}, {"shards", of(shards_of(map))}});
  read_names(names, files);
  for (Value::Member& member : files.members) keys.state("model_files." + member.key, member.value, {&map});
  if (const Node* parameters = keys["metadata.total_parameters"]; parameters != nullptr && parameters->is_integer()) {
    keys.state("parameters", of(parameters->integer), {parameters});
  }
  keys.unknown("dtype and shapes: in the shards' headers or config.json");
  keys.unknown("everything about training");
}

// GGUF ----------------------------------------------------------------------------------------------------------------

int recognise_gguf(const Look& look) {
  if (look.source.bytes.substr(0, 4) == "GGUF") return 95;
  return name_ends(look.source, ".gguf") ? 90 : 0;
}

const Value* metadata(const GgufHeader& header, const std::string& key) {
  const Value* value = header.model.metadata.find(key);
  return value != nullptr && !value->is_object() ? value : nullptr;
}

std::string architecture_of(const GgufHeader& header) {
  const Value* name = metadata(header, "general.architecture");
  return name == nullptr ? std::string{} : name->string;
}

/// transformers 5.12.1 integrations/ggml.py: GGUF_CONFIG_MAPPING, of the families whose keys are named alike.
constexpr std::pair<std::string_view, std::string_view> kModelTypes[] = {
    {"llama", "llama"},   {"qwen2", "qwen2"}, {"qwen3", "qwen3"},           {"qwen3moe", "qwen3_moe"},
    {"gemma2", "gemma2"}, {"phi3", "phi3"},   {"starcoder2", "starcoder2"}, {"stablelm", "stablelm"},
};
constexpr std::pair<std::string_view, std::string_view> kConfigKeys[] = {
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
    {"vocab_size", "vocab_size"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
};

/// config.json as GGUF's metadata tell it; null where they tell too little.
Value config_of(const GgufHeader& header) {
  const std::string architecture = architecture_of(header);
  const auto* known = std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                                   [&](const auto& type) { return type.first == architecture; });
  if (known == std::end(kModelTypes)) return {};
  Value config = object({{"model_type", of(known->second)}});
  for (const auto& [key, name] : kConfigKeys) {
    const Value* value = metadata(header, architecture + "." + std::string{key});
    if (value != nullptr && value->is_integer()) config.members.push_back({std::string{name}, *value});
  }
  bool tied = true;
  for (const FileTensor& tensor : header.model.tensors) {
    if (tensor.name == "output.weight") tied = false;
    const bool embedding = tensor.name == "token_embd.weight" && tensor.shape.size() == 2;
    if (embedding && config.find("vocab_size") == nullptr)
      config.members.push_back({"vocab_size", of(tensor.shape[0])});
  }
  config.members.push_back({"tie_word_embeddings", of(tied)});
  for (std::string_view needed : {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"}) {
    if (config.find(needed) == nullptr) return {};
  }
  return config;
}

void read_gguf_file(const Look& look, Sources, Reading& reading) {
  GgufHeader header;
  if (const std::string why = read_gguf(look.source.bytes, header); !why.empty()) {
    return refuse(reading, look.source, why);
  }
  Count elements = 0;
  for (const FileTensor& tensor : header.model.tensors) elements += tensor.elements;
  Value types = empty_object();
  for (const auto& [type, count] : elements_by_dtype(header.model.tensors)) {
    const auto tensors = std::count_if(header.model.tensors.begin(), header.model.tensors.end(),
                                       [&, &type = type](const FileTensor& tensor) { return tensor.dtype == type; });
    types.members.push_back({type, of(static_cast<std::int64_t>(tensors))});
  }
  const std::string architecture = architecture_of(header);
  Value files = object({{"format", of("gguf")},
                        {"version", of(header.version)},
                        {"architecture", architecture.empty() ? Value{} : of(architecture)},
                        {"metadata", header.model.metadata},
                        {"tensors", of(static_cast<std::int64_t>(header.model.tensors.size()))},
                        {"elements", of(elements)},
                        {"types", std::move(types)}});
  state(reading, "model_files", std::move(files), {head_of(look.source)});
  if (Value config = config_of(header); config.is_object()) {
    state(reading, "config", std::move(config), {head_of(look.source)},
          "GGUF's metadata under config.json's names (transformers 5.12.1 integrations/ggml.py: GGUF_CONFIG_MAPPING)");
  }
  if (!header.whole) reading.notes.emplace_back("The header goes on behind what was handed over.");
  reading.unknowns.emplace_back("GGUF is an inference format: no trainer reads it as it is");
}

const Format kRows[] = {
    {"safetensors_header", "safetensors header", recognise_safetensors, read_safetensors_file, 20},
    {"safetensors_index", "index of a sharded checkpoint", recognise_index, read_index, 20},
    {"gguf_header", "GGUF header", recognise_gguf, read_gguf_file, 20},
};

}  // namespace

extern const FormatRows model_files_rows;
const FormatRows model_files_rows = kRows;

}  // namespace tidemark::exchange
