// InternVL 3: a tower with scaled branches, patches shuffled four to one, a norm and two linear layers; and the same
// models by the code that lies beside their weights ("internvl_chat"). Qianfan-OCR: the same with branches that are
// left out at random, in all layers but the first.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

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
  const double rate = net.layer_index > 0 ? net.arch.drop_path : 0.0;
  Tensor x = std::move(hidden);
  Tensor h = norm(net, "layernorm_before", x);
  h = attention_block(net, std::move(h));
  Tensor scale = net.parameter("", "lambda_1", Shape{net.H});
  const Tensor attended = drop_path(net, mul(std::move(scale), std::move(h)), rate);
  x = add(attended, std::move(x));
  h = norm(net, "layernorm_after", x);
  h = net.linear("mlp.fc1", std::move(h), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  scale = net.parameter("", "lambda_2", Shape{net.H});
  h = drop_path(net, mul(std::move(scale), std::move(h)), rate);
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
  // QianfanOCRVisionModel has no encoder.
  const char* const layers =
      net.arch.model_type == "qianfan_ocr" ? "vision_tower.layers" : "vision_tower.encoder.layer";
  hidden = net.layers({layers, net.arch.num_layers, layer}, std::move(hidden));
  return net.arch.final_norm ? net.layer_norm("vision_tower.layernorm", std::move(hidden)) : hidden;
}

const Program kTowerProgram = {tower};

