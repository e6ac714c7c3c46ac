// Phi-4 multimodal: Phi-3's decoder; pictures in tiles of one side through a tower of SigLIP's kind, whose patches are
// averaged by four and laid side by side again without what padded them. Its encoder of sound is there and never runs:
// recordings are not modelled.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/phi4_multimodal/modeling_phi4_multimodal.py: Phi4MultimodalVisionModel.forward";
constexpr const char* kPlaces =
    "transformers 5.12 models/phi4_multimodal/modeling_phi4_multimodal.py: Phi4MultimodalVisionEmbeddings.forward";
constexpr const char* kPictures =
    "transformers 5.12 models/phi4_multimodal/modeling_phi4_multimodal.py: Phi4MultimodalImageEmbedding.forward";
constexpr const char* kSound =
    "transformers 5.12 models/phi4_multimodal/modeling_phi4_multimodal.py: Phi4MultimodalAudioModel.forward";

// -- pictures ---------------------------------------------------------------------------------------------------------

// Phi4MultimodalImageProcessor: dynamic_hd.
constexpr Count kMostTiles = 36;

/// How a picture is cut.
struct Crops {
  Count down = 1, across = 1;                        ///< tiles
  Count height = 0, width = 0;                       ///< of the averaged patches, without those that pad
  bool padded = false;                               ///< some patches are padding
  Count tiles() const { return down * across + 1; }  ///< the whole first
};

// dynamic_preprocess, find_closest_aspect_ratio
Crops crops_of(const Net& net) {
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  const Count side = tower.image_size, patch = tower.patch_size, patches = side / patch;
  const PictureSize size = picture_size(net);
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  Crops c;
  c.down = (size.height + side - 1) / side;
  c.across = (size.width + side - 1) / side;
  if (c.down * c.across > kMostTiles) {
    double least = INFINITY;
    for (Count tiles = 1; tiles <= kMostTiles; ++tiles) {
      for (Count across = 1; across <= tiles; ++across) {
        if (tiles % across != 0) continue;
        const Count down = tiles / across;
        const double apart = std::fabs(width / height - static_cast<double>(across) / static_cast<double>(down));
        const bool large = height * width > 0.5 * static_cast<double>(side * side * tiles);
        if (apart > least || (apart == least && !large)) continue;
        least = apart;
        c.down = down;
        c.across = across;
      }
    }
  }
  const Count target_height = side * c.down, target_width = side * c.across;
  const double by_width = static_cast<double>(target_width) / width;
  const double by_height = static_cast<double>(target_height) / height;
  const bool is_wide = by_width < by_height;
  const Count empty_rows = is_wide ? target_height - static_cast<Count>(height * by_width) : 0;
  const Count empty_columns = is_wide ? 0 : target_width - static_cast<Count>(width * by_height);
  c.padded = empty_rows >= patch || empty_columns >= patch;
  c.height = (patches * c.down - empty_rows / patch + 1) / 2;
  c.width = (patches * c.across - empty_columns / patch + 1) / 2;
  return c;
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Architecture& tower = net.arch.parts.front();
  const Dim count(picture_count(net)), tiles(crops_of(net).tiles()), side(tower.image_size),
      patches(tower.image_size / tower.patch_size);
  net.pixel_values = net.tape.allocate(Shape{count, tiles, Dim(3), side, side}, Dtype::kFp32, "image_pixel_values");
  integer_input(net, Shape{count, Dim(2)}, "image_sizes");
  net.more_inputs.push_back(
      net.tape.allocate(Shape{count, tiles, patches, patches}, Dtype::kFp32, "image_attention_mask"));
}

// Each patch's place in the table's grid is looked up, picture by picture.
Tensor places(Net& net) {
  const char* const kTable = "vision_tower.embeddings.position_embedding";
  Scope in(net.tape, kTable, kPlaces);
  const Tensor ids = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "position_ids");
  return net.embedding(kTable, ids, net.S, net.H);
}

