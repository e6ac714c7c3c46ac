#include "core/job/trained_layers.hpp"

#include <algorithm>
#include <string>
#include <utility>

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

// ms-swift 3602360a swift/tuners/llamapro.py: LLaMAPro.prepare_model.
void add_new_layers(Count added, Architecture& architecture, Issues& issues) {
  const Count layers = architecture.num_layers;
  if (added == 0 || layers <= 0) return;
  // It looks for the list of a language model's layers; other models have their layers in stages, or two stacks.
  if (architecture.vocab_size == 0 || architecture.num_decoder_layers > 0) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/llama_pro_new_blocks",
                      "LLaMA Pro adds layers to causal language models alone: this model takes none.", "0"});
    return;
  }
  if (layers % added != 0) {
    issues.push_back(
        {"INVALID_VALUE", Severity::kError, "/llama_pro_new_blocks",
         "ms-swift refuses this: the model's " + std::to_string(layers) + " layers must be a multiple of the new ones.",
         ""});
    return;
  }
  const Count stride = layers / added;
  const auto copy_within = [&](auto& list) {
    if (static_cast<Count>(list.size()) != layers) return;
    auto grown = list;
    grown.clear();
    for (std::size_t i = 0; i < list.size(); ++i) {
      grown.push_back(list[i]);
      if (static_cast<Count>(i + 1) % stride == 0) grown.push_back(list[i]);
    }
    list = std::move(grown);
  };
  copy_within(architecture.layer_kinds);
  copy_within(architecture.local_layers);
  for (LayerFlags* flags :
       {&architecture.sliding_layers, &architecture.no_rope_layers, &architecture.experts.dense_layers})
    copy_within(*flags);
  architecture.num_layers += added;
}

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
