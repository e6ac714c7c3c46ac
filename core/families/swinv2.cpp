// Swin V2: attention by the angle between queries and keys, biased by a small network's view of the distance, norms
// behind each branch. And Donut's Swin, whose class writes the same stages out with the first Swin's attention.
#include <algorithm>
#include <array>
#include <string>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/swin_stages.hpp"
#include "core/families/towers.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

namespace {
constexpr Count kMostBlocks = 64;  // of a stage
constexpr Count kBiasWidth = 512;  // nn.Linear(2, 512) of Swinv2SelfAttention
constexpr Count kCoordinates = 2;  // of a distance: rows and columns
}  // namespace

void read_swin_stages(ConfigFields& fields, Architecture& architecture) {
  if (!read_swin(fields, architecture)) return;
  architecture.num_layers = static_cast<Count>(architecture.parts.size());
  for (std::size_t i = 0; i < architecture.parts.size(); ++i) {
    if (architecture.parts[i].num_layers > kMostBlocks) {
      fields.error("INVALID_VALUE", "depths", "Stages of up to 64 layers are modelled.");
      return;
    }
    architecture.layer_kinds.push_back(static_cast<std::uint8_t>(i));  // no stage is like another
  }
  fields.accept({"hidden_size", "num_layers"});
}

namespace {

void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.image_size = square_side(fields, "image_size", 224);
  read_swin_stages(fields, architecture);
  const Count last = static_cast<Count>(architecture.parts.size()) - 1;
  if (last >= 0 && (architecture.image_size / architecture.patch_size) >> last < 1) {
    fields.error("INVALID_VALUE", "image_size", "The picture is too small for its last stage.");
  }
  fields.accept({"pretrained_window_sizes"});  // what the table of distances is divided by
}

constexpr const char* kEmbeddings = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2Embeddings.forward";
constexpr const char* kStage = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2Stage.forward";
constexpr const char* kLayer = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2Layer.forward";
constexpr const char* kMask = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2Layer.get_attn_mask";
constexpr const char* kAttention = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2SelfAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2Intermediate.forward";
constexpr const char* kMerging = "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2PatchMerging.forward";
constexpr const char* kHead =
    "transformers 5.12 models/swinv2/modeling_swinv2.py: Swinv2ForImageClassification.forward";
constexpr const char* kDonutLayer = "transformers 5.12 models/donut/modeling_donut_swin.py: DonutSwinLayer.forward";
constexpr const char* kDonutAttention =
    "transformers 5.12 models/donut/modeling_donut_swin.py: DonutSwinSelfAttention.forward";

/// Modules of a block, by their places in the stage.
struct BlockNames {
  std::string attention, scale, mlp_in, mlp_out, coordinates, index, query, key, value, output, before, after,
      intermediate, dense;
};

const BlockNames& names_of(std::size_t block) {
  static const std::array<BlockNames, kMostBlocks> names = [] {
    std::array<BlockNames, kMostBlocks> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string at = "blocks." + std::to_string(i) + ".", self = at + "attention.self";
      all[i] = {self,
                self,
                self + ".continuous_position_bias_mlp.0",
                self + ".continuous_position_bias_mlp.2",
                self + ".relative_coords_table",
                self + ".relative_position_index",
                self + ".query",
                self + ".key",
                self + ".value",
                at + "attention.output.dense",
                at + "layernorm_before",
                at + "layernorm_after",
                at + "intermediate.dense",
                at + "output.dense"};
    }
    return all;
  }();
  return names[block];
}

bool is_second(const Net& net) {
  return net.arch.model_type == "swinv2";
}

/// How a block's picture falls into windows.
struct Windows {
  Count rows = 0, columns = 0;  ///< of the picture
  Count height = 0, width = 0;  ///< padded to whole windows
  Count side = 0;               ///< of a window
  bool shifted = false;
  Dim area() const { return Dim(side * side); }
  Count count() const { return (height / side) * (width / side); }
  bool padded() const { return height != rows || width != columns; }
};

