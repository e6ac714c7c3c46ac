#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

/// How training treats one module: which of its parameters get gradients, and what PEFT puts in its place.
struct Treatment {
  std::string path;                          ///< of the module, inside its layer or of the model
  Count rank = 0;                            ///< of its low-rank adapter; 0: it has none
  bool feedforward = false;                  ///< IA3 scales what comes in, not what goes out
  bool copied = false;                       ///< modules_to_save: a trained copy is used, the original only kept
  std::vector<std::string_view> parameters;  ///< their names in the module
  std::vector<char> trained;                 ///< for each of them: whether it gets a gradient

  std::vector<Count> adapted;  ///< the same: the rank of its own adapter, or 0; empty: none has one

  bool trains(std::string_view parameter) const;
  /// The rank of that parameter's own adapter; 0: it has none.
  Count adapts(std::string_view parameter) const;
  /// The same as far as memory can tell.
  bool operator==(const Treatment& other) const {
    return rank == other.rank && feedforward == other.feedforward && copied == other.copied && path == other.path &&
           trained == other.trained && adapted == other.adapted;
  }
};

/// The treatment of all modules of a model. Layers that are treated alike share a variant.
class Treatments {
 public:
  using Variant = std::vector<Treatment>;

  /// Of a module outside the layers, or null where every parameter is simply trained.
  const Treatment* outside(std::string_view module) const { return find(outside_, module); }
  /// Of a module of that layer.
  const Treatment* inside(Count layer, std::string_view module) const;
  /// Layers of equal variants are treated alike.
  Count variant_of(Count layer) const;

  /// The widest of the adapted modules, in each direction: VeRA's matrices have room for all.
  Count widest_in = 0, widest_out = 0;

  void set_outside(Variant variant) { outside_ = std::move(variant); }
  /// Layers are added in their order.
  void add_layer(Variant variant);

 private:
  static const Treatment* find(const Variant& variant, std::string_view module);

  Variant outside_;
  std::vector<Variant> variants_;
  std::vector<std::size_t> of_layer_;  // index into the variants
};

}  // namespace tidemark
