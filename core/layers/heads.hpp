#pragma once

#include <vector>

#include "core/layers/net.hpp"

namespace tidemark {

struct Program;

/// What the forward of a class returns.
struct Outputs {
  Tensor loss;               ///< what backward starts from
  std::vector<Tensor> rest;  ///< logits or hidden states: they live as long as the training loop holds `outputs`
};

/// What a class with a head does with its body's last_hidden_state.
struct HeadForward {
  Head head;  ///< which
  Outputs (*forward)(Net& net, const Program& program,
                     Tensor hidden);  ///< the rest of the class's forward, loss included
};

/// The heads that a family's program has.
struct HeadForwards {
  const HeadForward* first = nullptr;  ///< of an array that lives for ever
  int count = 0;                       ///< its length

  constexpr HeadForwards() = default;
  template <int kSize>
  constexpr HeadForwards(const HeadForward (&heads)[kSize]) : first(heads), count(kSize) {}  // NOLINT: a list is one
  const HeadForward* find(Head head) const;
};

/// What decoders do alike but for names: the classes beside the language model.
struct DecoderHeads {
  const char* sequence = "transformers 5.12 modeling_layers.py: GenericForSequenceClassification.forward";  ///< source
  const char* token = "transformers 5.12 modeling_layers.py: GenericForTokenClassification.forward";        ///< source
  const char* span = "transformers 5.12 modeling_layers.py: GenericForQuestionAnswering.forward";           ///< source
  const char* sequence_module = "score";  ///< the sequence classifier's linear layer
  const char* token_module = "score";     ///< the token classifier's linear layer
  bool token_loss_fp32 = true;            ///< the shared loss function works on an fp32 copy, CrossEntropyLoss does not
};

// Of arrays whose addresses are constants, so that programs are tables that nobody has to fill as the engine starts.
extern const HeadForward kDecoderHeads[5];
extern const HeadForward kGpt2Heads[6];
/// Language model, sequence, token and span classifiers, the body alone.
inline constexpr HeadForwards kDecoderForwards = kDecoderHeads;
/// GPT-2's, with double heads.
inline constexpr HeadForwards kGpt2Forwards = kGpt2Heads;

// -- pieces that families share --------------------------------------------------------------------------------------

/// The batch of a text model: token ids, a mask where the job pads, and the labels that its head asks for.
void text_inputs(Net& net);

/// The labels of a classifier of rows or images, as its `problem_type` asks for them.
void class_labels(Net& net);
/// The loss of a causal language model on the program's own logits, or a fused one in their place.
Outputs causal_lm(Net& net, const Program& program, Tensor hidden);
/// A decoder's classifiers of rows, tokens and spans.
Outputs sequence_classification(Net& net, const Program& program, Tensor hidden);
Outputs token_classification(Net& net, const Program& program, Tensor hidden);
Outputs question_answering(Net& net, const Program& program, Tensor hidden);
/// The body alone: the mean of the squares of its last hidden state.
Outputs body_alone(Net& net, const Program& program, Tensor hidden);
/// The same for a body with a pooler, whose part of the graph dies with the outputs, before backward.
Outputs body_with_pooler(Net& net, const Program& program, Tensor hidden,
                         Tensor (*pool)(Net& net, const Tensor& hidden));
/// Logits of labels: by `problem_type` CrossEntropyLoss, MSELoss or BCEWithLogitsLoss.
Outputs classified(Net& net, Tensor logits);
/// The same of what a linear layer makes of pooled pictures, beside the last states: the body's outputs, in `leaves`,
/// are a name of forward's.
Outputs pooled_classes(Net& net, const char* module, Tensor pooled);
/// Logits of tokens: CrossEntropyLoss in the dtype that they have.
Outputs labelled(Net& net, Tensor logits);
/// The same of the program's own logits: a masked language model.
Outputs masked_lm(Net& net, const Program& program, Tensor hidden);
/// One score per row, which rows of a group compete for.
Outputs choose(Net& net, Tensor pooled);
/// Two logits per token: the loss is the mean of where the span starts and ends.
Outputs spans(Net& net, Tensor logits);

}  // namespace tidemark
