#pragma once

#include "core/families/shared.hpp"
#include "core/layers/vision.hpp"

/// What the Swins share (swin.cpp), and Swin's stages as the classes have them that write their own attention: Swin
/// V2's, and Donut's of the first Swin.
namespace tidemark {

/// All that the three configurations say alike, image_size apart: a part per stage, of as many blocks as its
/// num_layers. False behind an error.
bool read_swin(ConfigFields& fields, Architecture& architecture);
/// Tokens of different neighbourhoods that a shift has brought into one window: [windows, area, area].
Tensor swin_mask(Net& net, PictureSize picture, Count windows, Dim area, Dtype dtype);
/// The rows of a table of distances that pairs of a window's tokens have: [1, heads, area, area].
Tensor swin_biases(const Tensor& table, const Tensor& index, Dim area, Dim heads);

/// The same where the model's list of layers is that of the stages, each of which is checkpointed as a whole.
void read_swin_stages(ConfigFields& fields, Architecture& architecture);

/// Pictures as input_ids.
void swin_pictures(Net& net);
/// Where a class has the encoder.
struct SwinNames {
  const char *embeddings, *projection, *norm, *layers;
};
/// Embeddings and stages: [B, tokens, width of the last stage].
Tensor swin_encode(Net& net, const SwinNames& names);
/// What of the job's pictures and checkpoints is not modelled.
void check_swin_stages(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
