// Speech2Text: gated convolutions over filter banks before an encoder and a decoder with layers as mBART's.
#include <algorithm>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/layers/seq2seq.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/speech_to_text/configuration_speech_to_text.py: Speech2TextConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bart_sizes(fields, architecture, {"relu", 0.1, 0.0, 6000});
  architecture.positions_by_token = false;
  architecture.max_positions = fields.count({"max_source_positions"}, 6000) + 2;
  Architecture& decoder = architecture.parts.front();
  decoder.positions_by_token = false;
  decoder.max_positions = fields.count({"max_target_positions"}, 1024) + 2;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.num_channels = fields.count({"input_feat_per_channel"}, 80);
  if (fields.count({"input_channels"}, 1) != 1) {
    fields.error("INVALID_VALUE", "input_channels",
                 "Its feature extractor makes one channel: others are not modelled.");
  }
  architecture.pooler_size = fields.count({"conv_channels"}, 1024);
  architecture.conv_kernels = read_counts(fields, "conv_kernel_sizes", {5, 5});
  constexpr std::size_t kMost = 4;
  if (architecture.conv_kernels.empty() || architecture.conv_kernels.size() > kMost ||
      fields.count({"num_conv_layers"}, 2) != static_cast<Count>(architecture.conv_kernels.size())) {
    fields.error("INVALID_VALUE", "conv_kernel_sizes",
                 "It needs one number per convolution (num_conv_layers), of up to four.");
  }
  if (architecture.pooler_size % 2 != 0) {
    fields.error("INVALID_VALUE", "conv_channels", "Half of the channels gate the others: an odd number has no half.");
  }
  fields.accept({"scale_embedding", "max_position_embeddings"});
}

constexpr const char* kEncoder =
    "transformers 5.24 models/speech_to_text/modeling_speech_to_text.py: Speech2TextEncoder.forward";
constexpr const char* kConvolutions =
    "transformers 5.24 models/speech_to_text/modeling_speech_to_text.py: Conv1dSubsampler.forward";
constexpr const char* kHead =
    "transformers 5.24 models/speech_to_text/modeling_speech_to_text.py: "
    "Speech2TextForConditionalGeneration.forward";
constexpr const char* kNames[] = {"model.encoder.conv.conv_layers.0", "model.encoder.conv.conv_layers.1",
                                  "model.encoder.conv.conv_layers.2", "model.encoder.conv.conv_layers.3"};

// Speech2TextFeatureExtractor: filter banks of 400 samples, 160 apart.
Count banks(const Net& net) {
  constexpr Count kWindow = 400, kHop = 160;
  return std::max<Count>(0, wave_samples(net) - kWindow) / kHop + 1;
}

// A stride of two, and half a kernel of padding on each side.
Count frames_behind(Count frames, Count kernel) {
  return std::max<Count>(1, (frames + 2 * (kernel / 2) - kernel) / 2 + 1);
}

// The extractor always returns a mask, of ones where nothing is padded.
void inputs(Net& net) {
  const Dim frames(banks(net));
  net.input_ids = given_pixels(net, Shape{net.B, frames, Dim(net.arch.num_channels)}, "input_features");
  net.attention_mask = net.tape.allocate(Shape{net.B, frames}, Dtype::kInt64, "attention_mask");
  Count length = frames.n();
  for (const Count kernel : net.arch.conv_kernels) length = frames_behind(length, kernel);
  net.S = Dim(length);
  net.T = Dim(net.B.n() * length);
  const Count letters = net.job.decoder_sequence_length;
  const Dim target = letters > 0 ? Dim(letters) : Dim(net.job.sequence_length, Symbol::kSequence);
  net.labels = net.tape.allocate(Shape{net.B, target}, Dtype::kInt64, "labels");
}

Tensor convolve(Net& net) {
  Scope in(net.tape, "model.encoder.conv", kConvolutions);
  const std::vector<Count>& kernels = net.arch.conv_kernels;
  Tensor h = contiguous(transpose(net.input_ids, 1, 2));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Dim out(i + 1 < kernels.size() ? net.arch.pooler_size : 2 * net.H.n());
    const Dim frames(frames_behind(h.size(2), kernels[i]));
    h = frame_convolution(net, kNames[i], std::move(h), out, kernels[i], frames, true, false);
    h = gated_channels(std::move(h));
  }
  return contiguous(transpose(std::move(h), 1, 2));
}

Tensor encode(Net& net) {
  Scope in(net.tape, "model.encoder", kEncoder);
  const Tensor embeds = mul_scalar(convolve(net));
  const Tensor places = buffered_positions(net, "model.encoder.embed_positions");
  Tensor hidden = add(embeds, places);
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  if (net.job.padding) net.shared.causal_mask = bidirectional_mask(net, embeds, true, net.S, net.S);
  hidden = bart_encoder_layers(net, std::move(hidden), "model.encoder.layers", false);
  return net.layer_norm("model.encoder.layer_norm", std::move(hidden));
}

Tensor forward(Net& net) {
  const Dim target = net.labels.dim(1);
  const Tensor ids = shift_right(net, Shape{net.B, target});
  return decode_behind(net, target, ids, encode(net), bart_decode);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Outputs generation(Net& net, const Program& program, Tensor hidden) {
  return seq2seq_loss(net, program.lm_head(net, std::move(hidden)));
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, generation}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}};

const Program kProgram = {.forward = forward,
                          .lm_head = head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = kEagerAlone,
                          .dropout_calls = DropoutCalls::kAll};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"speech_to_text", "Speech2Text", "Speech2TextForConditionalGeneration", kClasses, read_config, &kProgram,
     "model.encoder.layers", kFacts},
};

extern const FamilyRows speech_to_text_rows;
const FamilyRows speech_to_text_rows = kRows;

}  // namespace tidemark