// create_bidirectional_mask of the patches, where some are padding.
Tensor patch_mask(Net& net, const Tensor& embeds) {
  if (wants_flash(net.job)) return net.tape.allocate(Shape{net.B, net.S}, Dtype::kBool, "view");
  const Shape scores{net.B, Dim(1), net.S, net.S};
  Tensor mask = net.tape.allocate(scores, Dtype::kBool, "padding mask (bool)");
  if (net.job.attention == AttentionKernel::kEager) mask = net.tape.allocate(scores, embeds.dtype(), "eager mask");
  return mask;
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  Tensor hidden = patch_embedding(net, "vision_tower.embeddings.patch_embedding", std::move(net.pixel_values), true);
  {
    Tensor at = places(net);
    hidden = add(std::move(hidden), std::move(at));
  }
  const Tensor embeds = hidden;  // a name of the forward's
  if (crops_of(net).padded) net.shared.causal_mask = patch_mask(net, embeds);
  hidden =
      net.layers({"vision_tower.encoder.layers", net.arch.num_layers, clip_layer, true, Phase::kForward, keep_hidden},
                 std::move(hidden));
  hidden = net.layer_norm("vision_tower.post_layernorm", std::move(hidden));
  net.outer_locals.push_back(siglip_head(net, hidden));
  return hidden;
}

const Program kTowerProgram = {tower};

// get_img_features: four patches become one.
Tensor averaged(Net& net, Net& eyes) {
  const Tensor last = eyes.arch.program->forward(eyes);
  const Dim side(eyes.arch.image_size / eyes.arch.patch_size), half(side.n() / 2), tiles = last.dim(0);
  Tensor x = view(selected_features(net, eyes), Shape{tiles, side, side, eyes.H});
  x = channels_last(average_pool(channels_first(std::move(x)), half, half));
  x = view(std::move(x), Shape{tiles, Dim(half.n() * half.n()), eyes.H});
  eyes.shared = {};
  let_tower_go(eyes);
  return x;
}

/// The vectors behind rows of a picture, and between its tiles and the whole.
struct Marks {
  Tensor row, whole;
};

// One picture: its tiles side by side, a vector behind each row, another one, the whole in rows of the same kind.
Tensor laid_out(const Tensor& tiles, const Marks& marks, const Crops& c, Dim side, Dim width) {
  const Dim one(1);
  const auto rows = [&](const Tensor& x, Dim down, Dim across) {
    const Tensor ends = clone(expand(marks.row, Shape{one, down, one, width}));
    return view(cat({&x, &ends}, 2), Shape{one, Dim(down.n() * (across.n() + 1)), width});
  };
  const Tensor whole = rows(view(narrow(tiles, 0, 0, one), Shape{one, side, side, width}), side, side);
  const Dim down(c.down * side.n()), across(c.across * side.n());
  Tensor parts = narrow(tiles, 0, 1, Dim(c.down * c.across));
  // Six dimensions there, five here: rows of a tile and its columns' numbers stay together.
  parts = view(std::move(parts), Shape{Dim(c.down), Dim(c.across), side, Dim(side.n() * width.n())});
  parts = contiguous(transpose(std::move(parts), 1, 2));
  parts = view(std::move(parts), Shape{one, down, across, width});
  parts = narrow(std::move(parts), 1, 0, Dim(c.height));
  parts = narrow(std::move(parts), 2, 0, Dim(c.width));
  const Tensor cut = rows(parts, Dim(c.height), Dim(c.width));
  return cat({&cut, &marks.whole, &whole}, 1);
}