// The job's pictures, or the model's own: stages know the width of one that is no square (donut.cpp).
PictureSize picture_of(const Architecture& a, const TrainingJob& job) {
  if (job.image_height > 0) return {job.image_height, job.image_width};
  return {a.image_size, a.parts.front().image_size};
}

// Rows and columns of the picture that stage i gets.
PictureSize grid_of(const Architecture& a, const TrainingJob& job, std::size_t i) {
  const PictureSize size = picture_of(a, job);
  PictureSize grid{size.height / a.patch_size, size.width / a.patch_size};
  for (std::size_t k = 0; k < i; ++k) grid = {(grid.height + 1) / 2, (grid.width + 1) / 2};
  return grid;
}

// Swinv2Layer._compute_window_shift goes by the configuration's picture, DonutSwinLayer.set_shift_and_window_size by
// the one that is there.
Windows windows_of(const Net& net, std::size_t i, std::size_t block) {
  const PictureSize grid = grid_of(net.arch, net.job, i);
  const Count asked = net.arch.pictures.window;
  const Count own = net.arch.image_size / net.arch.patch_size >> i;
  const Count smaller = is_second(net) ? own : std::min(grid.height, grid.width);
  Windows w;
  w.rows = grid.height;
  w.columns = grid.width;
  w.side = std::min(smaller, asked);
  w.shifted = smaller > asked && asked > 1 && block % 2 == 1;
  w.height = (w.rows + w.side - 1) / w.side * w.side;
  w.width = (w.columns + w.side - 1) / w.side * w.side;
  return w;
}

// Tokens of different neighbourhoods that a shift has brought into one window: [windows, area, area]. Swin V2 makes it
// on the host.
Tensor shift_mask(Net& net, const Windows& w, Dtype dtype) {
  if (!w.shifted) return {};
  Scope in(net.tape, "", kMask);
  if (is_second(net)) return net.tape.allocate(Shape{Dim(w.count()), w.area(), w.area()}, dtype, "to");
  return swin_mask(net, {w.height, w.width}, w.count(), w.area(), dtype);
}

// torch.nn.functional.normalize(x, dim=-1)
Tensor normalized(const Tensor& x) {
  Shape row = x.shape();
  row.dims[row.rank - 1] = Dim(1);
  row.make_contiguous();
  const Tensor norm = expand(clamp(vector_norm(x, row)), x.shape());
  return div(x, norm);
}

// The index of each pair of a window's tokens, of which there are `pairs`.
Tensor pair_index(Net& net, const char* name, Dim pairs) {
  net.tape.buffer(name, size_of(Dtype::kInt64) * pairs.n());
  return net.tape.part_of_buffer(Shape{pairs}, Dtype::kInt64);
}

// self.continuous_position_bias_mlp(self.relative_coords_table).view(-1, heads)
Tensor distances(Net& net, const BlockNames& names, Count side, Dim heads) {
  const Dim across(2 * side - 1);
  const Shape shape{Dim(1), across, across, Dim(kCoordinates)};
  const Dtype dtype = net.buffer_for_product(net.weight_dtype(2));
  net.tape.buffer(names.coordinates.c_str(), size_of(dtype) * across.n() * across.n() * kCoordinates);
  Tensor h = net.linear(names.mlp_in.c_str(), net.tape.part_of_buffer(shape, dtype), Dim(kBiasWidth), true);
  h = relu_in_place(std::move(h));
  h = net.linear(names.mlp_out.c_str(), std::move(h), heads);
  return view(std::move(h), Shape{Dim(across.n() * across.n()), heads});
}

