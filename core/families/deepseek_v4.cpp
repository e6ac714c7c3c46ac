// DeepSeek-V4: four residual streams that each half of a layer mixes anew (manifold-constrained hyper-connections);
// attention with one head of keys and values to a window of tokens and to stretches of those before, each of which
// became one key; a few layers whose experts a table chooses by token.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/vision.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

/// Architecture::layer_kinds: how a layer attends, and whether a table chooses its experts.
enum : std::uint8_t { kSliding = 0, kChosen = 1, kAll = 2, kAttends = 3, kByTable = 4 };

std::uint8_t attention_kind(const Value& type) {
  if (type.string == "compressed_sparse_attention" || type.integer == 4) return kChosen;
  return type.string == "heavily_compressed_attention" || type.integer > 4 ? kAll : kSliding;
}

// DeepseekV4Config.__post_init__: by name, by how many tokens a stretch has, or two of many and then in turns.
void read_layers(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"layer_types", "compress_ratios"});
  const Value* experts = fields.find({"mlp_layer_types"});
  const Count by_table = fields.count({"num_hash_layers"}, 3, 0);
  const auto has = [&](const Value* list, std::size_t i) { return list != nullptr && i < list->items.size(); };
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::uint8_t kind = i >= 2 && i % 2 != 0 ? kChosen : kAll;
    if (types != nullptr && types->is_array()) {
      if (!has(types, at)) {
        return fields.error("INVALID_VALUE", "layer_types", "\"layer_types\" must be a list with one entry per layer.");
      }
      kind = attention_kind(types->items[at]);
    }
    const bool listed = experts != nullptr && experts->is_array();
    const bool hashes = listed ? has(experts, at) && experts->items[at].string == "hash_moe" : i < by_table;
    architecture.layer_kinds.push_back(static_cast<std::uint8_t>(kind + (hashes ? kByTable : 0)));
  }
}

// transformers 5.12.1 models/deepseek_v4/configuration_deepseek_v4.py: DeepseekV4Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 1048576);
  architecture.num_kv_heads = 1;  // whatever num_key_value_heads says
  architecture.head_dim = fields.count({"head_dim"}, 512);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.count({"sliding_window"}, 128);
  read_routed_experts(fields, architecture, {256, 6, 2048}, 1);
  architecture.intermediate_size = architecture.experts.width;
  read_rotary_factor(fields, architecture, 64.0 / 512);
  LatentAttention& a = architecture.latent;
  a.rope_dim = fields.count({"qk_rope_head_dim"}, architecture.rotary_dim);
  a.query_rank = fields.count({"q_lora_rank"}, 1024);
  a.index_heads = fields.count({"index_n_heads"}, 64);
  a.index_dim = fields.count({"index_head_dim"}, 128);
  a.index_tokens = fields.count({"index_topk"}, 512);
  CompressedAttention& c = architecture.compressed;
  const Value* rates = fields.find({"compress_rates"});
  const auto rate_of = [&](std::string_view kind, std::string_view key, Count standard) {
    const Value* stated = rates == nullptr ? nullptr : rates->find(kind);
    return stated != nullptr && stated->integer > 0 ? stated->integer : fields.count({key}, standard);
  };
  c.few = rate_of("compressed_sparse_attention", "compress_rate_csa", 4);
  c.many = rate_of("heavily_compressed_attention", "compress_rate_hca", 128);
  c.groups = fields.count({"o_groups"}, 8);
  c.group_rank = fields.count({"o_lora_rank"}, 1024);
  c.streams = fields.count({"hc_mult"}, 4);
  c.iterations = fields.count({"hc_sinkhorn_iters"}, 20);
  constexpr Count kMostIterations = 100;  // each is a few tensors of every layer
  if (c.iterations > kMostIterations) {
    fields.error("INVALID_VALUE", "hc_sinkhorn_iters", "Up to 100 of Sinkhorn's iterations are modelled.");
    c.iterations = kMostIterations;
  }
  read_layers(fields, architecture);
  if (architecture.num_heads % c.groups != 0) {
    fields.error("INVALID_VALUE", "o_groups", "\"o_groups\" must divide \"num_attention_heads\".");
  }
  read_aux_loss(fields, architecture);
  fields.accept({"num_key_value_heads", "expert_dtype", "compress_rope_theta", "hc_eps", "norm_topk_prob",
                 "swiglu_limit", "attention_bias", "mlp_bias", "topk_method", "router_jitter_noise"});
}