// transformers 5.12.1 models/internvl/configuration_internvl.py: InternVLVisionConfig; models/qianfan_ocr/…:
// QianfanOCRVisionConfig.
void read_vision(ConfigFields& fields, Architecture& part) {
  read_tower_sizes(fields, part, 1024, 24, 16, 4096);
  part.image_size = square_side(fields, "image_size", 448);
  part.patch_size = square_side(fields, "patch_size", 14);
  part.activation = read_activation(fields, {"hidden_act"}, "gelu");
  const bool qianfan = part.model_type == "qianfan_ocr";
  part.attention_bias = fields.flag({"attention_bias"}, qianfan);
  if (qianfan) part.drop_path = fields.probability({"drop_path_rate"}, 0.1);
  if (part.drop_path > 0.0 && part.num_layers > 0) {
    part.layer_kinds.assign(static_cast<std::size_t>(part.num_layers), 1);
    part.layer_kinds.front() = 0;
  }
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

// transformers 5.12.1 models/internvl/configuration_internvl.py: InternVLConfig; models/qianfan_ocr/…:
// QianfanOCRConfig, whose processor takes no videos.
void read_internvl(ConfigFields& fields, Architecture& architecture) {
  const bool qianfan = architecture.model_type == "qianfan_ocr";
  read_language(fields, architecture, qianfan ? "qwen3" : "qwen2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, !qianfan);
  const double ratio = fields.number({"downsample_ratio"}, 0.5);
  if (!(ratio > 0.0 && ratio <= 1.0)) {
    fields.error("INVALID_VALUE", "downsample_ratio", "\"downsample_ratio\" must lie between 0 and 1.");
    return;
  }
  architecture.pictures.merge = static_cast<Count>(1.0 / ratio);
  architecture.pictures.video_frames = qianfan ? 0 : 1;
  architecture.pictures.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  architecture.pictures.drops_class_token = fields.text({"vision_feature_select_strategy"}, "default") == "default";
  const Value* layer_number = fields.find({"vision_feature_layer"});
  if (layer_number != nullptr && !(layer_number->is_integer() && layer_number->integer == -1)) {
    fields.error("INVALID_VALUE", "vision_feature_layer", "Only the tower's last layer (-1) is modelled.");
  }
  fields.accept({"image_token_id", "image_seq_length"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  if (qianfan) part.model_type = architecture.model_type;
  read_vision(vision, part);
  vision.report_unread(architecture.model_type);
  architecture.parts.push_back(std::move(part));
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
  Net& part = tower_part(net, Dim(tile_count(net)));
  const Tensor last = part.arch.program->forward(part);
  const Count side = part.arch.image_size / part.arch.patch_size;
  Tensor x = net.arch.pictures.drops_class_token ? narrow(last, 1, 1, Dim(side * side)) : last;
  x = shuffled(net, std::move(x), side);
  Tensor h = net.layer_norm("multi_modal_projector.layer_norm", x);
  h = net.linear("multi_modal_projector.linear_1", std::move(h), net.H, true);
  h = activate(net.arch.pictures.activation, std::move(h));
  h = net.linear("multi_modal_projector.linear_2", std::move(h), net.H, true);
  net.keep_image_output(last);
  net.keep_image_output(h);
  return h;
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

void inputs(Net& net) {
  picture_inputs(net, Dim(tile_count(net)), picture_size(net));
}

// -- OpenGVLab/InternVL internvl_chat/internvl/model/internvl_chat at 1fbcd6a
// ------------------------------------------

constexpr const char* kChatLayer = "InternVL modeling_intern_vit.py: InternVisionEncoderLayer.forward";
constexpr const char* kChatAttention = "InternVL modeling_intern_vit.py: InternAttention.forward";
constexpr const char* kChatTower = "InternVL modeling_intern_vit.py: InternVisionModel.forward";
constexpr const char* kChat = "InternVL modeling_internvl_chat.py: InternVLChatModel.forward";

// _naive_attn wherever FlashAttention is not asked for.
Tensor chat_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kChatAttention);
  Tensor packed = net.linear("attn.qkv", std::move(hidden), Dim(3 * net.H.n()), net.arch.attention_bias);
  packed = view(std::move(packed), Shape{net.B, net.S, Dim(3), net.A, net.hd});
  const Pieces parts = unbind(permute(packed, {2, 0, 3, 1, 4}), 0);
  Tensor q = parts.part[0], k = parts.part[1], out;
  const auto normed = [&](const char* name, Tensor x) {
    x = rms_norm(net, name, reshape(transpose(std::move(x), 1, 2), Shape{net.B, net.S, net.H}));
    return split_heads(net, std::move(x), net.A, net.hd);
  };
  if (net.arch.qk_norm) {
    q = normed("attn.q_norm", std::move(q));
    k = normed("attn.k_norm", std::move(k));
  }
  if (wants_flash(net.job)) {
    AttentionOptions options;
    options.causal = false;
    out = flash_attention_forward(net, q, k, parts.part[2], options);
  } else {
    out = softmax(matmul(mul_scalar(std::move(q)), transpose(std::move(k), 2, 3)));
    out = matmul(dropout(std::move(out), net.arch.attention_dropout), parts.part[2]);
    out = reshape(transpose(std::move(out), 1, 2), Shape{net.B, net.S, net.H});
  }
  return dropout(net.linear("attn.proj", std::move(out), net.H, true), net.arch.residual_dropout);
}

Tensor chat_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kChatLayer);
  Tensor x = std::move(hidden);
  Tensor h = chat_attention(net, norm(net, "norm1", x));
  h = mul(std::move(h), net.parameter("", "ls1", Shape{net.H}));
  x = add(x, drop_path(net, std::move(h), net.arch.drop_path));
  h = net.linear("mlp.fc1", norm(net, "norm2", x), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  h = mul(std::move(h), net.parameter("", "ls2", Shape{net.H}));
  return add(x, drop_path(net, std::move(h), net.arch.drop_path));
}

Tensor chat_tower(Net& net) {
  constexpr const char* kEmbeddings = "vision_model.embeddings";
  Scope in(net.tape, "vision_model", kChatTower);
  const Dim one(1), side(net.arch.image_size / net.arch.patch_size), rows(net.S.n() - 1);
  Tensor token = net.parameter(kEmbeddings, "class_embedding", Shape{one, one, net.H});
  Tensor hidden = patch_embedding(net, "vision_model.embeddings.patch_embedding", net.pixel_values, true);
  {
    const Tensor tokens = expand(std::move(token), Shape{net.B, one, net.H});
    hidden = cat({&tokens, &hidden}, 1);
    const Tensor table = net.parameter(kEmbeddings, "position_embedding", Shape{one, net.S, net.H});
    const Tensor first = narrow(table, 1, 0, one);
    // _get_pos_embed: by way of fp32, whatever the picture's size
    Tensor rest = to(narrow(table, 1, 1, rows), Dtype::kFp32);
    rest = permute(view(std::move(rest), Shape{one, side, side, net.H}), {0, 3, 1, 2});
    rest = interpolate(std::move(rest), Shape{one, net.H, side, side});
    rest = transpose(view(std::move(rest), Shape{one, net.H, rows}), 1, 2);
    rest = to(std::move(rest), table.dtype());
    Tensor positions = cat({&first, &rest}, 1);
    rest.reset();
    hidden = add(std::move(hidden), std::move(positions));
  }
  Stack stack{"vision_model.encoder.layers", net.arch.num_layers, chat_layer};
  stack.always = true;  // InternVisionEncoder.gradient_checkpointing
  return net.layers(stack, std::move(hidden));
}

const Program kChatTowerProgram = {chat_tower};

// InternVisionConfig of configuration_intern_vit.py, InternVLChatConfig of configuration_internvl_chat.py.
void read_chat(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "llama", "llm_config");
  const double ratio = fields.number({"downsample_ratio"}, 0.5);
  architecture.pictures.merge = ratio > 0.0 && ratio <= 1.0 ? static_cast<Count>(1.0 / ratio) : 1;
  architecture.pictures.drops_class_token = true;
  architecture.pictures.video_frames = 1;
  if (fields.number({"select_layer"}, -1.0) != -1.0) {
    fields.error("INVALID_VALUE", "select_layer", "Only the tower's last layer (-1) is modelled.");
  }
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_tower_sizes(vision, part, 3200, 48, 25, 12800);
  part.image_size = fields.count({"force_image_size"}, square_side(vision, "image_size", 224));
  part.patch_size = square_side(vision, "patch_size", 14);
  part.activation = read_activation(vision, {"hidden_act"}, "gelu");
  part.attention_bias = vision.flag({"qkv_bias"}, false);
  part.qk_norm = vision.flag({"qk_normalization"}, true);
  part.residual_dropout = vision.probability({"dropout"}, 0.0);
  part.drop_path = vision.probability({"drop_path_rate"}, 0.0);
  part.norm_bias = vision.text({"norm_type"}, "rms_norm") == "layer_norm";
  const Count patches = part.image_size / part.patch_size;
  part.max_positions = patches * patches + 1;
  part.program = &kChatTowerProgram;
  architecture.parts.push_back(std::move(part));
  fields.accept({"dynamic_image_size", "max_dynamic_patch", "min_dynamic_patch", "use_backbone_lora", "use_llm_lora",
                 "ps_version", "template", "use_thumbnail", "pad2square", "auto_map", "tie_word_embeddings"});
}

Tensor chat_features(Net& net) {
  Net& part = tower_part(net, Dim(tile_count(net)));
  Tensor last = part.arch.program->forward(part);
  const Count side = part.arch.image_size / part.arch.patch_size;
  Tensor h = shuffled(net, narrow(std::move(last), 1, 1, Dim(side * side)), side);
  Scope in(net.tape, "mlp1", kChat);
  h = net.linear("mlp1.1", net.layer_norm("mlp1.0", std::move(h)), net.H, true);
  h = net.linear("mlp1.3", gelu(std::move(h)), net.H, true);
  const Tensor flags = net.tape.allocate(Shape{h.dim(0)}, Dtype::kBool, "eq");
  const Dim pictures = h.dim(0);
  return index_some(std::move(h), flags, pictures);
}

Tensor chat_merge(Net& net, Tensor embeds_in) {
  Scope in(net.tape, "", kChat);
  Tensor embeds = clone(std::move(embeds_in));
  {
    const Declared alone(net);
    if (alone) {
      chat_features(net);
      return embeds;
    }
  }
  const Tensor features = chat_features(net);
  const Dim rows(features.numel() / net.H.n());
  net.picture_tokens = rows.n() / net.B.n();
  const Shape shape = embeds.shape();
  embeds = view(std::move(embeds), Shape{net.T, net.H});
  const Tensor selected = net.tape.allocate(Shape{net.T}, Dtype::kBool, "eq");
  Tensor there = mul_scalar(index_some(embeds, selected, rows));
  there = add(std::move(there), view(features, Shape{rows, net.H}));
  embeds = put_rows(std::move(embeds), selected, std::move(there));
  net.outer_locals.push_back(features);
  return view(std::move(embeds), shape);
}

// The language model returns its logits; the loss is CrossEntropyLoss of a shifted copy in their dtype.
Outputs chat_lm(Net& net, const Program& program, Tensor hidden) {
  if (net.job.loss != Loss::kDefault) return causal_lm(net, program, std::move(hidden));
  Tensor logits = program.lm_head(net, std::move(hidden));
  if (net.arch.fp32_logits) logits = to(std::move(logits), Dtype::kFp32);
  Outputs out;
  out.loss = shifted_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

constexpr HeadForward kChatHeads[] = {{Head::kCausalLm, chat_lm}};
constexpr ClassSuffix kChatClasses[] = {{"ChatModel", Head::kCausalLm}};

const Program kChatProgram = {.forward = forward_with_pictures<chat_merge>,
                              .lm_head = language_head,
                              .heads = kChatHeads,
                              .inputs = inputs,
                              .remote_code = true};
const Program kProgram = {forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};

constexpr ClassFacts kFacts = {
    .always_checkpoints = true, .pictures = PictureRule::kClosestTiles, .full_name = name_beside_whole};

constexpr ClassFacts kTiled = {.pictures = PictureRule::kClosestTiles};

}  // namespace

const Family kRows[] = {
    {"internvl", "InternVL", "InternVLForConditionalGeneration", kSeeingClasses, read_internvl, &kProgram, kModelLayers,
     kTiled},
    {"qianfan_ocr", "QianfanOCR", "QianfanOCRForConditionalGeneration", kSeeingClasses, read_internvl, &kProgram,
     kModelLayers, kTiled},
    {"internvl_chat", "InternVL", "InternVLChatModel", kChatClasses, read_chat, &kChatProgram, kModelLayers, kFacts},
};

extern const FamilyRows internvl_rows;
const FamilyRows internvl_rows = kRows;

}  // namespace tidemark
