#pragma once

#include "core/layers/net.hpp"
#include "core/model/config_fields.hpp"

/// What Gemma 4's text model shares with Gemma 3n's (gemma4.cpp).
namespace tidemark {

/// What Gemma3nTextConfig and Gemma4TextConfig have by default where they differ.
struct GemmaText {
  Count positions;       ///< max_position_embeddings
  Count kv_heads;        ///< num_key_value_heads
  double logit_softcap;  ///< final_logit_softcapping; 0: none
  Count global_every;    ///< one layer in so many attends to everything
  Count window = 512;    ///< sliding_window
};
/// What both configurations say alike: sizes, heads, attention, the windows of layers.
void read_gemma_text(ConfigFields& fields, Architecture& architecture, const GemmaText& of);

/// What a layer does with its keys and values, in layer_kinds; other bits are another family's.
enum SharedStates : std::uint8_t { kOwn = 0, kStores = 1, kShares = 2 };
std::uint8_t kind_of(const Net& net);
void read_shared_layers(ConfigFields& fields, Architecture& architecture, Count standard);
void read_layer_inputs(ConfigFields& fields, Architecture& architecture);

/// Gemma4RMSNorm.forward, Gemma3nRMSNorm.forward; `scaled` false: without a weight.
Tensor gemma4_norm(Net& net, const char* name, Tensor x, bool scaled = true);
/// Gemma4TextAttention.forward; `values_last`: values are projected when the keys are through (Gemma 3n).
Tensor gemma4_attention(Net& net, Tensor hidden, bool values_last);
/// What a layer is given; behind the first one's backward nothing holds what layers share any more.
Tensor into_first_layer(Net& net, Tensor hidden);
/// The part of the token's input that is this layer's, through a narrow gate, as the layer adds it to something.
Tensor through_layer_input(Net& net, Tensor hidden);
/// Token table, layers' own inputs (`in_place`: their projection is scaled where it lies), positions, masks.
Tensor gemma4_embeds(Net& net, bool in_place);
/// A pair of rotary tables for sliding layers and another for the rest.
void gemma4_tables(Net& net, Dtype dtype);
/// Gemma4ForCausalLM: logits, squashed where the model says so.
Tensor gemma4_head(Net& net, Tensor hidden);

}  // namespace tidemark
