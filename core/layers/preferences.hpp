#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// Who holds what on several GPUs of the model, and of a reference that is divided, too (null: as the model).
struct Placements {
  Placement* own = nullptr;
  Placement* reference = nullptr;
};

/// The loss of TRL's trainers on preferred answers, from the logits that the model returned, with the reference's
/// forward and the metrics that they log. The reference's parameters are the last that the tape declares.
Tensor preference_loss(Net& net, const Program& program, Tensor logits, const Placements& placements = {});

/// What TRL's SFTTrainer logs of the logits: entropy and accuracy. TRL has had both since transformers 4.53.
void log_sft_metrics(Net& net, const Outputs& outputs);

/// A forward without gradients of another model beside it, the batch being its own.
Outputs call_copy(Net& net, const Program& program, const Placements& placements);

/// What TRL's trainers on generated answers make of logits that a model without gradients has returned.
void score_answers(Net& net, const Tensor& logits);

}  // namespace tidemark
