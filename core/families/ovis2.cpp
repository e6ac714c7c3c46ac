// Ovis 2: AIMv2's tower, whose head spreads each four patches over a visual vocabulary; what it makes weighs the rows
// of a table of embeddings. A large picture is cut into tiles, the whole before them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/job/pictures.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisionEmbeddings.forward";
constexpr const char* kAttention = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisionAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2MLP.forward";
constexpr const char* kLayer = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisionEncoderLayer.forward";
constexpr const char* kTransformer = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisionTransformer.forward";
constexpr const char* kTower = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisionModel.forward";
constexpr const char* kFeatures = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2Model.get_image_features";
constexpr const char* kTable = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2VisualEmbeddingTable.forward";
constexpr const char* kModel = "transformers 5.12 models/ovis2/modeling_ovis2.py: Ovis2Model.forward";

/// Tokens that say where a picture's pieces are (Ovis2Config.visual_indicator_token_ids), in the order of their ids.
enum Indicator : std::uint8_t { kStart, kGrid, kColumn, kRow, kEnd, kIndicators };

// transformers 5.12.1 models/ovis2/configuration_ovis2.py: Ovis2VisionConfig.
Architecture read_vision(ConfigFields& fields) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 1024, 24, 8, 2816);
  tower.image_size = square_side(vision, "image_size", 224);
  tower.patch_size = square_side(vision, "patch_size", 14);
  tower.activation = read_activation(vision, {"hidden_act"}, "silu");
  tower.attention_bias = vision.flag({"qkv_bias"}, false);
  tower.mlp_bias = vision.flag({"mlp_bias"}, false);
  tower.vocab_size = vision.count({"vocab_size"}, 16384);
  tower.pictures.merge = vision.count({"hidden_stride"}, 1);
  tower.pictures.tokens = vision.count({"num_visual_indicator_tokens"}, kIndicators);
  if (vision.text({"tokenize_function"}, "softmax") != "softmax") {
    vision.error("INVALID_VALUE", "tokenize_function", "Only \"softmax\" is modelled, as of all published files.");
  }
  const Count side = tower.image_size / std::max<Count>(1, tower.patch_size);
  if (side < 1 || side % tower.pictures.merge != 0) {
    vision.error("INVALID_VALUE", "hidden_stride", "The patches of a side must be a multiple of \"hidden_stride\".");
  }
  if (tower.pictures.tokens != kIndicators || tower.vocab_size <= kIndicators) {
    vision.error("INVALID_VALUE", "num_visual_indicator_tokens",
                 "Only 5 tokens beside the visual vocabulary are modelled, as of all published files.");
  }
  tower.max_positions = side * side;
  vision.accept({"model_type", "rms_norm_eps", "torch_dtype", "dtype", "architectures", "backbone_config",
                 "backbone_kwargs", "depths", "drop_cls_token", "tau", "use_indicators"});
  vision.report_unread("ovis2_vision");
  return tower;
}

// transformers 5.12.1 models/ovis2/configuration_ovis2.py: Ovis2Config, which repeats the language model's width and
// vocabulary.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.parts.push_back(read_vision(fields));
  fields.accept({"image_token_id", "visual_indicator_token_ids", "vocab_size", "hidden_size"});
}

/// Ovis2ImageProcessor as published files set it: pictures are cut (crop_to_patches).
struct Processor {
  static constexpr Count kMostTiles = 12;   ///< max_patches
  static constexpr double kCovering = 0.9;  ///< covering_threshold
};

// image_processing_ovis2.py: compute_patch_covering_area. How much of a region's pixels a tile can show.
double covered(Count width, Count height, Count side) {
  auto longer = static_cast<double>(std::max(width, height)), shorter = static_cast<double>(std::min(width, height));
  if (longer > static_cast<double>(side)) {
    shorter = shorter / longer * static_cast<double>(side);
    longer = static_cast<double>(side);
  }
  return longer * shorter;
}

