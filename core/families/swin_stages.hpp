#pragma once

#include "core/families/shared.hpp"
#include "core/layers/vision.hpp"

/// Swin's stages as the classes have them that write their own attention: Swin V2's, and Donut's of the first Swin.
namespace tidemark {

/// What both configurations say: a part per stage, of as many blocks as its num_layers. The model's list of layers is
/// that of the stages, each of which is checkpointed as a whole.
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