Tensor cosine_scores(Net& net, const BlockNames& names, const Tensor& q, const Tensor& k, Count side) {
  const Dim heads = q.dim(1);
  Tensor scores;
  {
    const Tensor query = normalized(q);
    const Tensor key = normalized(k);
    scores = matmul(query, transpose(key, 2, 3));
  }
  const Tensor scale = exp(clamp(net.parameter(names.scale.c_str(), "logit_scale", Shape{heads, Dim(1), Dim(1)})));
  scores = mul(scores, scale);
  const Tensor table = distances(net, names, side, heads);
  const Dim area(side * side);
  const Tensor index = pair_index(net, names.index.c_str(), Dim(area.n() * area.n()));
  Tensor bias = swin_biases(table, index, area, heads);
  bias = mul_scalar(sigmoid(std::move(bias)));
  return add(scores, bias);
}

Tensor dot_scores(Net& net, const BlockNames& names, const Tensor& q, const Tensor& k) {
  const Count asked = net.arch.pictures.window;
  const Dim area(asked * asked), rows((2 * asked - 1) * (2 * asked - 1));
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(scores);
  const Tensor index = pair_index(net, names.index.c_str(), Dim(area.n() * area.n()));
  const Tensor table = net.parameter(names.attention.c_str(), "relative_position_bias_table", Shape{rows, q.dim(1)});
  return add(scores, swin_biases(table, index, area, q.dim(1)));
}

Tensor masked(const Tensor& scores, const Tensor& mask) {
  const Dim windows = mask.dim(0), heads = scores.dim(1), area = scores.dim(2);
  const Shape five{Dim(scores.size(0) / windows.n()), windows, heads, area, area};
  return view(add(view(scores, five), unsqueeze(unsqueeze(mask, 1), 0)), scores.shape());
}

Tensor attend(Net& net, const Architecture& stage, const BlockNames& names, const Tensor& x, const Windows& w,
              const Tensor& mask) {
  const bool second = is_second(net);
  Scope in(net.tape, names.attention.c_str(), second ? kAttention : kDonutAttention);
  const Dim heads(stage.num_heads), width(stage.hidden_size);
  const Shape four{x.dim(0), w.area(), heads, Dim(stage.head_dim)};
  const bool bias = stage.attention_bias;
  const Tensor q = transpose(view(net.linear(names.query.c_str(), x, width, bias), four), 1, 2);
  const Tensor k = transpose(view(net.linear(names.key.c_str(), x, width, bias && !second), four), 1, 2);
  const Tensor v = transpose(view(net.linear(names.value.c_str(), x, width, bias), four), 1, 2);
  Tensor scores = second ? cosine_scores(net, names, q, k, w.side) : dot_scores(net, names, q, k);
  if (mask.defined()) {
    scores = masked(scores, mask);
    if (second) scores = masked(scores, mask);  // twice, as the file has it
  }
  Tensor probabilities = softmax(scores);
  probabilities = dropout(probabilities, stage.attention_dropout);
  Tensor out = permute(matmul(probabilities, v), {0, 2, 1, 3});
  out = contiguous(std::move(out));
  return view(std::move(out), Shape{x.dim(0), w.area(), width});
}

// The picture cut into windows or put together again: a copy, but for a single window.
Tensor rearranged(Tensor x, const Windows& w, const Shape& shape) {
  return view(w.count() == 1 ? std::move(x) : roll(std::move(x)), shape);
}

// The block's name for x lives until this returns.
Tensor intermediate(Net& net, const Architecture& stage, const BlockNames& names, const Tensor& x) {
  Scope in(net.tape, names.intermediate.c_str(), kMlp);
  Tensor wide = net.linear(names.intermediate.c_str(), x, Dim(stage.intermediate_size), true);
  return activate(stage.activation, std::move(wide));
}