// image_processing_ovis2.py: split_image_into_grid, of which the last row and column take what is over.
double covering_ratio(PictureSize size, Count rows, Count columns, Count side) {
  const Count down = size.height / rows, across = size.width / columns;
  double all = 0.0;
  for (Count row = 0; row < rows; ++row) {
    for (Count column = 0; column < columns; ++column) {
      const Count height = row == rows - 1 ? size.height - row * down : down;
      const Count width = column == columns - 1 ? size.width - column * across : across;
      all += covered(width, height, side);
    }
  }
  return all / static_cast<double>(size.width * size.height);
}

// image_processing_ovis2.py: get_min_tile_covering_grid: the fewest tiles that show so much of the picture, or those
// that show most of it.
TileGrid grid_of(PictureSize size, Count side) {
  TileGrid fewest{0, 0}, best;
  double most = -1.0;
  for_each_grid(Processor::kMostTiles, [&](const TileGrid& grid) {
    const double ratio = covering_ratio(size, grid.down, grid.across, side);
    if (ratio > Processor::kCovering && fewest.tiles() == 0) fewest = grid;
    if (ratio <= most) return;
    most = ratio;
    best = grid;
  });
  return fewest.tiles() > 0 ? fewest : best;
}

/// Pieces of a picture, the whole included where it is cut.
Count pieces_of(const Net& net) {
  if (net.job.image_tiles > 0) return net.job.image_tiles;
  return grid_of(picture_size(net), net.arch.parts.front().image_size).pieces();
}

/// The indicators of a picture: one at each end of it, one behind the whole, one between two tiles.
Count indicators_of(Count pieces) {
  constexpr Count kAlways = 3;
  return kAlways + std::max<Count>(0, pieces - 2);
}

void inputs(Net& net) {
  const Count side = net.arch.parts.front().image_size;
  picture_inputs(net, Dim(picture_count(net) * pieces_of(net)), {side, side});
}

