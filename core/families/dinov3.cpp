// DINOv3's ViT: DINOv2's layers, whose patches turn by their places in the picture; its classes end with the body.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/moe.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/dinov3_vit/configuration_dinov3_vit.py: DINOv3ViTConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = architecture.num_kv_heads = fields.required({"num_attention_heads"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  derive_head_dim(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.position_offset = 1 + fields.count({"num_register_tokens"}, 0, 0);  // tokens that are no patches
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.gated_mlp = fields.flag({"use_gated_mlp"}, false);
  architecture.attention_bias = fields.flag({"query_bias"}, true);
  architecture.content_to_position = fields.flag({"key_bias"}, false);  // the keys' bias
  architecture.attention_out_bias = fields.flag({"proj_bias"}, true);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.0);
  if (fields.flag({"value_bias"}, true) != architecture.attention_bias) {
    fields.error("INVALID_VALUE", "value_bias", "Values whose bias differs from the queries' are not modelled.");
  }
  fields.accept({"layerscale_value", "pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale", "apply_layernorm",
                 "reshape_hidden_states", "out_features", "out_indices"});
}

constexpr const char* kModel = "transformers 5.12 models/dinov3_vit/modeling_dinov3_vit.py: DINOv3ViTModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/dinov3_vit/modeling_dinov3_vit.py: DINOv3ViTLayer.forward";

Count patches_of(const Net& net) {
  const PictureSize size = own_picture_size(net);
  return (size.height / net.arch.patch_size) * (size.width / net.arch.patch_size);
}

void inputs(Net& net) {
  picture_batch(net, Dim(patches_of(net) + net.arch.position_offset));
}

Tensor embed(Net& net) {
  constexpr const char* kModule = "dinov3.embeddings";
  Scope in(net.tape, kModule, kModel);
  const Dim one(1), others(net.arch.position_offset - 1), patches(patches_of(net));
  Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  net.parameter(kModule, "mask_token", Shape{one, one, net.H});
  const Tensor tokens = expand(std::move(token), Shape{net.B, one, net.H});
  Tensor registers;
  if (others.n() > 0) {
    registers = net.parameter(kModule, "register_tokens", Shape{one, others, net.H});
    registers = expand(std::move(registers), Shape{net.B, others, net.H});
  }
  const Tensor found = patch_embedding(net, "dinov3.embeddings.patch_embeddings", net.input_ids, true);
  const Tensor hidden = others.n() > 0 ? cat({&tokens, &registers, &found}, 1) : cat({&tokens, &found}, 1);
  const Shape table{patches, net.hd};
  net.shared.cos = to(net.tape.allocate(table, Dtype::kFp32, "cos"), net.weight_dtype(2));
  net.shared.sin = to(net.tape.allocate(table, Dtype::kFp32, "sin"), net.weight_dtype(2));
  net.model_locals = {hidden};
  return hidden;
}

// apply_rotary_pos_emb
Rotated turned(Net& net, const Tensor& q, const Tensor& k) {
  const Dim first(net.arch.position_offset), rest(net.S.n() - first.n());
  const Pieces of_q = split(q, 2, {first, rest});
  const Pieces of_k = split(k, 2, {first, rest});
  const Tensor q_turned = rotate_by(of_q.part[1], net.shared.cos, net.shared.sin);
  const Tensor k_turned = rotate_by(of_k.part[1], net.shared.cos, net.shared.sin);
  Rotated out;
  out.q = cat({&of_q.part[0], &q_turned}, 2);
  out.k = cat({&of_k.part[0], &k_turned}, 2);
  return out;
}

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kLayer);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("attention.q_proj", x, net.Q, bias);
  Tensor k = net.linear("attention.k_proj", x, net.Q, net.arch.content_to_position);
  Tensor v = net.linear("attention.v_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  Rotated both = turned(net, q, k);
  q = std::move(both.q);
  k = std::move(both.k);
  Tensor out = attention(net, q, k, v, encoder_attention(net));
  return net.linear("attention.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  const bool bias = net.arch.mlp_bias;
  constexpr GatedNames kGated = {"mlp", "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"};
  if (net.arch.gated_mlp) return gated_mlp(net, kGated, kLayer, std::move(hidden), net.F, bias);
  Scope in(net.tape, "mlp", kLayer);
  const Tensor x = std::move(hidden);
  Tensor h = activate(net.arch.activation, net.linear("mlp.up_proj", x, net.F, bias));
  return net.linear("mlp.down_proj", std::move(h), net.H, bias);
}

Tensor scaled(Net& net, const char* name, Tensor x) {
  x = mul(std::move(x), net.parameter(name, "lambda1", Shape{net.H}));
  return drop_path(net, std::move(x), net.arch.drop_path);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = attention_block(net, net.layer_norm("norm1", residual));
  residual = add(scaled(net, "layer_scale1", std::move(h)), residual);
  h = mlp(net, net.layer_norm("norm2", residual));
  return add(scaled(net, "layer_scale2", std::move(h)), residual);
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm("dinov3.norm", std::move(hidden));
}

constexpr HeadForward kHeads[] = {{Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"Model", Head::kNone}};

const Program kProgram = {one_stack<embed, layer, norm>, nullptr, kHeads, OwnLoss::kFp32, {}, inputs};

}  // namespace

constexpr ClassFacts kFacts = {.text_input = false,
                               .named_anew_since = 18,
                               .named_anew = NoSplit::kEmbeddings,
                               .layer_first = "attention.k attention.v"};

const Family kRows[] = {
    {"dinov3_vit", "DINOv3ViT", "DINOv3ViTModel", kClasses, read_config, &kProgram, "dinov3.model.layer", kFacts},
};

extern const FamilyRows dinov3_rows;
const FamilyRows dinov3_rows = kRows;

}  // namespace tidemark
