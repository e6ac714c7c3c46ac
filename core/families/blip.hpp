#pragma once

#include "core/families/shared.hpp"
#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

/// What BLIP and BLIP-2 share: a ViT whose q, k and v are one projection (blip_2.cpp).
namespace tidemark {

/// BlipVisionConfig; Blip2VisionConfig: `second`.
Architecture read_blip_tower(ConfigFields& fields, bool second);
/// One of its layers around its attention.
Tensor blip_layer(Net& net, Tensor hidden, Branch attention);
/// q, k and v [B, heads, S, hd]: what BlipAttention.forward begins with.
struct BlipHeads {
  Tensor mixed, q, k, v;
};
BlipHeads blip_heads(Net& net, const Tensor& x);
/// What a tower makes: the class token goes through the last norm a second time, into the outputs alone.
struct BlipSeen {
  Tensor last, pooled;
};
BlipSeen blip_tower(Net& net, Branch layer);

}  // namespace tidemark
