#include "core/layers/adapter.hpp"

namespace tidemark {

const AdapterLayer* adapter_layer(AdapterKind kind) {
  for (const AdapterLayer* row : all_adapter_layers()) {
    if (row->kind == kind) return row;
  }
  return nullptr;
}

}  // namespace tidemark
