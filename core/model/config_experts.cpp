#include "core/model/config_experts.hpp"

#include <string>

#include "core/model/config_common.hpp"

namespace tidemark {

void read_experts(ConfigFields& fields, Architecture& architecture, const ExpertDefaults& defaults,
                  ConfigFields::Spellings counts, ConfigFields::Spellings widths) {
  Experts& e = architecture.experts;
  e.count = fields.count(counts, defaults.count);
  e.per_token = fields.count({"num_experts_per_tok"}, defaults.per_token);
  e.width = defaults.width == 0 ? architecture.intermediate_size : fields.count(widths, defaults.width);
  if (e.per_token > e.count) {
    fields.error("INVALID_VALUE", "num_experts_per_tok",
                 "A token cannot pass through " + std::to_string(e.per_token) + " of " + std::to_string(e.count) +
                     " experts: torch.topk fails.");
  }
}

void read_routed_experts(ConfigFields& fields, Architecture& architecture, const ExpertDefaults& defaults,
                         Count shared) {
  read_experts(fields, architecture, defaults, {"n_routed_experts", "num_local_experts", "num_experts"},
               {"moe_intermediate_size"});
  fields.accept({"routed_scaling_factor", "aux_loss_alpha", "seq_aux", "ep_size", "moe_layer_freq", "scoring_func",
                 "num_nextn_predict_layers"});
  Experts& e = architecture.experts;
  e.shared_width = e.width * fields.count({"n_shared_experts", "num_shared_experts"}, shared);
}

void read_expert_groups(ConfigFields& fields, Architecture& architecture, Count groups, Count groups_per_token) {
  Experts& e = architecture.experts;
  e.groups = fields.nullable({"n_group"}, groups).value_or(1);
  e.groups_per_token = fields.nullable({"topk_group"}, groups_per_token).value_or(1);
  if (e.count % e.groups != 0 || e.groups_per_token > e.groups) {
    fields.error("INVALID_VALUE", "n_group",
                 "The experts do not divide into groups of which \"topk_group\" are taken.");
  }
}

void read_sparse_step(ConfigFields& fields, Architecture& architecture) {
  const Count step = fields.count({"decoder_sparse_step"}, 1);
  const Value* dense = fields.find({"mlp_only_layers"});
  LayerFlags& flags = architecture.experts.dense_layers;
  bool any = false;
  for (Count layer = 0; layer < architecture.num_layers; ++layer) {
    bool is_dense = (layer + 1) % step != 0;
    if (dense != nullptr && dense->is_array()) {
      for (const Value& item : dense->items) is_dense = is_dense || item.real == static_cast<double>(layer);
    }
    flags.push_back(is_dense);
    any = any || is_dense;
  }
  if (!any) flags.clear();
}

void read_dense_prefix(ConfigFields& fields, Architecture& architecture, Count class_default) {
  const Count prefix = fields.count({"first_k_dense_replace"}, class_default, 0);
  for (Count layer = 0; layer < architecture.num_layers && prefix > 0; ++layer) {
    architecture.experts.dense_layers.push_back(layer < prefix);
  }
}

void read_mlp_layer_types(ConfigFields& fields, Architecture& architecture) {
  const Value* const types = list_of_layers(fields, "mlp_layer_types", architecture.num_layers);
  for (Count layer = 0; layer < architecture.num_layers; ++layer) {
    const bool dense = types != nullptr ? types->items[static_cast<std::size_t>(layer)].string != "sparse" : layer == 0;
    architecture.experts.dense_layers.push_back(dense);
  }
}

void read_aux_loss(ConfigFields& fields, Architecture& architecture) {
  architecture.experts.aux_loss = fields.flag({"output_router_logits"}, false);
  fields.accept({"router_aux_loss_coef"});
}

void slide_everywhere(Architecture& architecture, Count window) {
  architecture.sliding_window = window;
  if (window > 0) architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), 1);
}

void read_latent_attention(ConfigFields& fields, Architecture& architecture, Count query_rank, Count plain_dim,
                           Count value_dim, Count rank) {
  LatentAttention& a = architecture.latent;
  a.query_rank = fields.nullable({"q_lora_rank"}, query_rank).value_or(0);
  a.rank = fields.count({"kv_lora_rank"}, rank);
  a.rope_dim = fields.count({"qk_rope_head_dim"}, 64);
  a.plain_dim = fields.count({"qk_nope_head_dim"}, plain_dim);
  a.value_dim = fields.count({"v_head_dim"}, value_dim);
  // Each head of q and k has both parts; the key that PreTrainedConfig calls `head_dim` is the part that rotates.
  architecture.head_dim = a.plain_dim + a.rope_dim;
  architecture.rotary_dim = a.rope_dim;
  fields.accept({"head_dim", "qk_head_dim"});
}

}  // namespace tidemark
