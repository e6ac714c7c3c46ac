// Configurations of models that see; the towers of CLIP and SigLIP.
#include "core/families/towers.hpp"

#include <algorithm>
#include <string>

#include "core/families/family.hpp"
#include "core/units/make_value.hpp"

namespace tidemark {
namespace {

constexpr const char* kClipModel = "transformers 5.12 models/clip/modeling_clip.py: CLIPVisionModel.forward";
constexpr const char* kSiglipModel = "transformers 5.12 models/siglip/modeling_siglip.py: SiglipVisionModel.forward";

/// Sizes that transformers 5.12.1's configuration classes have where a file says nothing (models/*/configuration_*.py).
struct TextSizes {
  std::string_view model_type;
  Count hidden, ffn, layers, heads, vocab;
};
constexpr TextSizes kTextSizes[] = {
    {"llama", 4096, 11008, 32, 32, 32000},      {"mistral", 4096, 14336, 32, 32, 32000},
    {"qwen2", 4096, 22016, 32, 32, 151936},     {"qwen3", 4096, 22016, 32, 32, 151936},
    {"gemma", 3072, 24576, 28, 16, 256000},     {"gemma2", 2304, 9216, 26, 8, 256000},
    {"gemma3_text", 2304, 9216, 26, 8, 262208}, {"ministral3", 4096, 14336, 34, 32, 131072},
};

void add_missing(Value& object, std::string_view key, Count size) {
  const Value* there = object.find(key);
  if (there != nullptr && !there->is_null()) return;
  set(object, key, std::int64_t{size});
}

Value with_sizes(const Value& given, std::string_view model_type) {
  Value object = given;
  object.kind = Value::Kind::kObject;
  for (const TextSizes& sizes : kTextSizes) {
    if (sizes.model_type != model_type) continue;
    add_missing(object, "hidden_size", sizes.hidden);
    add_missing(object, "intermediate_size", sizes.ffn);
    add_missing(object, "num_hidden_layers", sizes.layers);
    add_missing(object, "num_attention_heads", sizes.heads);
    add_missing(object, "vocab_size", sizes.vocab);
  }
  return object;
}

Tensor clip_tower(Net& net) {
  Scope in(net.tape, "vision_tower", kClipModel);
  Tensor patches = patch_embedding(net, "vision_tower.embeddings.patch_embedding", net.pixel_values, false);
  Tensor token = net.parameter("vision_tower.embeddings", "class_embedding", Shape{net.H});
  const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), net.H});
  Tensor hidden = cat({&tokens, &patches}, 1);
  Tensor positions = picture_positions(net, "vision_tower.embeddings.position_embedding", net.arch.max_positions);
  hidden = add(std::move(hidden), std::move(positions));
  patches.reset();
  hidden = net.layer_norm("vision_tower.pre_layrnorm", std::move(hidden));
  hidden =
      net.layers({"vision_tower.encoder.layers", net.arch.num_layers, clip_layer, true, Phase::kForward, keep_hidden},
                 std::move(hidden));
  net.outer_locals.push_back(net.layer_norm("vision_tower.post_layernorm", select(hidden, 1)));
  return hidden;
}

// torch.nn.functional.multi_head_attention_forward, which is asked for its weights and so runs no fused kernel: one
// query per picture, keys and values from one projection of the tokens, a copy of both.
Tensor pooling_attention(Net& net, Tensor query, const Tensor& hidden, const Tensor& mask) {
  const Dim three(3 * net.H.n()), two(2 * net.H.n()), heads(net.B.n() * net.A.n()), one(1);
  Tensor weight = net.parameter("vision_tower.head.attention", "in_proj_weight", Shape{three, net.H});
  Tensor bias = net.parameter("vision_tower.head.attention", "in_proj_bias", Shape{three});
  Tensor bias_q = narrow(bias, 0, 0, net.H);  // one by one: each takes its place in the graph
  Tensor weight_q = narrow(weight, 0, 0, net.H);
  Tensor q = view(std::move(query), Shape{one, net.B, net.H});
  q = linear(std::move(q), std::move(weight_q), std::move(bias_q));
  Tensor kv = contiguous(transpose(hidden, 0, 1));
  Tensor bias_kv = narrow(bias, 0, net.H.n(), two);
  Tensor weight_kv = narrow(weight, 0, net.H.n(), two);
  kv = linear(std::move(kv), std::move(weight_kv), std::move(bias_kv));
  kv = permute(view(std::move(kv), Shape{net.S, net.B, Dim(2), net.H}), {2, 0, 1, 3});
  kv = contiguous(std::move(kv));
  const auto by_head = [&](Tensor x, Dim tokens) {
    return transpose(view(std::move(x), Shape{tokens, heads, net.hd}), 0, 1);
  };
  const Tensor k = by_head(select(kv, 0), net.S), v = by_head(select(kv, 0), net.S);
  Tensor columns = transpose(k, 1, 2);
  Tensor rows = mul_scalar(by_head(std::move(q), one));
  Tensor weights =
      mask.defined() ? baddbmm(mask, std::move(rows), std::move(columns)) : matmul(std::move(rows), std::move(columns));
  weights = softmax(std::move(weights));
  return reshape(matmul(weights, v), Shape{net.B, one, net.H});
}

}  // namespace