Tensor features(Net& net) {
  Scope in(net.tape, "image_embed", kPictures);
  const Crops crops = crops_of(net);
  const Dim count(picture_count(net)), tiles(crops.tiles());
  Net& eyes = tower_part(net, Dim(count.n() * tiles.n()));
  eyes.pixel_values = to(std::move(eyes.pixel_values), net.weight_dtype(4));
  const Tensor pixels = eyes.pixel_values;  // a name of the forward's
  const Dim side(eyes.arch.image_size);
  eyes.pixel_values = view(pixels, Shape{eyes.B, Dim(3), side, side});
  const Tensor all = averaged(net, eyes);
  Marks marks;
  const Dim one(1), width = eyes.H, half(side.n() / eyes.arch.patch_size / 2);
  marks.whole = net.parameter("image_embed", "global_img_feature_extensor", Shape{one, one, width});
  marks.row = net.parameter("image_embed", "sub_img_feature_extensor", Shape{one, one, one, width});
  std::vector<Tensor> pictures;
  for (Count i = 0; i < count.n(); ++i) {
    pictures.push_back(laid_out(narrow(all, 0, i * tiles.n(), tiles), marks, crops, half, width));
  }
  const std::size_t projector = net.tape.parameter_place();  // the same for each picture
  std::vector<Tensor> projected;
  for (const Tensor& picture : pictures) {
    net.tape.set_parameter_place(projector);
    Tensor h = eyes.linear("image_embed.img_projection_up", picture, net.H, true);
    h = gelu(std::move(h));
    projected.push_back(eyes.linear("image_embed.img_projection_down", std::move(h), net.H, true));
  }
  Tensor rows = cat(projected, 1);
  const Shape together{rows.dim(1), net.H};
  return view(std::move(rows), together);
}

// -- sound, which is there and never runs -----------------------------------------------------------------------------

void feed_forward(Net& net, const char* norm, const char* up, const char* down, const Tensor& x) {
  net.layer_norm(norm, x);
  const Tensor gate = net.linear(up, x, Dim(2 * net.F.n()), true);
  net.linear(down, narrow(gate, -1, 0, net.F), net.H, true);
}

// nn.Conv1d
void convolution(Net& net, const char* name, Dim out, Dim in_channels, Count kernel) {
  net.parameter(name, "weight", Shape{out, in_channels, Dim(kernel)});
  net.parameter(name, "bias", Shape{out});
}

// Phi4MultimodalAudioConformerEncoderLayer
Tensor sound_layer(Net& net, Tensor hidden) {
  const Tensor x = std::move(hidden);
  const Dim h = net.H, one(1);
  feed_forward(net, "feed_forward_in.layer_norm", "feed_forward_in.gate_up_proj", "feed_forward_in.down_proj", x);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}) {
    net.linear(name, x, h, true);
  }
  net.layer_norm("conv.layer_norm", x);
  net.parameter("conv.glu", "b1", Shape{one, h, one});
  net.parameter("conv.glu", "b2", Shape{one, h, one});
  convolution(net, "conv.glu.ext_pw_conv_1d", Dim(2 * h.n()), h, 1);
  convolution(net, "conv.dw_sep_conv_1d.dw_conv", h, one, net.arch.ssm.kernel);
  convolution(net, "conv.dw_sep_conv_1d.pw_conv", h, h, 1);
  convolution(net, "conv.ext_pw_conv_1d", h, h, 1);
  feed_forward(net, "feed_forward_out.layer_norm", "feed_forward_out.gate_up_proj", "feed_forward_out.down_proj", x);
  net.layer_norm("layer_norm_att", x);
  return net.layer_norm("layer_norm", x);
}

// nn.Conv2d of three by three, or of one by one.
void convolution2(Net& net, const char* name, Dim out, Dim in_channels, Count side) {
  net.parameter(name, "weight", Shape{out, in_channels, Dim(side), Dim(side)});
  net.parameter(name, "bias", Shape{out});
}

void declare_sound(Net& net) {
  const Declared declared(net, true);
  const Architecture& arch = net.arch.parts.back();
  Net& ears = net.part(arch, Dim(1), Dim(1));
  Scope in(net.tape, "audio_embed.encoder", kSound);
  const Dim one(1), h = ears.H, channels(arch.num_channels);
  const Dtype dtype = net.weight_dtype(1);
  convolution2(ears, "audio_embed.encoder.embed.conv.0", channels, one, 3);
  convolution2(ears, "audio_embed.encoder.embed.conv.2", channels, one, 3);
  convolution2(ears, "audio_embed.encoder.embed.conv.3", channels, channels, 1);
  convolution2(ears, "audio_embed.encoder.embed.conv.5", channels, one, 3);
  convolution2(ears, "audio_embed.encoder.embed.conv.6", channels, channels, 1);
  const Tensor flat = net.tape.allocate(Shape{one, one, Dim(channels.n() * arch.pooler_size)}, dtype, "reshape");
  Tensor x = ears.linear("audio_embed.encoder.embed.out", flat, h, true);
  const Tensor ids = net.tape.allocate(Shape{one, one}, Dtype::kInt64, "relative_position");
  ears.embedding("audio_embed.encoder.relative_attention_bias_layer.bias_values", ids, Dim(arch.pictures.positions),
                 ears.A);
  x = ears.layers({"audio_embed.encoder.encoders", arch.num_layers, sound_layer, false}, std::move(x));
  for (const char* name : {"audio_embed.up_proj_for_speech", "audio_embed.up_proj_for_vision_speech"}) {
    ears.linear(name, x, net.H, true);
  }
  const Tensor wide = net.tape.allocate(Shape{one, one, net.H}, dtype, "linear");
  for (const char* name : {"audio_embed.down_proj_for_speech", "audio_embed.down_proj_for_vision_speech"}) {
    ears.linear(name, wide, net.H, true);
  }
}