constexpr const char* kModel = "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4Model.forward";
constexpr const char* kNorm = "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4RMSNorm.forward";
constexpr const char* kBare =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4UnweightedRMSNorm.forward";
constexpr const char* kRotate = "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: apply_rotary_pos_emb";
constexpr const char* kRotary =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4RotaryEmbedding.forward";
constexpr const char* kMany =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4HCACompressor.forward";
constexpr const char* kFew =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4CSACompressor.forward";
constexpr const char* kIndexer =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4Indexer.forward";
constexpr const char* kScorer =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4IndexerScorer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4Attention.forward";
constexpr const char* kEager = "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: eager_attention_forward";
constexpr const char* kHyper =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4HyperConnection.forward";
constexpr const char* kHyperHead =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4HyperHead.forward";
constexpr const char* kRouter =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4TopKRouter.forward";
constexpr const char* kShared = "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4MLP.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4SparseMoeBlock.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4DecoderLayer.forward";
constexpr const char* kCache =
    "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4HCACache, DeepseekV4CSACache";

std::uint8_t kind_of(const Net& net) {
  return net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
}

// Until transformers 5.13 the model makes a cache whether it is asked for one or not, and keeps it until its forward
// returns; checkpointed layers are not handed it (modeling_layers.py GradientCheckpointingLayer).
bool caches(const Net& net) {
  if (net.job.framework.at_least(5, 14)) return net.kv_cache() != nullptr;
  return net.evaluates || !checkpointed(net.job, net.layer_index);
}

void keep(Net& net, Tensor entry) {
  net.handed_out.emplace_back(net.tape.instance(), std::move(entry));
}

// -- norms and rotations ---------------------------------------------------------------------------------------------

// `_keep_in_fp32_modules_strict` names all norms: what they return is fp32.
Tensor norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kNorm);
  Tensor weight = net.fp32_parameter(name, "weight", Shape{x_in.dim(-1)}, true);
  if (!net.job.framework.at_least(5, 20)) return normed_by(std::move(weight), std::move(x_in));
  const Dtype dtype = x_in.dtype();  // since then it is narrowed at the end, behind the weight
  Tensor h = to(std::move(x_in), Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  return to(mul(std::move(weight), std::move(h)), dtype);
}

Tensor bare_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kBare);
  const Tensor x = std::move(x_in);
  Tensor root;
  {
    Tensor square = power(to(x, Dtype::kFp32));
    root = mean_last(std::move(square));
    root = add_scalar(std::move(root));
    root = rsqrt(std::move(root));
    root = to(std::move(root), x.dtype());
  }
  return mul(x, std::move(root));
}

// For queries and keys, or for stretches.
HalfTables tables(Net& net, Dim rows, Dim length, Dtype dtype) {
  return half_tables(net, kRotary, rows, length, dtype, net.arch.latent.rope_dim);
}

void table_buffers(Net& net) {
  constexpr Count kTables = 4;  // two thetas, each with a copy
  for (Count i = 0; i < kTables; ++i) net.tape.buffer("rotary_emb.inv_freq", net.arch.latent.rope_dim / 2 * 4);
}

