// VisionEncoderDecoder with TrOCR's decoder: ViT or DeiT over a picture of text, and layers of BART's kind whose
// attentions are two products and a softmax.
#include <string>
#include <utility>

#include "core/families/bart.hpp"
#include "core/families/donut.hpp"
#include "core/families/family.hpp"
#include "core/families/swin_stages.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/seq2seq.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

void read_picture_decoder(ConfigFields& fields, Count encoder_width, Count positions, Architecture& decoder) {
  decoder.hidden_size = fields.count({"d_model", "hidden_size"}, 1024);
  decoder.num_layers = fields.count({"decoder_layers", "num_hidden_layers"}, 12);
  decoder.num_heads = decoder.num_kv_heads = fields.count({"decoder_attention_heads", "num_attention_heads"}, 16);
  decoder.intermediate_size = fields.count({"decoder_ffn_dim"}, 4096);
  decoder.vocab_size = fields.count({"vocab_size"}, 50265);
  decoder.max_positions = fields.count({"max_position_embeddings"}, positions) + 2;  // nn.Embedding(n + self.offset)
  decoder.position_offset = 2;
  decoder.activation = read_activation(fields, {"activation_function"}, "gelu");
  decoder.residual_dropout = fields.probability({"dropout"}, 0.1);
  decoder.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  decoder.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  decoder.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  derive_head_dim(fields, decoder);
  const Count width = fields.nullable({"cross_attention_hidden_size"}, std::nullopt).value_or(0);
  if (width == 0 && encoder_width != decoder.hidden_size) decoder.pictures.width = decoder.hidden_size;
  if (width != 0 && width != encoder_width) {
    fields.error(
        "INVALID_VALUE", "cross_attention_hidden_size",
        "\"cross_attention_hidden_size\" must be the encoder's hidden_size: transformers raises a ValueError.");
  }
  note_layerdrop(fields, "decoder_layerdrop", 0.0);
  fields.accept({"architectures", "torch_dtype", "dtype", "decoder_start_token_id", "scale_embedding", "is_decoder",
                 "add_cross_attention", "is_encoder_decoder", "classifier_dropout"});
}

void take_decoder(ConfigFields& fields, Architecture decoder, Architecture& architecture) {
  architecture.num_decoder_layers = decoder.num_layers;
  architecture.vocab_size = decoder.vocab_size;
  architecture.tie_word_embeddings = decoder.tie_word_embeddings;
  architecture.parts.push_back(std::move(decoder));
  fields.accept({"is_encoder_decoder", "tie_word_embeddings", "processor_class", "decoder_start_token_id"});
}

namespace {

// transformers 5.12.1 models/trocr/configuration_trocr.py: TrOCRConfig.
Architecture read_decoder(ConfigFields& outer, Count encoder_width) {
  ConfigFields fields(required_object(outer, "decoder"), outer.path() + "/decoder", outer.issues());
  Architecture decoder;
  if (fields.object().members.empty()) return decoder;
  const std::string type = fields.text({"model_type"}, "trocr");
  if (type != "trocr") {
    fields.error("UNSUPPORTED_ARCHITECTURE", "model_type",
                 "Of decoders behind a picture's encoder, TrOCR's is modelled: \"" + type + "\" is not.");
    return decoder;
  }
  constexpr Count kPositions = 512;
  read_picture_decoder(fields, encoder_width, kPositions, decoder);
  decoder.norm_before = fields.flag({"layernorm_embedding"}, true);  // of the embeddings
  if (fields.flag({"use_cache"}, true)) {
    fields.error("UNSUPPORTED_VALUE", "use_cache",
                 "A decoder that keeps keys and values while it trains is not modelled: set the decoder's "
                 "\"use_cache\" to false, as published files have it.",
                 "false");
  }
  if (!fields.flag({"use_learned_position_embeddings"}, true)) {
    fields.error("INVALID_VALUE", "use_learned_position_embeddings",
                 "transformers 5 leaves this decoder's table of sines on the CPU: its forward fails on a GPU.");
  }
  fields.report_unread("trocr");
  return decoder;
}

// transformers 5.12.1 models/vision_encoder_decoder/configuration_vision_encoder_decoder.py.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.facts.says_width = false;
  ConfigFields encoder(required_object(fields, "encoder"), fields.path() + "/encoder", fields.issues());
  const std::string type = encoder.text({"model_type"}, "vit");
  if (type == "donut-swin") return read_donut_config(fields, encoder, architecture);
  if (type != "vit" && type != "deit") {
    encoder.error(
        "UNSUPPORTED_ARCHITECTURE", "model_type",
        "Of encoders in front of a decoder, ViT, DeiT and Donut's Swin are modelled: \"" + type + "\" is not.");
    return;
  }
  (type == "vit" ? read_vit_config : read_deit_config)(encoder, architecture);
  architecture.position_offset = type == "vit" ? 1 : 2;  // tokens beside the patches
  encoder.accept({"architectures", "torch_dtype", "dtype"});
  encoder.report_unread(type);
  take_decoder(fields, read_decoder(fields, architecture.hidden_size), architecture);
}