// -- the model --------------------------------------------------------------------------------------------------------

// Phi4MultimodalFeatureEmbedding.forward. index_put, without autocast: a copy of the embeddings with the pictures'
// rows.
Tensor merge(Net& net, Tensor embeds_in) {
  const Tensor embeds = std::move(embeds_in);
  Tensor merged = embeds;
  {
    const Declared alone(net);
    const Tensor rows = features(net);
    if (!alone) {
      Scope in(net.tape, "image_embed", kPictures);
      const Tensor values = to(rows, embeds.dtype());
      net.picture_tokens = values.size(0) / net.B.n();
      const Tensor positions = net.tape.allocate(Shape{values.dim(0), Dim(2)}, Dtype::kInt64, "nonzero");
      Tensor whole = view(clone(embeds), Shape{net.T, net.H});
      whole = put_rows(std::move(whole), positions, values);
      merged = dropout(view(std::move(whole), Shape{net.B, net.S, net.H}), net.arch.parts.front().residual_dropout);
    }
  }
  declare_sound(net);
  return merged;
}

// transformers 5.12.1 models/phi4_multimodal/configuration_phi4_multimodal.py: Phi4MultimodalVisionConfig.
void read_vision(ConfigFields& fields, Architecture& tower) {
  read_tower_sizes(fields, tower, 1152, 27, 16, 4304);
  tower.image_size = square_side(fields, "image_size", 448);
  tower.patch_size = square_side(fields, "patch_size", 14);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  const Count patches = tower.image_size / tower.patch_size;
  tower.max_positions = patches * patches;
  if (fields.count({"crop_size"}, 448) != tower.image_size || patches % 2 != 0) {
    fields.error("INVALID_VALUE", "crop_size", "Tiles are modelled as large as the tower's pictures, of even sides.");
  }
  read_feature_layers(fields, tower, {-2}, "feature_layer");
  fields.accept({"image_token_id", "layer_norm_eps", "model_type"});
}

// Phi4MultimodalAudioConfig. `time_reduction` convolutions of stride two, three in all published files.
void read_sound(ConfigFields& fields, Architecture& sound, Count distance) {
  sound.hidden_size = fields.count({"hidden_size"}, 1024);
  sound.intermediate_size = fields.count({"intermediate_size"}, 1536);
  sound.num_layers = fields.count({"num_blocks"}, 24);
  sound.num_heads = sound.num_kv_heads = fields.count({"num_attention_heads"}, 16);
  derive_head_dim(fields, sound);
  sound.num_channels = fields.count({"nemo_conv_channels"}, 1024);
  sound.ssm.kernel = fields.count({"kernel_size"}, 3);
  sound.pictures.positions = 2 * fields.count({"bias_max_distance"}, distance);
  sound.pooler_size = fields.count({"input_size"}, 80);
  for (int halvings = 0; halvings < 3; ++halvings) sound.pooler_size = (sound.pooler_size - 1) / 2 + 1;
  const bool usual = fields.count({"time_reduction"}, 8) == 8 && !fields.flag({"bias_symmetric"}, false) &&
                     fields.count({"ext_pw_out_channel"}, 1024) == sound.hidden_size &&
                     fields.count({"depthwise_separable_out_channel"}, 1024) == sound.hidden_size &&
                     fields.count({"depthwise_multiplier"}, 1) == 1 && fields.count({"downsample_rate"}, 1) == 1;
  if (!usual) {
    fields.error("INVALID_VALUE", "time_reduction", "Another encoder of sound than the published one is not modelled.");
  }
  fields.accept({"activation", "chunk_size", "left_chunk", "dropout_rate", "conv_activation", "conv_glu_type",
                 "nemo_activation", "nemo_final_size", "initializer_range", "audio_token_id", "feature_layer",
                 "model_type"});
}

