#pragma once

#include "core/layers/net.hpp"

/// The forms of apply_rotary_pos_emb beside Llama's (net.hpp: rotate).
namespace tidemark {

/// Of position_ids and what is looked up by them. Packed rows come with their own, which say where samples begin
/// (transformers 5.12 data/data_collator.py: DataCollatorWithFlattening).
inline Dim rows_of_positions(const Net& net) {
  return net.job.packing ? net.B : Dim(1);
}

/// What apply_rotary_pos_emb returns.
struct Rotated {
  Tensor q, k;
};

/// Only the leading rotary_dim of each head turns; a cat joins the rest (Phi-3). Also where all of it turns.
Tensor rotate_leading(Net& net, Tensor x);
/// The same for q and k at once, where both sums exist before either is joined with its rest (Nemotron).
Rotated rotate_leading_both(Net& net, Tensor q, Tensor k);
/// In the place of q and k.
void turn_leading(Net& net, Tensor& q, Tensor& k);
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
/// The same with each product in fp32 instead, q and k left as they are (ERNIE 4.5). `repeated`: the tables match
/// already.
Rotated rotate_pairs_by_fp32(Net& net, Tensor q, Tensor k, bool repeated = false);
/// x·cos + rotate_every_two(x)·sin, with tables that are repeated already.
Tensor turn_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// With tables that stay in fp32 (OLMo): the products are fp32 too.
Rotated rotate_fp32(Net& net, Tensor q, Tensor k);

/// As complex numbers, pairs of neighbours in fp32 times a table of its own (DeepSeek-V2, Llama 4). `at_once`: each is
/// cast back as it is made, not when both are there.
void complex_rotary_table(Net& net, const char* source);
Rotated rotate_complex(Net& net, Tensor q, Tensor k, bool at_once);

/// Two halves, or every other column and the rest, turned by tables of half a head: x1·cos − x2·sin beside
/// x2·cos + x1·sin.
Tensor turn_parts(const Tensor& x1, const Tensor& x2, const Tensor& cos, const Tensor& sin);
/// Tables of half a head [rows, length, dim / 2], made of positions.
struct HalfTables {
  Tensor cos, sin;
};
HalfTables half_tables(Net& net, const char* source, Dim rows, Dim length, Dtype dtype, Count dim);
/// Those of the sequence, and the halves of a head (gpt-oss).
void half_rotary_tables(Net& net, const char* source, Dtype dtype, Count dim);
Tensor rotate_halves(Net& net, Tensor x);

/// q and k made fp32 first (Baichuan).
Rotated rotate_in_fp32(Net& net, Tensor q, Tensor k);

}  // namespace tidemark
