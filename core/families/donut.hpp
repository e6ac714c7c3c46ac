#pragma once

#include "core/families/family.hpp"

/// Donut, which is of TrOCR's class: VisionEncoderDecoderModel of other parts.
namespace tidemark {

/// `encoder` is donut-swin's configuration, `fields` the whole one.
void read_donut_config(ConfigFields& fields, ConfigFields& encoder, Architecture& architecture);
bool is_donut(const Architecture& architecture);
/// Pages as input_ids.
void donut_pictures(Net& net);
Tensor donut_forward(Net& net);
Tensor donut_head(Net& net, Tensor hidden);
void check_donut(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
