// ViT: patches through a convolution, a class token, pre-norm layers; a classifier on the class token, or pixels. DeiT:
// the same with one token more. ViT-MSN: ViT without a pooler; I-JEPA: the same without a class token.
#include "core/families/vit.hpp"

#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
// transformers 5.12.1 models/vit/configuration_vit.py: ViTConfig.
void read_vit_layers(ConfigFields& fields, Architecture& architecture) {
  read_frame_dimensions(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"qkv_bias", "qv_bias"}, true);
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
}

void read_vit_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  if (architecture.image_size < architecture.patch_size) {
    fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  } else {
    const Count patches = architecture.image_size / architecture.patch_size;
    architecture.max_positions = patches * patches + 1;  // and the class token
  }
  architecture.head_bias = true;
  architecture.encoder_stride = fields.count({"encoder_stride"}, 16);
  architecture.pooler_size = fields.nullable({"pooler_output_size"}, std::nullopt).value_or(architecture.hidden_size);
  fields.accept({"pooler_act"});
}

// transformers 5.12.1 models/deit/configuration_deit.py: DeiTConfig has the same keys.
void read_deit_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_config(fields, architecture);
  ++architecture.max_positions;  // the distillation token's
}

namespace {

/// What lies outside the layers.
struct Names {
  const char *embeddings, *projection, *norm, *pooler, *pooler_dense;
  Count tokens;  ///< beside the patches
};
constexpr Names kVit = {"vit.embeddings",   "vit.embeddings.patch_embeddings.projection",
                        "vit.layernorm",    "vit.pooler",
                        "vit.pooler.dense", 1};
constexpr Names kDeit = {"deit.embeddings",   "deit.embeddings.patch_embeddings.projection",
                         "deit.layernorm",    "deit.pooler",
                         "deit.pooler.dense", 2};

constexpr Names kIJepa = {"ijepa.embeddings",   "ijepa.embeddings.patch_embeddings.projection",
                          "ijepa.layernorm",    "ijepa.pooler",
                          "ijepa.pooler.dense", 0};
// The encoder of a vision-encoder-decoder.
constexpr Names kInside = {"encoder.embeddings",   "encoder.embeddings.patch_embeddings.projection",
                           "encoder.layernorm",    "encoder.pooler",
                           "encoder.pooler.dense", 1};
constexpr Names kDeitInside = {"encoder.embeddings",   "encoder.embeddings.patch_embeddings.projection",
                               "encoder.layernorm",    "encoder.pooler",
                               "encoder.pooler.dense", 2};

const Names& names_of(const Net& net) {
  if (net.arch.num_decoder_layers > 0) return net.arch.position_offset == 2 ? kDeitInside : kInside;
  if (net.arch.model_type == "ijepa") return kIJepa;
  return net.arch.model_type == "deit" ? kDeit : kVit;
}

constexpr const char* kEmbeddings = "transformers 5.12 models/vit/modeling_vit.py: ViTEmbeddings.forward";
constexpr const char* kAttention = "transformers 5.12 models/vit/modeling_vit.py: ViTAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/vit/modeling_vit.py: ViTMLP.forward";
constexpr const char* kLayer = "transformers 5.12 models/vit/modeling_vit.py: ViTLayer.forward";
constexpr const char* kModel = "transformers 5.12 models/vit/modeling_vit.py: ViTModel.forward";
constexpr const char* kPooler = "transformers 5.12 models/vit/modeling_vit.py: ViTPooler.forward";
constexpr const char* kMaskedImage = "transformers 5.12 models/vit/modeling_vit.py: ViTForMaskedImageModeling.forward";
constexpr const char* kHead = "transformers 5.12 models/vit/modeling_vit.py: ViTForImageClassification.forward";

}  // namespace

void vit_pictures(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n() * net.S.n(), Symbol::kTokens);
  const Dim side(net.arch.image_size);
  net.input_ids = given_pixels(net, Shape{net.B, Dim(net.arch.num_channels), side, side});
}

