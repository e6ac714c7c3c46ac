// ViT-MAE: ViT's layers over the patches that random masking leaves, and a decoder that makes the others' pixels.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/vit_mae/configuration_vit_mae.py: ViTMAEConfig. `tokens`: patches that are kept.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  const Count side = architecture.image_size / architecture.patch_size;
  if (side == 0) return fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  architecture.max_positions = side * side + 1;
  const double kept = static_cast<double>(side * side) * (1.0 - fields.probability({"mask_ratio"}, 0.75));
  architecture.pictures.tokens = static_cast<Count>(kept);
  if (architecture.pictures.tokens == 0) {
    return fields.error("INVALID_VALUE", "mask_ratio", "Of each picture a patch has to be left.");
  }
  architecture.norm_head = fields.flag({"norm_pix_loss"}, false);
  Architecture decoder = architecture;
  decoder.hidden_size = fields.count({"decoder_hidden_size"}, 512);
  decoder.num_layers = fields.count({"decoder_num_hidden_layers"}, 8);
  decoder.num_heads = decoder.num_kv_heads = fields.count({"decoder_num_attention_heads"}, 16);
  decoder.head_dim = decoder.hidden_size / decoder.num_heads;
  if (decoder.hidden_size % decoder.num_heads != 0) {
    fields.error("INVALID_VALUE", "decoder_num_attention_heads", "The decoder's heads do not divide its width.");
  }
  decoder.intermediate_size = fields.count({"decoder_intermediate_size"}, 2048);
  architecture.parts.push_back(std::move(decoder));
}

constexpr const char* kEmbeddings = "transformers 5.24 models/vit_mae/modeling_vit_mae.py: ViTMAEEmbeddings.forward";
constexpr const char* kMasking =
    "transformers 5.24 models/vit_mae/modeling_vit_mae.py: ViTMAEEmbeddings.random_masking";
constexpr const char* kDecoder = "transformers 5.24 models/vit_mae/modeling_vit_mae.py: ViTMAEDecoder.forward";
constexpr const char* kHead = "transformers 5.24 models/vit_mae/modeling_vit_mae.py: ViTMAEForPreTraining.forward";
constexpr const char* kModule = "vit.embeddings";
constexpr const char* kProjection = "vit.embeddings.patch_embeddings.projection";

Dim patches_of(const Net& net) {
  return Dim(net.arch.max_positions - 1);
}

void inputs(Net& net) {
  picture_batch(net, Dim(net.arch.pictures.tokens + 1));
}

void gather_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "gather_backward");
}

// torch.gather(x, 1, ids.unsqueeze(-1).repeat(1, 1, width)): both are kept.
Tensor gathered(Net& net, const Tensor& x, Dim rows) {
  const Shape shape{net.B, rows, x.dim(2)};
  const Tensor index = net.tape.allocate(shape, Dtype::kInt64, "repeat");
  Node* const n = net.tape.record("gather", gather_backward, {&x});
  net.tape.save(n, index);
  net.tape.save(n, x);
  Tensor out = net.tape.allocate(shape, x.dtype(), "gather");
  net.tape.attach(n, out);
  return out;
}

// Outputs of the model: which patches are masked, and where each was.
Tensor masked(Net& net, const Tensor& embeddings) {
  Scope in(net.tape, kModule, kMasking);
  Tape& t = net.tape;
  const Shape all{net.B, patches_of(net)};
  const Tensor noise = t.allocate(all, Dtype::kFp32, "rand");
  const auto sorted = [&](Dtype dtype) {
    const Tensor values = t.allocate(all, dtype, "sort");
    return t.allocate(all, Dtype::kInt64, "argsort");
  };
  const Tensor shuffled = sorted(Dtype::kFp32);
  Tensor restore = sorted(Dtype::kInt64);
  Tensor seen = gathered(net, embeddings, Dim(net.arch.pictures.tokens));
  Tensor mask = t.allocate(all, Dtype::kFp32, "ones");
  mask = t.allocate(all, Dtype::kFp32, "gather");
  net.more_inputs = {std::move(mask), std::move(restore)};
  return seen;
}

Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const Dim one(1), patches = patches_of(net);
  const Tensor positions =
      net.parameter(kModule, "position_embeddings", Shape{one, Dim(net.arch.max_positions), net.H}, false);
  Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  Tensor h = patch_embedding(net, kProjection, net.input_ids, true);
  h = add(std::move(h), narrow(positions, 1, 1, patches));
  h = masked(net, h);
  token = add(std::move(token), narrow(positions, 1, 0, one));
  const Tensor tokens = expand(token, Shape{net.B, one, net.H});
  h = cat({&tokens, &h}, 1);
  net.model_locals = {h};
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm("vit.layernorm", std::move(hidden));
}

