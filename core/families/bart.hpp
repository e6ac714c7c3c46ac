#pragma once

#include <cstdint>
#include <string_view>

#include "core/layers/net.hpp"
#include "core/model/architecture.hpp"
#include "core/model/config_common.hpp"

/// What Whisper's and TrOCR's files repeat of BART's.
namespace tidemark {

/// One of the attentions of a layer: its modules' names.
struct BartAttentionNames {
  const char *module, *norm, *q, *k, *v, *o;
};
inline constexpr BartAttentionNames kBartSelf = {"self_attn",        "self_attn_layer_norm", "self_attn.q_proj",
                                                 "self_attn.k_proj", "self_attn.v_proj",     "self_attn.out_proj"};
inline constexpr BartAttentionNames kBartCross = {"encoder_attn",        "encoder_attn_layer_norm",
                                                  "encoder_attn.q_proj", "encoder_attn.k_proj",
                                                  "encoder_attn.v_proj", "encoder_attn.out_proj"};
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
/// What an encoder of sound adds to its frames: rows that it looks up, the table itself, or (Voxtral, whose table stays
/// in fp32) the same with a cast back behind it.
enum class SoundPositions : std::uint8_t { kLookedUp, kTable, kWideTable };
/// Names of an encoder of sound.
struct SoundNames {
  const char *conv1, *conv2, *positions, *layers;
  SoundPositions places = SoundPositions::kLookedUp;
};
/// WhisperEncoder.forward on net.input_ids up to its last layer's output; `alone`: nothing but a head follows. `embeds`
/// is a name that the forward has to its end.
Tensor encode_sound(Net& net, const SoundNames& names, const char* source, bool alone, Tensor& embeds);
/// Model types of a decoder that is MBart's with a head of its own, behind an encoder of another class: plain, and with
/// the cache that use_cache makes even in training.
inline constexpr std::string_view kBartCausal = "mbart: decoder", kBartCausalCaching = "mbart: decoder with a cache";
/// BartDecoder.forward and its like over what the encoder has made, by model type; `net` is the decoder.
Tensor bart_decode(Net& net, Net& encoder, const Tensor& ids, const Tensor& encoder_states);
/// What all `audio_config`s of such encoders say: sizes and the activation.
void read_sound_sizes(ConfigFields& audio, Architecture& tower);
/// `audio_config` of Whisper's encoder in front of a language model, as the tower that it is.
Architecture read_sound_tower(ConfigFields& fields);
/// Whether the micro batch has recordings.
bool hears(const Net& net);
/// Rows of a buffer of positions, [B, S, H], which the class makes itself.
Tensor buffered_positions(Net& net, const char* name);
/// Adds the buffer final_logits_bias; `source` is of the class with the head.
Tensor add_logits_bias(Net& net, Tensor logits, const char* source);
/// A table of positions that is never trained, and its rows.
Tensor frozen_table(Net& net, const char* name, Dtype dtype);
/// The rows alone.
Tensor frozen_positions(Net& net, const char* name);

}  // namespace tidemark
