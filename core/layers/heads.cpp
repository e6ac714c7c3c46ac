#include "core/layers/heads.hpp"

#include <algorithm>

#include "core/layers/losses.hpp"
#include "core/layers/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kSummary = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2SequenceSummary.forward";
constexpr const char* kDoubleHeads = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2DoubleHeadsModel.forward";

Tensor ids(Net& net, const Shape& shape, const char* name) {
  return net.tape.allocate(shape, Dtype::kInt64, name);
}

// logits[torch.arange(batch_size), last_non_pad_token]: the scores of the last token that is no padding. Without a
// padding id, which batches of one row may lack, the last is taken unseen; that saves these few numbers per token.
Tensor last_token(Net& net, const Tensor& logits) {
  Tape& t = net.tape;
  const Shape rows{net.B, net.S};
  Tensor differs = t.allocate(rows, Dtype::kBool, "ne");
  Tensor non_pad_mask = t.allocate(rows, Dtype::kInt32, "to");
  differs.reset();
  Tensor token_indices = t.allocate(Shape{net.S}, Dtype::kInt32, "arange");
  Tensor masked = t.allocate(rows, Dtype::kInt32, "mul");
  Tensor last = t.allocate(Shape{net.B}, Dtype::kInt64, "argmax");
  masked.reset();
  Tensor batch = t.allocate(Shape{net.B}, Dtype::kInt64, "arange");
  return pick(logits, std::move(batch), std::move(last));
}

}  // namespace

Outputs sequence_classification(Net& net, const Program& program, Tensor hidden) {
  Scope in(net.tape, "", program.decoder_heads.sequence);
  const Tensor logits = net.classifier(program.decoder_heads.sequence_module, std::move(hidden),
                                       Dim(net.arch.num_labels), net.arch.classifier_bias);
  Tensor pooled = last_token(net, logits);
  Outputs out = classified(net, std::move(pooled));
  net.image_hidden_states.reset();  // among the body's outputs, not among this class's
  return out;
}

Outputs token_classification(Net& net, const Program& program, Tensor hidden) {
  const DecoderHeads& heads = program.decoder_heads;
  Scope in(net.tape, "", heads.token);
  const Tensor dropped = dropout(std::move(hidden), net.arch.classifier_dropout);
  Tensor logits = net.classifier(heads.token_module, dropped, Dim(net.arch.num_labels), true);
  Tensor wide = logits;
  // Until 4.45 all classes called CrossEntropyLoss themselves.
  if (heads.token_loss_fp32 && net.job.framework.at_least(4, 46)) wide = to(std::move(wide), Dtype::kFp32);
  Outputs out;
  out.loss = plain_cross_entropy(net, std::move(wide));
  out.rest = {std::move(logits)};
  return out;
}

Outputs question_answering(Net& net, const Program& program, Tensor hidden) {
  Scope in(net.tape, "", program.decoder_heads.span);
  Tensor logits = net.classifier("qa_outputs", std::move(hidden), Dim(2), true);
  return spans(net, std::move(logits));
}

namespace {

// GPT2SequenceSummary: the last token of each row, projected to one score.
Tensor summary(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "multiple_choice_head", kSummary);
  Tensor index = ids(net, Shape{net.B, Dim(1), net.H}, "full_like");
  Tensor last = pick(hidden, index, index);
  last = dropout(std::move(last), net.arch.summary_dropout);
  return net.classifier("multiple_choice_head.summary", std::move(last), Dim(1), true);
}

// Both losses, as the class's own example adds them; the language model's on shifted copies in the model's dtype.
Outputs double_heads(Net& net, const Program& program, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  Tensor lm_logits = program.lm_head(net, hidden);
  Scope in(net.tape, "", kDoubleHeads);
  Tensor mc_logits = summary(net, hidden);
  Tensor mc_loss = cross_entropy(view(mc_logits, Shape{Dim(1), net.B}), net.more_labels);
  Outputs out;
  out.loss = shifted_cross_entropy(net, lm_logits);
  out.loss = add(std::move(out.loss), std::move(mc_loss));
  out.rest = {std::move(lm_logits), std::move(mc_logits)};
  return out;
}

}  // namespace

