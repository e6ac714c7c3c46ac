// Florence-2: DaViT's tower, whose blocks attend within windows and then among channels, a picture's patches and their
// mean among the embeddings of BART's encoder.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/layers/seq2seq.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kConvolution =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionConvEmbed.forward";
constexpr const char* kWindows =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionWindowAttention.forward";
constexpr const char* kChannels =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionChannelAttention.forward";
constexpr const char* kSpatial =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionSpatialBlock.forward";
constexpr const char* kChannel =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionChannelBlock.forward";
constexpr const char* kMlp = "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionMLP.forward";
constexpr const char* kTower =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2VisionBackbone.forward";
constexpr const char* kPositions =
    "transformers 5.12 models/florence2/modeling_florence2.py: "
    "Florence2VisionLearnedAbsolutePositionEmbedding2D.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2MultiModalProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/florence2/modeling_florence2.py: Florence2Model.forward";
constexpr const char* kHead =
    "transformers 5.12 models/florence2/modeling_florence2.py: Florence2ForConditionalGeneration.forward";

/// Pixels per side that the processor of all published files makes of a picture (preprocessor_config.json: 768; its
/// image_seq_length, 577, says the same).
constexpr Count kSide = 768;
/// The architecture's parts: BART's decoder, then the tower, whose own parts are its stages.
constexpr std::size_t kTowerPart = 1;
/// The tower's first block, whose first branch is never left out.
constexpr std::uint8_t kFirst = 1;

// transformers 5.12.1 models/florence2/configuration_florence2.py: Florence2VisionConfig.
Architecture read_vision(ConfigFields& fields) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  tower.num_channels = vision.count({"in_channels"}, 3);
  tower.activation = read_activation(vision, {"activation_function"}, "gelu");
  tower.attention_bias = vision.flag({"qkv_bias"}, true);
  tower.drop_path = vision.probability({"drop_path_rate"}, 0.1);
  tower.image_size = kSide;
  Pictures& p = tower.pictures;
  p.window = vision.count({"window_size"}, 12);
  p.width = vision.count({"projection_dim"}, 1024);
  p.frames = vision.count({"max_temporal_embeddings"}, 100);
  p.positions = vision.count({"max_position_embeddings"}, 50);
  const double ratio = vision.multiplier({"mlp_ratio"}, 4.0);
  const std::vector<Count> depths = read_counts(vision, "depths", {1, 1, 9, 1}),
                           kernels = read_counts(vision, "patch_size", {7, 3, 3, 3}),
                           strides = read_counts(vision, "patch_stride", {4, 2, 2, 2}),
                           edges = read_counts(vision, "patch_padding", {3, 1, 1, 1}),
                           widths = read_counts(vision, "embed_dim", {128, 256, 512, 1024}),
                           heads = read_counts(vision, "num_heads", {4, 8, 16, 32}),
                           groups = read_counts(vision, "num_groups", {4, 8, 16, 32});
  const std::size_t stages = depths.size();
  for (const std::vector<Count>* list : {&kernels, &strides, &edges, &widths, &heads, &groups}) {
    if (list->size() == stages && stages > 0 && stages <= kMostStages) continue;
    vision.error("INVALID_VALUE", "depths", "One to four stages are modelled, and every list has one entry for each.");
    return tower;
  }
  // Only the first stage's norm is behind its convolution.
  const Value* before = vision.find({"patch_prenorm"});
  for (std::size_t i = 0; before != nullptr && i < before->items.size(); ++i) {
    if (before->items[i].kind == Value::Kind::kBool && before->items[i].boolean == (i > 0)) continue;
    vision.error("INVALID_VALUE", "patch_prenorm", "Only false in front and true behind are modelled.");
    return tower;
  }
  const Architecture like = tower;
  for (std::size_t i = 0; i < stages; ++i) {
    Architecture stage = like;
    stage.hidden_size = widths[i];
    stage.num_layers = depths[i];
    stage.num_heads = stage.num_kv_heads = heads[i];
    stage.pictures.heads = groups[i];
    stage.patch_size = kernels[i];
    stage.encoder_stride = strides[i];
    stage.norm_before = i > 0;
    stage.intermediate_size = static_cast<Count>(static_cast<double>(widths[i]) * ratio);
    if (edges[i] != kernels[i] / 2 || widths[i] % heads[i] != 0 || widths[i] % groups[i] != 0) {
      vision.error("INVALID_VALUE", "embed_dim",
                   "Stages need heads and groups that divide their width, and half a kernel of padding.");
      return tower;
    }
    stage.head_dim = widths[i] / heads[i];
    stage.layer_kinds.assign(static_cast<std::size_t>(std::clamp<Count>(depths[i], 0, 1000)), 0);
    if (i == 0) stage.layer_kinds.front() = kFirst;
    tower.parts.push_back(std::move(stage));
  }
  vision.accept({"model_type", "architectures", "torch_dtype", "dtype"});
  vision.report_unread("florence_vision");
  return tower;
}

