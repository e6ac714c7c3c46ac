// DINOv2: ViT's layers with a scale per column on each branch; positions resized to the picture. With registers: tokens
// between the class token and the patches, which have no position.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/dinov2/configuration_dinov2.py: Dinov2Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = architecture.num_kv_heads = fields.required({"num_attention_heads"});
  derive_head_dim(fields, architecture);
  architecture.gated_mlp = fields.flag({"use_swiglu_ffn"}, false);
  const Count width = architecture.hidden_size * fields.count({"mlp_ratio"}, 4);
  architecture.intermediate_size = architecture.gated_mlp ? (width * 2 / 3 + 7) / 8 * 8 : width;
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 14);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  const Count side = architecture.image_size / architecture.patch_size;
  architecture.max_positions = side * side + 1;
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"qkv_bias"}, true);
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.embedding_dropout = architecture.residual_dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.0);
  architecture.has_mask_token = fields.flag({"use_mask_token"}, true);
  fields.accept({"layerscale_value", "apply_layernorm", "reshape_hidden_states", "out_features", "out_indices"});
}

// transformers 5.12.1 models/dinov2_with_registers/configuration_dinov2_with_registers.py: the same keys and the number
// of registers; a mask token that is always there.
void read_registers_config(ConfigFields& fields, Architecture& architecture) {
  read_config(fields, architecture);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  const Count side = architecture.image_size / architecture.patch_size;
  architecture.max_positions = side * side + 1;
  architecture.position_offset = fields.count({"num_register_tokens"}, 4, 0);
}

/// What lies outside the layers.
struct Names {
  const char *embeddings, *projection, *norm;
};
constexpr Names kPlain = {"dinov2.embeddings", "dinov2.embeddings.patch_embeddings.projection", "dinov2.layernorm"};
constexpr Names kRegisters = {"dinov2_with_registers.embeddings",
                              "dinov2_with_registers.embeddings.patch_embeddings.projection",
                              "dinov2_with_registers.layernorm"};

const Names& names_of(const Net& net) {
  return net.arch.model_type == "dinov2" ? kPlain : kRegisters;
}

// Tokens that are no patches: the class token, and registers.
Count tokens_of(const Net& net) {
  return 1 + net.arch.position_offset;
}

constexpr const char* kEmbeddings = "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2Embeddings.forward";
constexpr const char* kPositions =
    "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2Embeddings.interpolate_pos_encoding";
constexpr const char* kRegisterTokens =
    "transformers 5.12 models/dinov2_with_registers/modeling_dinov2_with_registers.py: "
    "Dinov2WithRegistersEmbeddings.forward";
constexpr const char* kLayer = "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2Layer.forward";
constexpr const char* kAttention = "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2MLP.forward";
constexpr const char* kHead =
    "transformers 5.12 models/dinov2/modeling_dinov2.py: Dinov2ForImageClassification.forward";

void inputs(Net& net) {
  const PictureSize size = own_picture_size(net);
  const Count p = net.arch.patch_size;
  picture_batch(net, Dim((size.height / p) * (size.width / p) + tokens_of(net)));
}

// Bicubic, in fp32, where the picture's patches are not those of the table.
Tensor positions(Net& net, Tensor table_in) {
  const Tensor table = std::move(table_in);
  const PictureSize size = own_picture_size(net);
  const Dim rows(net.S.n() - tokens_of(net)), one(1);
  if (rows.n() + 1 == net.arch.max_positions && size.height == size.width) return table;
  Scope in(net.tape, names_of(net).embeddings, kPositions);
  const Dim side(net.arch.image_size / net.arch.patch_size);
  const Dim height(size.height / net.arch.patch_size), width(size.width / net.arch.patch_size);
  const Tensor first = narrow(table, 1, 0, one);
  Tensor rest = narrow(table, 1, 1, Dim(side.n() * side.n()));
  rest = permute(view(std::move(rest), Shape{one, side, side, net.H}), {0, 3, 1, 2});
  const Dtype dtype = rest.dtype();
  rest = interpolate(to(std::move(rest), Dtype::kFp32), Shape{one, net.H, height, width});
  rest = to(std::move(rest), dtype);
  rest = view(std::move(rest), Shape{one, rows, net.H});
  return cat({&first, &rest}, 1);
}

