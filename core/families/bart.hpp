#pragma once

#include <string_view>

#include "core/layers/net.hpp"
#include "core/model/architecture.hpp"
#include "core/model/config_common.hpp"

/// What Whisper's files repeat of BART's.
namespace tidemark {

/// What configuration classes of BART's kind differ in.
struct BartDefaults {
  const char* activation = "gelu";
  double dropout = 0.1;
  double attention_dropout = 0.0;
  Count positions = 1024;
};
/// Widths, depths, heads and dropouts; the decoder becomes a part.
void read_bart_sizes(ConfigFields& fields, Architecture& architecture, const BartDefaults& defaults);
/// The loop over an encoder's layers.
Tensor bart_encoder_layers(Net& net, Tensor hidden, std::string_view layers, bool alone);
/// Names of an encoder of sound.
struct SoundNames {
  const char *conv1, *conv2, *positions, *layers;
};
/// WhisperEncoder.forward on net.input_ids up to its last layer's output; `alone`: nothing but a head follows. `embeds`
/// is a name that the forward has to its end.
Tensor encode_sound(Net& net, const SoundNames& names, const char* source, bool alone, Tensor& embeds);
/// BartDecoder.forward and its like over what the encoder has made, by model type; `net` is the decoder.
Tensor bart_decode(Net& net, Net& encoder, const Tensor& ids, const Tensor& encoder_states);
/// The rows of a table of positions that is never trained.
Tensor frozen_positions(Net& net, const char* name);

}  // namespace tidemark
