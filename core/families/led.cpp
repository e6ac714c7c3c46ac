// LED: Longformer's windows in BART's encoder, and a decoder whose attention is written out.
#include <utility>

#include "core/families/bart.hpp"
#include "core/families/longformer.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

constexpr const char* kAttention = "transformers 5.24 models/led/modeling_led.py: LEDDecoderAttention.forward";
constexpr const char* kEncoderLayer = "transformers 5.24 models/led/modeling_led.py: LEDEncoderLayer.forward";
constexpr const char* kDecoderLayer = "transformers 5.24 models/led/modeling_led.py: LEDDecoderLayer.forward";
constexpr const char* kEncoder = "transformers 5.24 models/led/modeling_led.py: LEDEncoder.forward";
constexpr const char* kDecoder = "transformers 5.24 models/led/modeling_led.py: LEDDecoder.forward";
constexpr const char* kModel = "transformers 5.24 models/led/modeling_led.py: LEDForConditionalGeneration.forward";

constexpr WindowedNames kWindowed = {"self_attn.longformer_self_attn",
                                     "self_attn.longformer_self_attn.query",
                                     "self_attn.longformer_self_attn.key",
                                     "self_attn.longformer_self_attn.value",
                                     "self_attn.longformer_self_attn.query_global",
                                     "self_attn.longformer_self_attn.key_global",
                                     "self_attn.longformer_self_attn.value_global"};

// transformers 5.24 models/led/configuration_led.py: LEDConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bart_sizes(fields, architecture, {});
  architecture.tie_word_embeddings = true;
  if (!fields.flag({"tie_word_embeddings"}, true)) {
    fields.error("INVALID_VALUE", "tie_word_embeddings",
                 "Tables of encoder, decoder and head that are not one are not modelled.");
  }
  architecture.max_positions = fields.count({"max_encoder_position_embeddings"}, 16384);
  architecture.parts.front().max_positions = fields.count({"max_decoder_position_embeddings"}, 1024);
  read_attention_windows(fields, architecture);
}

// [S, H] of a table, by a row of places.
Tensor places(Net& net, const char* name, Dim length) {
  const Tensor ids = net.tape.allocate(Shape{length}, Dtype::kInt64, "arange");
  return net.embedding(name, ids, Dim(net.arch.max_positions), net.H);
}

// What both kinds of layer do behind an attention: dropout, the sum, a norm.
Tensor join(Net& net, const char* norm, const Tensor& residual, Tensor x_in) {
  Tensor x = dropout(std::move(x_in), net.arch.residual_dropout);
  x = add(residual, std::move(x));
  return net.layer_norm(norm, std::move(x));
}

Tensor feed_forward(Net& net, const Tensor& residual) {
  Tensor h = net.linear("fc1", residual, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("fc2", std::move(h), net.H, true);
  return join(net, "final_layer_norm", residual, std::move(h));
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kEncoderLayer);
  Tensor residual = std::move(hidden);
  Tensor attended;
  {
    const Tensor seen = windowed_attention(net, kWindowed, residual, 0);
    attended = net.linear("self_attn.output", seen, net.H, true);
  }
  residual = join(net, "self_attn_layer_norm", residual, attended);
  return feed_forward(net, residual);
}

Tensor attend(Net& net, const BartAttentionNames& names, const Tensor& hidden) {
  Scope in(net.tape, names.module, kAttention);
  net.attention_kernel = "eager";
  const bool cross = &names == &kBartCross;
  const Tensor& states = cross ? net.shared.encoder_states : hidden;
  const Tensor& mask = cross ? net.shared.cross_mask : net.shared.causal_mask;
  const Dim keys = states.dim(1), outer(net.B.n() * net.A.n());
  const auto heads = [&](Tensor x) {
    const Dim rows = x.dim(1);
    return transpose(view(std::move(x), Shape{net.B, rows, net.A, net.hd}), 1, 2);
  };
  Tensor q = mul_scalar(net.linear(names.q, hidden, net.H, true));
  Tensor k = net.linear(names.k, states, net.H, true);
  Tensor v = net.linear(names.v, states, net.H, true);
  k = heads(std::move(k));
  v = heads(std::move(v));
  q = heads(std::move(q));
  q = reshape(std::move(q), Shape{outer, net.S, net.hd});
  k = reshape(std::move(k), Shape{outer, keys, net.hd});
  v = reshape(std::move(v), Shape{outer, keys, net.hd});
  Tensor weights = matmul(q, transpose(k, 1, 2));
  if (mask.defined()) {
    weights = add(view(std::move(weights), Shape{net.B, net.A, net.S, keys}), mask);
    weights = view(std::move(weights), Shape{outer, net.S, keys});
  }
  weights = softmax(std::move(weights));
  const Tensor probabilities = dropout(weights, net.arch.attention_dropout);
  Tensor out = matmul(probabilities, v);
  out = transpose(view(std::move(out), Shape{net.B, net.A, net.S, net.hd}), 1, 2);
  out = reshape(std::move(out), Shape{net.B, net.S, net.H});
  return net.linear(names.o, std::move(out), net.H, true);
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDecoderLayer);
  Tensor residual = std::move(hidden);
  residual = join(net, kBartSelf.norm, residual, attend(net, kBartSelf, residual));
  residual = join(net, kBartCross.norm, residual, attend(net, kBartCross, residual));
  return feed_forward(net, residual);
}