// The trailing columns of x [B, heads, S, …], in fp32 as pairs of neighbours.
Tensor turn(Net& net, Tensor x_in, const HalfTables& by) {
  Scope in(net.tape, "", kRotate);
  const Tensor x = std::move(x_in);
  const Shape& half = by.cos.shape();
  const Dim rope(net.arch.latent.rope_dim), rest(x.size(-1) - rope.n());
  const Shape table{half.dim(0), Dim(1), half.dim(1), rope};
  const Tensor cos = net.tape.allocate(table, by.cos.dtype(), "repeat_interleave");
  const Tensor sin = net.tape.allocate(table, by.sin.dtype(), "repeat_interleave");
  const Tensor nope = narrow(x, -1, 0, rest), part = narrow(x, -1, rest.n(), rope);
  Tensor rotated;
  {
    Tensor straight = mul(to(part, Dtype::kFp32), cos);
    Tensor other;
    {
      const Tensor x1 = every_other(part, 0), x2 = every_other(part, 1);
      Tensor minus = neg(x2);
      other = stack_last(minus, x1);
    }
    other = view(std::move(other), part.shape());
    other = mul(to(std::move(other), Dtype::kFp32), sin);
    Tensor sum = add(straight, other);
    rotated = to(std::move(sum), x.dtype());
  }
  return cat({&nope, &rotated}, -1);
}

// -- stretches of tokens that become one key each --------------------------------------------------------------------

/// The modules of a compressor.
struct CompressorNames {
  const char *module, *kv, *gate, *norm;
};
constexpr CompressorNames kOuter = {"self_attn.compressor", "self_attn.compressor.kv_proj",
                                    "self_attn.compressor.gate_proj", "self_attn.compressor.kv_norm"};
constexpr CompressorNames kInner = {"self_attn.compressor.indexer", "self_attn.compressor.indexer.kv_proj",
                                    "self_attn.compressor.indexer.gate_proj", "self_attn.compressor.indexer.kv_norm"};

/// A stretch's keys [B, n, tokens, width] and their weights, fp32.
struct Windows {
  Tensor keys, gates;
};

/// What a forward keeps by name until it returns.
using Locals = std::vector<Tensor>;

// softmax over a stretch's tokens, the weighted sum, its norm and its turn: [B, n, width] fp32.
Tensor pool(Net& net, const CompressorNames& names, const Windows& of, Locals& locals) {
  Tensor compressed;
  {
    Tensor weights = to(softmax(of.gates, Dtype::kFp32), of.keys.dtype());
    Tensor weighted = mul(of.keys, std::move(weights));
    compressed = sum_over(std::move(weighted), 2, false);
  }
  compressed = norm(net, names.norm, std::move(compressed));
  const HalfTables by = tables(net, net.B, compressed.dim(1), compressed.dtype());
  locals.insert(locals.end(), {of.keys, of.gates, by.cos, by.sin});
  const Shape shape = compressed.shape();
  return view(turn(net, unsqueeze(std::move(compressed), 1), by), shape);
}

// Neighbouring stretches overlap: each also has the tokens of the one before, with other columns.
Windows overlapped(Net& net, const Windows& of, Dim width, Count tokens) {
  const Dim n = of.keys.dim(1);
  const Shape full{net.B, n, Dim(2 * tokens), width}, half{net.B, n, Dim(tokens), width};
  Windows made{zeros(net.tape, full, of.keys.dtype(), "new_zeros"),
               net.tape.allocate(full, of.gates.dtype(), "new_full")};
  made.keys = copy_into(std::move(made.keys), half, narrow(of.keys, -1, width.n(), width));
  made.gates = copy_into(std::move(made.gates), half, narrow(of.gates, -1, width.n(), width));
  if (n.n() > 1) {
    const Dim others(n.n() - 1);
    const Shape behind{net.B, others, Dim(tokens), width};
    const auto before = [&](const Tensor& x) { return narrow(narrow(x, 1, 0, others), -1, 0, width); };
    made.keys = copy_into(std::move(made.keys), behind, before(of.keys));
    made.gates = copy_into(std::move(made.gates), behind, before(of.gates));
  }
  if (caches(net)) {  // update_overlap_state
    for (const Tensor* one : {&of.keys, &of.gates}) {
      keep(net, clone(select(narrow(narrow(*one, 1, 0, Dim(1)), -1, 0, width), 1)));
    }
  }
  return made;
}