Tensor embedded(Net& net) {
  const char* const kConvolution = "vision_tower.transformer.embeddings.patch_embedding";
  Scope in(net.tape, "vision_tower.transformer.embeddings", kEmbeddings);
  const Dim side(net.arch.patch_size);
  Tensor weight = net.parameter(kConvolution, "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor bias = net.parameter(kConvolution, "bias", Shape{net.H});
  Tensor hidden;
  {
    const Tensor pixels = to(net.pixel_values, weight.dtype());
    const Tensor patches = patch_convolution(pixels, std::move(weight), std::move(bias));
    const Tensor rows = transpose(view(patches, Shape{net.B, net.H, net.S}), 1, 2);
    hidden = rms_norm(net, "vision_tower.transformer.embeddings.rms_norm", rows);
  }
  const Tensor places =
      picture_positions(net, "vision_tower.transformer.embeddings.position_embedding", net.arch.max_positions);
  return add(std::move(hidden), places);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("attention.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("attention.k_proj", x, net.Q, bias);
  k = split_heads(net, std::move(k), net.A, net.hd);
  Tensor v = net.linear("attention.v_proj", x, net.Q, bias);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  const Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.out_proj", out, net.H, bias);
}

Tensor feed_forward(Net& net, const Tensor& x) {
  Scope in(net.tape, "ffn", kMlp);
  const bool bias = net.arch.mlp_bias;
  Tensor h = net.linear("ffn.gate_proj", x, net.F, bias);
  h = activate(net.arch.activation, std::move(h));
  Tensor up = net.linear("ffn.up_proj", x, net.F, bias);
  h = mul(std::move(h), std::move(up));
  return net.linear("ffn.down_proj", std::move(h), net.H, bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor normed = rms_norm(net, "rms_norm1", hidden);
  const Tensor attended = self_attention(net, normed);
  Tensor h = add(std::move(hidden), attended);
  normed = rms_norm(net, "rms_norm2", h);
  const Tensor fed = feed_forward(net, normed);
  return add(std::move(h), fed);
}

Tensor transformer(Net& net) {
  Scope in(net.tape, "vision_tower.transformer", kTransformer);
  const Tensor embeds = embedded(net);
  const Tensor hidden = net.layers({"vision_tower.transformer.encoder.layers", net.arch.num_layers, layer}, embeds);
  return rms_norm(net, "vision_tower.transformer.rms_norm", hidden);
}

/// Ovis2VisionModel's outputs.
struct Seen {
  Tensor states, tokens;
};

// hidden_stride² neighbours side by side in one vector, by two copies; then the visual vocabulary's probabilities.
Seen tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  const Tensor outputs = transformer(net);
  const Dim stride(net.arch.pictures.merge);
  Tensor states = outputs;
  if (stride.n() > 1) {
    const Count across = net.arch.image_size / net.arch.patch_size / stride.n();
    const Dim rows(net.B.n() * across), columns(across), wide(stride.n() * net.H.n());
    states = pad(std::move(states), 1, 0);
    // Six dimensions there; the copy is what counts.
    states = permute(view(std::move(states), Shape{rows, stride, columns, wide}), {0, 2, 1, 3});
    states = reshape(std::move(states), Shape{net.B, Dim(across * across), Dim(stride.n() * wide.n())});
  }
  const Dim words(net.arch.vocab_size - net.arch.pictures.tokens);
  Tensor logits = net.linear("vision_tower.head_linear", states, words);
  logits = net.layer_norm("vision_tower.head_norm", std::move(logits));
  Tensor tokens = softmax(logits);
  return {std::move(states), std::move(tokens)};
}

/// What get_image_features hands to the model.
struct Features {
  Tensor states, rows, indicators;
};

Features features(Net& net) {
  const char* const kName = "visual_embeddings_table";
  Tape& t = net.tape;
  Net& eyes = tower_part(net, Dim(picture_count(net) * pieces_of(net)));
  const Dim words(eyes.arch.vocab_size), others(eyes.arch.pictures.tokens);
  Features made;
  Scope in(t, "", kFeatures);
  {
    Seen seen = tower(eyes);
    const Tensor padding = zeros(t, Shape{seen.tokens.dim(0), seen.tokens.dim(1), others}, seen.tokens.dtype());
    const Tensor tokens = cat({&seen.tokens, &padding}, 2);
    // One table, by a product and by its rows.
    const std::size_t place = t.parameter_place();
    const std::int32_t index = t.next_parameter();
    {
      const Declared table(net, true);
      net.embedding(kName, t.allocate(Shape{others}, Dtype::kInt64, "arange"), words, net.H);
    }
    {
      Scope product(t, kName, kTable);
      made.rows = matmul(tokens, t.existing_parameter(index));
    }
    t.set_parameter_place(place);
    Tensor ids = t.allocate(Shape{others}, Dtype::kInt64, "arange");
    made.indicators = net.embedding(kName, std::move(ids), words, net.H);
    made.states = std::move(seen.states);
  }
  eyes.pixel_values.reset();
  return made;
}

Tensor merge(Net& net, Tensor embeds_in) {
  {
    const Declared alone(net);
    if (alone) {
      features(net);
      return embeds_in;
    }
  }
  Features made = features(net);
  net.image_hidden_states = to(std::move(made.rows), embeds_in.dtype());
  Tensor embeds = scatter_features(net, std::move(embeds_in), net.image_hidden_states, kModel);
  Scope in(net.tape, "", kModel);
  const Count pieces = pieces_of(net), pictures = net.job.images_per_sample;
  net.picture_tokens += pictures * indicators_of(pieces);
  Tensor mask;
  for (int i = 0; i < kIndicators; ++i) {
    mask = net.tape.allocate(Shape{net.B, net.S}, Dtype::kBool, "eq");
    const bool between = i == kColumn || i == kRow;
    if (between && pieces == 1) continue;  // mask.any()
    Tensor indicator = to(select(made.indicators, 0), embeds.dtype());
    embeds = put_rows(std::move(embeds), mask, std::move(indicator));
  }
  net.outer_locals.push_back(std::move(made.states));
  net.outer_locals.push_back(std::move(made.indicators));
  net.outer_locals.push_back(std::move(mask));
  return embeds;
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs};

constexpr ClassFacts kFacts = {
    .no_split = NoSplit::kOtherParts, .tiles = true, .behind_language = "visual_embeddings_table"};

}  // namespace

const Family kRows[] = {
    {"ovis2", "Ovis2", "Ovis2ForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows ovis2_rows;
const FamilyRows ovis2_rows = kRows;

}  // namespace tidemark