Tensor embed(Net& net) {
  const char* const module = names_of(net).embeddings;
  const Dim one(1), registers(net.arch.position_offset);
  Scope in(net.tape, module, kEmbeddings);
  Tensor token = net.parameter(module, "cls_token", Shape{one, one, net.H});
  if (net.arch.has_mask_token) const Tensor unread = net.parameter(module, "mask_token", Shape{one, net.H});
  Tensor patches = patch_embedding(net, names_of(net).projection, net.input_ids, true);
  const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), net.H});
  Tensor hidden = cat({&tokens, &patches}, 1);
  patches.reset();
  Tensor table = net.parameter(module, "position_embeddings", Shape{Dim(1), Dim(net.arch.max_positions), net.H});
  table = positions(net, std::move(table));
  hidden = add(std::move(hidden), std::move(table));
  if (registers.n() > 0) {
    Scope behind(net.tape, "", kRegisterTokens);
    Tensor rows = net.parameter(module, "register_tokens", Shape{one, registers, net.H});
    rows = expand(std::move(rows), Shape{net.B, registers, net.H});
    const Tensor first = narrow(hidden, 1, 0, one);
    const Tensor rest = narrow(hidden, 1, 1, Dim(net.S.n() - tokens_of(net)));
    hidden = cat({&first, &rows, &rest}, 1);
  }
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  net.model_locals = {hidden};
  return hidden;
}

// From transformers 5.18 on attention is ViT's, by its names, SwiGLU has two projections, and a layer binds names anew.
bool is_written_anew(const Net& net) {
  return net.job.framework.at_least(5, 18);
}

Tensor attention_block(Net& net, Tensor hidden) {
  if (is_written_anew(net)) {
    return vit_attention(net, std::move(hidden), kAttention, encoder_attention(net));
  }
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Tensor k = split_heads(net, net.linear("attention.attention.key", x, net.Q, bias), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.attention.value", x, net.Q, bias), net.A, net.hd);
  const Tensor q = split_heads(net, net.linear("attention.attention.query", x, net.Q, bias), net.A, net.hd);
  Tensor out = attention(net, q, k, v, encoder_attention(net));
  out = net.linear("attention.output.dense", std::move(out), net.H, true);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  if (net.arch.gated_mlp && is_written_anew(net)) {
    Tensor h = silu(net.linear("mlp.gate_proj", x, net.F, true));
    h = mul(std::move(h), net.linear("mlp.up_proj", x, net.F, true));
    return net.linear("mlp.down_proj", std::move(h), net.H, true);
  }
  if (net.arch.gated_mlp) {
    Tensor both = net.linear("mlp.weights_in", x, Dim(2 * net.F.n()), true);
    const Pieces halves = split(std::move(both), -1, {net.F, net.F});
    Tensor h = silu(halves.part[0]);
    h = mul(std::move(h), halves.part[1]);
    return net.linear("mlp.weights_out", std::move(h), net.H, true);
  }
  Tensor h = activate(net.arch.activation, net.linear("mlp.fc1", x, net.F, true));
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  Tensor hidden = std::move(hidden_in);
  Tensor normed = net.layer_norm("norm1", hidden);
  // Names that live until the method returns.
  Tensor attended = attention_block(net, normed);
  if (is_written_anew(net)) normed.reset();
  attended = mul(std::move(attended), net.parameter("layer_scale1", "lambda1", Shape{net.H}));
  hidden = add(drop_path(net, attended, net.arch.drop_path), std::move(hidden));
  if (is_written_anew(net)) attended.reset();
  Tensor out = net.layer_norm("norm2", hidden);
  out = mlp(net, std::move(out));
  out = mul(std::move(out), net.parameter("layer_scale2", "lambda1", Shape{net.H}));
  return add(drop_path(net, std::move(out), net.arch.drop_path), hidden);
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm(names_of(net).norm, std::move(hidden));
}

// The class token beside the mean of the patches.
Outputs image_classification(Net& net, const Program&, Tensor hidden_in) {
  Scope in(net.tape, "", kHead);
  const Tensor hidden = std::move(hidden_in);
  const Tensor token = select(hidden, 1);
  const Count tokens = tokens_of(net);
  const Tensor mean = mean_over(narrow(hidden, 1, tokens, Dim(net.S.n() - tokens)), 1);
  const Tensor both = cat({&token, &mean}, 1);
  return classified(net, net.classifier("classifier", both, Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}, {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}, {"Model", Head::kNone}};

const Program kProgram = {one_stack<embed, layer, norm>, nullptr, kHeads, OwnLoss::kFp32, {}, inputs};

}  // namespace

const Family kRows[] = {
    {"dinov2", "Dinov2", "Dinov2ForImageClassification", kClasses, read_config, &kProgram, "dinov2.encoder.layer",
     kPicturesNameEmbeddingsSince18},
    {"dinov2_with_registers", "Dinov2WithRegisters", "Dinov2WithRegistersForImageClassification", kClasses,
     read_registers_config, &kProgram, "dinov2_with_registers.encoder.layer", kPicturesNameEmbeddingsSince18},
};

extern const FamilyRows dinov2_rows;
const FamilyRows dinov2_rows = kRows;

}  // namespace tidemark