constinit const HeadForward kDecoderHeads[5] = {{Head::kCausalLm, causal_lm},
                                                {Head::kSequenceClassification, sequence_classification},
                                                {Head::kTokenClassification, token_classification},
                                                {Head::kQuestionAnswering, question_answering},
                                                {Head::kNone, body_alone}};
constinit const HeadForward kGpt2Heads[6] = {{Head::kCausalLm, causal_lm},
                                             {Head::kDoubleHeads, double_heads},
                                             {Head::kSequenceClassification, sequence_classification},
                                             {Head::kTokenClassification, token_classification},
                                             {Head::kQuestionAnswering, question_answering},
                                             {Head::kNone, body_alone}};

const HeadForward* HeadForwards::find(Head head) const {
  for (int i = 0; i < count; ++i) {
    if (first[i].head == head) return &first[i];
  }
  return nullptr;
}

void class_labels(Net& net) {
  switch (net.arch.problem_type) {
    case ProblemType::kSingleLabel:
      net.labels = ids(net, Shape{net.B}, "labels");
      return;
    case ProblemType::kRegression:
      net.labels = net.tape.allocate(Shape{net.B, Dim(net.arch.num_labels)}, Dtype::kFp32, "labels");
      return;
    case ProblemType::kMultiLabel:
      net.labels = net.tape.allocate(Shape{net.B, Dim(net.arch.num_labels)}, Dtype::kFp32, "labels");
      return;
  }
}

namespace {

// TRL's collators: masks are passed even where nothing is padded; KTO's rows come twice, paired with others' prompts.
void preference_inputs(Net& net, const Shape& rows) {
  Tensor mask = ids(net, rows, "attention_mask");
  (net.job.padding ? net.attention_mask : net.more_inputs.emplace_back()) = std::move(mask);
  const bool generated = net.job.generates() || net.job.generates_pairs();
  if (net.job.preference == Preference::kReward || generated) return;
  net.more_inputs.push_back(ids(net, rows, "completion_mask"));
  if (net.job.distils()) {  // experimental/utils.py: DataCollatorForChatML
    const Shape prompts{net.B, Dim(std::max<Count>(1, net.job.sequence_length - net.job.answer_length()))};
    for (const char* name : {"prompts", "prompt_attention_mask"}) net.more_inputs.push_back(ids(net, prompts, name));
    return;
  }
  if (net.job.preference == Preference::kBco) {  // experimental/utils.py: DPODataCollatorWithPadding
    const Shape prompts{net.B, Dim(net.S.n() / 2)};
    for (const char* name : {"prompt_input_ids", "prompt_attention_mask"})
      net.more_inputs.push_back(ids(net, prompts, name));
    return;
  }
  if (net.job.preference == Preference::kTpo) return;
  const int further = has_reference(net.job.preference) ? (net.job.preference == Preference::kKto ? 3 : 0) : 3;
  for (int i = 0; i < further; ++i) net.more_inputs.push_back(ids(net, rows, "input_ids"));
}

}  // namespace

void text_inputs(Net& net) {
  const Shape rows{net.B, Dim(net.S.n() - net.job.virtual_tokens(), Symbol::kSequence)};
  net.input_ids = ids(net, rows, "input_ids");
  if (net.job.preference != Preference::kNone) return preference_inputs(net, rows);
  if (net.job.padding) net.attention_mask = ids(net, rows, "attention_mask");
  switch (net.arch.head) {
    case Head::kSequenceClassification:
      return class_labels(net);
    case Head::kNextSentence:
    case Head::kMultipleChoice:
      net.labels = ids(net, Shape{net.B}, "labels");
      return;
    case Head::kQuestionAnswering:
      net.labels = ids(net, Shape{net.B}, "start_positions");
      net.more_labels = ids(net, Shape{net.B}, "end_positions");
      return;
    case Head::kPreTraining:
      net.more_labels = ids(net, Shape{net.B}, "next_sentence_label");
      break;
    case Head::kDoubleHeads:
      net.more_labels = ids(net, Shape{Dim(1)}, "mc_labels");
      break;
    default:
      break;
  }
  net.labels = ids(net, rows, "labels");
}

