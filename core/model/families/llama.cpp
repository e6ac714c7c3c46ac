// The families that run Llama's block program: they differ by biases, by which layers slide and which rotate.
#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

// transformers 5.12.1 models/llama/configuration_llama.py: LlamaConfig. The one switch `attention_bias` is for all four
// projections (modeling_llama.py: LlamaAttention).
void read_llama_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/smollm3/configuration_smollm3.py: SmolLM3Config. In `no_rope_layers` a one means that the
// layer does rotate.
void read_smollm3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);

  const Count interval = fields.count({"no_rope_layer_interval"}, 4);
  const Value* rotating = fields.find({"no_rope_layers"});
  if (rotating != nullptr && !rotating->is_null()) {
    if (!rotating->is_array() || static_cast<Count>(rotating->items.size()) < architecture.num_layers) {
      fields.error("INVALID_VALUE", "no_rope_layers", "\"no_rope_layers\" must be a list with one entry per layer.");
    } else {
      for (Count layer = 0; layer < architecture.num_layers; ++layer) {
        const Value& rotates = rotating->items[static_cast<std::size_t>(layer)];
        architecture.no_rope_layers.push_back(rotates.real == 0.0 && !rotates.boolean);
      }
    }
  } else {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) {
      architecture.no_rope_layers.push_back((layer + 1) % interval == 0);
    }
  }

  const bool use_window = fields.flag({"use_sliding_window"}, false);
  const Count window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  LayerFlags sliding;
  if (const auto types = read_layer_types(fields, architecture)) {
    sliding = *types;
  } else if (use_window && window > 0) {
    // The layers without rotation are the ones that slide.
    sliding = architecture.no_rope_layers;
  }
  for (const bool slides : sliding) {
    if (slides) architecture.sliding_window = window;
  }
  if (architecture.sliding_window > 0) architecture.sliding_layers = sliding;
  fields.accept({"max_window_layers"});
}

namespace {

// What MistralConfig, MinistralConfig and Ministral3Config share; their modelling files have no bias anywhere.
void read_mistral_like(ConfigFields& fields, Architecture& architecture, Count max_positions) {
  read_dimensions(fields, architecture, max_positions);
  read_kv_heads(fields, architecture, 8);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

void slide_everywhere(Architecture& architecture) {
  if (architecture.sliding_window == 0) return;
  architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
}

}  // namespace

// transformers 5.12.1 models/mistral/configuration_mistral.py: MistralConfig. A window of 4096 unless null is given;
// Nemo and Small give `head_dim`.
void read_mistral_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 4096 * 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  slide_everywhere(architecture);
}

// transformers 5.12.1 models/ministral/configuration_ministral.py: MinistralConfig.
void read_ministral_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 4096 * 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    slide_everywhere(architecture);
  }
}

// transformers 5.12.1 models/ministral3/configuration_ministral3.py: Ministral3Config. No window by default.
void read_ministral3_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 262144);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.query_scale = true;
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  slide_everywhere(architecture);
}

namespace {

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

}  // namespace

// transformers 5.12.1 models/qwen2/configuration_qwen2.py: Qwen2Config. The biases of q, k, v are in the code, not in
// the file (modeling_qwen2.py: Qwen2Attention).
void read_qwen2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_qwen_window(fields, architecture);
}

// transformers 5.12.1 models/qwen3/configuration_qwen3.py: Qwen3Config. Heads of 128 whatever the width, and a norm of
// head width on q and k (modeling_qwen3.py: Qwen3Attention).
void read_qwen3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_qwen_window(fields, architecture);
}

// transformers 5.12.1 models/seed_oss/configuration_seed_oss.py: SeedOssConfig. Dropout is on by default.
void read_seed_oss_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 524288);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = fields.flag({"attention_out_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  architecture.residual_dropout = fields.probability({"residual_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace tidemark