// transformers 5.12.1 models/florence2/configuration_florence2.py: Florence2Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const Family* bart = type_named("bart");
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  bart->read(text, architecture);
  text.accept({"model_type", "architectures", "torch_dtype", "dtype"});
  text.report_unread("bart");
  architecture.language = bart->program;
  architecture.parts.push_back(read_vision(fields));
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"image_token_id", "is_encoder_decoder", "projection_dim", "vocab_size"});
  const Architecture& tower = architecture.parts.back();
  if (!has_error(fields.issues()) && tower.pictures.width != architecture.hidden_size) {
    fields.error("INVALID_VALUE", "vision_config", "\"projection_dim\" must be the language model's width.");
  }
}

/// Names of a stage's modules.
struct StageNames {
  const char *module, *convolution, *norm, *blocks;
};
constexpr StageNames kStages[kMostStages] = {
    {"vision_tower.convs.0", "vision_tower.convs.0.conv", "vision_tower.convs.0.norm", "vision_tower.blocks.0"},
    {"vision_tower.convs.1", "vision_tower.convs.1.conv", "vision_tower.convs.1.norm", "vision_tower.blocks.1"},
    {"vision_tower.convs.2", "vision_tower.convs.2.conv", "vision_tower.convs.2.norm", "vision_tower.blocks.2"},
    {"vision_tower.convs.3", "vision_tower.convs.3.conv", "vision_tower.convs.3.norm", "vision_tower.blocks.3"}};

/// Names of one of a block's two halves.
struct HalfNames {
  const char *module, *source, *conv1, *norm1, *attention, *qkv, *proj, *conv2, *norm2, *mlp, *fc1, *fc2;
};
constexpr HalfNames kSpatialNames = {"spatial_block",
                                     kSpatial,
                                     "spatial_block.conv1",
                                     "spatial_block.norm1",
                                     "spatial_block.window_attn",
                                     "spatial_block.window_attn.qkv",
                                     "spatial_block.window_attn.proj",
                                     "spatial_block.conv2",
                                     "spatial_block.norm2",
                                     "spatial_block.ffn",
                                     "spatial_block.ffn.fc1",
                                     "spatial_block.ffn.fc2"};
constexpr HalfNames kChannelNames = {"channel_block",
                                     kChannel,
                                     "channel_block.conv1",
                                     "channel_block.norm1",
                                     "channel_block.channel_attn",
                                     "channel_block.channel_attn.qkv",
                                     "channel_block.channel_attn.proj",
                                     "channel_block.conv2",
                                     "channel_block.norm2",
                                     "channel_block.ffn",
                                     "channel_block.ffn.fc1",
                                     "channel_block.ffn.fc2"};

// Behind the first norm all pictures lie with their channels last in memory, so that what the modelling file permutes
// costs nothing: here they are [n, h, w, channels], and [n, channels, h, w] for a convolution alone.

Dim places(Dim side, Count kernel, Count stride) {
  return Dim((side.n() + kernel / 2 * 2 - kernel) / stride + 1);
}

