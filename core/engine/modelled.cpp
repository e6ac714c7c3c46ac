#include "core/engine/modelled.hpp"

#include "core/families/read_config.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

bool is_modelled(const ModelEntry& model) {
  const ConfigResult config = read_config(model.config);
  return !has_error(config.issues) && is_supported(config.architecture);
}

}  // namespace tidemark