// A compressor's forward up to its keys: [B, n, width].
Tensor compress(Net& net, const CompressorNames& names, const Tensor& x, Dim width, Count tokens, bool overlaps,
                Locals& locals) {
  const Dim columns(overlaps ? 2 * width.n() : width.n());
  const Tensor kv = net.wide_linear(names.kv, x, columns);
  const Tensor gate = net.wide_linear(names.gate, x, columns);
  const Tensor bias = net.fp32_parameter(names.module, "position_bias", Shape{Dim(tokens), columns}, true);
  const Dim n(net.tape.quotient(net.S.n(), tokens));
  if (caches(net)) {
    keep(net, kv);
    keep(net, gate);
  }
  if (n.n() == 0) {  // what is there all the same
    net.fp32_parameter(names.norm, "weight", Shape{width}, true);
    return zeros(net.tape, Shape{net.B, n, width}, kv.dtype(), "new_zeros");
  }
  const Dim usable(n.n() * tokens);
  const Shape shape{net.B, n, Dim(tokens), columns};
  Windows windows;
  windows.keys = view(narrow(kv, 1, 0, usable), shape);
  windows.gates = add(view(narrow(gate, 1, 0, usable), shape), bias);
  locals = {kv, gate, windows.gates};
  if (overlaps) windows = overlapped(net, windows, width, tokens);
  Tensor compressed = pool(net, names, windows, locals);
  if (caches(net)) keep(net, compressed);
  return compressed;
}

// (position_ids + 1) // tokens, and which stretches lie behind: [1, S, n].
Tensor later_stretches(Net& net, Dim n) {
  Tape& t = net.tape;
  const Tensor numbers = t.allocate(Shape{n}, Dtype::kInt64, "arange");
  const Tensor threshold = t.allocate(Shape{Dim(1), net.S}, Dtype::kInt64, "floor_divide");
  return t.allocate(Shape{Dim(1), net.S, n}, Dtype::kBool, "ge");
}

// DeepseekV4IndexerScorer.forward: [B, S, n] fp32.
Tensor scores_of(Net& net, const Tensor& q, const Tensor& keys, const Tensor& x) {
  Scope in(net.tape, "self_attn.compressor.indexer.scorer", kScorer);
  const Dim heads(net.arch.latent.index_heads), n = keys.dim(1);
  Tensor scores = index_products(net, q, keys);
  scores = view(std::move(scores), Shape{net.B, net.S, heads, n});
  scores = relu(std::move(scores));
  scores = mul_scalar(std::move(scores));
  Tensor weights = net.wide_linear("self_attn.compressor.indexer.scorer.weights_proj", x, heads);
  weights = to(std::move(weights), Dtype::kFp32);
  weights = mul_scalar(std::move(weights));
  Tensor weighted = mul(scores, unsqueeze(weights, -1));
  return sum_over(std::move(weighted), 2, false);
}

// DeepseekV4Indexer.forward: the stretches that each token attends to, [B, S, k] int64.
Tensor chosen(Net& net, const Tensor& x, const Tensor& q_residual) {
  Scope in(net.tape, "self_attn.compressor.indexer", kIndexer);
  Tape& t = net.tape;
  const LatentAttention& a = net.arch.latent;
  const Dim heads(a.index_heads), width(a.index_dim);
  table_buffers(net);
  Locals locals;
  const Tensor keys = compress(net, kInner, x, width, net.arch.compressed.few, true, locals);
  const HalfTables by = tables(net, Dim(1), net.S, x.dtype());
  Tensor q = net.linear("self_attn.compressor.indexer.q_b_proj", q_residual, Dim(a.index_heads * a.index_dim));
  q = split_heads(net, std::move(q), heads, width);
  q = transpose(turn(net, q, by), 1, 2);
  Tensor scores = scores_of(net, q, keys, x);
  const Dim n = keys.dim(1), k(t.above(n.n(), a.index_tokens) ? a.index_tokens : n.n());
  const Tensor later = later_stretches(net, n);
  scores = masked_fill(scores, later);
  const Tensor best = topk(scores, k).indices;
  const Tensor invalid = t.allocate(best.shape(), Dtype::kBool, "ge");
  const Tensor none = t.allocate(best.shape(), Dtype::kInt64, "full_like");
  return t.allocate(best.shape(), Dtype::kInt64, "where");
}