// SiglipMultiheadAttentionPoolingHead
Tensor siglip_head(Net& net, const Tensor& hidden, const Tensor& mask) {
  const char* const kHead = "vision_tower.head";
  Scope in(net.tape, kHead, kSiglipModel);
  Tensor probe = net.parameter(kHead, "probe", Shape{Dim(1), Dim(1), net.H});
  Tensor query = clone(expand(std::move(probe), Shape{net.B, Dim(1), net.H}));
  Tensor out = pooling_attention(net, std::move(query), hidden, mask);
  out = net.linear("vision_tower.head.attention.out_proj", std::move(out), net.H, true);
  const Tensor residual = out;
  out = net.layer_norm("vision_tower.head.layernorm", std::move(out));
  out = net.linear("vision_tower.head.mlp.fc1", std::move(out), net.F, true);
  out = activate(net.arch.activation, std::move(out));
  out = net.linear("vision_tower.head.mlp.fc2", std::move(out), net.H, true);
  return add(residual, std::move(out));
}

Tensor siglip_tower(Net& net) {
  Scope in(net.tape, "vision_tower", kSiglipModel);
  Tensor hidden = patch_embedding(net, "vision_tower.embeddings.patch_embedding", net.pixel_values, true);
  Tensor positions = picture_positions(net, "vision_tower.embeddings.position_embedding", net.arch.max_positions);
  hidden = add(std::move(hidden), std::move(positions));
  const Tensor embeds = hidden;  // a name of the forward's, until the encoder is through
  Stack stack{"vision_tower.encoder.layers", net.arch.num_layers, clip_layer};
  if (!net.arch.pictures.layers.empty()) stack.after = keep_hidden;
  hidden = net.layers(stack, std::move(hidden));
  hidden = net.layer_norm("vision_tower.post_layernorm", std::move(hidden));
  if (net.arch.pooler_size > 0) net.outer_locals.push_back(siglip_head(net, hidden));
  return hidden;
}

namespace {

// transformers 5.12.1 models/clip/configuration_clip.py: CLIPVisionConfig.
void read_clip_tower(ConfigFields& fields, Architecture& tower) {
  read_tower_sizes(fields, tower, 768, 12, 12, 3072);
  tower.image_size = square_side(fields, "image_size", 224);
  tower.patch_size = square_side(fields, "patch_size", 32);
  tower.activation = read_activation(fields, {"hidden_act"}, "quick_gelu");
  fields.accept({"projection_dim", "vocab_size"});
  const Count patches = tower.image_size / tower.patch_size;
  tower.max_positions = patches * patches + 1;
}

// transformers 5.12.1 models/siglip/configuration_siglip.py: SiglipVisionConfig.
void read_siglip_tower(ConfigFields& fields, Architecture& tower) {
  read_tower_sizes(fields, tower, 768, 12, 12, 3072);
  tower.image_size = square_side(fields, "image_size", 224);
  tower.patch_size = square_side(fields, "patch_size", 16);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.pooler_size = fields.flag({"vision_use_head"}, true) ? tower.hidden_size : 0;
  fields.accept({"projection_dim", "projector_hidden_act", "num_image_tokens"});
  const Count patches = tower.image_size / tower.patch_size;
  tower.max_positions = patches * patches;
}

const Program kClipTower = {clip_tower};
const Program kSiglipTower = {siglip_tower};
const Tower kTowers[] = {{"clip_vision_model", read_clip_tower, &kClipTower},
                         {"siglip_vision_model", read_siglip_tower, &kSiglipTower},
                         {"pixtral", read_pixtral_tower, &kPixtralTower}};

}  // namespace

const Value* object_in(ConfigFields& fields, std::string_view key) {
  const Value* value = fields.find({key});
  return value != nullptr && value->is_object() ? value : nullptr;
}

const Value& required_object(ConfigFields& fields, std::string_view key) {
  static const Value kNothing{Value::Kind::kObject};
  const Value* given = object_in(fields, key);
  if (given != nullptr) return *given;
  fields.error("MISSING_FIELD", key, "\"" + std::string{key} + "\" is missing: a part of the model would be guessed.");
  return kNothing;
}

Count square_side(ConfigFields& fields, std::string_view key, Count class_default) {
  const Value* value = fields.find({key});
  if (value == nullptr || !value->is_array()) return fields.count({key}, class_default);
  const bool square = value->items.size() == 2 && value->items[0].is_integer() && value->items[1].is_integer() &&
                      value->items[0].integer == value->items[1].integer && value->items[0].integer > 0;
  if (square) return value->items[0].integer;
  fields.error("INVALID_VALUE", key, "Only square images and patches are modelled.");
  return class_default;
}

