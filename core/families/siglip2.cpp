// SigLIP 2 in its own form: SigLIP's two towers, of which that of pictures takes any shape: each is cut into at most so
// many patches, the table of positions is resized to it, and what is behind them is padding.
#include <algorithm>
#include <cmath>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

// transformers 5.12.1 models/siglip2/configuration_siglip2.py: Siglip2VisionConfig. `vision_use_head` is no key of the
// class, which takes it for true where it is absent.
void read_siglip2_tower(ConfigFields& fields, Architecture& tower) {
  read_tower_sizes(fields, tower, 768, 12, 12, 3072);
  tower.patch_size = square_side(fields, "patch_size", 16);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.pictures.positions = fields.count({"num_patches"}, 256);
  tower.pooler_size = fields.flag({"vision_use_head"}, true) ? tower.hidden_size : 0;
  fields.accept({"model_type", "layer_norm_eps", "torch_dtype", "dtype"});
  fields.report_unread("siglip2_vision_model");
}

namespace {

constexpr const char* kTower = "transformers 5.12 models/siglip2/modeling_siglip2.py: Siglip2VisionModel.forward";
constexpr const char* kEmbeddings =
    "transformers 5.12 models/siglip2/modeling_siglip2.py: Siglip2VisionEmbeddings.forward";
constexpr const char* kHead =
    "transformers 5.12 models/siglip2/modeling_siglip2.py: Siglip2MultiheadAttentionPoolingHead.forward";
constexpr const char* kModel = "transformers 5.12 models/siglip2/modeling_siglip2.py: Siglip2Model.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/siglip2/modeling_siglip2.py: Siglip2ForImageClassification.forward";

/// Siglip2ImageProcessor's defaults (transformers 5.12.1 models/siglip2/image_processing_siglip2.py).
constexpr Count kMostPatches = 256;
constexpr double kPrecision = 1e-5, kLargestScale = 100.0;

// get_image_size_for_max_num_patches: the largest scale of the picture whose patches are not too many, by halving.
PatchGrid fitted(PictureSize size, Count patch) {
  const auto side = [&](double scale, Count pixels) {
    const double patches = std::ceil(static_cast<double>(pixels) * scale / static_cast<double>(patch));
    return std::max<Count>(1, static_cast<Count>(patches));
  };
  double low = kPrecision / 10, high = kLargestScale;
  while (high - low >= kPrecision) {
    const double scale = (low + high) / 2;
    (side(scale, size.height) * side(scale, size.width) <= kMostPatches ? low : high) = scale;
  }
  return {side(low, size.height), side(low, size.width)};
}

bool is_padded(const Net& net, const std::vector<PatchGrid>& all) {
  return std::any_of(all.begin(), all.end(), [&](const PatchGrid& p) { return p.height * p.width < net.S.n(); });
}

// Siglip2VisionEmbeddings.resize_positional_embeddings: each piece's rows are written in place, then what is behind
// them.
Tensor positions(Net& net, const std::vector<PatchGrid>& all) {
  const char* const kTable = "vision_tower.embeddings.position_embedding";
  const auto side = static_cast<Count>(std::sqrt(static_cast<double>(net.arch.pictures.positions)));
  const Tensor weight = net.parameter(kTable, "weight", Shape{Dim(net.arch.pictures.positions), net.H});
  const Dim edge(side);
  Tensor table = unsqueeze(permute(view(weight, Shape{edge, edge, net.H}), {2, 0, 1}), 0);
  Tensor result = net.tape.allocate(Shape{net.B, net.S, net.H}, weight.dtype(), "empty");
  for (const PatchGrid& piece : all) {
    const Dim rows(piece.height * piece.width), rest(std::max<Count>(net.S.n() - rows.n(), 1));
    Tensor wide = interpolate(table, Shape{Dim(1), net.H, Dim(piece.height), Dim(piece.width)});
    wide = transpose(view(std::move(wide), Shape{net.H, rows}), 0, 1);
    wide = to(std::move(wide), weight.dtype());
    result = copy_into(std::move(result), Shape{rows, net.H}, wide);
    result = copy_into(std::move(result), Shape{rest, net.H}, expand(narrow(wide, 0, 0, Dim(1)), Shape{rest, net.H}));
  }
  return result;
}

// create_bidirectional_mask, for one head: what is behind a picture's patches is no key.
Tensor key_mask(Net& net, const Tensor& embeds, Dim queries) {
  const Shape scores{net.B, Dim(1), queries, net.S};
  Tensor mask = net.tape.allocate(scores, Dtype::kBool, "padding mask (bool)");
  if (net.job.attention == AttentionKernel::kEager) mask = net.tape.allocate(scores, embeds.dtype(), "eager mask");
  return mask;
}

// The same of the head's one query, for each of its heads, as numbers that nn.MultiheadAttention adds.
Tensor head_mask(Net& net, bool padded) {
  if (!padded) return {};
  Scope in(net.tape, "vision_tower.head", kHead);
  const Tensor probe = net.tape.part_of_buffer(Shape{Dim(1)}, net.weight_dtype(3));
  Tensor mask = key_mask(net, probe, Dim(1));
  const Dim rows(net.B.n() * net.A.n()), one(1);
  mask = net.tape.allocate(Shape{rows, one, net.S}, mask.dtype(), "repeat");
  if (mask.dtype() == Dtype::kBool) mask = net.tape.allocate(Shape{rows, one, net.S}, net.weight_dtype(3), "where");
  return mask;
}

}  // namespace