Tensor decode(Net& net, const Tensor& latent) {
  Scope in(net.tape, "decoder", kDecoder);
  const Dim one(1), patches = patches_of(net), all(net.arch.max_positions);
  Net& decoder = net.part(net.arch.parts.front(), net.B, all);
  Tensor h = net.linear("decoder.decoder_embed", latent, decoder.H, true);
  const Tensor mask = net.parameter("decoder", "mask_token", Shape{one, one, decoder.H});
  const Dim left(patches.n() - net.arch.pictures.tokens);
  const Tensor missing = view(repeat_rows(mask, Dim(net.B.n() * left.n())), Shape{net.B, left, decoder.H});
  const Tensor known = narrow(h, 1, 1, Dim(net.arch.pictures.tokens));
  Tensor tokens = cat({&known, &missing}, 1);
  tokens = gathered(net, tokens, patches);
  const Tensor first = narrow(std::move(h), 1, 0, one);
  h = cat({&first, &tokens}, 1);
  h = add(std::move(h), net.parameter("decoder", "decoder_pos_embed", Shape{one, all, decoder.H}, false));
  h = decoder.layers({"decoder.decoder_layers", decoder.arch.num_layers, vit_layer}, std::move(h));
  h = net.layer_norm("decoder.decoder_norm", std::move(h));
  const Count pixels = net.arch.patch_size * net.arch.patch_size * net.arch.num_channels;
  return narrow(net.linear("decoder.decoder_pred", std::move(h), Dim(pixels), true), 1, 1, patches);
}

Outputs pre_training(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tape& t = net.tape;
  const Tensor latent = std::move(hidden);
  Tensor logits = decode(net, latent);
  t.begin_segment(Phase::kLoss, -1);
  Shape shape = logits.shape();
  shape.make_contiguous();
  Tensor target = t.allocate(shape, net.input_ids.dtype(), "reshape");
  if (net.arch.norm_head) {
    const Shape row = shape.with_last(Dim(1));
    const Tensor mean = t.allocate(row, target.dtype(), "mean");
    const Tensor variance = t.allocate(row, target.dtype(), "var");
    const Tensor difference = t.allocate(shape, target.dtype(), "sub");
    Tensor root = t.allocate(row, target.dtype(), "add");
    root = t.allocate(row, t.autocast() ? Dtype::kFp32 : target.dtype(), "pow");
    target = t.allocate(shape, root.dtype(), "div");
  }
  Tensor loss = power(sub(logits, target));
  loss = mean_over(std::move(loss), -1);
  loss = mean_all(mul(std::move(loss), net.more_inputs[0]));
  const Tensor count = t.allocate(Shape{}, Dtype::kFp32, "sum");
  loss = div(std::move(loss), count);
  Outputs out;
  out.loss = std::move(loss);
  out.rest = {std::move(logits), std::move(net.more_inputs[0]), std::move(net.more_inputs[1])};
  net.more_inputs.clear();
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kMaskedImage, pre_training}};
constexpr ClassSuffix kClasses[] = {{"ForPreTraining", Head::kMaskedImage}};

const Program kProgram = {.forward = one_stack<embed, vit_layer, norm>,
                          .heads = kHeads,
                          .inputs = inputs,
                          .check = check_picture_is_of_table};

}  // namespace

const Family kRows[] = {
    {"vit_mae", "ViTMAE", "ViTMAEForPreTraining", kClasses, read_config, &kProgram, "vit.layers",
     kPicturesNameEmbeddings},
};

extern const FamilyRows vit_mae_rows;
const FamilyRows vit_mae_rows = kRows;

}  // namespace tidemark