namespace {

// The batch is pictures; a token is a patch, and the class token is one more.
void image_inputs(Net& net) {
  vit_pictures(net);
  if (net.arch.head == Head::kImageClassification) class_labels(net);
  if (net.arch.head == Head::kMaskedImage) {
    net.labels =
        net.tape.allocate(Shape{net.B, Dim(net.S.n() - names_of(net).tokens)}, Dtype::kBool, "bool_masked_pos");
  }
}

// embeddings * (1.0 - mask) + mask_tokens * mask
Tensor mask_patches(Net& net, Tensor embeddings_in) {
  Tensor embeddings = std::move(embeddings_in);
  Tensor token = net.parameter(names_of(net).embeddings, "mask_token", Shape{Dim(1), Dim(1), net.H});
  const Tensor mask_tokens = expand(std::move(token), embeddings.shape());
  const Tensor mask = net.tape.allocate(Shape{net.B, embeddings.dim(1), Dim(1)}, mask_tokens.dtype(), "type_as");
  Tensor seen = add_scalar(mask);
  embeddings = mul(std::move(embeddings), std::move(seen));
  Tensor hidden = mul(mask_tokens, mask);
  return add(std::move(embeddings), std::move(hidden));
}

}  // namespace

Tensor vit_embed(Net& net) {
  const Names& names = names_of(net);
  Scope in(net.tape, names.embeddings, kEmbeddings);
  const Count p = net.arch.patch_size;
  const Dim patches(net.S.n() - names.tokens);
  Tensor embeddings;
  {
    Tensor weight = net.parameter(names.projection, "weight", Shape{net.H, Dim(net.arch.num_channels), Dim(p), Dim(p)});
    Tensor bias = net.parameter(names.projection, "bias", Shape{net.H});
    Tensor patched = patch_convolution(net.input_ids, std::move(weight), std::move(bias));
    patched = view(std::move(patched), Shape{net.B, net.H, patches});
    embeddings = net.hooked_inputs(transpose(std::move(patched), 1, 2));  // get_input_embeddings() makes the patches
  }
  if (net.arch.head == Head::kMaskedImage) embeddings = mask_patches(net, std::move(embeddings));
  const auto token = [&](const char* leaf) {
    Tensor row = net.parameter(names.embeddings, leaf, Shape{Dim(1), Dim(1), net.H});
    return expand(std::move(row), Shape{net.B, Dim(1), net.H});
  };
  if (names.tokens > 0) {
    const Tensor tokens = token("cls_token");
    if (names.tokens == 1) {
      embeddings = cat({&tokens, &embeddings}, 1);
    } else {
      const Tensor distilled = token("distillation_token");
      embeddings = cat({&tokens, &distilled, &embeddings}, 1);
    }
  }
  Tensor positions = net.parameter(names.embeddings, "position_embeddings", Shape{Dim(1), net.S, net.H});
  embeddings = add(std::move(embeddings), std::move(positions));
  embeddings = dropout(std::move(embeddings), net.arch.embedding_dropout);
  net.model_locals = {embeddings};
  return embeddings;
}

Tensor vit_attention(Net& net, Tensor hidden, const char* source, const AttentionOptions& options) {
  Scope in(net.tape, "attention", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("attention.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("attention.k_proj", x, net.Q, bias);
  k = split_heads(net, std::move(k), net.A, net.hd);
  Tensor v = net.linear("attention.v_proj", x, net.Q, bias);
  v = split_heads(net, std::move(v), net.A, net.hd);
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", std::move(out), net.H, true);
}

namespace {

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.fc1", x, net.F, true);
  {
    Scope act(net.tape, "mlp.activation_fn", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

}  // namespace

Tensor vit_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("layernorm_before", residual);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  h = vit_attention(net, std::move(h), kAttention, options);
  h = dropout(std::move(h), p);
  h = add(std::move(h), residual);
  residual = h;
  h = net.layer_norm("layernorm_after", std::move(h));
  h = mlp(net, std::move(h));
  h = dropout(std::move(h), p);
  return add(std::move(h), residual);
}

Tensor vit_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm(names_of(net).norm, std::move(hidden));
}

namespace {

Outputs image_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor pooled = names_of(net).tokens > 0 ? select(std::move(hidden), 1) : mean_over(std::move(hidden), 1);
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
  return classified(net, std::move(logits));
}

}  // namespace

// The class token through a layer of its own.
Tensor vit_pool(Net& net, const Tensor& hidden) {
  const Names& names = names_of(net);
  Scope in(net.tape, names.pooler, kPooler);
  Tensor pooled = net.linear(names.pooler_dense, select(hidden, 1), Dim(net.arch.pooler_size), true);
  return tanh(std::move(pooled));
}

namespace {

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), vit_pool);
}