// nn.Conv2d with a bias and half a kernel of padding, of [n, channels, h, w].
Tensor convolved(Net& net, const char* name, Tensor x, Dim in, Count kernel, Count stride) {
  Scope scope(net.tape, name, net.source());
  const Dim height = places(x.dim(2), kernel, stride), width = places(x.dim(3), kernel, stride);
  Tensor weight = net.parameter(name, "weight", Shape{net.H, in, Dim(kernel), Dim(kernel)});
  Tensor bias = net.parameter(name, "bias", Shape{net.H});
  return convolution(std::move(x), std::move(weight), std::move(bias), {height, width});
}

AttentionOptions attention_options() {
  AttentionOptions options;
  options.causal = false;
  options.has_groups = false;
  options.softmax_fp32 = options.cast_back = false;
  return options;
}

// The picture cut into windows or put together again: a copy, forward and backward.
Tensor rearranged(Tensor x, const Shape& shape) {
  return view(roll(std::move(x)), shape);
}

Tensor window_attention(Net& net, const Tensor& hidden) {
  Scope in(net.tape, kSpatialNames.attention, kWindows);
  const Dim height = hidden.dim(1), width = hidden.dim(2), n = hidden.dim(0);
  const Count side = net.arch.pictures.window;
  const Count down = (height.n() + side - 1) / side, across = (width.n() + side - 1) / side;
  const Dim area(side * side), all(n.n() * down * across), padded(down * across * area.n()),
      whole(height.n() * width.n());
  const Tensor picture = pad(view(hidden, Shape{n, whole, net.H}), 1, padded.n() - whole.n());
  const Tensor windows = rearranged(picture, Shape{all, area, net.H});
  Tensor packed = net.linear(kSpatialNames.qkv, windows, Dim(3 * net.H.n()), net.arch.attention_bias);
  packed = permute(view(std::move(packed), Shape{all, area, Dim(3), net.A, net.hd}), {2, 0, 3, 1, 4});
  const Pieces parts = unbind(packed, 0);
  Tensor out = attention(net, parts.part[0], parts.part[1], parts.part[2], attention_options());
  out = net.linear(kSpatialNames.proj, std::move(out), net.H, true);
  out = rearranged(std::move(out), Shape{n, padded, net.H});
  if (padded.n() != whole.n()) out = contiguous(narrow(std::move(out), 1, 0, whole));
  return out;
}

// Columns of a head attend to each other by all their tokens: queries' last dimension is no neighbour in memory.
Tensor channel_attention(Net& net, const Tensor& hidden) {
  Scope in(net.tape, kChannelNames.attention, kChannels);
  const Dim n = hidden.dim(0), tokens(hidden.size(1) * hidden.size(2)), groups(net.arch.pictures.heads),
            columns(net.H.n() / groups.n());
  Tensor packed =
      net.linear(kChannelNames.qkv, view(hidden, Shape{n, tokens, net.H}), Dim(3 * net.H.n()), net.arch.attention_bias);
  packed = permute(view(std::move(packed), Shape{n, tokens, Dim(3), groups, columns}), {2, 0, 3, 4, 1});
  const Pieces parts = unbind(packed, 0);
  Tensor out = attention(net, parts.part[0], parts.part[1], parts.part[2], attention_options());
  out = permute(view(std::move(out), Shape{n, columns, groups, tokens}), {0, 3, 2, 1});
  out = reshape(std::move(out), Shape{n, tokens, net.H});
  return net.linear(kChannelNames.proj, std::move(out), net.H, true);
}