void read_tower_sizes(ConfigFields& fields, Architecture& tower, Count width, Count depth, Count heads, Count ffn) {
  tower.hidden_size = fields.count({"hidden_size"}, width);
  tower.intermediate_size = fields.count({"intermediate_size"}, ffn);
  tower.num_layers = fields.count({"num_hidden_layers"}, depth);
  tower.num_heads = fields.count({"num_attention_heads"}, heads);
  tower.num_kv_heads = tower.num_heads;
  tower.num_channels = fields.count({"num_channels"}, 3);
  tower.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  derive_head_dim(fields, tower);
}

void read_language(ConfigFields& fields, Architecture& architecture, std::string_view standard, std::string_view key) {
  const Value& given = required_object(fields, key);
  const Value* named = given.find("model_type");
  std::string_view model_type = named != nullptr && named->is_string() ? std::string_view{named->string} : standard;
  // Exaone4_5_Config.__post_init__: as the first files of EXAONE 4.5 have it.
  if (model_type == "exaone4_5_text") model_type = "exaone4";
  const Family* type = type_named(model_type);
  if (type == nullptr || type->program == nullptr || type->layers != "model.layers") {
    fields.error("UNSUPPORTED_ARCHITECTURE", key,
                 "The language model \"" + std::string{model_type} + "\" is not modelled in this family.");
    return;
  }
  const Value object = with_sizes(given, model_type);
  ConfigFields text(object, fields.path() + "/" + std::string{key}, fields.issues());
  type->read(text, architecture);
  text.accept({"model_type", "architectures", "_name_or_path", "torch_dtype", "dtype"});
  text.report_unread(type->model_type);
  architecture.language = type->program;
  architecture.fp32_logits = model_type == "internlm2";
}

bool read_tower(ConfigFields& fields, Architecture& architecture, std::string_view standard) {
  const Value& given = required_object(fields, "vision_config");
  const Value* named = given.find("model_type");
  const std::string_view model_type =
      named != nullptr && named->is_string() ? std::string_view{named->string} : standard;
  for (const Tower& known : kTowers) {
    if (known.model_type != model_type) continue;
    Architecture tower;
    tower.program = known.program;
    tower.model_type = model_type;
    ConfigFields vision(given, fields.path() + "/vision_config", fields.issues());
    known.read(vision, tower);
    vision.accept({"model_type", "architectures", "_name_or_path", "torch_dtype", "dtype"});
    vision.report_unread(known.model_type);
    architecture.parts.push_back(std::move(tower));
    return !has_error(fields.issues());
  }
  fields.error("UNSUPPORTED_ARCHITECTURE", "vision_config",
               "The vision tower \"" + std::string{model_type} + "\" is not modelled in this family.");
  return false;
}

Net& tower_part(Net& net, Dim pictures) {
  const Architecture& tower = net.arch.parts.front();
  Net& part = net.part(tower, pictures, Dim(tower.max_positions));
  const PictureSize size = picture_size(net);
  // Declared alone, it has no pictures: one stands for them.
  part.pixel_values =
      net.pixel_values.defined()
          ? net.pixel_values
          : net.tape.allocate(Shape{pictures, Dim(tower.num_channels), Dim(size.height), Dim(size.width)},
                              net.weight_dtype(4), "pixel_values");
  return part;
}

Tensor merge_features(Net& net, Tensor embeds, Tensor (*features_of)(Net& net), const char* source, bool returned) {
  {
    const Declared alone(net);
    if (alone) {
      features_of(net);
      return embeds;
    }
  }
  Tensor features = features_of(net);
  {
    const Scope in(net.tape, "", source);
    features = to(std::move(features), embeds.dtype());
  }
  if (returned && !net.returns_image_outputs()) net.image_hidden_states = features;  // as they go into the text
  return scatter_features(net, std::move(embeds), std::move(features), source);
}

void refuse_packed_pictures(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || job.images_per_sample == 0) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "transformers 5.12 fails here: " + architecture.class_name +
                        " casts pictures to the dtype of a packed weight. Use \"lora\", or texts alone.",
                    "lora"});
}

Tensor selected_features(Net& net, Net& tower) {
  Tensor features = tower.model_locals.size() == 1 ? tower.model_locals.front() : cat(tower.model_locals, -1);
  if (net.arch.pictures.drops_class_token) features = narrow(features, 1, 1, Dim(features.size(1) - 1));
  return features;
}

void check_picture_is_of_table(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.image_height == 0 || (job.image_height == a.image_size && job.image_width == a.image_size)) return;
  const std::string side = std::to_string(a.image_size);
  issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                    "This model takes pictures of " + side + " pixels a side only.", side});
}

}  // namespace tidemark