/// Keys of stretches [B, 1, n, hd] fp32, and what hides those that a token does not attend to [B, 1, S, n].
struct Compressed {
  Tensor keys, bias;
};

Compressed compress_many(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn.compressor", kMany);
  table_buffers(net);
  Compressed made;
  Locals locals;
  made.keys = unsqueeze(compress(net, kOuter, x, net.hd, net.arch.compressed.many, false, locals), 1);
  const Dim n = made.keys.dim(2);
  if (n.n() == 0) return made;
  const Tensor later = later_stretches(net, n);
  const Tensor bias = zeros(net.tape, Shape{net.B, Dim(1), net.S, n}, made.keys.dtype(), "new_zeros");
  made.bias = masked_fill(bias, view(later, Shape{Dim(1), Dim(1), net.S, n}));
  return made;
}

Compressed compress_few(Net& net, const Tensor& x, const Tensor& q_residual) {
  Scope in(net.tape, "self_attn.compressor", kFew);
  Tape& t = net.tape;
  table_buffers(net);
  Compressed made;
  Locals locals;
  made.keys = unsqueeze(compress(net, kOuter, x, net.hd, net.arch.compressed.few, true, locals), 1);
  const Tensor best = chosen(net, x, q_residual);
  const Dim n = made.keys.dim(2);
  const Tensor valid = t.allocate(best.shape(), Dtype::kBool, "ge");
  Tensor safe;
  {
    const Tensor last = t.allocate(best.shape(), Dtype::kInt64, "full_like");
    safe = t.allocate(best.shape(), Dtype::kInt64, "where");
  }
  const Tensor bias = t.allocate(Shape{net.B, Dim(1), net.S, Dim(n.n() + 1)}, made.keys.dtype(), "new_full");
  made.bias = narrow(bias, -1, 0, n);
  return made;
}

// -- attention -------------------------------------------------------------------------------------------------------

// DeepseekV4GroupedLinear.forward: each group of heads by its own part of the weight.
Tensor grouped_output(Net& net, Tensor out) {
  const CompressedAttention& c = net.arch.compressed;
  const Dim groups(c.groups), rank(c.group_rank), width(net.A.n() * net.hd.n() / c.groups);
  Scope in(net.tape, "self_attn.o_a_proj", kAttention);
  Tensor weight = net.linear_weight("self_attn.o_a_proj", Dim(c.groups * c.group_rank), width);
  weight = transpose(view(std::move(weight), Shape{groups, rank, width}), 1, 2);
  Tensor x = transpose(view(std::move(out), Shape{net.T, groups, width}), 0, 1);
  Tensor y = transpose(matmul(x, weight), 0, 1);
  return reshape(std::move(y), Shape{net.B, net.S, Dim(c.groups * c.group_rank)});
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const std::uint8_t kind = kind_of(net) & kAttends;
  const HalfTables by = kind == kSliding ? HalfTables{net.shared.cos, net.shared.sin}
                                         : HalfTables{net.shared.local_cos, net.shared.local_sin};
  const Tensor q_residual =
      norm(net, "self_attn.q_a_norm", net.linear("self_attn.q_a_proj", x, Dim(net.arch.latent.query_rank)));
  Tensor q = net.linear("self_attn.q_b_proj", q_residual, net.Q);
  q = split_heads(net, std::move(q), net.A, net.hd);
  q = bare_norm(net, "self_attn.q_b_norm", std::move(q));
  q = turn(net, std::move(q), by);
  Tensor kv = norm(net, "self_attn.kv_norm", net.linear("self_attn.kv_proj", x, net.hd));
  kv = turn(net, split_heads(net, std::move(kv), Dim(1), net.hd), by);
  if (caches(net)) {
    Scope update(net.tape, "past_key_values", kCache);
    Tensor full = clone(kv);
    if (kind == kSliding) keep(net, clone(kv));  // cache_utils.py DynamicSlidingWindowLayer: of values, too
    keep(net, full);
    kv = std::move(full);
  }
  Tensor mask = layer_mask(net);
  Compressed compressed;
  if (kind != kSliding) {
    compressed = kind == kAll ? compress_many(net, x) : compress_few(net, x, q_residual);
    kv = cat({&kv, &compressed.keys}, 2);
    if (mask.defined() && compressed.bias.defined()) {
      const Tensor bias = to(compressed.bias, mask.dtype());
      mask = cat({&mask, &bias}, -1);
    }
  }
  AttentionOptions options;
  options.mask = mask;
  options.dropout = net.arch.attention_dropout;
  const Tensor sinks = net.fp32_parameter("self_attn", "sinks", Shape{net.A}, true);
  Tensor out = attend_with_sinks(net, kEager, q, kv, kv, sinks, options);
  {
    const HalfTables back{by.cos, net.tape.allocate(by.sin.shape(), by.sin.dtype(), "neg")};
    out = turn(net, transpose(std::move(out), 1, 2), back);
    out = transpose(std::move(out), 1, 2);
  }
  Tensor grouped =
      reshape(out, Shape{net.B, net.S, Dim(net.arch.compressed.groups), Dim(net.Q.n() / net.arch.compressed.groups)});
  grouped = grouped_output(net, std::move(grouped));
  return net.linear("self_attn.o_b_proj", std::move(grouped), net.H);
}

