#include "core/model/config_common.hpp"

#include <string>

namespace tidemark {

void read_dimensions(ConfigFields& fields, Architecture& architecture, Count default_max_positions) {
  architecture.hidden_size = fields.required({"hidden_size"});
  const Value* width = fields.find({"intermediate_size"});
  if (width != nullptr && width->is_array() && !width->items.empty()) {
    // Gemma3nTextConfig: one for every layer.
    architecture.intermediate_size = width->items.front().integer;
    for (const Value& other : width->items) {
      if (other.is_integer() && other.integer == architecture.intermediate_size && other.integer > 0) continue;
      fields.error("INVALID_VALUE", "intermediate_size",
                   "Layers whose feed-forwards differ in width are not modelled.");
      break;
    }
  } else {
    architecture.intermediate_size = fields.required({"intermediate_size"});
  }
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, default_max_positions);
}

void read_frame_dimensions(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
}

void read_kv_heads(ConfigFields& fields, Architecture& architecture, std::optional<Count> class_default) {
  constexpr std::string_view kKey = "num_key_value_heads";
  const bool given = fields.find({kKey}) != nullptr;
  architecture.num_kv_heads = fields.nullable({kKey}, class_default).value_or(architecture.num_heads);
  if (architecture.num_heads == 0 || architecture.num_kv_heads == 0) return;  // already an error
  if (architecture.num_heads % architecture.num_kv_heads != 0) {
    const std::string counts = std::to_string(architecture.num_kv_heads) + " key/value heads do not divide " +
                               std::to_string(architecture.num_heads) + " query heads";
    fields.error("INVALID_VALUE", kKey,
                 given ? counts + "."
                       : "\"num_key_value_heads\" is absent and the class's default does not fit: " + counts + ".");
    return;
  }
  if (!given && architecture.num_kv_heads != architecture.num_heads) {
    fields.note("ASSUMED_DEFAULT", kKey,
                "\"num_key_value_heads\" is absent; the class's default of " +
                    std::to_string(architecture.num_kv_heads) + " is used.");
  }
}

namespace {

void set_even_head_dim(ConfigFields& fields, Architecture& architecture) {
  if (architecture.hidden_size == 0 || architecture.num_heads == 0) return;  // already an error
  if (architecture.hidden_size % architecture.num_heads != 0) {
    fields.error("INVALID_VALUE", "num_attention_heads",
                 std::to_string(architecture.num_heads) + " heads do not divide a width of " +
                     std::to_string(architecture.hidden_size) + ".");
    return;
  }
  architecture.head_dim = architecture.hidden_size / architecture.num_heads;
}

}  // namespace

void derive_head_dim(ConfigFields& fields, Architecture& architecture) {
  set_even_head_dim(fields, architecture);
  const std::optional<Count> stated = fields.nullable({"head_dim"}, std::nullopt);
  if (stated.has_value() && architecture.head_dim > 0 && *stated != architecture.head_dim) {
    fields.warning(
        "INVALID_VALUE", "head_dim",
        "This family does not read \"head_dim\"; its heads are " + std::to_string(architecture.head_dim) + " wide.");
  }
}

void read_head_dim(ConfigFields& fields, Architecture& architecture, std::optional<Count> class_default) {
  const std::optional<Count> head_dim = fields.nullable({"head_dim"}, class_default);
  if (head_dim.has_value()) {
    architecture.head_dim = *head_dim;
  } else {
    set_even_head_dim(fields, architecture);
  }
}

std::optional<double> rotary_factor_of(ConfigFields& fields, const char* layer_type) {
  const Value* const all = fields.find({"rope_parameters"});
  const Value* const given = all != nullptr ? all->find(layer_type) : nullptr;
  const Value* const part = given != nullptr ? given->find("partial_rotary_factor") : nullptr;
  if (part == nullptr || !part->is_number()) return std::nullopt;
  if (part->real >= 0.0 && part->real <= 1.0) return part->real;
  fields.error("INVALID_VALUE", "rope_parameters", "\"partial_rotary_factor\" must lie between 0 and 1.");
  return std::nullopt;
}

const Value* list_of_layers(ConfigFields& fields, std::string_view key, Count num_layers) {
  const Value* const list = fields.find({key});
  if (list == nullptr || list->is_null()) return nullptr;
  if (list->is_array() && static_cast<Count>(list->items.size()) == num_layers) return list;
  fields.error("INVALID_VALUE", key, "\"" + std::string{key} + "\" must be a list with one entry per layer.");
  return nullptr;
}

void read_rotary_factor(ConfigFields& fields, Architecture& architecture, double class_default) {
  double factor = fields.number({"partial_rotary_factor"}, class_default);
  // The newer dictionary counts before the key beside it.
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const Value* rope = fields.find({key});
    if (rope == nullptr) continue;
    const Value* inner = rope->find("partial_rotary_factor");
    if (inner != nullptr && inner->is_number()) factor = inner->real;
  }
  if (!(factor >= 0.0 && factor <= 1.0)) {
    fields.error("INVALID_VALUE", "partial_rotary_factor", "\"partial_rotary_factor\" must lie between 0 and 1.");
    return;
  }
  // int(head_dim * factor), as every modelling file has it.
  architecture.rotary_dim = static_cast<Count>(static_cast<double>(architecture.head_dim) * factor);
  if (architecture.head_dim > 0 && architecture.rotary_dim == 0) {
    fields.error("INVALID_VALUE", "partial_rotary_factor",
                 "No dimension of a head turns: \"partial_rotary_factor\" of its dimensions is none.");
  }
}

