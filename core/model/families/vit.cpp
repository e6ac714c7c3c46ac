#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

/// A side of the (square) image: a number, or a list of two equal ones.
Count read_side(ConfigFields& fields, std::string_view key, Count class_default) {
  const Value* value = fields.find({key});
  if (value != nullptr && value->is_array()) {
    const bool square = value->items.size() == 2 && value->items[0].is_integer() && value->items[1].is_integer() &&
                        value->items[0].integer == value->items[1].integer && value->items[0].integer > 0;
    if (square) return value->items[0].integer;
    fields.error("INVALID_VALUE", key, "Only square images and patches are modelled.");
    return class_default;
  }
  return fields.count({key}, class_default);
}

}  // namespace

// transformers 5.12.1 models/vit/configuration_vit.py: ViTConfig.
void read_vit_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.image_size = read_side(fields, "image_size", 224);
  architecture.patch_size = read_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  if (architecture.image_size < architecture.patch_size) {
    fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  } else {
    const Count patches = architecture.image_size / architecture.patch_size;
    architecture.max_positions = patches * patches + 1;  // and the class token
  }
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"qkv_bias"}, true);
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.head_bias = true;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  fields.accept({"encoder_stride", "pooler_output_size", "pooler_act"});
}

}  // namespace tidemark
