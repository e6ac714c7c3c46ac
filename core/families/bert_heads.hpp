#pragma once

#include "core/layers/heads.hpp"

/// Heads of BERT's and RoBERTa's files that ESM's repeats.
namespace tidemark {

/// RobertaClassificationHead.forward: the first token's vector through a layer of its own.
Outputs roberta_sequence(Net& net, const Program& program, Tensor hidden);
/// BertForTokenClassification.forward
Outputs encoder_tokens(Net& net, const Program& program, Tensor hidden);

}  // namespace tidemark
