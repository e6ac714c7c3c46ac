#pragma once

#include "core/families/shared.hpp"

/// What other classes have of ViT's and DeiT's, under names of their own.
namespace tidemark {

void read_vit_config(ConfigFields& fields, Architecture& architecture);
void read_deit_config(ConfigFields& fields, Architecture& architecture);
/// ViTEmbeddings.forward of the pictures in input_ids.
Tensor vit_embed(Net& net);
/// ViTModel.layernorm
Tensor vit_norm(Net& net, Tensor hidden);
/// ViTPooler.forward
Tensor vit_pool(Net& net, const Tensor& hidden);

}  // namespace tidemark