Tensor block(Net& net, std::size_t stage_index, std::size_t number, const Tensor& shortcut) {
  const Architecture& stage = net.arch.parts[stage_index];
  const BlockNames& names = names_of(number);
  const bool second = is_second(net);
  Scope in(net.tape, "", second ? kLayer : kDonutLayer);
  const Windows w = windows_of(net, stage_index, number);
  const double rate = stage_index == 0 && number == 0 ? 0.0 : stage.drop_path;
  const Dim batch = shortcut.dim(0), tokens = shortcut.dim(1), width = shortcut.dim(2), padded(w.height * w.width);
  Tensor h = second ? shortcut : net.layer_norm(names.before.c_str(), shortcut);
  h = pad(std::move(h), 1, padded.n() - tokens.n());
  const Tensor shifted = w.shifted ? roll(h) : h;
  const Tensor cut = rearranged(shifted, w, Shape{Dim(batch.n() * w.count()), w.area(), width});
  const Tensor mask = shift_mask(net, w, h.dtype());
  Tensor attended;
  {
    const Tensor context = attend(net, stage, names, cut, w, mask);
    attended = net.linear(names.output.c_str(), context, width, true);
    attended = dropout(std::move(attended), stage.attention_dropout);
  }
  const Tensor put = rearranged(attended, w, Shape{batch, padded, width});
  Tensor whole = w.shifted ? roll(put) : put;
  if (w.padded()) whole = contiguous(narrow(std::move(whole), 1, 0, tokens));
  h = second ? net.layer_norm(names.before.c_str(), whole) : whole;
  {
    const Tensor kept = drop_path(net, h, rate);
    h = add(shortcut, kept);
  }
  Tensor out;
  {
    const Tensor wide = intermediate(net, stage, names, second ? h : net.layer_norm(names.after.c_str(), h));
    out = net.linear(names.dense.c_str(), wide, width, true);
    out = dropout(std::move(out), stage.residual_dropout);
  }
  if (second) {
    Tensor normed = net.layer_norm(names.after.c_str(), out);
    const Tensor kept = drop_path(net, std::move(normed), rate);
    return add(h, kept);
  }
  return add(h, out);
}

// Four neighbours beside each other, through a matrix: half as high and wide, twice as many columns.
Tensor merged(Net& net, const Tensor& hidden, PictureSize grid) {
  Scope in(net.tape, "downsample", kMerging);
  const Dim batch = hidden.dim(0), width = hidden.dim(2);
  const Dim down((grid.height + 1) / 2), right((grid.width + 1) / 2);
  Tensor whole = hidden;
  const Count even = 4 * down.n() * right.n();
  if (even != grid.height * grid.width) whole = pad(std::move(whole), 1, even - grid.height * grid.width);
  const Tensor picture = view(whole, Shape{batch, Dim(2 * down.n()), Dim(2 * right.n()), width});
  std::vector<Tensor> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(narrow(narrow(picture, 1, 0, down), 2, 0, right));
  Tensor x = view(cat(parts, -1), Shape{batch, Dim(down.n() * right.n()), Dim(4 * width.n())});
  const Dim out(2 * width.n());
  if (is_second(net)) {
    x = net.linear("downsample.reduction", std::move(x), out);
    return net.layer_norm("downsample.norm", std::move(x));
  }
  x = net.layer_norm("downsample.norm", std::move(x));
  return net.linear("downsample.reduction", std::move(x), out);
}

Tensor stage(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kStage);
  const auto i = static_cast<std::size_t>(net.layer_index);
  const auto blocks = static_cast<std::size_t>(net.arch.parts[i].num_layers);
  for (std::size_t k = 0; k < blocks; ++k) hidden = block(net, i, k, hidden);
  const Tensor before = hidden;
  if (net.layer_index + 1 < net.arch.num_layers) hidden = merged(net, before, grid_of(net.arch, net.job, i));
  net.attn_weights = before;  // among what it returns
  net.return_weights();
  return hidden;
}

