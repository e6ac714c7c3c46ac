// TRL's cross-entropy over chunks of tokens, SFTTrainer's loss since TRL 1.7.
#include "core/layers/losses.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource =
    "trl 1.9 trainer/sft_trainer.py: _chunk, _chunked_cross_entropy_loss (256 tokens at a time, checkpointed)";

// _CHUNKED_LM_HEAD_CHUNK_SIZE: tokens per chunk.
constexpr Count kChunkTokens = 256;

// What a chunk reads besides its hidden states [rows, H].
struct HeadOfChunk {
  Tensor weight;  // [V, H]
  Tensor bias;    // [V], or none
  Tensor target;  // [rows]
};

// Of Cohere's logit_scale and Gemma's final_logit_softcapping the latter makes copies that count: [rows, V].
Tensor capped(const Net& net, Tensor logits) {
  if (!net.arch.logit_softcap) return logits;
  logits = mul_scalar(std::move(logits));
  logits = tanh(std::move(logits));
  return mul_scalar(std::move(logits));
}

// h.float() @ w.float().t(): an fp32 copy of the head in each chunk, 4·V·H bytes, unless it is fp32 already. Autocast
// casts it back to 16 bits, each time anew: a transposed view is no leaf, and only of leaves casts are kept.
Tensor product_of_chunk(Tensor hidden, const Tensor& weight) {
  const Tensor rows = to(std::move(hidden), Dtype::kFp32);
  const Tensor columns = transpose(to(weight, Dtype::kFp32), 0, 1);
  return matmul(rows, columns);
}

Tensor logits_of_chunk(const Net& net, Tensor hidden, const HeadOfChunk& head) {
  Tensor logits = product_of_chunk(std::move(hidden), head.weight);
  if (head.bias.defined()) logits = add(std::move(logits), to(head.bias, Dtype::kFp32));
  return capped(net, std::move(logits));
}

// The entropy that SFTTrainer logs is computed under gradients, and again in backward, though nobody asks for its
// gradient: two more [rows, V] in fp32.
void note_entropy(const Tensor& log_probabilities) {
  Tape& t = log_probabilities.tape();
  const Tensor probabilities = exp(log_probabilities);
  const Tensor products = mul(probabilities, log_probabilities);
  Tensor sums = mean_last(products);
  const Tensor valid = t.allocate(sums.shape(), Dtype::kBool, "labels != -100");
  sums = mul(std::move(sums), valid);
}

Tensor loss_of_chunk(const Net& net, Tensor hidden, const HeadOfChunk& head) {
  const Tensor logits = logits_of_chunk(net, std::move(hidden), head);  // argmax reads them at the end
  const Tensor log_probabilities = log_softmax(logits);
  Tensor loss = nll_loss(log_probabilities, head.target);
  note_entropy(log_probabilities);
  return loss;
}

// Tokens whose next one is known, B·(S−1) of them, in their order by mask: hidden[..., :-1, :].reshape(-1, H)[order].
Tensor packed_rows(Net& net, const Tensor& hidden) {
  const bool shifts = hidden.shape().rank == 3 && hidden.size(1) == net.S.n() && net.S.n() > 1;
  Tensor rows = shifts ? narrow(hidden, 1, 0, Dim(net.S.n() - 1, Symbol::kSequence)) : hidden;
  const Dim tokens(rows.numel() / rows.size(-1), Symbol::kTokens);
  rows = reshape(std::move(rows), Shape{tokens, hidden.dim(-1)});
  return gather_rows(std::move(rows), net.tape.allocate(Shape{tokens}, Dtype::kInt64, "argsort"));
}

}  // namespace

// All chunks but the last one are alike: two stand for them, so that in backward the gradients of one, of the hidden
// states and of the head, are there while the other's are made.
Tensor chunked_loss(Net& net, Tensor hidden_in, Tensor weight, Tensor bias) {
  Scope in(net.tape, "loss", kSource);
  Tape& t = net.tape;
  const Tensor hidden = std::move(hidden_in);  // last_hidden_state, which has a name until forward returns
  const Tensor rows = packed_rows(net, hidden);
  const bool many = t.above(rows.size(0), kChunkTokens);
  const Dim length = many ? Dim(kChunkTokens) : rows.dim(0);
  const HeadOfChunk head{std::move(weight), std::move(bias), t.allocate(Shape{length}, Dtype::kInt64, "labels")};
  const auto call = [&net, head](Tensor chunk) { return loss_of_chunk(net, std::move(chunk), head); };
  Tensor loss = t.allocate(Shape{}, Dtype::kFp32, "loss");
  for (int chunk = 0; chunk < (many ? 2 : 1); ++chunk) {
    Tensor part = narrow(rows, 0, chunk == 0 ? 0 : rows.size(0) - length.n(), length);
    loss = add(std::move(loss), t.checkpoint(call, std::move(part), false, CheckpointInput::kKept));
  }
  return mul_scalar(std::move(loss));
}

}  // namespace tidemark