Tensor feed_forward(Net& net, const HalfNames& names, const Tensor& hidden) {
  Scope in(net.tape, names.mlp, kMlp);
  Tensor h = net.linear(names.fc1, hidden, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear(names.fc2, std::move(h), net.H, true);
}

// A depthwise convolution beside what it reads, then a branch behind a norm. `residual` is a name of both branches.
Tensor branch(Net& net, const HalfNames& names, const char* conv, const char* norm, Tensor hidden, Tensor& residual,
              double rate, Tensor (*run)(Net& net, const HalfNames& names, const Tensor& hidden)) {
  const Shape picture = hidden.shape();
  Tensor h = convolved(net, conv, channels_first(hidden), Dim(1), 3, 1);
  residual = add(channels_last(std::move(h)), std::move(hidden));
  const Tensor normed = net.layer_norm(norm, residual);
  const Tensor made = view(run(net, names, normed), picture);
  return add(residual, drop_path(net, made, rate));
}

Tensor half(Net& net, const HalfNames& names, const Tensor& hidden, double rate) {
  Scope in(net.tape, names.module, names.source);
  const auto attend = [](Net& n, const HalfNames& of, const Tensor& x) {
    return &of == &kSpatialNames ? window_attention(n, x) : channel_attention(n, x);
  };
  Tensor residual;
  Tensor h = branch(net, names, names.conv1, names.norm1, hidden, residual, rate, attend);
  return branch(net, names, names.conv2, names.norm2, std::move(h), residual, rate, feed_forward);
}

Tensor block(Net& net, Tensor hidden) {
  const bool first = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == kFirst;
  const Tensor mixed = half(net, kSpatialNames, hidden, first ? 0.0 : net.arch.drop_path);
  return half(net, kChannelNames, mixed, net.arch.drop_path);
}

// Florence2VisionConvEmbed.forward: pixels [n, channels, h, w] in the first stage, [n, h, w, channels] in others.
Tensor stage_input(Net& stage, const StageNames& names, Tensor hidden) {
  Scope in(stage.tape, names.module, kConvolution);
  const Count kernel = stage.arch.patch_size, stride = stage.arch.encoder_stride;
  if (!stage.arch.norm_before) {
    const Dim channels = hidden.dim(1);
    Tensor h = convolved(stage, names.convolution, std::move(hidden), channels, kernel, stride);
    return stage.layer_norm(names.norm, permute(std::move(h), {0, 2, 3, 1}));
  }
  const Dim channels = hidden.dim(3);
  Tensor h = channels_first(stage.layer_norm(names.norm, std::move(hidden)));
  return channels_last(convolved(stage, names.convolution, std::move(h), channels, kernel, stride));
}

Tensor tower(Net& net, Tensor pixels) {
  Scope in(net.tape, "vision_tower", kTower);
  const Architecture& arch = net.arch.parts[kTowerPart];
  const Dim n = pixels.dim(0);
  Dim height = pixels.dim(2), width = pixels.dim(3);
  Tensor hidden = to(std::move(pixels), net.weight_dtype(4));
  for (std::size_t i = 0; i < arch.parts.size(); ++i) {
    height = places(height, arch.parts[i].patch_size, arch.parts[i].encoder_stride);
    width = places(width, arch.parts[i].patch_size, arch.parts[i].encoder_stride);
    Net& stage = net.part(arch.parts[i], n, Dim(height.n() * width.n()));
    hidden = stage_input(stage, kStages[i], std::move(hidden));
    hidden = stage.layers({kStages[i].blocks, stage.arch.num_layers, block, false}, std::move(hidden));
  }
  return hidden;
}

// A table for rows and one for columns, side by side for each patch and once more for each picture.
Tensor positions(Net& net, const Tensor& image) {
  constexpr const char* kModule = "multi_modal_projector.image_position_embed";
  Scope in(net.tape, kModule, kPositions);
  const Dim n = image.dim(0), height = image.dim(1), width = image.dim(2), columns = image.dim(3);
  const Dim table(net.arch.parts[kTowerPart].pictures.positions), half_width(columns.n() / 2),
      rest(columns.n() - columns.n() / 2);
  const Tensor across = net.tape.allocate(Shape{width}, Dtype::kInt64, "arange");
  const Tensor down = net.tape.allocate(Shape{height}, Dtype::kInt64, "arange");
  const Tensor x = net.embedding("multi_modal_projector.image_position_embed.column_embeddings", across, table, rest);
  const Tensor y = net.embedding("multi_modal_projector.image_position_embed.row_embeddings", down, table, half_width);
  Tensor pos;
  {
    Tensor wide = repeat_rows(unsqueeze(x, 0), height), tall = repeat_rows(unsqueeze(y, 0), width);
    wide = view(std::move(wide), Shape{Dim(1), Dim(height.n() * width.n()), rest});
    tall = view(std::move(tall), Shape{Dim(1), Dim(height.n() * width.n()), half_width});
    pos = cat({&wide, &tall}, -1);
  }
  pos = repeat_rows(std::move(pos), n);
  return view(std::move(pos), image.shape());
}

Tensor projected(Net& net, Tensor given) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  Tape& t = net.tape;
  const Tensor image = std::move(given);
  const Dim n = image.dim(0), patches(image.size(1) * image.size(2)), columns = image.dim(3), one(1);
  const Pictures& p = net.arch.parts[kTowerPart].pictures;
  Tensor placed;
  {
    const Tensor pos = positions(net, image);
    placed = view(add(image, pos), Shape{n, patches, columns});
  }
  const Dtype dtype = net.buffer_dtype(net.job.recipe.weights);
  t.buffer("multi_modal_projector.visual_temporal_embed.pos_idx_to_embed", p.frames * columns.n() * size_of(dtype));
  const Tensor times = t.part_of_buffer(Shape{one, one, columns}, dtype);
  const Tensor tokens = view(add(placed, times), Shape{n, one, patches, columns});
  const Tensor whole = mean_over(tokens, 2), each = mean_over(tokens, 1);
  Tensor features = cat({&whole, &each}, 1);
  features = net.linear("multi_modal_projector.image_projection", std::move(features), Dim(p.width));
  return net.layer_norm("multi_modal_projector.image_proj_norm", std::move(features));
}

