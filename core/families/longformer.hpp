#pragma once

#include "core/families/family.hpp"

/// Longformer's attention in windows, which LED's encoder has as well.
namespace tidemark {

/// What its modules are called.
struct WindowedNames {
  const char *module, *q, *k, *v, *q_global, *k_global, *v_global;
};
/// `attention_window`: one number or one per layer, in Architecture::layer_windows.
void read_attention_windows(ConfigFields& fields, Architecture& architecture);
/// The sequence's length filled up to whole windows of the widest layer.
Dim whole_windows(Net& net);
/// What a forward tells its layers of a mask [B, S]: which tokens are padding, and which attend to all.
void share_window_mask(Net& net, Tensor mask, Dim length);
/// LongformerSelfAttention.forward, LEDEncoderSelfAttention.forward: [B, S, H] as a view of [S, B, H]. `globals`:
/// tokens of each row that attend to all.
Tensor windowed_attention(Net& net, const WindowedNames& names, const Tensor& hidden, Count globals);

}  // namespace tidemark
