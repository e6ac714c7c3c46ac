#pragma once

#include <span>
#include <string_view>

#include "core/families/classes.hpp"
#include "core/families/shared.hpp"
#include "core/layers/full_name.hpp"
#include "core/layers/program.hpp"
#include "core/model/config_common.hpp"

namespace tidemark {

inline constexpr std::string_view kModelLayers = "model.layers";  ///< where most classes have theirs

// What several families say of themselves.
inline constexpr ClassFacts kNoFlex = {.flex_attention = false};
inline constexpr ClassFacts kNotOfText = {.text_input = false};
/// DINOv2 and 3.
inline constexpr ClassFacts kPicturesNameEmbeddingsSince18 = {
    .text_input = false, .named_anew_since = 18, .named_anew = NoSplit::kEmbeddings};
inline constexpr ClassFacts kNamesNone = {.no_split = NoSplit::kNone};
inline constexpr ClassFacts kNamesAbsentToo = {.no_split = NoSplit::kAbsentToo};
inline constexpr ClassFacts kNamesEmbeddings = {.no_split = NoSplit::kEmbeddings};
inline constexpr ClassFacts kPicturesNameEmbeddings = {.text_input = false, .no_split = NoSplit::kEmbeddings};
inline constexpr ClassFacts kNamesOtherParts = {.no_split = NoSplit::kOtherParts};

/// One model type: what its config.json means, and how it runs. A file of core/families holds its reader, its program
/// and its rows: `const FamilyRows <file>_rows`, which the build collects (cmake/registry.cmake).
struct Family {
  std::string_view model_type;    ///< as in config.json
  std::string_view class_prefix;  ///< what its class names start with
  std::string_view class_name;    ///< the class that is trained unless something else is said
  Classes classes;                ///< the classes that transformers 5.12 has of it, by what follows the prefix
  /// What the keys of its config.json mean, with its configuration class's defaults and what the modelling file
  /// hard-wires. Depth is checked before it runs, so that lists with one entry per layer stay small.
  void (*read)(ConfigFields&, Architecture&);
  const Program* program = nullptr;        ///< how it runs; null where only its configuration is known
  std::string_view layers = kModelLayers;  ///< where the class with a head has its list of layers
  ClassFacts facts = {};                   ///< what that class says of itself, where it differs from most
};
using FamilyRows = std::span<const Family>;

/// The row of that model type, or null.
const Family* type_named(std::string_view model_type);

/// Every model type, file by file in the order of their names.
std::span<const Family* const> all_families();

}  // namespace tidemark