constexpr const char* kModel =
    "transformers 5.12 models/vision_encoder_decoder/modeling_vision_encoder_decoder.py: "
    "VisionEncoderDecoderModel.forward";
constexpr const char* kDecoder = "transformers 5.12 models/trocr/modeling_trocr.py: TrOCRDecoder.forward";
constexpr const char* kLayer = "transformers 5.12 models/trocr/modeling_trocr.py: TrOCRDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/trocr/modeling_trocr.py: TrOCRAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/trocr/modeling_trocr.py: TrOCRForCausalLM.forward";

void inputs(Net& net) {
  (is_donut(net.arch) ? swin_pictures : vit_pictures)(net);
  const Count length = net.job.decoder_sequence_length;
  const Dim target(length > 0 ? length : std::max<Count>(1, net.job.sequence_length));
  net.labels = net.tape.allocate(Shape{net.B, target}, Dtype::kInt64, "labels");
}

// view(B, -1, A, hd).transpose(1, 2).reshape(B·A, -1, hd): a copy.
Tensor heads(const Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  const Dim rows = x.dim(0), length = x.dim(1);
  x = transpose(view(std::move(x), Shape{rows, length, net.A, net.hd}), 1, 2);
  return reshape(std::move(x), Shape{Dim(rows.n() * net.A.n()), length, net.hd});
}

Tensor attend(Net& net, const BartAttentionNames& names, const Tensor& hidden, const Tensor& states,
              const Tensor& mask) {
  Scope in(net.tape, names.module, kAttention);
  const Dim rows = hidden.dim(0), length = hidden.dim(1), seen = states.dim(1);
  Tensor query = mul_scalar(net.linear(names.q, hidden, net.H, true));
  Tensor key = net.linear(names.k, states, net.H, true);
  Tensor value = net.linear(names.v, states, net.H, true);
  const Tensor q = heads(net, std::move(query)), k = heads(net, std::move(key)), v = heads(net, std::move(value));
  Tensor weights = matmul(q, transpose(k, 1, 2));
  if (mask.defined()) {
    weights = add(view(std::move(weights), Shape{rows, net.A, length, seen}), mask);
    weights = view(std::move(weights), Shape{Dim(rows.n() * net.A.n()), length, seen});
  }
  weights = softmax(std::move(weights));
  const Tensor probabilities = dropout(weights, net.arch.attention_dropout);
  Tensor out = matmul(probabilities, v);
  out = transpose(view(std::move(out), Shape{rows, net.A, length, net.hd}), 1, 2);
  out = reshape(std::move(out), Shape{rows, length, net.H});
  return net.linear(names.o, std::move(out), net.H, true);
}