// _prepare_4d_attention_mask_inverted: [B, 1, S, S], whose first row the layers are told.
Tensor inverted_mask(Net& net, Dim length, Dtype dtype) {
  Tape& t = net.tape;
  const Shape square{net.B, Dim(1), length, length};
  const Tensor expanded = t.allocate(square, dtype, "to");
  const Tensor inverted = t.allocate(square, dtype, "rsub");
  Tensor filled;
  {
    const Tensor mask = t.allocate(square, Dtype::kBool, "bool");
    filled = t.allocate(square, dtype, "masked_fill");
  }
  return t.allocate(square, dtype, "mul");
}

Tensor encode(Net& net) {
  Scope in(net.tape, "led.encoder", kEncoder);
  Tape& t = net.tape;
  const Dim length = whole_windows(net);
  const Count more = length.n() - net.S.n();
  Tensor embeds = net.token_embedding("led.shared", net.H);
  const Tensor mask = t.allocate(Shape{net.B, length}, Dtype::kInt64, "attention_mask");
  Tensor ids;
  if (more > 0) {
    ids = t.allocate(Shape{net.B, length}, Dtype::kInt64, "constant_pad_nd");
    const Tensor padding = t.allocate(Shape{net.B, Dim(more)}, Dtype::kInt64, "new_full");
    const Tensor behind = net.tied_embedding_of("led.shared", padding);
    embeds = cat({&embeds, &behind}, 1);
  }
  share_window_mask(net, inverted_mask(net, length, embeds.dtype()), length);
  const Tensor positions = places(net, "led.encoder.embed_positions", length);
  Tensor hidden = add(embeds, positions);
  hidden = net.layer_norm("led.encoder.layernorm_embedding", std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  hidden = net.layers({"led.encoder.layers", net.arch.num_layers, encoder_layer}, std::move(hidden));
  net.shared = {};
  return narrow(std::move(hidden), 1, 0, net.S);
}

Tensor decode(Net& net, Net& encoder, const Tensor& ids, const Tensor& states) {
  Scope in(net.tape, "led.decoder", kDecoder);
  const Tensor embeds = net.tied_embedding_of("led.shared", ids);
  make_causal_masks(net, embeds, {.eager = true, .whole = true});
  net.attention_mask = encoder.attention_mask;
  net.shared.cross_mask = bidirectional_mask(net, states, true, net.S, encoder.S);
  net.attention_mask.reset();
  net.shared.encoder_states = states;
  const Tensor positions = places(net, "led.decoder.embed_positions", net.S);
  Tensor hidden = add(embeds, positions);
  hidden = net.layer_norm("led.decoder.layernorm_embedding", std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  Stack stack{"led.decoder.layers", net.arch.num_layers, decoder_layer};
  stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  return hidden;
}

Tensor forward(Net& net) {
  const Tensor ids = shift_right(net);
  return decode_behind(net, decoder_length(net), ids, encode(net), decode);
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  Tensor logits = program.lm_head(net, std::move(hidden));
  logits = add_logits_bias(net, std::move(logits), kModel);
  return seq2seq_loss(net, std::move(logits));
}

constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}};
constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, conditional_generation}};

}  // namespace

const Program kLedProgram = {
    .forward = forward, .lm_head = lm_head, .heads = kHeads, .inputs = seq2seq_inputs, .attention = kEagerAlone};

const Family kRows[] = {
    {"led",
     "LED",
     "LEDForConditionalGeneration",
     kClasses,
     read_config,
     &kLedProgram,
     "led.encoder.layers",
     {.flex_attention = false, .no_split = NoSplit::kNone}},
};

extern const FamilyRows led_rows;
const FamilyRows led_rows = kRows;

}  // namespace tidemark
