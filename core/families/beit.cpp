// BEiT: ViT's layers with scaled branches, and in the place of positions a bias of scores by how far patches lie apart,
// from a table of each layer or one of them all.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr std::uint8_t kFirst = 1, kHasTable = 2;  // kinds of a layer, as bits: it leaves no branch out; has its own
constexpr Count kClassDistances = 3;               // token to class token, class token to token, class token to itself

// Distances of a picture of so many patches.
Count distances(Count height, Count width) {
  return (2 * height - 1) * (2 * width - 1);
}

bool shares_table(const Architecture& a) {
  return a.num_buckets > 0;
}

// transformers 5.12.1 models/beit/configuration_beit.py: BeitConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.1);
  architecture.residual_scale = fields.number({"layer_scale_init_value"}, 0.1) > 0.0;
  architecture.has_mask_token = fields.flag({"use_mask_token"}, false);
  architecture.norm_before = !fields.flag({"use_mean_pooling"}, true);  // of all tokens, before one is taken
  const Count side = architecture.image_size / std::max<Count>(1, architecture.patch_size);
  if (side < 1) fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  if (fields.flag({"use_absolute_position_embeddings"}, false)) architecture.max_positions = side * side + 1;
  // Rows of the table that all layers read.
  if (fields.flag({"use_shared_relative_position_bias"}, false)) {
    architecture.num_buckets = distances(side, side) + kClassDistances;
  }
  const bool has_table = fields.flag({"use_relative_position_bias"}, false);
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), has_table ? kHasTable : 0);
  if (!architecture.layer_kinds.empty() && architecture.drop_path > 0.0) architecture.layer_kinds.front() |= kFirst;
  fields.accept({"vocab_size", "pool_scales", "use_auxiliary_head", "auxiliary_loss_weight", "auxiliary_channels",
                 "auxiliary_num_convs", "auxiliary_concat_input", "semantic_loss_ignore_index", "out_indices",
                 "out_features", "segmentation_indices", "add_fpn", "reshape_hidden_states"});
}

constexpr const char* kEmbeddings = "transformers 5.12 models/beit/modeling_beit.py: BeitEmbeddings.forward";
constexpr const char* kBias = "transformers 5.12 models/beit/modeling_beit.py: BeitRelativePositionBias.forward";
constexpr const char* kAttention = "transformers 5.12 models/beit/modeling_beit.py: BeitAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/beit/modeling_beit.py: BeitMLP.forward";
constexpr const char* kLayer = "transformers 5.12 models/beit/modeling_beit.py: BeitLayer.forward";
constexpr const char* kModel = "transformers 5.12 models/beit/modeling_beit.py: BeitModel.forward";
constexpr const char* kPooler = "transformers 5.12 models/beit/modeling_beit.py: BeitPooler.forward";
constexpr const char* kHead = "transformers 5.12 models/beit/modeling_beit.py: BeitForImageClassification.forward";
constexpr const char* kModule = "beit.embeddings";

std::uint8_t kind_of(const Net& net) {
  return net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
}

PictureSize grid_of(const Net& net) {
  const PictureSize size = own_picture_size(net);
  return {size.height / net.arch.patch_size, size.width / net.arch.patch_size};
}

void inputs(Net& net) {
  const PictureSize grid = grid_of(net);
  picture_batch(net, Dim(grid.height * grid.width + 1));
}

// The table, resized to the picture's distances even where it has them, by index: [1, heads, S, S].
Tensor position_bias(Net& net, const char* module) {
  Scope in(net.tape, module, kBias);
  const Count own = net.arch.image_size / net.arch.patch_size;
  const PictureSize grid = grid_of(net);
  const Dim old(distances(own, own)), rows(distances(grid.height, grid.width)), tail(kClassDistances), one(1);
  const Tensor table =
      net.parameter(module, "relative_position_bias_table", Shape{Dim(old.n() + kClassDistances), net.A});
  Tensor resized = narrow(table, 0, 0, old);
  resized = permute(view(std::move(resized), Shape{one, Dim(2 * own - 1), Dim(2 * own - 1), net.A}), {0, 3, 1, 2});
  resized = interpolate(std::move(resized), Shape{one, net.A, Dim(2 * grid.height - 1), Dim(2 * grid.width - 1)});
  resized = view(std::move(resized), Shape{rows, net.A});  // channels last, as the table is
  const Tensor rest = narrow(table, 0, old.n(), tail);
  const Tensor whole = cat({&resized, &rest}, 0);
  const Dim pairs(net.S.n() * net.S.n());
  Tensor bias;
  {
    // Indices are found and kept on the host: the kernel gets a copy of them.
    const Tensor copied = net.tape.allocate(Shape{pairs}, Dtype::kInt64, "to");
    bias = index_some(whole, net.tape.part_of_buffer(Shape{pairs}, Dtype::kInt64), pairs);
  }
  bias = permute(view(std::move(bias), Shape{net.S, net.S, net.A}), {2, 0, 1});
  return unsqueeze(contiguous(std::move(bias)), 0);
}

Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const Dim one(1);
  Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  if (net.arch.has_mask_token) const Tensor unread = net.parameter(kModule, "mask_token", Shape{one, one, net.H});
  Tensor table;
  if (net.arch.max_positions > 0) {
    table = net.parameter(kModule, "position_embeddings", Shape{one, Dim(net.arch.max_positions), net.H});
  }
  Tensor patches = patch_embedding(net, "beit.embeddings.patch_embeddings.projection", net.input_ids, true);
  const Tensor tokens = expand(std::move(token), Shape{net.B, one, net.H});
  Tensor hidden = cat({&tokens, &patches}, 1);
  patches.reset();
  if (table.defined()) hidden = add(std::move(hidden), std::move(table));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  net.model_locals = {hidden};
  if (shares_table(net.arch)) net.shared.causal_mask = position_bias(net, "beit.shared_position_bias");
  return hidden;
}

