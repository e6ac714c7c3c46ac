#pragma once

#include <string>
#include <string_view>

#include "core/layers/heads.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/net.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Which implementations of attention the family's classes have in transformers 5.12 to 5.24: `_supports_sdpa` and
/// `_supports_flash_attn` of its PreTrainedModel, and the classes that older modelling files list by name.
struct AttentionSupport {
  bool sdpa = true;               ///< else the eager form runs where sdpa is the default
  bool flash_attention_2 = true;  ///< else transformers raises
  bool flash_attention_3 = true;  ///< else transformers raises
  bool core_alone = true;         ///< what lies between the projections is a function here, so it can be recomputed
  int sdpa_since = 0;             ///< the release 5.N that brought it; 0: all have it
  int flash_since = 0;            ///< the same of FlashAttention
  int flash_until = 0;            ///< the release 5.N that refuses it again; 0: none
};
/// Of classes whose attention is code of their own, and of those that flash kernels do not serve.
inline constexpr AttentionSupport kEagerAlone = {
    .sdpa = false, .flash_attention_2 = false, .flash_attention_3 = false, .core_alone = false};
/// Of such classes, from 5.N on; flash kernels serve none of them here.
constexpr AttentionSupport sdpa_alone_since(int release) {
  return {.flash_attention_2 = false, .flash_attention_3 = false, .core_alone = false, .sdpa_since = release};
}
/// Of a whole model, no part of one: does the eager form run: asked for, or all that the release has?
bool runs_eagerly(const Net& net);
/// FlashAttention drops the mask by which tokens of a picture see each other (transformers 5.24
/// models/{gemma3,gemma4,paligemma}/modeling_*.py: _supports_flash_attn).
inline constexpr AttentionSupport kFlashUntil523 = {.flash_until = 24};
inline constexpr AttentionSupport kNoFlash = {.flash_attention_2 = false, .flash_attention_3 = false};

/// Which of a model's dropouts are calls of torch.nn.functional.dropout. The others are modules of nn.Dropout, which
/// TRL's trainers switch off (trl 1.9 trainer/utils.py: disable_dropout_in_model). Encoders' are modules. Source:
/// transformers 5.12 models/*/modeling_*.py.
enum class DropoutCalls : std::uint8_t { kOfAttention, kNone, kAll };

/// A model's forward. Each function mirrors a method of the family's modelling file.
struct Program {
  /// The body's forward, from the batch to last_hidden_state: embeddings, masks, loops over layers (Net::layers),
  /// norms.
  Tensor (*forward)(Net& net) = nullptr;
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
  bool checkpoints = true;    ///< supports_gradient_checkpointing of its PreTrainedModel: else transformers raises
  bool fused_scan = true;     ///< its layers that keep a state are modelled with their libraries' kernels, too
  bool is_divisible = false;  ///< torchtitan's plans name all its modules: tensor parallelism, pipelines
  DropoutCalls dropout_calls = DropoutCalls::kOfAttention;
  bool remote_code = false;    ///< a modelling file beside the weights, which no release of transformers changes
  bool has_tp_plan = false;    ///< transformers' base_model_tp_plan, whose parts are Net's A, Kv, Q, K and F
  bool chunks_logits = false;  ///< a loss in chunks is one of the whole model's logits, not of head and loss at once
  /// What of a job it cannot do; null: nothing but what these fields say.
  void (*check)(const Architecture& architecture, const TrainingJob& job, Issues& issues) = nullptr;
  const char* implementation = nullptr;  ///< whose code of the model it is, as framework.name says; null: transformers'
  bool recorded = false;  ///< records are of that code (tests/oracle); else published figures speak for it alone
  /// The release 5.N since which it runs in 16 bits without autocast, too; before, a layer gets another dtype than its
  /// weight and raises. 0: all do.
  int in_16_bits_since = 0;
  /// What a pipeline's last stage makes of logits, where it is not F.cross_entropy of fp32 rows: net.labels are there.
  Tensor (*loss_of_logits)(Net& net, const Tensor& logits) = nullptr;
};

/// Embeddings, one stack of layers, a norm: the forward of most models.
Tensor run_one_stack(Net& net, Tensor (*embed)(Net&), Tensor (*layer)(Net&, Tensor), Tensor (*norm)(Net&, Tensor),
                     void (*hand)(Net&, Count) = nullptr);
/// The same as a Program's forward. `embed`: embeddings, position tables and masks, what the model's forward does
/// before its loop over the layers. `layer`: one layer, net.layer_index says which. `norm`: what it does behind the
/// loop. `hand`: Stack::hand.
template <Tensor (*embed)(Net&), Tensor (*layer)(Net&, Tensor), Tensor (*norm)(Net&, Tensor),
          void (*hand)(Net&, Count) = nullptr>
Tensor one_stack(Net& net) {
  return run_one_stack(net, embed, layer, norm, hand);
}

/// What a release of transformers has of a program's.
AttentionSupport attention_of(const Program& program, const Framework& framework);

/// An error where the program cannot run with the job's attention, or cannot recompute it alone as the job asks.
void check_attention(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// Whether two layers of a stack behave alike in memory: layers with equal kinds are simulated once.
std::int64_t layer_kind(const Net& net, Count layer);

}  // namespace tidemark
