#pragma once

#include "core/catalog/model_entry.hpp"

namespace tidemark {

/// Whether the engine can say what the model needs: its config.json is read and its family has a block program.
bool is_modelled(const ModelEntry& model);

}  // namespace tidemark
