#pragma once

#include "core/families/shared.hpp"

/// What other classes have of ViT's and DeiT's, under names of their own.
namespace tidemark {

/// What a layer is: widths, depth, heads, dropouts.
void read_vit_layers(ConfigFields& fields, Architecture& architecture);
void read_vit_config(ConfigFields& fields, Architecture& architecture);
void read_deit_config(ConfigFields& fields, Architecture& architecture);
/// Pictures as input_ids, of as many tokens as there are positions.
void vit_pictures(Net& net);
/// ViTEmbeddings.forward of the pictures in input_ids.
Tensor vit_embed(Net& net);
/// ViTAttention.forward
Tensor vit_attention(Net& net, Tensor hidden, const char* source, const AttentionOptions& options);
/// VideoMAELayer.forward, which is ViT's before it was written anew: YOLOS's and DPT's too.
Tensor videomae_layer(Net& net, Tensor hidden);
/// ViTModel.layernorm
Tensor vit_norm(Net& net, Tensor hidden);
/// ViTPooler.forward
Tensor vit_pool(Net& net, const Tensor& hidden);

}  // namespace tidemark
