#pragma once

#include <string_view>

#include "core/layers/net.hpp"

namespace tidemark {

/// Whether a module's weights keep the fp32 that prepare_model_for_kbit_training gave them where Axolotl turns others
/// back (PrepareKbit::kNormsBack): what its list of names for the model's type does not say.
bool stays_wide(const Net& net, std::string_view module);

}  // namespace tidemark