// -- residual streams ------------------------------------------------------------------------------------------------

/// How a half of the layer reads the streams, and what it is added to them by.
struct Mixed {
  Tensor post, comb, collapsed;
};

// pre.unsqueeze(-1) · streams, summed over the streams.
Tensor collapse(const Tensor& pre, const Tensor& streams) {
  Tensor weighted = mul(unsqueeze(pre, -1), streams);
  return to(sum_over(std::move(weighted), 2, false), streams.dtype());
}

Tensor normalised(Tensor comb, int dim) {
  Tensor sum = sum_over(comb, dim, true);
  sum = add_scalar(std::move(sum));
  return div(std::move(comb), std::move(sum));
}

/// The module's parameters, all in fp32.
struct HyperNames {
  const char *module, *norm;
};

Mixed hyper_connection(Net& net, const HyperNames& names, const Tensor& streams) {
  Scope in(net.tape, names.module, kHyper);
  const CompressedAttention& c = net.arch.compressed;
  const Dim n(c.streams), pairs(c.streams * c.streams), all(c.streams * (c.streams + 2)), wide(c.streams * net.H.n());
  const Tensor fn = net.fp32_parameter(names.module, "fn", Shape{all, wide}, true);
  const Tensor base = net.fp32_parameter(names.module, "base", Shape{all}, true);
  const Tensor scale = net.fp32_parameter(names.module, "scale", Shape{Dim(3)}, true);
  const Tensor flat = bare_norm(net, names.norm, to(view(streams, Shape{net.B, net.S, wide}), Dtype::kFp32));
  const Pieces w = split(linear(flat, fn), -1, {n, n, pairs});
  const Pieces b = split(base, -1, {n, n, pairs});
  const Pieces s = unbind(scale, 0);
  Tensor pre = add_scalar(sigmoid(add(mul(w.part[0], s.part[0]), b.part[0])));
  Mixed made;
  made.post = mul_scalar(sigmoid(add(mul(w.part[1], s.part[1]), b.part[1])));
  const Shape square{net.B, net.S, n, n};
  const Tensor logits = add(mul(view(w.part[2], square), s.part[2]), view(b.part[2], Shape{n, n}));
  made.comb = add_scalar(softmax(logits));
  made.comb = normalised(std::move(made.comb), -2);
  for (Count i = 1; i < c.iterations; ++i) {
    made.comb = normalised(std::move(made.comb), -1);
    made.comb = normalised(std::move(made.comb), -2);
  }
  made.collapsed = collapse(pre, streams);
  return made;
}

