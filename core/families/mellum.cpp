// Mellum: Qwen3-MoE, of which some layers slide, with rotary tables of their own.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/mellum/configuration_mellum.py: MellumConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_qwen3_sizes(fields, architecture, 131072, 4, 128);
  const Count window = fields.nullable({"sliding_window"}, 1024).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_window = window;
    architecture.sliding_layers = *types;
  }
  read_experts(fields, architecture, {64, 8, 896}, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"});
  if (fields.has({"mlp_layer_types"})) read_mlp_layer_types(fields, architecture);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  read_aux_loss(fields, architecture);
}

constexpr const char* kModel = "transformers 5.12 models/mellum/modeling_mellum.py: MellumModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/mellum/modeling_mellum.py: MellumDecoderLayer.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables_by_kind(net, embeds.dtype());
  return embeds;
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, qwen3_attention, qwen3_moe_mlp);
}

const Program kProgram = {one_stack<embed, layer, llama_norm>, llama_head, kMoeForwards};

}  // namespace

const Family kRows[] = {
    {"mellum", "Mellum", "MellumForCausalLM", kLanguageModelOnly, read_config, &kProgram},
};

extern const FamilyRows mellum_rows;
const FamilyRows mellum_rows = kRows;

}  // namespace tidemark
