#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

namespace tidemark {

/// Width, depth, heads, feed-forward and vocabulary under the names that most families since Llama use. A missing one
/// is an error: transformers would build the class's default size, which is never what the owner of the file meant.
void read_dimensions(ConfigFields& fields, Architecture& architecture, Count default_max_positions);

/// Width, depth, heads and feed-forward of layers over patches or frames, which no table of tokens stands before; all
/// must be there.
void read_frame_dimensions(ConfigFields& fields, Architecture& architecture);

/// `num_key_value_heads`. The class's default where absent (none: as many as query heads), as many as query heads where
/// null. Says so where a default other than the query heads was taken, and rejects one that does not divide them.
void read_kv_heads(ConfigFields& fields, Architecture& architecture, std::optional<Count> class_default);

/// `head_dim`, else the class's default, else the width divided by the heads, which must come out even.
void read_head_dim(ConfigFields& fields, Architecture& architecture, std::optional<Count> class_default = std::nullopt);
/// Families whose code has no `head_dim`: always the width divided by the heads; a key that says otherwise is reported.
void derive_head_dim(ConfigFields& fields, Architecture& architecture);

/// The part of each head that rotates: `partial_rotary_factor`, within the rope dictionary or beside it
/// (transformers 5.12.1 modeling_rope_utils.py: RotaryEmbeddingConfigMixin.convert_rope_params_to_dict).
void read_rotary_factor(ConfigFields& fields, Architecture& architecture, double class_default);

/// The activation of that name in transformers' ACT2FN; an error for those that we have no program for.
Activation activation_named(std::string_view name, std::string_view key, ConfigFields& fields);
Activation read_activation(ConfigFields& fields, ConfigFields::Spellings keys, std::string_view class_default);

/// LayerDrop skips whole layers now and then; the step that skips none is the highest. Says so where it is on.
void note_layerdrop(ConfigFields& fields, std::string_view key, double class_default);

/// `partial_rotary_factor` of a type of layers in `rope_parameters`, where that says one.
std::optional<double> rotary_factor_of(ConfigFields& fields, const char* layer_type);

/// The list that a key has, of one entry per layer. Null where the key is absent or null; with an error where it is not
/// such a list.
const Value* list_of_layers(ConfigFields& fields, std::string_view key, Count num_layers);

/// `layer_types`: which layers slide. Nothing where the key is absent or null.
std::optional<LayerFlags> read_layer_types(ConfigFields& fields, const Architecture& architecture);

/// Every `period`-th layer attends to everything, the others to the window.
LayerFlags sliding_but_every(Count period, Count num_layers);

/// Sizes as GPT2Config, GPTBigCodeConfig and GPTJConfig spell them.
void read_openai_dimensions(ConfigFields& fields, Architecture& architecture, Count max_positions);
/// Dropout probabilities as they spell them.
void read_openai_dropouts(ConfigFields& fields, Architecture& architecture, double class_default);
/// Decoders that may also attend to an encoder: not modelled.
void reject_cross_attention(ConfigFields& fields);
/// Qwen's sliding window: off unless `use_sliding_window`, and only from `max_window_layers` on.
void read_qwen_window(ConfigFields& fields, Architecture& architecture);

}  // namespace tidemark
