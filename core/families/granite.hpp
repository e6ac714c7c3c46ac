#pragma once

#include <vector>

#include "core/layers/moe.hpp"
#include "core/layers/net.hpp"

namespace tidemark {

/// GraniteMoeSharedMLP.forward: gate and up in one matrix.
Tensor granite_shared_mlp(Net& net, Tensor hidden);

/// How a mixture of Granite's kind names its modules.
struct ExpertNames {
  const char *module, *router, *layer;  ///< the whole, what routes, and the linear layer in that
  const char *input, *output;           ///< experts before and behind the activation
};
/// What the router returns of use, a number for each token and expert.
struct ExpertLists {
  Tensor order;                ///< by expert
  Tensor batch_index;          ///< tokens in that order
  Tensor batch_gates, logits;  ///< their weights; what the router made [tokens, experts]
};
/// GraniteMoeTopKGating.forward on [tokens, H].
ExpertLists granite_route(Net& net, const ExpertNames& names, const Tensor& hidden);
/// Rows that each expert gets of so many tokens.
std::vector<Dim> expert_lists(Net& net, Count tokens);
/// GraniteMoeParallelExperts.forward: one product after the other, the pieces put together behind.
Tensor parallel_experts(Net& net, const char* module, Tensor inputs, Dim width, const std::vector<Dim>& rows);
/// What the experts made, weighted and added up to `tokens` [tokens, H], as [B, S, H].
Tensor gated_sum(Net& net, const ExpertLists& lists, Tensor out, const Shape& tokens);
/// GraniteMoeMoE.forward
Tensor granite_moe(Net& net, const ExpertNames& names, Tensor hidden);

/// The same of a router that returns its choice, before experts as all have them (since transformers 5.13): whose
/// files.
struct TopKMoe {
  const char *block, *router;  ///< of the whole and of the router
  ExpertForm experts;          ///< of the experts
};
Tensor granite_topk_moe(Net& net, const TopKMoe& of, Tensor hidden);

}  // namespace tidemark
