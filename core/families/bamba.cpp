// Bamba: Mamba-2 or attention of which half of each head turns, then a gated feed-forward, in every layer.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/layers/moe.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_ssm.hpp"

namespace tidemark {
namespace {

enum Kind : std::uint8_t { kMamba, kAttends };

// `attn_layer_indices`: numbers of the layers that attend; none by default.
void read_kinds(ConfigFields& fields, Architecture& architecture) {
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), kMamba);
  const Value* attending = fields.find({"attn_layer_indices"});
  if (attending == nullptr || !attending->is_array()) return;
  for (const Value& layer : attending->items) {
    if (!layer.is_integer() || layer.integer < 0 || layer.integer >= architecture.num_layers) {
      fields.error("INVALID_VALUE", "attn_layer_indices", "A layer of that number does not exist.");
      return;
    }
    architecture.layer_kinds[static_cast<std::size_t>(layer.integer)] = kAttends;
  }
}

// transformers 5.12.1 models/bamba/configuration_bamba.py: BambaConfig, which turns half of each head whatever the file
// says.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 262144);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim / 2;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_kinds(fields, architecture);
  StateSpace& s = architecture.ssm;
  s.width = architecture.hidden_size * fields.count({"mamba_expand"}, 2);
  read_mamba2_sizes(fields, s);
  if (s.heads * s.head_dim != s.width) {
    fields.error("INVALID_VALUE", "mamba_n_heads", "The heads' columns do not add up to the mixer's width.");
  }
  if (fields.number({"z_loss_coefficient"}, 0.0) > 0.0) {
    fields.error("INVALID_VALUE", "z_loss_coefficient", "The loss of the logits' size is not modelled: set it to 0.");
  }
  fields.accept({"time_step_min", "time_step_max", "time_step_limit", "num_logits_to_keep", "attn_rotary_emb",
                 "partial_rotary_factor"});
}

constexpr const char* kModel = "transformers 5.12 models/bamba/modeling_bamba.py: BambaModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/bamba/modeling_bamba.py: BambaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/bamba/modeling_bamba.py: BambaAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/bamba/modeling_bamba.py: BambaMLP.forward";
constexpr GatedNames kFeedForward = {"feed_forward", "feed_forward.gate_proj", "feed_forward.act_fn",
                                     "feed_forward.up_proj", "feed_forward.down_proj"};
constexpr Mamba2Form kMixer = {.module = "mamba",
                               .in_proj = "mamba.in_proj",
                               .conv1d = "mamba.conv1d",
                               .norm = "mamba.norm",
                               .out_proj = "mamba.out_proj",
                               .source = "transformers 5.12 models/bamba/modeling_bamba.py: BambaMixer.torch_forward",
                               .gated_norm = gate_then_norm};

// The torch path masks twice: BambaMixer.forward does, and torch_forward.
Tensor mixer(Net& net, Tensor hidden) {
  if (net.job.torch_scan) hidden = mask_padding(net, std::move(hidden));
  return mamba2_mixer(net, kMixer, std::move(hidden));
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, turn_leading);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == kAttends;
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = attends ? self_attention(net, std::move(h)) : mixer(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "pre_ff_layernorm", std::move(h));
  h = gated_mlp(net, kFeedForward, kMlp, std::move(h), net.F, net.arch.mlp_bias);
  h = add(std::move(residual), std::move(h));
  net.return_weights();
  return h;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.final_layernorm", std::move(hidden));
}

const Program kProgram = {one_stack<embed, layer, norm>, llama_head};

}  // namespace

constexpr ClassFacts kFacts = {.flex_attention = false, .layer_first = "feed_forward"};

const Family kRows[] = {
    {"bamba", "Bamba", "BambaForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows bamba_rows;
const FamilyRows bamba_rows = kRows;

}  // namespace tidemark
