// MiMo: Qwen2 with layers that would predict further tokens; its forward does not run those. Code beside the weights.
// No oracle record covers it.
#include "core/families/family.hpp"
#include "core/layers/vision.hpp"

namespace tidemark {
namespace {

// XiaomiMiMo/MiMo-7B-Base configuration_mimo.py: MiMoConfig, a Qwen2Config.
void read_mimo_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_qwen_window(fields, architecture);
  Architecture further = architecture;
  further.num_layers = fields.count({"num_nextn_predict_layers"}, 0, 0);
  if (further.num_layers > 0) architecture.parts.push_back(std::move(further));
  fields.accept({"use_mrope"});
}

constexpr const char* kLayers = "MiMo-7B modeling_mimo.py: MiMoMTPLayers.forward";

Tensor further_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayers);
  const Tensor tokens = rms_norm(net, "token_layernorm", hidden);
  const Tensor before = rms_norm(net, "hidden_layernorm", hidden);
  Tensor x = cat({&before, &tokens}, -1);
  x = net.linear("input_proj", std::move(x), net.H);
  x = pre_norm_layer(net, std::move(x), kLayers, llama_attention, llama_mlp);
  return rms_norm(net, "final_layernorm", std::move(x));
}

// What the model holds beside what it runs.
void declare_further(Net& net, const Tensor& hidden) {
  if (net.arch.parts.empty()) return;
  const Declared alone(net, true);
  Net& further = net.part(net.arch.parts.front(), net.B, net.S);
  further.shared = net.shared;
  further.layers({"model.mtp_layers", further.arch.num_layers, further_layer}, hidden);
  further.shared = {};
}

Tensor embed(Net& net) {
  Tensor embeds = llama_embed(net);
  declare_further(net, embeds);
  return embeds;
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), "transformers 5.12 models/qwen2/modeling_qwen2.py: Qwen2DecoderLayer",
                        llama_attention, llama_mlp);
}

}  // namespace

const Program kMiMoProgram = {one_stack<embed, layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"mimo", "MiMo", "MiMoForCausalLM", kLanguageModelOnly, read_mimo_config, &kMiMoProgram},
};

extern const FamilyRows mimo_rows;
const FamilyRows mimo_rows = kRows;

}  // namespace tidemark
