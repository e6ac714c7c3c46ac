#include "core/layers/vision.hpp"

#include <algorithm>
#include <vector>

#include "core/job/recipe.hpp"

namespace tidemark {
namespace {

constexpr const char* kPatches = "transformers 5.12 models/clip/modeling_clip.py: CLIPVisionEmbeddings.forward";
constexpr const char* kClip = "transformers 5.12 models/clip/modeling_clip.py: CLIPEncoderLayer.forward";

Tensor tower_attention(Net& net, Tensor hidden, const TowerLayer& names) {
  Scope in(net.tape, "self_attn", names.source);
  const Tensor x = std::move(hidden);
  Tensor q = net.linear(names.q, x, net.Q, true);
  Tensor k = net.linear(names.k, x, net.Q, true);
  Tensor v = net.linear(names.v, x, net.Q, true);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  if (names.turn != nullptr) names.turn(net, q, k);
  AttentionOptions options;
  options.softmax_fp32 = options.cast_back = !names.narrow_softmax;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  const Tensor out = attention(net, q, k, v, options);
  return net.linear(names.out, out, net.H, true);
}

Tensor tower_mlp(Net& net, Tensor hidden, const TowerLayer& names) {
  Scope in(net.tape, "mlp", names.source);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear(names.fc1, x, net.F, true);
  {
    Scope act(net.tape, "mlp.activation_fn", names.source);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear(names.fc2, std::move(h), net.H, true);
}

}  // namespace

const TowerLayer kClipLayer = {kClip,
                               {"layer_norm1", "layer_norm2"},
                               "self_attn.q_proj",
                               "self_attn.k_proj",
                               "self_attn.v_proj",
                               "self_attn.out_proj",
                               "mlp.fc1",
                               "mlp.fc2"};

PictureSize picture_size(const Net& net) {
  if (net.job.image_height > 0 && net.job.images_per_sample > 0) return {net.job.image_height, net.job.image_width};
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  return {tower.image_size, tower.image_size};
}

PictureSize own_picture_size(const Net& net) {
  if (net.job.image_height > 0) return {net.job.image_height, net.job.image_width};
  const std::vector<Count>& sides = net.arch.pictures.grids;
  if (sides.size() == 2) return {sides[0], sides[1]};
  return {net.arch.image_size, net.arch.image_size};
}

Tensor given_pixels(Net& net, const Shape& shape, const char* name) {
  const DataParallel& how = net.job.data_parallel;
  const Recipe& seen = net.job.recipe;  // weights as they are gathered
  const bool wide = named_recipe(seen.name).value_or(seen).weights == Dtype::kFp32;
  const bool casts = how.is_sharded() && is_fsdp(how.sharding) && wide && is_half(seen.weights);
  if (casts) net.more_inputs.push_back(net.tape.allocate(shape, Dtype::kFp32, name));
  return net.tape.allocate(shape, net.weight_dtype(shape.rank), casts ? "_to_copy" : name);
}

void picture_batch(Net& net, Dim tokens) {
  const PictureSize size = own_picture_size(net);
  net.S = Dim(tokens.n(), Symbol::kSequence);
  net.T = Dim(net.B.n() * tokens.n(), Symbol::kTokens);
  net.input_ids = given_pixels(net, Shape{net.B, Dim(net.arch.num_channels), Dim(size.height), Dim(size.width)});
  if (net.arch.head == Head::kImageClassification) class_labels(net);
}

// Dinov2DropPath.forward and its like.
Tensor drop_path(Net& net, Tensor x_in, double rate) {
  if (rate <= 0.0) return x_in;
  const Tensor x = std::move(x_in);
  Shape one = x.shape();
  for (int i = 1; i < one.rank; ++i) one.dims[i] = Dim(1);
  one.make_contiguous();
  Tensor random = net.tape.allocate(one, x.dtype(), "rand");
  random = net.tape.allocate(one, x.dtype(), "add");
  random = net.tape.allocate(one, x.dtype(), "floor");
  Tensor kept = mul_scalar(x);
  return mul(std::move(kept), random);
}

Count picture_count(const Net& net) {
  const Count rows = net.job.micro_batch_size * answers_per_sample(net.job.preference);
  return std::max<Count>(1, rows * net.job.images_per_sample);
}

void picture_inputs(Net& net, Dim n, PictureSize size) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Dim channels(net.arch.parts.front().num_channels);
  net.pixel_values = given_pixels(net, Shape{n, channels, Dim(size.height), Dim(size.width)});
}

Count tile_count(const Net& net) {
  return picture_count(net) * std::max<Count>(1, net.job.image_tiles);
}

void tile_inputs(Net& net) {
  const Count side = net.arch.parts.front().image_size;
  picture_inputs(net, Dim(tile_count(net)), {side, side});
}

void integer_input(Net& net, const Shape& shape, const char* name) {
  if (net.job.images_per_sample == 0) return;
  net.more_inputs.push_back(net.tape.allocate(shape, Dtype::kInt64, name));
}

Tensor language_head(Net& net, Tensor hidden) {
  return net.arch.language->lm_head(net, std::move(hidden));
}

Declared::Declared(Net& net, bool declared)
    : tape_(net.tape),
      declared_(declared),
      grad_before_(net.tape.grad_enabled()),
      stopped_before_(net.tape.stopped()),
      alone_before_(net.tape.declares_alone()),
      card_before_(net.tape.card()) {
  if (!declared_) return;
  tape_.set_stopped(true);
  tape_.set_declares_alone(true);
  tape_.set_grad_enabled(false);
}

Declared::~Declared() {
  if (!declared_) return;
  tape_.set_stopped(stopped_before_);
  tape_.set_declares_alone(alone_before_);
  tape_.set_grad_enabled(grad_before_);
  tape_.go_to_card(card_before_);
}

Tensor scatter_features(Net& net, Tensor embeds_in, Tensor features_in, const char* source) {
  Scope in(net.tape, "", source);
  features_in = to_card(std::move(features_in), net.tape.card_of(embeds_in));
  const Tensor features = to(std::move(features_in), embeds_in.dtype());
  Tensor mask = net.tape.allocate(Shape{net.B, net.S}, Dtype::kBool, "eq");
  mask = unsqueeze(std::move(mask), -1);
  if (net.job.images_per_sample > 0) net.picture_tokens = features.numel() / features.size(-1) / net.B.n();
  net.outer_locals.push_back(features);
  net.outer_locals.push_back(mask);
  return masked_scatter(std::move(embeds_in), std::move(mask), features);
}

Tensor tower_layer(Net& net, Tensor hidden, const TowerLayer& names) {
  Scope in(net.tape, "", names.source);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm(names.norms[0], residual);
  h = tower_attention(net, std::move(h), names);
  h = add(residual, std::move(h));
  residual = h;
  h = net.layer_norm(names.norms[1], std::move(h));
  h = tower_mlp(net, std::move(h), names);
  return add(std::move(residual), std::move(h));
}

Tensor clip_layer(Net& net, Tensor hidden) {
  return tower_layer(net, std::move(hidden), kClipLayer);
}

Tensor patch_embedding(Net& net, const char* name, Tensor pixels_in, bool bias) {
  Scope in(net.tape, name, kPatches);
  const Dim side(net.arch.patch_size);
  Tensor weight = net.parameter(name, "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor b = bias ? net.parameter(name, "bias", Shape{net.H}) : Tensor();
  Tensor pixels = to(std::move(pixels_in), weight.dtype());
  Tensor patches = patch_convolution(std::move(pixels), std::move(weight), std::move(b));
  patches = net.hooked_inputs(std::move(patches));
  const Shape rows{patches.dim(0), net.H, Dim(patches.size(2) * patches.size(3))};
  patches = view(std::move(patches), rows);
  return transpose(std::move(patches), 1, 2);
}

Tensor picture_positions(Net& net, const char* name, Count rows) {
  Scope in(net.tape, name, kPatches);
  net.tape.buffer("position_ids", rows * size_of(Dtype::kInt64));
  const Tensor ids = net.tape.part_of_buffer(Shape{Dim(1), Dim(rows)}, Dtype::kInt64);
  return net.embedding(name, ids, Dim(rows), net.H);
}

Tensor keep_hidden(Net& net, Tensor hidden) {
  net.handed_out.emplace_back(net.tape.instance(), hidden);
  const std::vector<Count>& wanted = net.arch.pictures.layers;
  const auto times = static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), net.layer_index));
  net.model_locals.insert(net.model_locals.end(), times, hidden);
  return hidden;
}

}  // namespace tidemark
