#pragma once

#include <initializer_list>
#include <vector>

#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

/// Models of pictures that are built of stages: each is a part of the architecture (segformer.cpp).
namespace tidemark {

inline constexpr std::size_t kMostStages = 4;

/// A list of numbers, one per stage.
std::vector<Count> read_counts(ConfigFields& fields, std::string_view key, std::initializer_list<Count> standard);
/// A part per stage of that width and depth, else like the whole; the first layer of each is of another kind. A stage
/// begins with a step (encoder_stride) of two pixels, the first only where the whole says so (parallel_residual).
void make_stages(ConfigFields& fields, Architecture& architecture, const std::vector<Count>& widths,
                 const std::vector<Count>& depths);
/// ResNetConfig: a part per stage.
void read_resnet(ConfigFields& fields, Architecture& architecture);

}  // namespace tidemark