// post · out, and the streams mixed by comb.
Tensor spread(Net& net, const Mixed& by, const Tensor& out, const Tensor& streams) {
  const Dtype dtype = streams.dtype();
  const Tensor added = mul(unsqueeze(to(by.post, dtype), -1), unsqueeze(out, -2));
  const Dim n(net.arch.compressed.streams);
  Tensor left = transpose(to(by.comb, dtype), -1, -2);
  left = view(std::move(left), Shape{net.T, n, n});
  Tensor mixed = matmul(left, view(streams, Shape{net.T, n, net.H}));
  return add(added, view(std::move(mixed), streams.shape()));
}

// -- experts ---------------------------------------------------------------------------------------------------------

Tensor clamped(Net& net, Tensor gate_in, Tensor up_in) {
  Tensor gate = clamp(std::move(gate_in)), up = clamp(std::move(up_in));
  Tensor active = activate(net.arch.activation, std::move(gate));
  return mul(std::move(active), std::move(up));
}

Tensor apply_gate(Net& net, const ExpertForm&, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  const Dim half(gate_up.size(-1) / 2);
  Pieces halves = split(gate_up, -1, {half, half});
  return clamped(net, std::move(halves.part[0]), std::move(halves.part[1]));
}

constexpr ExpertForm kForm = {.source =
                                  "transformers 5.12 models/deepseek_v4/modeling_deepseek_v4.py: "
                                  "DeepseekV4Experts.forward",
                              .gate = apply_gate};

// F.softplus(x).sqrt(), one of ACT2FN; the weights are those of the chosen, divided by their sum.
Routing route(Net& net, const Tensor& flat) {
  Scope in(net.tape, "mlp.gate", kRouter);
  Tape& t = net.tape;
  const Experts& e = net.arch.experts;
  const Dim experts(e.count), k(e.per_token);
  const Tensor weight = net.parameter("mlp.gate", "weight", Shape{experts, net.H});
  Routing r;
  r.logits = linear(flat, weight);
  const Tensor scores = sqrt(softplus(r.logits));
  if ((kind_of(net) & kByTable) != 0) {
    t.buffer("mlp.gate.tid2eid", net.arch.vocab_size * e.per_token * 8);
    r.indices = t.allocate(Shape{net.T, k}, Dtype::kInt64, "index");
  } else {
    t.buffer("mlp.gate.e_score_correction_bias", 4 * e.count);
    const Tensor corrected = add(scores, t.part_of_buffer(Shape{experts}, Dtype::kFp32));
    r.indices = topk(corrected, k).indices;
    keep_router_logits(net, r.logits);
  }
  Tensor weights = gather_last(scores, r.indices);
  {
    Tensor sum = sum_over(weights, -1, true);
    sum = add_scalar(std::move(sum));
    weights = div(std::move(weights), std::move(sum));
  }
  r.weights = mul_scalar(std::move(weights));
  mask_others(net, r);
  return r;
}

Tensor shared_experts(Net& net, const Tensor& x) {
  Scope in(net.tape, "mlp.shared_experts", kShared);
  const Dim width(net.arch.experts.shared_width);
  Tensor gate = clamp(net.linear("mlp.shared_experts.gate_proj", x, width));
  Tensor up = clamp(net.linear("mlp.shared_experts.up_proj", x, width));
  Tensor active = activate(net.arch.activation, gate);
  return net.linear("mlp.shared_experts.down_proj", mul(std::move(active), up), net.H);
}

Tensor mlp(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = std::move(hidden_in);
  const Tensor flat = as_tokens(net, hidden);
  const Routing routing = route(net, flat);
  Tensor routed = as_sequences(net, run_experts(net, kForm, flat, routing.indices, routing.weights));
  return add(std::move(routed), shared_experts(net, hidden));
}

