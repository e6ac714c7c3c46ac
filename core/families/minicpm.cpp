// MiniCPM and MiniCPM4: Llama with three factors and rotation in fp32; code beside the weights. No oracle record covers
// it.
#include "core/families/family.hpp"
#include "core/families/remote_code.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// openbmb/MiniCPM-2B-sft-bf16 configuration_minicpm.py: MiniCPMConfig.
void read_minicpm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"scale_emb", "dim_model_base", "scale_depth", "mup_denominator", "sparse_config"});
}

constexpr const char* kModel = "MiniCPM-2B modeling_minicpm.py: MiniCPMModel.forward";
constexpr const char* kNorm = "MiniCPM-2B modeling_minicpm.py: rms_layernorm";
constexpr const char* kLayer = "MiniCPM-2B modeling_minicpm.py: MiniCPMDecoderLayer.forward";
constexpr const char* kAttention = "MiniCPM-2B modeling_minicpm.py: MiniCPMSdpaAttention.forward";
constexpr const char* kHead = "MiniCPM-2B modeling_minicpm.py: MiniCPMForCausalLM.forward";

// Only the mean of the squares is of an fp32 copy.
Tensor minicpm_norm(Net& net, const char* name, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Scope in(net.tape, name, kNorm);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  MeanSquare square = mean_square(to(x, Dtype::kFp32));
  Tensor hidden = mul(x, std::move(square.root));
  hidden = to(std::move(hidden), x.dtype());
  return mul(std::move(hidden), weight);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  embeds = mul_scalar(std::move(embeds));
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, Dtype::kFp32, net.arch.rotary_dim);
  return embeds;
}

Tensor attend(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_in_fp32(n, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

// residual + hidden_states * (scale_depth / √layers)
Tensor layer(Net& net, Tensor hidden) {
  return scaled_layer(net, std::move(hidden), kLayer, minicpm_norm, attend);
}

Tensor norm(Net& net, Tensor hidden) {
  return minicpm_norm(net, "model.norm", std::move(hidden));
}

// The hidden states are divided before the head sees them.
Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  hidden = mul_scalar(std::move(hidden));
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

// MINICPM_ATTENTION_CLASSES: eager, flash_attention_2, sdpa.
const Program kMiniCpmProgram = {.forward = one_stack<embed, layer, norm>,
                                 .lm_head = head,
                                 .attention = {.flash_attention_3 = false},
                                 .remote_code = true,
                                 .check = check_own_code};

const Family kRows[] = {
    {"minicpm", "MiniCPM", "MiniCPMForCausalLM", kLanguageModelOnly, read_minicpm_config, &kMiniCpmProgram},
};

extern const FamilyRows minicpm_rows;
const FamilyRows minicpm_rows = kRows;

}  // namespace tidemark
