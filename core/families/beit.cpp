// BEiT: ViT's layers with scaled branches, and in the place of positions a bias of scores by how far patches lie apart,
// from a table of each layer or one of them all. Data2Vec's vision models are the same in older code.
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
constexpr const char* kData2VecLayer =
    "transformers 5.24 models/data2vec/modeling_data2vec_vision.py: Data2VecVisionLayer.forward";
constexpr const char* kModel = "transformers 5.12 models/beit/modeling_beit.py: BeitModel.forward";
constexpr const char* kPooler = "transformers 5.12 models/beit/modeling_beit.py: BeitPooler.forward";
constexpr const char* kHead = "transformers 5.12 models/beit/modeling_beit.py: BeitForImageClassification.forward";

/// What the classes call their modules.
struct Names {
  const char *embeddings, *projection, *shared, *norm, *pooler, *pooler_norm;
  const char *table, *q, *k, *v, *o, *up, *down;
};
constexpr Names kBeit = {"beit.embeddings",
                         "beit.embeddings.patch_embeddings.projection",
                         "beit.shared_position_bias",
                         "beit.layernorm",
                         "beit.pooler",
                         "beit.pooler.layernorm",
                         "relative_position_bias",
                         "attention.q_proj",
                         "attention.k_proj",
                         "attention.v_proj",
                         "attention.o_proj",
                         "mlp.fc1",
                         "mlp.fc2"};
constexpr Names kData2Vec = {"data2vec_vision.embeddings",
                             "data2vec_vision.embeddings.patch_embeddings.projection",
                             nullptr,
                             "data2vec_vision.layernorm",
                             "data2vec_vision.pooler",
                             "data2vec_vision.pooler.layernorm",
                             "attention.attention.relative_position_bias",
                             "attention.attention.query",
                             "attention.attention.key",
                             "attention.attention.value",
                             "attention.output.dense",
                             "intermediate.dense",
                             "output.dense"};

bool is_data2vec(const Net& net) {
  return net.arch.model_type == "data2vec-vision";
}

const Names& names_of(const Net& net) {
  return is_data2vec(net) ? kData2Vec : kBeit;
}

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
  const Names& names = names_of(net);
  const char* const module = names.embeddings;
  Scope in(net.tape, module, kEmbeddings);
  const Dim one(1);
  Tensor token = net.parameter(module, "cls_token", Shape{one, one, net.H});
  if (net.arch.has_mask_token) const Tensor unread = net.parameter(module, "mask_token", Shape{one, one, net.H});
  Tensor table;
  if (net.arch.max_positions > 0) {
    table = net.parameter(module, "position_embeddings", Shape{one, Dim(net.arch.max_positions), net.H});
  }
  Tensor patches = patch_embedding(net, names.projection, net.input_ids, true);
  const Tensor tokens = expand(std::move(token), Shape{net.B, one, net.H});
  Tensor hidden = cat({&tokens, &patches}, 1);
  patches.reset();
  if (table.defined()) hidden = add(std::move(hidden), std::move(table));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  net.model_locals = {hidden};
  if (shares_table(net.arch)) net.shared.causal_mask = position_bias(net, names.shared);
  return hidden;
}

// The layer's own table's, if it has one.
Tensor own_bias(Net& net) {
  return (kind_of(net) & kHasTable) != 0 ? position_bias(net, names_of(net).table) : Tensor();
}

// Data2VecVisionSelfAttention.forward: scores and probabilities have names of their own.
Tensor eager(Net& net, const Tensor& q, const Tensor& k, const Tensor& v) {
  net.attention_kernel = "eager";
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  if (Tensor bias = own_bias(net); bias.defined()) scores = add(std::move(scores), std::move(bias));
  Tensor probabilities = softmax(scores);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor out = contiguous(transpose(matmul(probabilities, v), 1, 2));
  return view(std::move(out), Shape{net.B, net.S, net.H});
}

Tensor attention_block(Net& net, const Tensor& x, Tensor mask) {
  const Names& names = names_of(net);
  Scope in(net.tape, "attention", kAttention);
  Tensor q = split_heads(net, net.linear(names.q, x, net.Q, true), net.A, net.hd);
  Tensor k = split_heads(net, net.linear(names.k, x, net.Q, false), net.A, net.hd);
  Tensor v = split_heads(net, net.linear(names.v, x, net.Q, true), net.A, net.hd);
  const bool old_eager = is_data2vec(net) && net.job.attention == AttentionKernel::kEager;
  if (is_data2vec(net) && !old_eager) mask = own_bias(net);
  AttentionOptions options;
  options.mask = std::move(mask);
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  Tensor out = old_eager ? eager(net, q, k, v) : attention(net, q, k, v, options);
  if (is_data2vec(net)) {  // names of a method that has returned
    for (Tensor* name : {&q, &k, &v, &options.mask}) name->reset();
  }
  return net.linear(names.o, std::move(out), net.H, true);
}

