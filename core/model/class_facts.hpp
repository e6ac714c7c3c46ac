#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/units/bytes.hpp"

namespace tidemark {

struct Architecture;

/// What `_no_split_modules` of a class names, of which accelerate and FSDP make units.
enum class NoSplit : std::uint8_t {
  kLayers,       ///< its layers, a tower's as well
  kNone,         ///< nothing: one unit has all of them
  kNoneButSaid,  ///< nothing; a user's own names are taken to be given (fsdp_transformer_layer_cls_to_wrap)
  kAbsentToo,    ///< its layers, and classes that are not in it: of a tower's text model, or of another tower
  kNotTower,     ///< the language model's layers alone
  kEmbeddings,   ///< its layers, and what has the input embeddings in it
  kOtherParts,   ///< a layer's attention or mixer, stages of several layers, or a tower as a whole
};

/// What the processor of a class makes of pictures whose size is stated.
enum class PictureRule : std::uint8_t {
  kAsTheyAre,      ///< its family's program knows
  kPixels,         ///< of at most so many pixels as its processor's configuration says (smart_resize)
  kOwnSize,        ///< as large as the tower wants them
  kLongestSide,    ///< shrunk until no side is longer than the tower's (PixtralImageProcessor)
  kFourTiles,      ///< four of the tower's tiles along the longer side, as many as it takes along the other one
  kClosestTiles,   ///< tiles of the tower's size, in the grid of the closest ratio (GotOcr2ImageProcessor)
  kCoveringTiles,  ///< the same, in the grid that enlarges them least (Cohere2VisionImageProcessor)
};

/// What a family's PreTrainedModel says of itself: attributes and methods of the class that the frameworks ask, where
/// it differs from most. Source: transformers 5.12.1 models/*/modeling_*.py.
struct ClassFacts {
  bool flex_attention = true;    ///< `_supports_flex_attn`, else transformers raises
  bool text_input = true;        ///< `main_input_name` is "input_ids": else checkpoints ask no gradient of embeddings
  bool input_embeddings = true;  ///< get_input_embeddings() finds them, else it raises NotImplementedError
  bool hooks_embeddings = true;  ///< what embeds returns a tensor: else PEFT's hook, which asks a gradient of it, fails
  bool always_checkpoints = false;  ///< `is_gradient_checkpointing` is true whatever is asked for
  bool text_alone = true;           ///< its forward takes text without a picture
  bool head_first = false;   ///< classes with a tied head make it before their body: a shared table has the head's name
  bool norms_first = false;  ///< its layers make their norms as forward comes to them, not behind all else
  bool one_experts_form = false;          ///< its experts lack @use_experts_implementation: they run in one way only
  std::uint8_t experts_forms_since = 0;   ///< until they got it in transformers 5.…; 0: they have not
  bool says_width = true;                 ///< its configuration, or that of its text, has hidden_size or hidden_sizes
  bool hears_alone = false;               ///< beside a language model it has a part that hears, and none that sees
  NoSplit no_split = NoSplit::kLayers;    ///< what `_no_split_modules` names
  std::uint8_t named_anew_since = 0;      ///< from transformers 5.… on it names something else; 0: it has not changed
  NoSplit named_anew = NoSplit::kLayers;  ///< which is this
  bool divides_tower_layers = false;      ///< and within a tower's layers, their attention
  PictureRule pictures = PictureRule::kAsTheyAre;  ///< what its processor makes of pictures
  bool tiles = false;     ///< where that is no rule of tiles: a picture's pieces may be stated all the same
  Count most_tiles = 12;  ///< kClosestTiles, kCoveringTiles: the whole beside them is one more
  /// Beginnings of the names of what its model makes behind the language model, or its layers and their norm, though it
  /// runs before; a space between two.
  std::string_view behind_language = {};
  /// Beginnings of the names of what a layer makes before all else, whatever it runs first; in that order.
  std::string_view layer_first = {};
  /// Ends of the names of what is made before the layers behind which it runs.
  std::string_view made_first = {};
  /// The full name of what a program names by its path in the class with a head; null: as most do (full_name.hpp).
  std::string (*full_name)(const Architecture& architecture, std::string_view path) = nullptr;
};

}  // namespace tidemark
