#pragma once

#include "core/layers/heads.hpp"
#include "core/layers/net.hpp"

/// What the families of encoder-decoders do alike.
namespace tidemark {

/// The batch of an encoder-decoder: ids and, where the job pads, a mask for the encoder, labels for the decoder.
/// (transformers 5.12 data/data_collator.py DataCollatorForSeq2Seq: no decoder_attention_mask.)
void seq2seq_inputs(Net& net);
/// Rows that the decoder sees: the batch's; while the model generates each of them once for each beam.
Dim decoder_rows(const Net& net);
/// What they attend to: generate() repeats the encoder's output for the beams.
Tensor for_decoder(Net& net, Tensor encoder_states);
/// Tokens per sample that the decoder sees: as many as labels, or the encoder's own where the class makes the
/// decoder's input of those.
Dim decoder_length(const Net& net);
/// decoder_input_ids: the labels moved to the right, or input_ids where the labels are classes.
Tensor shift_right(Net& net);
Tensor shift_right(Net& net, const Shape& rows);
/// What `decode` makes of `length` tokens of the decoder, the model's first part, and of what the encoder has made.
Tensor decode_behind(Net& net, Dim length, const Tensor& ids, Tensor encoded,
                     Tensor (*decode)(Net& decoder, Net& encoder, const Tensor& ids, const Tensor& states));
/// CrossEntropyLoss on the logits as they are; the encoder's states are among the outputs.
Outputs seq2seq_loss(Net& net, Tensor logits);
/// Adds the encoder's states to what a class returns.
Outputs with_encoder_states(Net& net, Outputs outputs);
/// The body alone, with both last hidden states.
Outputs seq2seq_body(Net& net, const Program& program, Tensor hidden);
/// The decoder's hidden state at each row's end-of-sequence token, [B, H]: of rows with one such token each.
Tensor eos_states(Net& net, const Tensor& hidden);
/// T5ClassificationHead.forward, BartClassificationHead.forward: two layers on one vector per row.
Tensor classification_head(Net& net, Tensor x, const char* source);

}  // namespace tidemark
