#pragma once

#include <string>
#include <string_view>

#include "core/layers/heads.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/net.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Which implementations of attention the family's classes have in transformers 5.12: `_supports_sdpa` and
/// `_supports_flash_attn` of its PreTrainedModel, and the classes that older modelling files list by name.
struct AttentionSupport {
  bool sdpa = true;               ///< else the eager form runs where sdpa is the default
  bool flash_attention_2 = true;  ///< else transformers raises
  bool flash_attention_3 = true;  ///< else transformers raises
  bool core_alone = true;         ///< what lies between the projections is a function here, so it can be recomputed
};

/// The parts of a model's forward. Each mirrors a method of the family's modelling file.
struct Program {
  /// Embeddings, position tables and masks: what the model's forward does before its loop over the layers.
  Tensor (*embed)(Net& net) = nullptr;
  /// One layer; net.layer_index says which.
  Tensor (*layer)(Net& net, Tensor hidden) = nullptr;
  /// What the model's forward does behind the loop, up to last_hidden_state: the final norm.
  Tensor (*norm)(Net& net, Tensor hidden) = nullptr;
  /// The language model's head: logits from last_hidden_state.
  Tensor (*lm_head)(Net& net, Tensor hidden) = nullptr;
  /// What each class of the family does with last_hidden_state, loss included.
  HeadForwards heads = kDecoderForwards;
  /// How the family's own file made the causal loss before all files called the shared function.
  OwnLoss own_loss = OwnLoss::kFp32;
  /// Where a decoder's other classes differ from the shared ones of modeling_layers.py.
  DecoderHeads decoder_heads = {};
  /// The batch on the device: net.input_ids, net.labels, net.attention_mask.
  void (*inputs)(Net& net) = text_inputs;
  /// What `attention` may be set to.
  AttentionSupport attention;
};

/// An error where the program cannot run with the job's attention, or cannot recompute it alone as the job asks.
void check_attention(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// The full name of the list of layers: "model.layers" in LlamaForCausalLM, "layers" in LlamaModel.
std::string name_of_layers(const Architecture& architecture);

/// The full name of what a program names by its path in the class with a language model's head.
std::string full_name(const Architecture& architecture, std::string_view path);

/// Whether two layers behave alike in memory: layers with equal kinds are simulated once.
std::int64_t layer_kind(const Net& net, Count layer);

}  // namespace tidemark