// nn.Conv2d with a kernel of one, nn.PixelShuffle: a patch's vector becomes encoder_stride x encoder_stride pixels.
Tensor reconstruct(Net& net, Tensor hidden) {
  const Count side = net.arch.image_size / net.arch.patch_size, stride = net.arch.encoder_stride;
  const Dim rows(side), channels(stride * stride * net.arch.num_channels);
  const Count tokens = names_of(net).tokens;
  Tensor patches = narrow(std::move(hidden), 1, tokens, Dim(net.S.n() - tokens));
  patches = permute(std::move(patches), {0, 2, 1});
  patches = reshape(std::move(patches), Shape{net.B, net.H, rows, rows});
  Tensor weight = net.parameter("decoder.0", "weight", Shape{channels, net.H, Dim(1), Dim(1)});
  Tensor bias = net.parameter("decoder.0", "bias", Shape{channels});
  Tensor pixels = patch_convolution(std::move(patches), std::move(weight), std::move(bias));
  const Shape image{net.B, Dim(net.arch.num_channels), Dim(side * stride), Dim(side * stride)};
  pixels = clone(std::move(pixels));  // pixel_shuffle: a permutation made contiguous
  return view(std::move(pixels), image);
}

Outputs masked_image(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kMaskedImage);
  Tape& t = net.tape;
  Tensor pixels = reconstruct(net, std::move(hidden));
  const Dim side(net.arch.image_size);
  const Tensor mask = t.allocate(Shape{net.B, Dim(1), side, side}, Dtype::kBool, "mask");
  Tensor differences = l1_differences(pixels, net.input_ids);
  differences = mul(std::move(differences), mask);
  Outputs out;
  out.loss = mean_all(std::move(differences));
  out.rest = {std::move(pixels)};
  return out;
}

constexpr HeadForward kHeads[] = {
    {Head::kImageClassification, image_classification}, {Head::kMaskedImage, masked_image}, {Head::kNone, body}};

}  // namespace

constexpr HeadForward kHeadsWithoutPooler[] = {{Head::kImageClassification, image_classification},
                                               {Head::kNone, body_alone}};
constexpr ClassSuffix kTwoClasses[] = {{"ForImageClassification", Head::kImageClassification}, {"Model", Head::kNone}};

const Program kNoPoolerProgram = {.forward = one_stack<vit_embed, vit_layer, vit_norm>,
                                  .heads = kHeadsWithoutPooler,
                                  .inputs = image_inputs,
                                  .check = check_picture_is_of_table};

// transformers 5.12.1 models/ijepa/configuration_ijepa.py: IJepaConfig has ViT's keys; no token stands beside the
// patches.
void read_ijepa_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_config(fields, architecture);
  architecture.max_positions = std::max<Count>(1, architecture.max_positions - 1);
}

const Program kVitProgram = {.forward = one_stack<vit_embed, vit_layer, vit_norm>,
                             .heads = kHeads,
                             .inputs = image_inputs,
                             .check = check_picture_is_of_table};

const Family kRows[] = {
    {"vit", "ViT", "ViTForImageClassification", kVitClasses, read_vit_config, &kVitProgram, "vit.layers",
     kPicturesNameEmbeddings},
    {"deit", "DeiT", "DeiTForImageClassification", kVitClasses, read_deit_config, &kVitProgram, "deit.layers",
     kPicturesNameEmbeddings},
    {"vit_msn", "ViTMSN", "ViTMSNForImageClassification", kTwoClasses, read_vit_config, &kNoPoolerProgram, "vit.layers",
     kPicturesNameEmbeddings},
    {"ijepa", "IJepa", "IJepaForImageClassification", kTwoClasses, read_ijepa_config, &kNoPoolerProgram, "ijepa.layers",
     kPicturesNameEmbeddings},
};

extern const FamilyRows vit_rows;
const FamilyRows vit_rows = kRows;

}  // namespace tidemark