Tensor mlp(Net& net, const Tensor& x) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear(names_of(net).up, x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear(names_of(net).down, std::move(h), net.H, true);
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
  if (const Tensor own = own_bias(net); own.defined()) {
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

// Data2VecVisionLayer.forward
Tensor data2vec_layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kData2VecLayer);
  const std::uint8_t kind = kind_of(net);
  const double rate = (kind & kFirst) != 0 ? 0.0 : net.arch.drop_path;
  Tensor hidden = std::move(hidden_in);
  const auto scaled = [&](const char* lambda, const Tensor& branch) {
    return net.arch.residual_scale ? mul(net.parameter("", lambda, Shape{net.H}), branch) : branch;
  };
  Tensor attended;
  {
    const Tensor normed = net.layer_norm("layernorm_before", hidden);
    attended = dropout(attention_block(net, normed, {}), net.arch.residual_dropout);
  }
  const Tensor outputs = attended;
  attended = scaled("lambda_1", outputs);
  hidden = add(drop_path(net, attended, rate), std::move(hidden));
  Tensor out = net.layer_norm("layernorm_after", hidden);
  out = activate(net.arch.activation, net.linear(kData2Vec.up, out, net.F, true));
  out = dropout(net.linear(kData2Vec.down, std::move(out), net.H, true), net.arch.residual_dropout);
  out = scaled("lambda_2", out);
  out = drop_path(net, out, rate);
  return add(std::move(out), hidden);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  net.shared.causal_mask.reset();
  return net.arch.norm_before ? net.layer_norm(names_of(net).norm, std::move(hidden)) : hidden;
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, names_of(net).pooler, kPooler);
  if (net.arch.norm_before) return select(hidden, 1);
  Tensor mean = mean_over(narrow(hidden, 1, 1, Dim(net.S.n() - 1)), 1);
  return net.layer_norm(names_of(net).pooler_norm, std::move(mean));
}

Outputs image_classification(Net& net, const Program&, Tensor hidden_in) {
  Scope in(net.tape, "", kHead);
  const Tensor hidden = std::move(hidden_in);
  return classified(net, net.classifier("classifier", pool(net, hidden), Dim(net.arch.num_labels), true));
}

// transformers 5.24 models/data2vec/configuration_data2vec_vision.py: Data2VecVisionConfig.
void read_data2vec_config(ConfigFields& fields, Architecture& architecture) {
  read_config(fields, architecture);
  if (shares_table(architecture)) {
    fields.error("INVALID_VALUE", "use_shared_relative_position_bias",
                 "Data2Vec makes each layer a bias of its own from one table: this is not modelled.");
  }
}

void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const bool resized = job.image_height > 0 && (job.image_height != a.image_size || job.image_width != a.image_size);
  if (a.max_positions > 0 && resized) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                      "A table of absolute positions is not resized here: pictures of " + std::to_string(a.image_size) +
                          " pixels a side are modelled.",
                      std::to_string(a.image_size)});
  }
  if (!a.facts.hooks_embeddings) refuse_hooked_tuple(job, issues);
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

const Program kData2VecProgram = {.forward = one_stack<embed, data2vec_layer, norm>,
                                  .heads = kHeads,
                                  .inputs = inputs,
                                  .attention = kNoFlash,
                                  .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false};
constexpr ClassFacts kData2VecFacts = {.flex_attention = false, .text_input = false, .hooks_embeddings = false};

}  // namespace

const Family kRows[] = {
    {"beit", "Beit", "BeitForImageClassification", kClasses, read_config, &kProgram, "beit.layers", kFacts},
    {"data2vec-vision", "Data2VecVision", "Data2VecVisionForImageClassification", kClasses, read_data2vec_config,
     &kData2VecProgram, "data2vec_vision.encoder.layer", kData2VecFacts},
};

extern const FamilyRows beit_rows;
const FamilyRows beit_rows = kRows;

}  // namespace tidemark