Outputs causal_lm(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  const Dtype hidden_dtype = hidden.dtype();
  net.fuse_loss = net.job.loss != Loss::kDefault;
  Tensor logits = program.lm_head(net, kept_tokens(net, std::move(hidden)));
  if (net.fuse_loss) {
    out.loss = std::move(logits);
    return out;
  }
  // torchtitan: logits come as fp32 and labels shifted, so that no copy is made (components/loss.py:
  // cross_entropy_loss).
  if (net.job.framework.name == "torchtitan") {
    out.loss = plain_cross_entropy(net, logits);
    out.rest = {std::move(logits)};
    return out;
  }
  if (returns_fp32_logits(net.job.framework, program.own_loss)) logits = to(std::move(logits), Dtype::kFp32);
  if (net.job.has_outer_loss()) {
    out.rest = {std::move(logits)};
    if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
    return out;
  }
  out.loss = causal_lm_loss(net, logits, program.own_loss);
  if (program.own_loss == OwnLoss::kFp32AndBack) logits = to(std::move(logits), hidden_dtype);
  out.rest = {std::move(logits)};
  if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
  return out;
}

Outputs body_alone(Net& net, const Program&, Tensor hidden) {
  Outputs out;
  out.loss = mean_square(net, hidden);
  out.rest = {std::move(hidden)};
  return out;
}

Outputs body_with_pooler(Net& net, const Program& program, Tensor hidden, Tensor (*pool)(Net&, const Tensor&)) {
  const bool grad_before = net.tape.grad_enabled();
  net.tape.set_grad_enabled(false);
  Tensor pooled = pool(net, hidden);
  net.tape.set_grad_enabled(grad_before);
  Outputs out = body_alone(net, program, std::move(hidden));
  out.rest.push_back(std::move(pooled));
  return out;
}

Outputs classified(Net& net, Tensor logits) {
  Outputs out;
  if (net.job.has_outer_loss()) {
    out.rest = {std::move(logits)};
    return out;
  }
  switch (net.arch.problem_type) {
    case ProblemType::kSingleLabel:
      out.loss = plain_cross_entropy(net, logits);
      break;
    case ProblemType::kRegression:
      out.loss = mse_loss(logits, net.labels);
      break;
    case ProblemType::kMultiLabel:
      out.loss = binary_cross_entropy_with_logits(logits, net.labels);
      break;
  }
  out.rest = {std::move(logits)};
  return out;
}

Outputs pooled_classes(Net& net, const char* module, Tensor pooled) {
  Outputs out = classified(net, net.classifier(module, std::move(pooled), Dim(net.arch.num_labels), true));
  net.leaves.clear();
  return out;
}

Outputs spans(Net& net, Tensor logits_in) {
  const Tensor logits = std::move(logits_in);
  const Shape row{net.B, net.S};
  const Pieces ends = split(logits, 2, {Dim(1), Dim(1)});
  Tensor start_logits = contiguous(view(ends.part[0], row));
  Tensor end_logits = contiguous(view(ends.part[1], row));
  // Positions outside the sequence are ignored: clamp(0, ignored_index).
  Tensor start_positions = ids(net, Shape{net.B}, "clamp");
  Tensor end_positions = ids(net, Shape{net.B}, "clamp");
  Tensor start_loss = cross_entropy(start_logits, std::move(start_positions));
  Tensor end_loss = cross_entropy(end_logits, std::move(end_positions));
  Outputs out;
  out.loss = add(std::move(start_loss), std::move(end_loss));
  out.loss = mul_scalar(std::move(out.loss));
  out.rest = {std::move(start_logits), std::move(end_logits)};
  return out;
}

Outputs labelled(Net& net, Tensor logits) {
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

Outputs masked_lm(Net& net, const Program& program, Tensor hidden) {
  return labelled(net, program.lm_head(net, std::move(hidden)));
}

// A micro batch counts rows: how many of them compete moves no memory.
Outputs choose(Net& net, Tensor pooled) {
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(1), true);
  Outputs out;
  out.loss = cross_entropy(view(logits, Shape{Dim(1), net.B}), net.labels);
  out.rest = {std::move(logits)};
  return out;
}

}  // namespace tidemark
