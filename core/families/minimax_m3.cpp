// MiniMax-M3: Gemma's norms, over each head of q and k as well; experts chosen as MiniMax-M2 chooses them, with
// gpt-oss's clamped gate; layers in which a small attention of its own says to which blocks of keys a token attends. A
// tower of CLIP's kind that turns in three dimensions sees.
#include <algorithm>
#include <string_view>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr std::uint8_t kChooses = 1;  // layers with an indexer

// An entry per layer: a word, or a number that is not 0.
bool is_marked(const Value* list, Count layer, std::string_view word) {
  const auto at = static_cast<std::size_t>(layer);
  if (list == nullptr || !list->is_array() || at >= list->items.size()) return false;
  return list->items[at].is_string() ? list->items[at].string == word : list->items[at].real != 0.0;
}

// MiniMaxM3VLTextConfig.__post_init__: `sparse_attention_config` counts before the newer keys.
void read_indexer(ConfigFields& fields, Architecture& architecture) {
  const Value* sparse = fields.find({"sparse_attention_config"});
  const auto size = [&](std::string_view key, std::string_view older, Count standard) {
    const Count stated = fields.count({key}, standard);
    const Value* value = sparse == nullptr ? nullptr : sparse->find(older);
    return value != nullptr && value->is_integer() && value->integer > 0 ? value->integer : stated;
  };
  LatentAttention& a = architecture.latent;
  a.index_heads = size("index_n_heads", "sparse_num_index_heads", 4);
  a.index_dim = size("index_head_dim", "sparse_index_dim", 128);
  a.index_block = size("index_block_size", "sparse_block_size", 128);
  a.index_tokens = size("index_topk_blocks", "sparse_topk_blocks", 16);
  const Value* types = fields.find({"layer_types"});
  if (sparse != nullptr && (types == nullptr || !types->is_array())) types = sparse->find("sparse_attention_freq");
  for (Count i = 0; i < architecture.num_layers; ++i) {
    architecture.layer_kinds.push_back(is_marked(types, i, "minimax_m3_sparse") ? kChooses : 0);
  }
  fields.accept({"index_local_blocks"});
}

// transformers 5.12.1 models/minimax_m3_vl/configuration_minimax_m3_vl.py: MiniMaxM3VLTextConfig. `rotary_dim` is read
// by nobody, as MiniMax-M2's.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 524288);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture, 128);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_experts(fields, architecture, {128, 4, 0}, {"num_local_experts", "num_experts"});
  read_aux_loss(fields, architecture);
  architecture.experts.shared_width = fields.count({"shared_intermediate_size"}, 3072);
  architecture.intermediate_size = fields.count({"dense_intermediate_size"}, 12288);
  const Value *types = fields.find({"mlp_layer_types"}), *frequency = fields.find({"moe_layer_freq"});
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const bool stated = types != nullptr && types->is_array();
    const bool numbered = frequency != nullptr && frequency->is_array();
    architecture.experts.dense_layers.push_back(stated ? is_marked(types, i, "dense")
                                                       : numbered && !is_marked(frequency, i, ""));
  }
  read_indexer(fields, architecture);
  fields.accept({"hidden_act", "rotary_dim", "routed_scaling_factor", "swiglu_alpha", "swiglu_limit",
                 "router_jitter_noise", "scoring_func", "use_qk_norm", "use_gemma_norm", "use_routing_bias",
                 "n_shared_experts", "num_mtp_modules", "mtp_transformer_layers", "use_mtp", "qk_norm_type",
                 "attention_output_gate", "first_k_dense_replace", "moe_intermediate_size",
                 "num_nextn_predict_layers"});
}

constexpr const char* kModel =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLAttention.forward";
constexpr const char* kIndexer = "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLIndexer";
// transformers 5.13 on: MiniMaxM3VLIndexer.build_block_mask repeats the kept blocks for each head.
constexpr int kByHeadRelease = 13;
constexpr const char* kMlp =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLDenseMLP.forward";
constexpr const char* kExperts =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLSparseMoeBlock.forward";
constexpr const char* kTower =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLVisionModel.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLMultiModalProjector.forward";

