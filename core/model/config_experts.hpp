#pragma once

#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

namespace tidemark {

/// A class's defaults for the sizes of its experts.
struct ExpertDefaults {
  Count count;      ///< E
  Count per_token;  ///< k
  Count width;      ///< of one; 0: it is that of the feed-forward
};
/// Experts, how many of them a token passes through, and their width under `widths`, unless it is `intermediate_size`.
void read_experts(ConfigFields& fields, Architecture& architecture, const ExpertDefaults& defaults,
                  ConfigFields::Spellings counts, ConfigFields::Spellings widths = {});
/// Experts as DeepSeek's files spell them; the shared ones are one feed-forward of their summed width.
void read_routed_experts(ConfigFields& fields, Architecture& architecture, const ExpertDefaults& defaults,
                         Count shared);
/// `n_group` groups of experts, of which a token may choose from `topk_group`.
void read_expert_groups(ConfigFields& fields, Architecture& architecture, Count groups, Count groups_per_token);
/// Qwen's layers: those of `mlp_only_layers` and between the steps of `decoder_sparse_step` have no experts.
void read_sparse_step(ConfigFields& fields, Architecture& architecture);
/// DeepSeek's: the first `first_k_dense_replace` have none.
void read_dense_prefix(ConfigFields& fields, Architecture& architecture, Count class_default);
/// GLM-4.7's: `mlp_layer_types`, by default all but the first are "sparse".
void read_mlp_layer_types(ConfigFields& fields, Architecture& architecture);
/// `output_router_logits`, and the loss's weight, which moves no memory.
void read_aux_loss(ConfigFields& fields, Architecture& architecture);
/// One window for all layers (none for a window of 0).
void slide_everywhere(Architecture& architecture, Count window);
/// DeepSeek's latent attention: ranks and the parts of its heads.
void read_latent_attention(ConfigFields& fields, Architecture& architecture, Count query_rank, Count plain_dim,
                           Count value_dim, Count rank = 512);

}  // namespace tidemark