Tensor siglip2_tower(Net& net, const std::vector<PatchGrid>& all) {
  Scope in(net.tape, "vision_tower", kTower);
  Tensor hidden;
  {
    Scope embeddings(net.tape, "vision_tower.embeddings", kEmbeddings);
    hidden =
        net.linear("vision_tower.embeddings.patch_embedding", to(net.pixel_values, net.weight_dtype(2)), net.H, true);
    hidden = net.hooked_inputs(std::move(hidden));
    const Tensor places = positions(net, all);
    hidden = add(std::move(hidden), places);
  }
  const bool padded = is_padded(net, all);
  if (padded && !wants_flash(net.job)) net.shared.causal_mask = key_mask(net, hidden, net.S);
  const Tensor embeds = hidden, mask = net.shared.causal_mask;  // names of the forward's
  hidden = net.layers({"vision_tower.encoder.layers", net.arch.num_layers, clip_layer}, std::move(hidden));
  net.shared = {};
  hidden = net.layer_norm("vision_tower.post_layernorm", std::move(hidden));
  if (net.arch.pooler_size > 0) net.outer_locals.push_back(siglip_head(net, hidden, head_mask(net, padded)));
  return hidden;
}

namespace {

// transformers 5.12.1 models/siglip2/configuration_siglip2.py: Siglip2Config. The text's part may be left to its
// defaults.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const Value nothing{Value::Kind::kObject};
  const Value* given = object_in(fields, "text_config");
  ConfigFields text(given != nullptr ? *given : nothing, fields.path() + "/text_config", fields.issues());
  read_siglip_text(text, architecture);
  text.report_unread("siglip2");
  architecture.positions_by_token = true;
  architecture.body_prefix = "";
  fields.accept({"initializer_factor"});
  Architecture tower;
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  read_siglip2_tower(vision, tower);
  // A picture whose size is not stated is a square that has all patches.
  architecture.image_size = tower.patch_size * static_cast<Count>(std::sqrt(static_cast<double>(kMostPatches)));
  architecture.parts.push_back(std::move(tower));
}

PatchGrid grid(const Net& net) {
  return fitted(own_picture_size(net), net.arch.parts.front().patch_size);
}

void inputs(Net& net) {
  const Architecture& tower = net.arch.parts.front();
  if (net.arch.head == Head::kNone) pair_texts(net);
  const Dim patches(kMostPatches), numbers(tower.num_channels * tower.patch_size * tower.patch_size);
  net.pixel_values = net.tape.allocate(Shape{net.B, patches, numbers}, Dtype::kFp32, "pixel_values");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, patches}, Dtype::kInt32, "pixel_attention_mask"));
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, Dim(2)}, Dtype::kInt64, "spatial_shapes"));
  if (net.arch.head != Head::kNone) class_labels(net);
}

// The tower's last hidden state and, in the last of `leaves`, what its head makes of it.
Tensor pictures(Net& net) {
  Net& tower = net.part(net.arch.parts.front(), net.B, Dim(kMostPatches));
  tower.pixel_values = net.pixel_values;
  // A loop over the pictures: other batches have other operations.
  const std::vector<PatchGrid> all(static_cast<std::size_t>(net.tape.quotient(net.B.n(), 1)), grid(net));
  Tensor hidden = siglip2_tower(tower, all);
  tower.pixel_values.reset();
  return siglip_pooled(net, tower, std::move(hidden));
}

Tensor forward(Net& net) {
  return siglip_forward(net, kModel, pictures);
}

// The mean over those patches that are none of the padding.
Outputs image_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Tensor mask = unsqueeze(net.more_inputs.front(), -1);
  Tensor sum = sum_over(mul(std::move(hidden), mask), 1, false);
  const Tensor patches = net.tape.allocate(Shape{net.B, Dim(1)}, Dtype::kInt64, "sum");
  Tensor mean = div(std::move(sum), patches);
  take_outputs(net);  // they go; what is a leaf of the graph stays
  return classified(net, net.classifier("classifier", std::move(mean), Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kNone, siglip_contrastive},
                                  {Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"Model", Head::kNone}, {"ForImageClassification", Head::kImageClassification}};

// pixel_values.to(patch_embedding.weight.dtype): packed numbers' dtype cuts pixels off.
void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "transformers 5.12 fails here: " + architecture.class_name +
                        " casts pictures to the dtype of a packed weight. Use \"lora\".",
                    "lora"});
}

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs, .attention = kNoFlash, .check = check};

// Its tower, as those that hold it name it.
std::string full_name_of(const Architecture&, std::string_view path) {
  return renamed(path, "vision_tower.", "vision_model.");
}

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .no_split = NoSplit::kEmbeddings,
                               .behind_language = "vision_tower",
                               .full_name = full_name_of};

}  // namespace

const Family kRows[] = {
    {"siglip2", "Siglip2", "Siglip2Model", kClasses, read_config, &kProgram, "text_model.encoder.layers", kFacts},
};

extern const FamilyRows siglip2_rows;
const FamilyRows siglip2_rows = kRows;

}  // namespace tidemark