// q_norm(q_proj(x).view(hidden_shape)).transpose(1, 2)
Tensor normed_heads(Net& net, const char* projection, const char* norm, const Tensor& x, Dim heads, Dim width) {
  Tensor h = net.linear(projection, x, Dim(heads.n() * width.n()));
  h = view(std::move(h), Shape{net.B, net.S, heads, width});
  return transpose(gemma_norm(net, norm, std::move(h)), 1, 2);
}

// Each token's scores of all keys, [B, heads, S, S], filled up to whole blocks. Their graph is gone as the method
// returns, for numbers of blocks have no gradient. What there is of a block, not of a key, is left out: a hundredth.
void score_blocks(Net& net, const Tensor& x, Count filled) {
  Tape& t = net.tape;
  const WithoutGradients quiet(t);
  const Dim heads(net.arch.latent.index_heads), width(net.arch.latent.index_dim), one(1);
  const Tensor q = normed_heads(net, "self_attn.indexer.q_proj", "self_attn.indexer.q_norm", x, heads, width);
  const Tensor k = normed_heads(net, "self_attn.indexer.k_proj", "self_attn.indexer.k_norm", x, one, width);
  const Rotated turned = rotate_leading_both(net, q, k);
  Tensor left = lower_precision(to(turned.q, Dtype::kFp32));
  Tensor right = lower_precision(transpose(to(turned.k, Dtype::kFp32), -1, -2));
  const Dim products(net.B.n() * heads.n());
  right = reshape(expand(std::move(right), Shape{net.B, heads, width, net.S}), Shape{products, width, net.S});
  left = view(std::move(left), Shape{products, net.S, width});
  Tensor scores = view(matmul(left, right), Shape{net.B, heads, net.S, net.S});
  const Tensor future = t.allocate(Shape{net.B, one, net.S, net.S}, Dtype::kBool, "gt");
  scores = masked_fill(std::move(scores), future);
  if (filled > net.S.n()) scores = pad_last(std::move(scores), filled - net.S.n());
}

// The additive mask that hides all but the best blocks of keys; since kByHeadRelease each head has its own.
Tensor block_mask(Net& net, const Tensor& x, const Tensor& mask, Dtype dtype) {
  Scope in(net.tape, "self_attn.indexer", kIndexer);
  Tape& t = net.tape;
  const Count block = net.arch.latent.index_block;
  const Count filled = t.is_multiple(net.S.n(), block) ? net.S.n() : t.round_up(net.S.n(), block);
  score_blocks(net, x, filled);
  const bool by_head = net.job.framework.at_least(5, kByHeadRelease);
  const Dim one(1), selections(by_head ? net.arch.latent.index_heads : 1);
  const Shape pairs{net.B, by_head ? net.A : one, net.S, net.S};
  Tensor kept = t.allocate(Shape{net.B, selections, net.S, Dim(filled)}, Dtype::kBool, "repeat_interleave");
  if (by_head) kept = t.allocate(pairs, Dtype::kBool, "repeat_interleave");
  Tensor other;
  if (!mask.defined() || mask.dtype() != Dtype::kBool) {
    other = t.allocate(Shape{net.B, one, net.S, net.S}, Dtype::kBool, "gt");
  }
  const Tensor keep = t.allocate(pairs, Dtype::kBool, "bitwise_and");
  const Tensor none = zeros(t, pairs, dtype);
  return masked_fill(none, t.allocate(pairs, Dtype::kBool, "bitwise_not"));
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q = normed_heads(net, "self_attn.q_proj", "self_attn.q_norm", x, net.A, net.hd);
  Tensor k = normed_heads(net, "self_attn.k_proj", "self_attn.k_norm", x, net.Kv, net.hd);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K), net.Kv, net.hd);
  turn_leading(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == kChooses) {
    options.mask = block_mask(net, x, options.mask, q.dtype());
  }
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