// -- the model -------------------------------------------------------------------------------------------------------

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  constexpr HyperNames kAttentionNames = {"attn_hc", "attn_hc.input_norm"},
                       kExpertNames = {"ffn_hc", "ffn_hc.input_norm"};
  Mixed by = hyper_connection(net, kAttentionNames, hidden);
  const Tensor attended = self_attention(net, norm(net, "input_layernorm", by.collapsed));
  hidden = spread(net, by, attended, hidden);
  by = hyper_connection(net, kExpertNames, hidden);
  const Tensor made = mlp(net, norm(net, "post_attention_layernorm", by.collapsed));
  return spread(net, by, made, hidden);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  const Dim streams(net.arch.compressed.streams);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, {true, false, false});
  table_buffers(net);
  Tensor hidden = contiguous(expand(unsqueeze(embeds, 2), Shape{net.B, net.S, streams, net.H}));
  HalfTables main = tables(net, Dim(1), net.S, embeds.dtype());
  HalfTables of_stretches = tables(net, Dim(1), net.S, embeds.dtype());
  net.shared.cos = std::move(main.cos);
  net.shared.sin = std::move(main.sin);
  net.shared.local_cos = std::move(of_stretches.cos);
  net.shared.local_sin = std::move(of_stretches.sin);
  return hidden;
}

// DeepseekV4HyperHead.forward, and the norm behind it.
Tensor leave(Net& net, Tensor streams) {
  const CompressedAttention& c = net.arch.compressed;
  Tensor collapsed;
  {
    Scope in(net.tape, "model.hc_head", kHyperHead);
    const Dim n(c.streams), wide(c.streams * net.H.n());
    const Tensor fn = net.fp32_parameter("model.hc_head", "hc_fn", Shape{n, wide}, true);
    const Tensor base = net.fp32_parameter("model.hc_head", "hc_base", Shape{n}, true);
    const Tensor scale = net.fp32_parameter("model.hc_head", "hc_scale", Shape{Dim(1)}, true);
    const Tensor flat =
        bare_norm(net, "model.hc_head.input_norm", to(view(streams, Shape{net.B, net.S, wide}), Dtype::kFp32));
    const Tensor mixes = linear(flat, fn);
    const Tensor pre = add_scalar(sigmoid(add(mul(mixes, scale), base)));
    collapsed = collapse(pre, streams);
  }
  Tensor last = norm(net, "model.norm", std::move(collapsed));
  net.let_handed_out_go();
  return last;
}

bool names(const ModuleChoice& targets, std::string_view module) {
  return std::find(targets.names.begin(), targets.names.end(), module) != targets.names.end();
}

// peft tuners/lora/layer.py Linear.forward adds B(A(x)), of all groups' columns, to what each group alone has.
void check_output_is_left(const ModuleChoice& targets, Issues& issues) {
  if (targets.kind != ModuleChoice::Kind::kAllLinear && !names(targets, "o_a_proj")) return;
  issues.push_back(
      {"INVALID_VALUE", Severity::kError, "/adapter/target_modules",
       "DeepSeek-V4's \"o_a_proj\" projects groups of heads apart, which PEFT's adapter does not: its forward "
       "fails with a shape error. Name other modules, for example q_a_proj, q_b_proj and kv_proj.",
       ""});
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  const ModuleChoice& targets = job.adapter.target_modules;
  const bool adapts = job.has_adapter() && !job.adapter.learns_prompt();
  if (adapts) check_output_is_left(targets, issues);
  if (is_half(job.recipe.weights) && !job.recipe.autocast && !job.runs_deepspeed()) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/precision",
                      "DeepSeek-V4's norms stay in fp32, and linear layers of 16 bits refuse what they return. Use "
                      "\"bf16_amp\" or \"amp_bf16\".",
                      "bf16_amp"});
  }
}

// DeepseekV4PreTrainedModel: _supports_sdpa and _supports_flash_attn are false.
const Program kProgram = {.forward = one_stack<embed, layer, leave>,
                          .lm_head = llama_head,
                          .heads = kMoeForwards,
                          .attention = kEagerAlone,
                          .check = check};

const Family kRows[] = {
    {"deepseek_v4", "DeepseekV4", "DeepseekV4ForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers,
     kNoFlex},
};

}  // namespace

extern const FamilyRows deepseek_v4_rows;
const FamilyRows deepseek_v4_rows = kRows;

}  // namespace tidemark
