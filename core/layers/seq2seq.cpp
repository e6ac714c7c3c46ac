// Encoder-decoders: the batch, the decoder's input, losses.
#include "core/layers/seq2seq.hpp"

#include <utility>

#include "core/layers/losses.hpp"
#include "core/layers/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kShift = "transformers 5.12 models/t5/modeling_t5.py: T5PreTrainedModel._shift_right";
constexpr const char* kEos = "transformers 5.12 models/bart/modeling_bart.py: BartForSequenceClassification.forward";

}  // namespace

Dim decoder_length(const Net& net) {
  const bool of_labels = net.arch.head == Head::kSeq2SeqLm || net.arch.head == Head::kNone;
  const Count length = net.job.decoder_sequence_length;
  return of_labels && length > 0 ? Dim(length) : net.S;
}

Dim decoder_rows(const Net& net) {
  return net.kv_cache() == nullptr ? net.B : Dim(net.B.n() * net.job.evaluation.beams, Symbol::kBatch);
}

// generation/utils.py: _prepare_encoder_decoder_kwargs_for_generation calls the encoder alone, so that what autocast
// cast for it has gone; _expand_inputs_for_generation repeats.
Tensor for_decoder(Net& net, Tensor encoder_states) {
  if (net.kv_cache() != nullptr) net.tape.clear_autocast_cache();
  const Dim rows = decoder_rows(net);
  if (rows.n() == net.B.n()) return encoder_states;
  const Shape& s = encoder_states.shape();
  return net.tape.allocate(Shape{rows, s.dim(1), s.dim(2)}, encoder_states.dtype(), "repeat_interleave");
}

void seq2seq_inputs(Net& net) {
  text_inputs(net);
  if (net.arch.head != Head::kSeq2SeqLm && net.arch.head != Head::kNone) return;
  net.labels = net.tape.allocate(Shape{net.B, decoder_length(net)}, Dtype::kInt64, "labels");
}

Tensor decode_behind(Net& net, Dim length, const Tensor& ids, Tensor encoded,
                     Tensor (*decode)(Net& decoder, Net& encoder, const Tensor& ids, const Tensor& states)) {
  const Tensor states = for_decoder(net, std::move(encoded));
  net.encoder_hidden = states;
  return decode(net.part(net.arch.parts.front(), decoder_rows(net), length), net, ids, states);
}

Tensor shift_right(Net& net) {
  return shift_right(net, Shape{decoder_rows(net), decoder_length(net)});
}

Tensor shift_right(Net& net, const Shape& rows) {
  Scope in(net.tape, "decoder_input_ids", kShift);
  Tape& t = net.tape;
  Tensor shifted = t.allocate(rows, Dtype::kInt64, "new_zeros");
  { Tensor all_but_last = t.allocate(Shape{rows.dim(0), Dim(rows.size(1) - 1)}, Dtype::kInt64, "clone"); }
  { Tensor ignored = t.allocate(rows, Dtype::kBool, "eq"); }
  return shifted;
}

Outputs with_encoder_states(Net& net, Outputs outputs) {
  outputs.rest.push_back(std::move(net.encoder_hidden));
  return outputs;
}

Outputs seq2seq_loss(Net& net, Tensor logits) {
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return with_encoder_states(net, std::move(out));
}

Outputs seq2seq_body(Net& net, const Program& program, Tensor hidden) {
  return with_encoder_states(net, body_alone(net, program, std::move(hidden)));
}

Tensor eos_states(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "", kEos);
  Tape& t = net.tape;
  Tensor eos_mask = t.allocate(Shape{net.B, net.S}, Dtype::kBool, "eq");
  Tensor rows = t.allocate(Shape{net.B}, Dtype::kInt64, "nonzero");
  Tensor positions = t.allocate(Shape{net.B}, Dtype::kInt64, "nonzero");
  return pick(hidden, std::move(rows), std::move(positions));
}

Tensor classification_head(Net& net, Tensor x_in, const char* source) {
  Scope in(net.tape, "classification_head", source);
  const double p = net.arch.classifier_dropout;
  Tensor x = dropout(std::move(x_in), p);
  x = net.classifier("classification_head.dense", std::move(x), net.H, true);
  x = tanh(std::move(x));
  x = dropout(std::move(x), p);
  return net.classifier("classification_head.out_proj", std::move(x), Dim(net.arch.num_labels), true);
}

}  // namespace tidemark
