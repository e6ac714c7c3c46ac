#include "core/runtime/cublas.hpp"

namespace tidemark {

Bytes cublas_workspace_bytes(int compute_capability, bool deterministic) {
  return deterministic || compute_capability == 90 ? kCublasWorkspaceSm90 : kCublasWorkspace;
}

}  // namespace tidemark
