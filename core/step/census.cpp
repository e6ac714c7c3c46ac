#include "core/step/census.hpp"

#include "core/layers/program.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {
namespace {

// Enough for the shifted labels of a language model.
constexpr Count kFewTokens = 8;

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

ModuleRole role_of(const Module& module, bool in_layer) {
  const std::string_view path = module.path;
  if (module.kind == ModuleKind::kEmbedding || module.kind == ModuleKind::kConvolution) return ModuleRole::kEmbedding;
  if (module.kind == ModuleKind::kOther && contains(path, "experts")) return ModuleRole::kMlp;
  if (module.kind == ModuleKind::kOther) return contains(path, "embed") ? ModuleRole::kEmbedding : ModuleRole::kNorm;
  if (!in_layer) return contains(path, "project_in") ? ModuleRole::kEmbedding : ModuleRole::kHead;
  // "SelfAttention" is T5's.
  return contains(path, "attn") || contains(path, "ttention") ? ModuleRole::kAttention : ModuleRole::kMlp;
}

}  // namespace

LayerCensus take_census(const Architecture& architecture, const Framework& framework) {
  LayerCensus census;
  TrainingJob job;
  job.framework = framework;
  job.sequence_length = kFewTokens;
  Tape tape;
  tape.set_grad_enabled(false);
  Net net(tape, architecture, job);
  net.census = &census.modules;
  net.run_kinds(census.kind_of_layer);
  record_micro_step(net, *architecture.program);
  census.stacks = net.plan().stacks;
  for (Module& module : census.modules.outside) module.role = role_of(module, false);
  for (std::vector<Module>& layer : census.modules.layers) {
    for (Module& module : layer) module.role = role_of(module, true);
  }
  return census;
}

}  // namespace tidemark