// The published file is of the code beside the weights ("phi4mm"): adapters for pictures and for sound are a part of
// that model, and its towers' sizes are not in the file.
void read_as_transformers(ConfigFields& fields, Architecture& architecture) {
  architecture.model_type = "phi4_multimodal";
  architecture.class_name = "Phi4MultimodalForCausalLM";
  fields.accept({"embd_layer", "audio_processor", "img_processor", "vision_lora", "speech_lora", "full_attn_mod",
                 "lm_head_bias", "mlp_bias", "attention_bias", "interpolate_factor", "auto_map"});
  fields.note("ASSUMED_DEFAULT", "model_type",
              "\"phi4mm\" is Microsoft's own code. This is transformers' class Phi4MultimodalForCausalLM with the "
              "published towers: the adapters for pictures and sound that lie beside its weights are not part of it.");
}

void read_config(ConfigFields& fields, Architecture& architecture) {
  const bool remote = architecture.model_type == "phi4mm";
  if (remote) read_as_transformers(fields, architecture);
  const Family& phi3 = *type_named("phi3");
  phi3.read(fields, architecture);
  read_kv_heads(fields, architecture, 8);  // Phi4MultimodalConfig's; Phi3Config has as many as heads of queries
  architecture.language = phi3.program;
  const Value* vision = object_in(fields, "vision_config");
  const Value* audio = object_in(fields, "audio_config");
  static const Value kNothing{Value::Kind::kObject};
  ConfigFields eyes(vision != nullptr ? *vision : kNothing, fields.path() + "/vision_config", fields.issues());
  ConfigFields ears(audio != nullptr ? *audio : kNothing, fields.path() + "/audio_config", fields.issues());
  Architecture tower, sound;
  read_vision(eyes, tower);
  eyes.report_unread(architecture.model_type);
  read_sound(ears, sound, remote ? 500 : 1000);
  ears.report_unread(architecture.model_type);
  // transformers 5.12 quantizers/quantizers_utils.py: should_convert_module leaves what begins with the name of a tied
  // weight's module, "model.embed_tokens": "model.embed_tokens_extend" does.
  tower.unpacked = sound.unpacked = architecture.tie_word_embeddings;
  tower.program = &kTowerProgram;
  tower.residual_dropout = fields.probability({"embd_pdrop"}, 0.0);
  architecture.parts.push_back(std::move(tower));
  architecture.parts.push_back(std::move(sound));
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs};

constexpr ClassSuffix kClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"Model", Head::kNone}};

// The language model is the body itself, what it sees and hears with one of its modules.
std::string full_name_of(const Architecture& architecture, std::string_view path) {
  const std::string_view body = architecture.body_prefix;
  if (path.starts_with(body) || path.starts_with("lm_head")) return name_within_body(architecture, path, "");
  std::string name{architecture.head == Head::kNone ? std::string_view{} : body};
  return (name += "embed_tokens_extend.") += renamed(path, "vision_tower.", "image_embed.img_processor.");
}

constexpr ClassFacts kFacts = {.no_split = NoSplit::kNotTower,
                               .behind_language = "vision_tower image_embed audio_embed",
                               .full_name = full_name_of};

}  // namespace

const Family kRows[] = {
    {"phi4_multimodal", "Phi4Multimodal", "Phi4MultimodalForCausalLM", kClasses, read_config, &kProgram, kModelLayers,
     kFacts},
    {"phi4mm", "Phi4MM", "Phi4MMForCausalLM", kClasses, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows phi4_multimodal_rows;
const FamilyRows phi4_multimodal_rows = kRows;

}  // namespace tidemark