Tensor features(Net& net) {
  const Architecture& arch = net.arch.parts[kTowerPart];
  const Dim side(kSide), channels(arch.num_channels);
  Tensor pixels = net.pixel_values.defined() ? net.pixel_values
                                             : net.tape.allocate(Shape{Dim(picture_count(net)), channels, side, side},
                                                                 net.weight_dtype(4), "pixel_values");
  const Tensor last = tower(net, std::move(pixels));
  return projected(net, last);
}

Tensor merge(Net& net, Tensor embeds_in) {
  {
    const Declared alone(net);
    if (alone) features(net);
  }
  Tensor embeds = std::move(embeds_in);
  if (net.job.images_per_sample > 0) {
    net.image_hidden_states = to(features(net), embeds.dtype());
    embeds = scatter_features(net, std::move(embeds), net.image_hidden_states, kModel);
  }
  net.outer_locals.push_back(embeds);
  return embeds;
}

void inputs(Net& net) {
  seq2seq_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Dim side(kSide), channels(net.arch.parts[kTowerPart].num_channels);
  net.pixel_values = given_pixels(net, Shape{Dim(picture_count(net)), channels, side, side});
}

// loss/loss_utils.py: of this class's name comes ForCausalLMLoss, which converts the logits and shifts the labels.
Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  Tensor logits = program.lm_head(net, std::move(hidden));
  Outputs out;
  {
    Scope in(net.tape, "loss", kHead);
    Tensor wide = to(logits, Dtype::kFp32);
    const Dim rows = net.labels.dim(0), length = net.labels.dim(1);
    Tensor padded = net.tape.allocate(Shape{rows, Dim(length.n() + 1)}, Dtype::kInt64, "labels padded");
    Tensor shifted = net.tape.allocate(Shape{rows, length}, Dtype::kInt64, "shift_labels");
    padded.reset();
    const Tensor labels = std::exchange(net.labels, std::move(shifted));
    out.loss = plain_cross_entropy(net, std::move(wide));
    net.labels = labels;
  }
  out.rest = {std::move(logits)};
  if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
  return with_encoder_states(net, std::move(out));
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.images_per_sample == 0) return;
  if (wants_flash(job)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/attention",
                      "The tower attends among channels, with as many columns as a picture has patches: FlashAttention "
                      "refuses more than 256 of them. Use \"sdpa\".",
                      "sdpa"});
  }
  if (job.images_per_sample > 1) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/images_per_sample",
                      "Florence2Processor takes one picture for each text.", "1"});
  }
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, conditional_generation}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}};

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .check = check};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kNotTower, .pictures = PictureRule::kOwnSize};

}  // namespace

const Family kRows[] = {
    {"florence2", "Florence2", "Florence2ForConditionalGeneration", kClasses, read_config, &kProgram,
     "model.encoder.layers", kFacts},
};

extern const FamilyRows florence2_rows;
const FamilyRows florence2_rows = kRows;

}  // namespace tidemark
