#include "core/blocks/program.hpp"

#include <string>

#include "core/job/module_pattern.hpp"

namespace tidemark {

const Program* program_for(const Architecture& architecture) {
  switch (architecture.family) {
    case Family::kLlama:
      return &kLlamaProgram;
    case Family::kGpt2:
      return &kGpt2Program;
    case Family::kGptBigCode:
      return &kGptBigCodeProgram;
    case Family::kGptNeoX:
      return &kGptNeoXProgram;
    case Family::kOpt:
      return &kOptProgram;
    default:
      return nullptr;
  }
}

std::int64_t layer_kind(const Net& net, Count layer) {
  const auto i = static_cast<std::size_t>(layer);
  std::int64_t kind = 0;
  if (net.slides(layer)) kind |= 1;
  if (i < net.arch.no_rope_layers.size() && net.arch.no_rope_layers[i]) kind |= 2;
  if (i < net.arch.local_layers.size() && net.arch.local_layers[i] != 0) kind |= 4;
  if (i < net.arch.sliding_layers.size() && net.arch.sliding_layers[i]) kind |= 8;
  if (net.job.checkpointing == Checkpointing::kEvery && net.job.checkpoint_every > 0 &&
      layer % net.job.checkpoint_every == 0) {
    kind |= 16;
  }
  return kind;
}

}  // namespace tidemark