Tensor attention_block(Net& net, const BartAttentionNames& names, Tensor hidden, const Tensor& states,
                       const Tensor& mask) {
  const Tensor residual = std::move(hidden);
  Tensor out = attend(net, names, residual, states.defined() ? states : residual, mask);
  out = dropout(std::move(out), net.arch.residual_dropout);
  out = add(residual, std::move(out));
  return net.layer_norm(names.norm, std::move(out));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor h = attention_block(net, kBartSelf, std::move(hidden), {}, net.shared.causal_mask);
  h = attention_block(net, kBartCross, std::move(h), net.shared.encoder_states, {});
  const Tensor residual = h;
  h = net.linear("fc1", std::move(h), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("fc2", std::move(h), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = add(residual, std::move(h));
  return net.layer_norm("final_layer_norm", std::move(h));
}

Tensor scaled(Net&, Tensor rows) {
  return mul_scalar(std::move(rows));
}

Tensor encode(Net& net) {
  Tensor h = vit_embed(net);
  h = net.layers({"encoder.layers", net.arch.num_layers, vit_layer}, std::move(h));
  h = vit_norm(net, std::move(h));
  // What it pools is among its outputs, and has no gradient.
  const bool grad_before = net.tape.grad_enabled();
  net.tape.set_grad_enabled(false);
  { const Tensor pooled = vit_pool(net, h); }
  net.tape.set_grad_enabled(grad_before);
  return h;
}

Tensor decode(Net& net, Net& encoder, const Tensor& ids, const Tensor& encoder_states) {
  Scope in(net.tape, "decoder.model.decoder", kDecoder);
  Tape& t = net.tape;
  Tensor pixels = std::exchange(encoder.input_ids, ids);
  const Tensor embeds = encoder.token_embedding("decoder.model.decoder.embed_tokens", net.H, scaled);
  encoder.input_ids = std::move(pixels);
  Tensor places;
  {
    const Tensor arange = t.allocate(Shape{net.S}, Dtype::kInt64, "arange");
    Tensor positions = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "add");
    places = net.embedding("decoder.model.decoder.embed_positions", std::move(positions), Dim(net.arch.max_positions),
                           net.H);
  }
  Tensor hidden = add(embeds, places);
  if (net.arch.norm_before) {
    hidden = net.layer_norm("decoder.model.decoder.layernorm_embedding", std::move(hidden));
  }
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  make_causal_masks(net, embeds, {.eager = true, .whole = true});
  net.shared.encoder_states = encoder_states;
  Stack stack{"decoder.model.decoder.layers", net.arch.num_layers, layer};
  stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  return hidden;
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  const bool donut = is_donut(net.arch);
  const Tensor encoded = donut ? donut_encode(net) : encode(net);
  net.model_locals.clear();
  net.encoder_hidden = encoded;
  Net& decoder = net.part(net.arch.parts.back(), net.B, net.labels.dim(1));
  Tensor states = encoded;
  if (decoder.arch.pictures.width > 0) states = net.linear("enc_to_dec_proj", std::move(states), decoder.H, true);
  const Tensor ids = shift_right(net, net.labels.shape());
  return donut ? bart_decode(decoder, net, ids, states) : decode(decoder, net, ids, states);
}

Tensor lm_head(Net& net, Tensor hidden) {
  if (is_donut(net.arch)) return donut_head(net, std::move(hidden));
  Scope in(net.tape, "", kHead);
  return net.lm_head("decoder.output_projection", std::move(hidden), net.V);
}

Outputs transcription(Net& net, const Program& program, Tensor hidden) {
  return seq2seq_loss(net, program.lm_head(net, std::move(hidden)));
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, transcription}};
constexpr ClassSuffix kClasses[] = {{"Model", Head::kSeq2SeqLm}};

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  (is_donut(architecture) ? check_swin_stages : check_picture_is_of_table)(architecture, job, issues);
}

const Program kProgram = {.forward = forward, .lm_head = lm_head, .heads = kHeads, .inputs = inputs, .check = check};

}  // namespace

const Family kRows[] = {
    {"vision-encoder-decoder", "VisionEncoderDecoder", "VisionEncoderDecoderModel", kClasses, read_config, &kProgram,
     "encoder.layers", kNotOfText},
};

extern const FamilyRows trocr_rows;
const FamilyRows trocr_rows = kRows;

}  // namespace tidemark