Tensor attention_block(Net& net, const Tensor& x, const Tensor& mask) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor q = split_heads(net, net.linear("attention.q_proj", x, net.Q, true), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("attention.k_proj", x, net.Q, false), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.v_proj", x, net.Q, true), net.A, net.hd);
  AttentionOptions options;
  options.mask = mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", std::move(out), net.H, true);
}

Tensor mlp(Net& net, const Tensor& x) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.fc1", x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

// self.drop_path(self.lambda * self.dropout(branch)) + residual
Tensor joined(Net& net, const char* lambda, Tensor branch, const Tensor& residual) {
  const bool first = (kind_of(net) & kFirst) != 0;
  Tensor h = dropout(std::move(branch), net.arch.residual_dropout);
  h = net.arch.residual_scale ? mul(net.parameter("", lambda, Shape{net.H}), std::move(h)) : mul_scalar(std::move(h));
  h = drop_path(net, std::move(h), first ? 0.0 : net.arch.drop_path);
  return add(std::move(h), residual);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor mask = net.shared.causal_mask;
  if ((kind_of(net) & kHasTable) != 0) {
    const Tensor own = position_bias(net, "relative_position_bias");
    mask = mask.defined() ? add(own, mask) : own;
  }
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("layernorm_before", residual);
  h = attention_block(net, h, mask);
  h = joined(net, "lambda_1", std::move(h), residual);
  residual = h;
  h = net.layer_norm("layernorm_after", std::move(h));
  h = mlp(net, h);
  return joined(net, "lambda_2", std::move(h), residual);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  net.shared.causal_mask.reset();
  return net.arch.norm_before ? net.layer_norm("beit.layernorm", std::move(hidden)) : hidden;
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "beit.pooler", kPooler);
  if (net.arch.norm_before) return select(hidden, 1);
  Tensor mean = mean_over(narrow(hidden, 1, 1, Dim(net.S.n() - 1)), 1);
  return net.layer_norm("beit.pooler.layernorm", std::move(mean));
}

Outputs image_classification(Net& net, const Program&, Tensor hidden_in) {
  Scope in(net.tape, "", kHead);
  const Tensor hidden = std::move(hidden_in);
  return classified(net, net.classifier("classifier", pool(net, hidden), Dim(net.arch.num_labels), true));
}

void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const bool resized = job.image_height > 0 && (job.image_height != a.image_size || job.image_width != a.image_size);
  if (a.max_positions > 0 && resized) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                      "A table of absolute positions is not resized here: pictures of " + std::to_string(a.image_size) +
                          " pixels a side are modelled.",
                      std::to_string(a.image_size)});
  }
  if (shares_table(a) && job.use_reentrant && job.checkpointing != Checkpointing::kNone) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/use_reentrant",
                      "Every layer reads one table of distances: re-entrant checkpoints would pass it backward once "
                      "for each, which PyTorch refuses. Use \"use_reentrant\": false.",
                      "false"});
  }
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {
    .forward = one_stack<embed, layer, norm>, .heads = kHeads, .inputs = inputs, .attention = kNoFlash, .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false};

}  // namespace

const Family kRows[] = {
    {"beit", "Beit", "BeitForImageClassification", kClasses, read_config, &kProgram, "beit.layers", kFacts},
};

extern const FamilyRows beit_rows;
const FamilyRows beit_rows = kRows;

}  // namespace tidemark