Activation activation_named(std::string_view name, std::string_view key, ConfigFields& fields) {
  struct Named {
    std::string_view name;
    Activation activation;
  };
  // transformers 5.12.1 activations.py: ACT2CLS. "gelu_python" and its like compute the same out of many kernels.
  constexpr Named kActivations[] = {
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_pytorch_tanh", Activation::kGelu},
      {"gelu_new", Activation::kGeluNew},
      {"gelu_fast", Activation::kGeluFast},
      {"quick_gelu", Activation::kQuickGelu},
      {"relu", Activation::kRelu},
      {"relu2", Activation::kRelu2},
      {"xielu", Activation::kXielu},
  };
  for (const Named& known : kActivations) {
    if (known.name == name) return known.activation;
  }
  std::string names;
  for (const Named& known : kActivations) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  fields.error("INVALID_VALUE", key,
               "The activation \"" + std::string(name) + "\" is not modelled; these are: " + names + ".");
  return Activation::kSilu;
}

Activation read_activation(ConfigFields& fields, ConfigFields::Spellings keys, std::string_view class_default) {
  return activation_named(fields.text(keys, class_default), *keys.begin(), fields);
}

void note_layerdrop(ConfigFields& fields, std::string_view key, double class_default) {
  if (fields.probability({key}, class_default) <= 0.0) return;
  fields.note("INVALID_VALUE", key, "Layers are dropped at random; the estimate is for a step with them all.");
}

std::optional<LayerFlags> read_layer_types(ConfigFields& fields, const Architecture& architecture) {
  const Value* types = fields.find({"layer_types"});
  if (types == nullptr || types->is_null()) return std::nullopt;
  if (!types->is_array()) {
    fields.error("WRONG_TYPE", "layer_types", "\"layer_types\" must be a list with one entry per layer.");
    return std::nullopt;
  }
  if (static_cast<Count>(types->items.size()) != architecture.num_layers) {
    fields.error("INVALID_VALUE", "layer_types",
                 "\"layer_types\" has " + std::to_string(types->items.size()) + " entries for " +
                     std::to_string(architecture.num_layers) + " layers.");
    return std::nullopt;
  }
  LayerFlags sliding;
  for (const Value& type : types->items) {
    if (type.string != "sliding_attention" && type.string != "full_attention") {
      fields.error(
          "INVALID_VALUE", "layer_types",
          "Only \"full_attention\" and \"sliding_attention\" layers are modelled, not \"" + type.string + "\".");
      return std::nullopt;
    }
    sliding.push_back(type.string == "sliding_attention");
  }
  return sliding;
}

LayerFlags sliding_but_every(Count period, Count num_layers) {
  LayerFlags sliding;
  for (Count layer = 0; layer < num_layers; ++layer) sliding.push_back((layer + 1) % period != 0);
  return sliding;
}

// GPT2Config, GPTBigCodeConfig and GPTJConfig: OpenAI's names, with `attribute_map` accepting the usual ones.
void read_openai_dimensions(ConfigFields& fields, Architecture& architecture, Count max_positions) {
  architecture.hidden_size = fields.required({"n_embd", "hidden_size"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"n_positions", "max_position_embeddings"}, max_positions);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.intermediate_size = fields.nullable({"n_inner"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.norm_bias = true;
}

void read_openai_dropouts(ConfigFields& fields, Architecture& architecture, double class_default) {
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, class_default);
  architecture.embedding_dropout = fields.probability({"embd_pdrop"}, class_default);
  architecture.attention_dropout = fields.probability({"attn_pdrop"}, class_default);
}

void reject_cross_attention(ConfigFields& fields) {
  if (fields.flag({"add_cross_attention"}, false)) {
    fields.error("INVALID_VALUE", "add_cross_attention", "Cross-attention in this family is not modelled yet.");
  }
}

// Qwen2Config and Qwen3Config: a window only where it is switched on, and only from `max_window_layers` upward.
void read_qwen_window(ConfigFields& fields, Architecture& architecture) {
  const bool use_window = fields.flag({"use_sliding_window"}, false);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const Count full_layers = fields.count({"max_window_layers"}, 28, 0);
  const auto types = read_layer_types(fields, architecture);
  if (!use_window || window == 0) return;
  if (types) {
    architecture.sliding_layers = *types;
  } else {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) {
      architecture.sliding_layers.push_back(layer >= full_layers);
    }
  }
  for (const bool slides : architecture.sliding_layers) {
    if (slides) architecture.sliding_window = window;
  }
  if (architecture.sliding_window == 0) architecture.sliding_layers.clear();
}

}  // namespace tidemark
