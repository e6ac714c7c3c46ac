#include "core/layers/treatments.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {

bool Treatment::trains(std::string_view parameter) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == parameter) return trained[i] != 0;
  }
  return false;
}

Count Treatment::adapts(std::string_view parameter) const {
  for (std::size_t i = 0; i < adapted.size(); ++i) {
    if (parameters[i] == parameter) return adapted[i];
  }
  return 0;
}

const Treatment* Treatments::find(const Variant& variant, std::string_view module) {
  const auto found =
      std::find_if(variant.begin(), variant.end(), [module](const Treatment& t) { return t.path == module; });
  return found == variant.end() ? nullptr : &*found;
}

const Treatment* Treatments::inside(Count layer, std::string_view module) const {
  const auto i = static_cast<std::size_t>(layer);
  return i < of_layer_.size() ? find(variants_[of_layer_[i]], module) : nullptr;
}

Count Treatments::variant_of(Count layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return i < of_layer_.size() ? static_cast<Count>(of_layer_[i]) : 0;
}

void Treatments::add_layer(Variant variant) {
  // Neighbours are alike most often.
  const auto known = std::find(variants_.rbegin(), variants_.rend(), variant);
  if (known == variants_.rend()) {
    of_layer_.push_back(variants_.size());
    variants_.push_back(std::move(variant));
  } else {
    of_layer_.push_back(static_cast<std::size_t>(variants_.rend() - known) - 1);
  }
}

}  // namespace tidemark
