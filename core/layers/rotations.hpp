#pragma once

#include "core/layers/net.hpp"

/// The forms of apply_rotary_pos_emb beside Llama's (net.hpp: rotate).
namespace tidemark {

/// What apply_rotary_pos_emb returns.
struct Rotated {
  Tensor q, k;
};

/// Only the leading rotary_dim of each head turns; a cat joins the rest (Phi-3). Also where all of it turns.
Tensor rotate_leading(Net& net, Tensor x);
/// The same for q and k at once, where both sums exist before either is joined with its rest (Nemotron).
Rotated rotate_leading_both(Net& net, Tensor q, Tensor k);
/// The same where the parts are names of the attention's own forward and live until it returns (Phi, StableLM): q and
/// k become the joined heads, and the caller holds the parts.
struct Parts {
  Tensor q_turned, q_rest, k_turned, k_rest;
};
Parts rotate_parts(Net& net, Tensor& q, Tensor& k);
/// Neighbouring elements are pairs, with cos and sin repeated to match in every layer (GLM, Helium). `leading`: the
/// rest of the head is joined by a cat (GLM).
Rotated rotate_pairs(Net& net, Tensor q, Tensor k, bool leading);
/// In fp32, whatever q and k are, with neighbouring elements as pairs (Cohere).
Rotated rotate_pairs_fp32(Net& net, Tensor q, Tensor k);
/// The same with each product in fp32 instead, q and k left as they are (ERNIE 4.5).
Rotated rotate_pairs_by_fp32(Net& net, Tensor q, Tensor k);
/// x·cos + rotate_every_two(x)·sin, with tables that are repeated already.
Tensor turn_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// With tables that stay in fp32 (OLMo): the products are fp32 too.
Rotated rotate_fp32(Net& net, Tensor q, Tensor k);

/// q and k made fp32 first (Baichuan).
Rotated rotate_in_fp32(Net& net, Tensor q, Tensor k);

}  // namespace tidemark