// Swinv2PatchEmbeddings.forward. It returns a tuple, of which no hook can ask for a gradient (PEFT's raises an error):
// checkpoints do without, if the adapter is there before they are turned on.
Tensor patches(Net& net, const char* name) {
  Scope in(net.tape, name, kEmbeddings);
  const Dim side(net.arch.patch_size), width(net.arch.parts.front().hidden_size);
  Tensor weight = net.parameter(name, "weight", Shape{width, Dim(net.arch.num_channels), side, side});
  Tensor bias = net.parameter(name, "bias", Shape{width});
  Tensor h = patch_convolution(net.input_ids, std::move(weight), std::move(bias));
  const Shape rows{h.dim(0), width, Dim(h.size(2) * h.size(3))};
  return transpose(view(std::move(h), rows), 1, 2);
}

}  // namespace

Tensor swin_encode(Net& net, const SwinNames& names) {
  Tensor hidden;
  {
    Scope in(net.tape, names.embeddings, kEmbeddings);
    hidden = patches(net, names.projection);
    hidden = net.layer_norm(names.norm, std::move(hidden));
    hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  }
  net.model_locals = {hidden};
  hidden = net.layers({names.layers, net.arch.num_layers, stage}, std::move(hidden));
  net.outputs_weights.reset();
  return hidden;
}

void swin_pictures(Net& net) {
  const PictureSize size = picture_of(net.arch, net.job);
  net.S = Dim(1, Symbol::kSequence);  // no batch of these is told by a sequence
  net.T = Dim(net.B.n(), Symbol::kTokens);
  net.input_ids = given_pixels(net, Shape{net.B, Dim(net.arch.num_channels), Dim(size.height), Dim(size.width)});
}

void refuse_hooked_tuple(const TrainingJob& job, Issues& issues) {
  if (job.use_reentrant && job.checkpointing != Checkpointing::kNone && job.has_adapter()) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/use_reentrant",
                      "Re-entrant checkpoints need an input that requires a gradient, and PEFT's hook for it fails "
                      "here: the patch embeddings return a tuple. Use \"use_reentrant\": false.",
                      "false"});
  }
}

void check_swin_stages(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.image_height > 0 && (job.image_height % a.patch_size != 0 || job.image_width % a.patch_size != 0)) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                      "Pictures of whole patches, of " + std::to_string(a.patch_size) + " pixels a side, are modelled.",
                      "256"});
  }
  const bool second = a.model_type == "swinv2";
  for (Count i = 0; !second && i < a.num_layers; ++i) {
    const PictureSize grid = grid_of(a, job, static_cast<std::size_t>(i));
    if (std::min(grid.height, grid.width) >= a.pictures.window) continue;
    issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                      "The last stage of this picture has less than a window of " + std::to_string(a.pictures.window) +
                          " patches a side, for which the class has no table of distances: take larger pictures.",
                      "1280"});
    break;
  }
  refuse_hooked_tuple(job, issues);
}

namespace {

constexpr SwinNames kNames = {"swinv2.embeddings", "swinv2.embeddings.patch_embeddings.projection",
                              "swinv2.embeddings.norm", "swinv2.encoder.layers"};

void inputs(Net& net) {
  picture_batch(net, Dim(1));
}

Tensor forward(Net& net) {
  Tensor out = net.layer_norm("swinv2.layernorm", swin_encode(net, kNames));
  net.leaves.push_back(out);
  return mean_over(std::move(out), 1);
}

Outputs image_classification(Net& net, const Program&, Tensor pooled) {
  Scope in(net.tape, "", kHead);
  return pooled_classes(net, "classifier", std::move(pooled));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {
    .forward = forward, .heads = kHeads, .inputs = inputs, .attention = kEagerAlone, .check = check_swin_stages};

constexpr ClassFacts kFacts = {
    .flex_attention = false, .text_input = false, .hooks_embeddings = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"swinv2", "Swinv2", "Swinv2ForImageClassification", kClasses, read_config, &kProgram, "swinv2.encoder.layers",
     kFacts},
};

extern const FamilyRows swinv2_rows;
const FamilyRows swinv2_rows = kRows;

}  // namespace tidemark
