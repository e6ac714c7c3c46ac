#include "core/job/trained_layers.hpp"

#include <algorithm>
#include <string>

namespace tidemark {
namespace {

/// Freezes all layers but those, by names whose first number is a layer's.
template <typename IsTrained>
void freeze_others(Count layers, IsTrained is_trained, TrainingJob& job) {
  std::string frozen;
  for (Count i = 0; i < layers; ++i) {
    if (!is_trained(i)) frozen += (frozen.empty() ? "" : "|") + std::to_string(i);
  }
  if (!frozen.empty()) job.freeze.push_back("^[^0-9]*\\.(" + frozen + ")$");
}

// Axolotl 067b021c utils/callbacks/lisa.py, ms-swift 3602360a callbacks/lisa.py: LISACallback. Which layers have their
// turn makes no difference: the token table is trained, so that all of them keep what backward needs. ms-swift freezes
// layers before its optimizer is made, which gets none but the first that are drawn; elsewhere it has all, and each
// layer's states stay once it has had its turn.
void take_turns(Count layers, Count trained, TrainingJob& job) {
  if (trained == 0 || trained >= layers) return;
  job.method = Method::kFreeze;
  freeze_others(
      layers, [trained](Count i) { return i < trained; }, job);
  job.keeps_states_of_frozen = job.framework.name != "ms_swift";
}

}  // namespace

// LLaMA-Factory ff6d4d12 model/adapter.py: _setup_freeze_tuning. The last n layers are trained, of LLaMA Pro every k-th
// (those that expansion added), below zero the first; embeddings, the last norm and the head are not.
void settle_trained_layers(Count layers, const Foreign& foreign, TrainingJob& job, Issues& issues) {
  if (job.method == Method::kFull) take_turns(layers, foreign.layers_in_turn, job);
  // badam 1.4 block_optim.py BlockOptimizer: one layer at a time. All that follows the first has to keep what backward
  // needs, so that its turn is the dearest.
  const bool in_turn = job.optimizer == "badam" && job.method == Method::kFull && layers > 0;
  if (in_turn) job.method = Method::kFreeze;
  const Count wanted = in_turn ? -1 : foreign.trained_layers;
  if (job.method != Method::kFreeze || wanted == 0 || layers <= 0) return;
  if (foreign.trains_expansion && !in_turn && (wanted < 0 || layers % wanted != 0)) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/freeze_trainable_layers",
                      "LLaMA-Factory refuses this: with use_llama_pro the model's " + std::to_string(layers) +
                          " layers must be a multiple of freeze_trainable_layers.",
                      ""});
    return;
  }
  const Count stride = foreign.trains_expansion ? std::max<Count>(layers / std::max<Count>(wanted, 1), 1) : 1;
  // What has no number lies outside the layers.
  job.freeze.emplace_back("^[^0-9]*\\.(weight|bias)$");
  const auto is_trained = [&](Count i) {
    if (foreign.trains_expansion) return (i + 1) % stride == 0;
    return wanted > 0 ? i >= layers - wanted : i < -wanted;
  };
  freeze_others(layers, is_trained, job);
}

}  // namespace tidemark