// MiniMaxM3VLExperts._apply_gate
Tensor gated_halves(Net&, const ExpertForm&, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  const Dim half(gate_up.size(-1) / 2);
  const Pieces parts = split(gate_up, -1, {half, half});
  return clamped_glu(parts.part[0], parts.part[1]);
}

constexpr ExpertForm kForm = {
    .source = "transformers 5.12 models/minimax_m3_vl/modeling_minimax_m3_vl.py: MiniMaxM3VLExperts.forward",
    .gate = gated_halves};

Tensor dense_mlp(Net& net, const char* module, const char* up, const char* down, Tensor x, Dim width) {
  Scope in(net.tape, module, kMlp);
  const Tensor gate_up = net.linear(up, x, Dim(2 * width.n()));
  return net.linear(down, gated_halves(net, kForm, gate_up), net.H);
}

Tensor mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) {
    return dense_mlp(net, "mlp", "mlp.gate_up_proj", "mlp.down_proj", std::move(hidden_in), net.F);
  }
  Scope in(net.tape, "mlp", kExperts);
  net.tape.buffer("mlp.gate.e_score_correction_bias", 4 * net.arch.experts.count);
  Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Tensor shared = dense_mlp(net, "mlp.shared_experts", "mlp.shared_experts.gate_up_proj",
                                  "mlp.shared_experts.down_proj", hidden, Dim(net.arch.experts.shared_width));
  const Routing routing = minimax_m2_routing(net, hidden);
  hidden = run_experts(net, kForm, std::move(hidden), routing.indices, routing.weights);
  hidden = mul_scalar(std::move(hidden));
  hidden = add(std::move(hidden), shared);
  return as_sequences(net, std::move(hidden));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma_norm(net, "model.norm", std::move(hidden));
}

}  // namespace

const Program kMiniMaxM3Program = {.forward = one_stack<llama_embed, layer, norm>,
                                   .lm_head = llama_head,
                                   .heads = kMoeForwards,
                                   .attention = kNoFlash};

namespace {

// -- pictures ---------------------------------------------------------------------------------------------------------

// MiniMaxM3VLVisionConfig. Pictures are resized as Qwen2-VL's are.
void read_vision(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 1280);
  tower.intermediate_size = fields.count({"intermediate_size"}, 5120);
  tower.num_layers = fields.count({"num_hidden_layers"}, 32);
  tower.num_heads = fields.count({"num_attention_heads"}, 16);
  tower.num_channels = fields.count({"num_channels"}, 3);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu");
  tower.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  fields.accept({"image_size", "layer_norm_eps", "rope_parameters", "rope_theta"});
}

// apply_rotary_pos_emb_vision, before heads and places change places.
void turn(Net& net, Tensor& q, Tensor& k) {
  const Tensor cos = unsqueeze(net.shared.cos, 1), sin = unsqueeze(net.shared.sin, 1);
  const Dim turned = cos.dim(-1), rest(net.hd.n() - turned.n());
  const auto start = [&](const Tensor& x) { return rotate_by(narrow(x, -1, 0, turned), cos, sin); };
  const Tensor q_in = transpose(q, 1, 2), k_in = transpose(k, 1, 2);
  const Tensor q_turned = start(q_in), k_turned = start(k_in);
  const Tensor q_rest = narrow(q_in, -1, turned.n(), rest), k_rest = narrow(k_in, -1, turned.n(), rest);
  q = transpose(cat({&q_turned, &q_rest}, -1), 1, 2);
  k = transpose(cat({&k_turned, &k_rest}, -1), 1, 2);
}

Tensor vision_layer(Net& net, Tensor hidden) {
  TowerLayer names = kClipLayer;
  names.turn = turn;
  return tower_layer(net, std::move(hidden), names);
}

