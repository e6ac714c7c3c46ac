// InternVL 3: a tower with scaled branches, patches shuffled four to one, a norm and two linear layers.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/internvl/modeling_internvl.py: InternVLVisionModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/internvl/modeling_internvl.py: InternVLVisionLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/internvl/modeling_internvl.py: InternVLVisionAttention.forward";
constexpr const char* kFeatures =
    "transformers 5.12 models/internvl/modeling_internvl.py: InternVLModel.get_image_features";
constexpr const char* kModel = "transformers 5.12 models/internvl/modeling_internvl.py: InternVLModel.forward";

Tensor norm(Net& net, const char* name, Tensor x) {
  return net.arch.norm_bias ? net.layer_norm(name, std::move(x)) : rms_norm(net, name, std::move(x));
}

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("attention.q_proj", x, net.Q, bias);
  Tensor k = net.linear("attention.k_proj", x, net.Q, bias);
  Tensor v = net.linear("attention.v_proj", x, net.Q, bias);
  if (net.arch.qk_norm) {
    q = rms_norm(net, "attention.q_norm", std::move(q));
    k = rms_norm(net, "attention.k_norm", std::move(k));
  }
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  options.softmax_fp32 = false;
  const Tensor out = attention(net, q, k, v, options);
  Tensor output = net.linear("attention.projection_layer", out, net.H, true);
  return dropout(std::move(output), net.arch.activation_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor x = std::move(hidden);
  Tensor h = norm(net, "layernorm_before", x);
  h = attention_block(net, std::move(h));
  Tensor scale = net.parameter("", "lambda_1", Shape{net.H});
  const Tensor attended = mul(std::move(scale), std::move(h));
  x = add(attended, std::move(x));
  h = norm(net, "layernorm_after", x);
  h = net.linear("mlp.fc1", std::move(h), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  scale = net.parameter("", "lambda_2", Shape{net.H});
  h = mul(std::move(scale), std::move(h));
  return add(std::move(h), std::move(x));
}

Tensor tower(Net& net) {
  const char* const kEmbeddings = "vision_tower.embeddings";
  Scope in(net.tape, "vision_tower", kTower);
  Tensor hidden = patch_embedding(net, "vision_tower.embeddings.patch_embeddings.projection", net.pixel_values, true);
  {
    Tensor token = net.parameter(kEmbeddings, "cls_token", Shape{Dim(1), Dim(1), net.H});
    if (net.arch.pictures.window > 0) net.parameter(kEmbeddings, "mask_token", Shape{Dim(1), Dim(1), net.H});
    const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), net.H});
    hidden = cat({&tokens, &hidden}, 1);
    if (net.arch.pictures.positions > 0) {
      hidden = add(std::move(hidden), net.parameter(kEmbeddings, "position_embeddings", Shape{Dim(1), net.S, net.H}));
    }
    hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  }
  hidden = net.layers({"vision_tower.encoder.layer", net.arch.num_layers, layer}, std::move(hidden));
  return net.arch.final_norm ? net.layer_norm("vision_tower.layernorm", std::move(hidden)) : hidden;
}

const Program kTowerProgram = {tower};

// transformers 5.12.1 models/internvl/configuration_internvl.py: InternVLVisionConfig.
void read_vision(ConfigFields& fields, Architecture& part) {
  read_tower_sizes(fields, part, 1024, 24, 16, 4096);
  part.image_size = square_side(fields, "image_size", 448);
  part.patch_size = square_side(fields, "patch_size", 14);
  part.activation = read_activation(fields, {"hidden_act"}, "gelu");
  part.attention_bias = fields.flag({"attention_bias"}, false);
  part.qk_norm = fields.flag({"use_qk_norm"}, false);
  part.residual_dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  part.activation_dropout = fields.probability({"projection_dropout"}, 0.0);
  part.norm_bias = fields.text({"norm_type"}, "layer_norm") == "layer_norm";
  part.final_norm = !fields.flag({"use_mean_pooling"}, true);
  part.pictures.window = fields.flag({"use_mask_token"}, false) ? 1 : 0;
  const Count patches = part.image_size / part.patch_size;
  part.max_positions = patches * patches + 1;
  part.pictures.positions = fields.flag({"use_absolute_position_embeddings"}, true) ? part.max_positions : 0;
  part.program = &kTowerProgram;
  fields.accept({"model_type", "architectures", "layer_scale_init_value", "torch_dtype", "dropout"});
}

// transformers 5.12.1 models/internvl/configuration_internvl.py: InternVLConfig.
void read_internvl(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  const double ratio = fields.number({"downsample_ratio"}, 0.5);
  if (!(ratio > 0.0 && ratio <= 1.0)) {
    fields.error("INVALID_VALUE", "downsample_ratio", "\"downsample_ratio\" must lie between 0 and 1.");
    return;
  }
  architecture.pictures.merge = static_cast<Count>(1.0 / ratio);
  architecture.pictures.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  architecture.pictures.drops_class_token = fields.text({"vision_feature_select_strategy"}, "default") == "default";
  const Value* layer_number = fields.find({"vision_feature_layer"});
  if (layer_number != nullptr && !(layer_number->is_integer() && layer_number->integer == -1)) {
    fields.error("INVALID_VALUE", "vision_feature_layer", "Only the tower's last layer (-1) is modelled.");
  }
  fields.accept({"image_token_id", "image_seq_length"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_vision(vision, part);
  vision.report_unread(architecture.model_type);
  architecture.parts.push_back(std::move(part));
}

Count tiles(const Net& net) {
  return picture_count(net) * std::max<Count>(1, net.job.image_tiles);
}

// InternVLModel.pixel_shuffle: two copies.
Tensor shuffled(Net& net, Tensor x_in, Count side) {
  const Count s = net.arch.pictures.merge, small = side / s;
  const Dim n = x_in.dim(0), width = x_in.dim(2);
  Tensor x = reshape(std::move(x_in), Shape{n, Dim(side), Dim(small), Dim(width.n() * s)});
  x = contiguous(permute(std::move(x), {0, 2, 1, 3}));
  x = view(std::move(x), Shape{n, Dim(small), Dim(small), Dim(width.n() * s * s)});
  x = contiguous(permute(std::move(x), {0, 2, 1, 3}));
  return view(std::move(x), Shape{n, Dim(small * small), Dim(width.n() * s * s)});
}

Tensor features(Net& net) {
  Scope in(net.tape, "multi_modal_projector", kFeatures);
  Net& part = tower_part(net, Dim(tiles(net)));
  const Tensor last = part.arch.program->forward(part);
  const Count side = part.arch.image_size / part.arch.patch_size;
  Tensor x = net.arch.pictures.drops_class_token ? narrow(last, 1, 1, Dim(side * side)) : last;
  x = shuffled(net, std::move(x), side);
  Tensor h = net.layer_norm("multi_modal_projector.layer_norm", x);
  h = net.linear("multi_modal_projector.linear_1", std::move(h), net.H, true);
  h = activate(net.arch.pictures.activation, std::move(h));
  return net.linear("multi_modal_projector.linear_2", std::move(h), net.H, true);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

void inputs(Net& net) {
  picture_inputs(net, Dim(tiles(net)), picture_size(net));
}

const Program kProgram = {forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};

}  // namespace

const Family kRows[] = {
    {"internvl", "InternVL", "InternVLForConditionalGeneration", kSeeingClasses, read_internvl, &kProgram},
};

extern const FamilyRows internvl_rows;
const FamilyRows internvl_rows = kRows;

}  // namespace tidemark
