#pragma once

#include "core/families/family.hpp"

/// Donut, which is of TrOCR's class: VisionEncoderDecoderModel of other parts.
namespace tidemark {

/// What TrOCR's decoder and MBart's behind a picture say alike; `positions` where the file says none (trocr.cpp).
void read_picture_decoder(ConfigFields& fields, Count encoder_width, Count positions, Architecture& decoder);
/// The decoder becomes the last of the parts.
void take_decoder(ConfigFields& fields, Architecture decoder, Architecture& architecture);

/// `encoder` is donut-swin's configuration, `fields` the whole one.
void read_donut_config(ConfigFields& fields, ConfigFields& encoder, Architecture& architecture);
bool is_donut(const Architecture& architecture);
Tensor donut_encode(Net& net);
Tensor donut_head(Net& net, Tensor hidden);

}  // namespace tidemark