// MiniMaxM3VL3DRotaryEmbedding.forward: as many columns for each of three dimensions.
void rotary_tables_of_patches(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  const Count of_axis = net.hd.n() / 2 * 2 / 3 / 2 * 2;
  const Dim width(3 * of_axis);
  const Tensor coords = t.allocate(Shape{net.S, Dim(3)}, Dtype::kFp32, "to");
  const Tensor freqs = t.allocate(Shape{net.S, Dim(width.n() / 2)}, Dtype::kFp32, "cat");
  const Tensor doubled = t.allocate(Shape{net.S, width}, Dtype::kFp32, "cat");
  net.shared.cos = to(t.allocate(doubled.shape(), Dtype::kFp32, "cos"), dtype);
  net.shared.sin = to(t.allocate(doubled.shape(), Dtype::kFp32, "sin"), dtype);
}

// All pictures' patches attend to each other.
Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  Tensor embeds = qwen_patches(net, false, kTower, "vision_tower.embeddings.proj");
  embeds = to(std::move(embeds), net.weight_dtype(1));
  rotary_tables_of_patches(net, embeds.dtype());
  Tensor hidden = net.layer_norm("vision_tower.pre_layrnorm", embeds);
  hidden = net.layers({"vision_tower.layers", net.arch.num_layers, vision_layer}, unsqueeze(std::move(hidden), 0));
  return view(std::move(hidden), Shape{net.S, net.H});
}

const Program kTowerProgram = {tower};

Tensor features(Net& net) {
  Net& part = qwen_tower_part(net);
  const Tensor rows = part.arch.program->forward(part);
  part.shared = {};
  Scope in(net.tape, "multi_modal_projector", kProjector);
  const Count squared = part.arch.pictures.merge * part.arch.pictures.merge;
  const Dim width(net.arch.pictures.width);
  Tensor h = net.linear("multi_modal_projector.linear_1", rows, width, true);
  h = net.linear("multi_modal_projector.linear_2", gelu(std::move(h)), net.H, true);
  h = view(std::move(h), Shape{Dim(part.S.n() / squared), Dim(net.H.n() * squared)});
  h = net.linear("multi_modal_projector.merge_linear_1", h, width, true);
  return net.linear("multi_modal_projector.merge_linear_2", gelu(std::move(h)), net.H, true);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

// MiniMaxM3VLConfig, which takes whatever type its text_config names for its own.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  accept_rotation(text);
  text.report_unread("minimax_m3_vl_text");
  architecture.language = &kMiniMaxM3Program;
  architecture.tie_word_embeddings |= fields.flag({"tie_word_embeddings"}, false);
  architecture.pictures.width = fields.count({"projector_hidden_size"}, 6144);
  fields.accept({"image_token_index", "video_token_index"});
  accept_rotation(fields);
  read_qwen_tower(fields, architecture, read_vision);
  architecture.parts.front().program = &kTowerProgram;
}

constexpr ClassFacts kTextFacts = {.flex_attention = false, .no_split = NoSplit::kAbsentToo};
constexpr ClassSuffix kTextClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};
constexpr ClassSuffix kClasses[] = {{"SparseForConditionalGeneration", Head::kCausalLm}, {"VLModel", Head::kNone}};

}  // namespace

const Program kMiniMaxM3VlProgram = {.forward = forward_with_pictures<merge>,
                                     .lm_head = language_head,
                                     .inputs = qwen_text_and_pictures,
                                     .attention = kNoFlash};

const Family kRows[] = {
    {"minimax_m3_vl_text", "MiniMaxM3VL", "MiniMaxM3VLForCausalLM", kTextClasses, read_text, &kMiniMaxM3Program,
     kModelLayers, kTextFacts},
    {"minimax_m3_vl", "MiniMaxM3", "MiniMaxM3SparseForConditionalGeneration", kClasses, read_config,
     &kMiniMaxM3VlProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows minimax_m3_rows;
const FamilyRows minimax_m3_rows = kRows;

}  // namespace tidemark
