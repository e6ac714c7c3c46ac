// Audio Spectrogram Transformer: ViT's layers over patches of a spectrogram, which overlap.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/audio_spectrogram_transformer/configuration_audio_spectrogram_transformer.py: ASTConfig.
// A spectrogram is max_length frames of num_mel_bins; its patches number (mel - P) / frequency_stride + 1 by
// (frames - P) / time_stride + 1 (ASTEmbeddings.get_shape).
void read_ast_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.patch_size = fields.count({"patch_size"}, 16);
  const Count mel = fields.count({"num_mel_bins"}, 128), frames = fields.count({"max_length"}, 1024);
  const Count down = fields.count({"frequency_stride"}, 10), along = fields.count({"time_stride"}, 10);
  architecture.conv_dims = {mel, frames};
  architecture.conv_strides = {down, along};
  if (std::min(mel, frames) < architecture.patch_size) {
    fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the spectrogram.");
    return;
  }
  const Count high = (mel - architecture.patch_size) / down + 1, long_ = (frames - architecture.patch_size) / along + 1;
  architecture.max_positions = high * long_ + 2;  // and the class token's and the distillation token's
}

constexpr const char* kEmbeddings =
    "transformers 5.12 models/audio_spectrogram_transformer/modeling_audio_spectrogram_transformer.py: "
    "ASTEmbeddings.forward";
constexpr const char* kModel =
    "transformers 5.12 models/audio_spectrogram_transformer/modeling_audio_spectrogram_transformer.py: "
    "ASTModel.forward";
constexpr const char* kHead =
    "transformers 5.12 models/audio_spectrogram_transformer/modeling_audio_spectrogram_transformer.py: "
    "ASTMLPHead.forward";
constexpr const char* kModule = "audio_spectrogram_transformer.embeddings";
constexpr const char* kProjection = "audio_spectrogram_transformer.embeddings.patch_embeddings.projection";

void inputs(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n() * net.S.n(), Symbol::kTokens);
  const Dim mel(net.arch.conv_dims[0]), frames(net.arch.conv_dims[1]);
  net.input_ids = given_pixels(net, Shape{net.B, frames, mel}, "input_values");
  if (net.arch.head == Head::kAudioClassification) class_labels(net);
}

// Kernels larger than their strides: patches overlap.
Tensor patches(Net& net) {
  const Count p = net.arch.patch_size, mel = net.arch.conv_dims[0];
  const Count high = (mel - p) / net.arch.conv_strides[0] + 1, count = net.S.n() - 2;
  const Dim one(1);
  const Tensor weight = net.parameter(kProjection, "weight", Shape{net.H, one, Dim(p), Dim(p)});
  const Tensor bias = net.parameter(kProjection, "bias", Shape{net.H});
  Tensor x = transpose(unsqueeze(net.input_ids, 1), 2, 3);
  x = convolution(std::move(x), weight, bias, {Dim(high), Dim(count / high)});
  x = view(std::move(x), Shape{net.B, net.H, Dim(count)});
  return net.hooked_inputs(transpose(std::move(x), 1, 2));
}

Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const auto token = [&](const char* leaf) {
    Tensor row = net.parameter(kModule, leaf, Shape{Dim(1), Dim(1), net.H});
    return expand(std::move(row), Shape{net.B, Dim(1), net.H});
  };
  const Tensor first = token("cls_token"), second = token("distillation_token");
  Tensor h = patches(net);
  h = cat({&first, &second, &h}, 1);
  h = add(std::move(h), net.parameter(kModule, "position_embeddings", Shape{Dim(1), net.S, net.H}));
  h = dropout(std::move(h), net.arch.embedding_dropout);
  net.model_locals = {h};
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("audio_spectrogram_transformer.layernorm", std::move(hidden));
}

// The mean of both tokens in front.
Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "", kModel);
  return mul_scalar(add(select(hidden, 1), select(hidden, 1)));
}

Outputs audio_classification(Net& net, const Program&, Tensor hidden) {
  const Tensor outputs = std::move(hidden);
  const Tensor pooled = pool(net, outputs);
  Scope in(net.tape, "classifier", kHead);
  Tensor x = net.layer_norm("classifier.layernorm", pooled);
  return classified(net, net.classifier("classifier.dense", std::move(x), Dim(net.arch.num_labels), true));
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), pool);
}

constexpr HeadForward kHeads[] = {{Head::kAudioClassification, audio_classification}, {Head::kNone, body}};
constexpr ClassSuffix kClasses[] = {{"ForAudioClassification", Head::kAudioClassification}, {"Model", Head::kNone}};

const Program kProgram = {one_stack<embed, vit_layer, norm>, nullptr, kHeads, OwnLoss::kFp32, {}, inputs};

}  // namespace

const Family kRows[] = {
    {"audio-spectrogram-transformer", "AST", "ASTForAudioClassification", kClasses, read_ast_config, &kProgram,
     "audio_spectrogram_transformer.layers", kPicturesNameEmbeddings},
};

extern const FamilyRows ast_rows;
const FamilyRows ast_rows = kRows;

}  // namespace tidemark
