// Whisper: an encoder of sound and a decoder of text, with layers as mBART's.
#include <cmath>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/seq2seq.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/whisper/configuration_whisper.py: WhisperConfig. The encoder's positions are frames.
void read_whisper_config(ConfigFields& fields, Architecture& architecture) {
  read_bart_sizes(fields, architecture, {"gelu", 0.0, 0.0, 1500});
  architecture.positions_by_token = false;
  architecture.max_positions = fields.count({"max_source_positions"}, 1500);
  architecture.parts.front().max_positions = fields.count({"max_target_positions"}, 448);
  architecture.num_channels = fields.count({"num_mel_bins"}, 80);
  architecture.pooler_size = fields.count({"classifier_proj_size"}, 256);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (fields.flag({"use_weighted_layer_sum"}, false) && architecture.head == Head::kAudioClassification) {
    fields.error("INVALID_VALUE", "use_weighted_layer_sum", "A weighted sum over all layers is not modelled.");
  }
  fields.accept({"apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
                 "mask_feature_length", "mask_feature_min_masks", "median_filter_width", "scale_embedding",
                 "suppress_tokens", "begin_suppress_tokens", "max_length", "alignment_heads", "forced_decoder_ids"});
}

constexpr const char* kEncoder = "transformers 5.12 models/whisper/modeling_whisper.py: WhisperEncoder.forward";
constexpr const char* kHead =
    "transformers 5.12 models/whisper/modeling_whisper.py: WhisperForConditionalGeneration.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/whisper/modeling_whisper.py: WhisperForAudioClassification.forward";

bool classifies(const Net& net) {
  return net.arch.head == Head::kAudioClassification;
}

// Log-mel features of the whole window, whatever the recording's length (WhisperFeatureExtractor pads), and labels.
void whisper_inputs(Net& net) {
  net.S = Dim(net.arch.max_positions);
  net.T = Dim(net.B.n() * net.S.n());
  net.input_ids = given_pixels(net, Shape{net.B, Dim(net.arch.num_channels), Dim(2 * net.S.n())}, "input_features");
  if (classifies(net)) {
    net.labels = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "labels");
  } else {
    const Count length = net.job.decoder_sequence_length;
    const Dim target = length > 0 ? Dim(length) : Dim(net.job.sequence_length, Symbol::kSequence);
    net.labels = net.tape.allocate(Shape{net.B, target}, Dtype::kInt64, "labels");
  }
}

Tensor convolve(Net& net, const char* name, const Tensor& x, Count frames, const char* source) {
  Scope in(net.tape, name, source);
  const Tensor weight = net.parameter(name, "weight", Shape{net.H, x.dim(1), Dim(3)});
  const Tensor bias = net.parameter(name, "bias", Shape{net.H});
  return convolution(x, weight, bias, {Dim(frames)});
}

}  // namespace

Tensor encode_sound(Net& net, const SoundNames& names, const char* source, bool alone, Tensor& embeds) {
  embeds = convolve(net, names.conv1, net.input_ids, 2 * net.S.n(), source);
  embeds = net.hooked_inputs(std::move(embeds));  // get_input_embeddings() is the first convolution
  embeds = gelu(std::move(embeds));
  embeds = convolve(net, names.conv2, embeds, net.S.n(), source);
  embeds = gelu(std::move(embeds));
  embeds = permute(std::move(embeds), {0, 2, 1});
  Tensor hidden;
  if (names.places == SoundPositions::kLookedUp) {
    const Tensor places = frozen_positions(net, names.positions);
    hidden = add(embeds, places);
  } else {
    const bool wide = names.places == SoundPositions::kWideTable;
    const Tensor table = frozen_table(net, names.positions, wide ? Dtype::kFp32 : net.weight_dtype(3));
    hidden = add(embeds, table);
    if (wide) hidden = to(std::move(hidden), embeds.dtype());
  }
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  return bart_encoder_layers(net, std::move(hidden), names.layers, alone);
}

namespace {

Tensor encode(Net& net) {
  constexpr SoundNames kWhole = {"model.encoder.conv1", "model.encoder.conv2", "model.encoder.embed_positions",
                                 "model.encoder.layers"};
  constexpr SoundNames kAlone = {"encoder.conv1", "encoder.conv2", "encoder.embed_positions", "encoder.layers"};
  const bool alone = classifies(net);
  Scope in(net.tape, "encoder", kEncoder);
  Tensor embeds;
  Tensor hidden = encode_sound(net, alone ? kAlone : kWhole, kEncoder, alone, embeds);
  return net.layer_norm(alone ? "encoder.layer_norm" : "model.encoder.layer_norm", std::move(hidden));
}

Tensor whisper_forward(Net& net) {
  if (classifies(net)) return encode(net);
  const Dim target = net.labels.dim(1);
  const Tensor ids = net.tape.allocate(Shape{net.B, target}, Dtype::kInt64, "decoder_input_ids");
  return decode_behind(net, target, ids, encode(net), bart_decode);
}

Tensor whisper_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("proj_out", std::move(hidden), net.V);
}

Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  return seq2seq_loss(net, program.lm_head(net, std::move(hidden)));
}

// The mean over all frames of a narrow projection.
Outputs audio_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Dim width(net.arch.pooler_size);
  Tensor projected = net.classifier("projector", std::move(hidden), width, true);
  projected = transpose(std::move(projected), 1, 2);
  Tensor pooled = view(mean_last(std::move(projected)), Shape{net.B, width});
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, conditional_generation},
                                  {Head::kAudioClassification, audio_classification},
                                  {Head::kNone, seq2seq_body}};

}  // namespace

const Program kWhisperProgram = {whisper_forward, whisper_head, kHeads, OwnLoss::kFp32, {}, whisper_inputs};

const Family kRows[] = {
    {"whisper", "Whisper", "WhisperForConditionalGeneration", kWhisperClasses, read_whisper_config, &kWhisperProgram,
     "model.encoder.layers", kNotOfText},
};

extern const FamilyRows whisper_rows;
const FamilyRows whisper_rows = kRows;

}  // namespace tidemark
