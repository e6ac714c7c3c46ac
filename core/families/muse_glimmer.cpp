// Muse Glimmer (Meta): norms before and behind each branch, attention behind a gate of its own, rotation in sliding
// layers alone, squashed logits; pictures as a row of patches that see windows of themselves, merged two by two.
#include <algorithm>
#include <string>

#include "core/families/family.hpp"
#include "core/families/gemma.hpp"
#include "core/families/gemma4.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/layers/norms.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerModel.forward";
constexpr const char* kText =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerTextModel.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerTextDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerTextAttention.forward";
constexpr const char* kHead =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerForConditionalGeneration.forward";
constexpr const char* kTower =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerVisionModel.forward";
constexpr const char* kBlock =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerVisionEncoderLayer.forward";
constexpr const char* kTowerAttention =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerVisionAttention.forward";
constexpr const char* kPatches =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerVisionPatchEmbedder.forward";
constexpr const char* kFeatures =
    "transformers 5.24 models/muse_glimmer/modeling_muse_glimmer.py: MuseGlimmerModel.get_image_features";

// transformers 5.24 models/muse_glimmer/configuration_muse_glimmer.py: MuseGlimmerTextConfig. Every fourth layer,
// counted from the last, attends to everything and turns nothing, where the file does not say otherwise.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_activation"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 2048).value_or(0);
  architecture.logit_softcap = true;
  const auto types = read_layer_types(fields, architecture);
  const Value* const bases = fields.find({"layer_rope_theta"});
  const bool stated =
      bases != nullptr && bases->is_array() && static_cast<Count>(bases->items.size()) == architecture.num_layers;
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool fourth = (architecture.num_layers - 1 - i) % 4 == 0;
    architecture.sliding_layers.push_back(types ? (*types)[at] : !fourth);
    const bool turns = !stated ? !fourth : bases->items[at].integer != 0 || bases->items[at].real != 0.0;
    architecture.no_rope_layers.push_back(!turns);
  }
  fields.accept({"qk_scale_factor", "output_multiplier", "post_norm_eps", "final_logit_softcapping", "rope_parameters",
                 "layer_rope_theta", "model_type", "architectures", "dtype"});
}

// MuseGlimmerVisionConfig
void read_tower(ConfigFields& fields, Architecture& tower) {
  tower.attention_bias = tower.attention_out_bias = tower.mlp_bias = true;
  tower.num_channels = 3;
  tower.hidden_size = fields.count({"hidden_size"}, 1536);
  tower.intermediate_size = fields.count({"intermediate_size"}, 8960);
  tower.num_layers = fields.count({"num_hidden_layers"}, 50);
  tower.num_heads = tower.num_kv_heads = fields.count({"num_attention_heads"}, 16);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu");
  tower.patch_size = fields.count({"patch_size"}, 14);
  const Count side = fields.count({"pos_emb_height"}, 32);
  tower.pictures.positions = side * fields.count({"pos_emb_width"}, 32);
  tower.pictures.window = side * tower.patch_size;
  tower.pictures.merge = fields.count({"merge_size"}, 2);
  tower.pictures.frames = fields.count({"patch_temporal"}, 2);
  const Value* const types = fields.find({"layer_types"});
  for (Count i = 0; i < tower.num_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool stated = types != nullptr && at < types->items.size();
    const bool full = stated ? types->items[at].string == "full_attention"  // else "window_attention"
                             : (i + 1) % 4 == 0 || i + 1 == tower.num_layers;
    tower.layer_kinds.push_back(full ? 1 : 0);
  }
  derive_head_dim(fields, tower);
  tower.image_size = 16 * tower.patch_size * tower.pictures.merge;
  tower.max_positions = 1;
  fields.accept({"layer_norm_eps", "rope_parameters", "max_position_embeddings", "model_type", "layer_types"});
  fields.report_unread("muse_glimmer");
}

Tensor embed_norm(Net& net, Tensor rows) {
  return gemma4_norm(net, "model.embed_tokens.embed_norm", std::move(rows), false);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H, embed_norm);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("self_attn.k_proj", x, net.K, bias), net.Kv, net.hd);
  Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  q = mul_scalar(gemma4_norm(net, "self_attn.qk_norm", std::move(q), false));
  k = gemma4_norm(net, "self_attn.qk_norm", std::move(k), false);
  if (net.rotates(net.layer_index)) rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  Tensor open = sigmoid(net.linear("self_attn.gate_proj", x, net.Q));
  out = mul(std::move(out), std::move(open));
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention(net, gemma_norm(net, "input_layernorm", residual));
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = llama_mlp(net, gemma_norm(net, "pre_feedforward_layernorm", std::move(h)));
  h = gemma_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma4_norm(net, "model.norm", std::move(hidden));
}

// Scaled before they are divided, squashed and multiplied by the cap.
Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return gemma_softcap(net, mul_scalar(net.lm_head("lm_head", std::move(hidden), net.V)));
}

const Program kLanguage = {one_stack<embed, layer, norm>, head};

Tensor block(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kBlock);
  const Tensor argument = std::move(hidden_in);
  Tensor h = net.layer_norm("norm1", argument);
  {
    Scope attention(net.tape, "attn", kTowerAttention);
    const Tensor x = std::move(h);
    const auto heads = [&](const char* name) {
      return view(net.linear(name, x, net.H, true), Shape{net.S, net.A, net.hd});
    };
    Tensor q = heads("attn.q_proj"), k = heads("attn.k_proj"), v = heads("attn.v_proj");
    rotate_vision(net, q, k);
    h = attend_in_stretches(net, std::move(q), std::move(k), std::move(v), vision_lengths(net), "attn.proj");
  }
  Tensor hidden = add(argument, std::move(h));
  h = net.layer_norm("norm2", hidden);
  h = qwen_vision_mlp(net, std::move(h), "mlp.fc1", "mlp.fc2", kBlock);
  return add(std::move(hidden), std::move(h));
}

// A linear layer of each patch, and four rows of the table of positions, weighed.
Tensor patches(Net& net) {
  Scope in(net.tape, "vision_tower.patch_embedder", kPatches);
  Tensor hidden = net.linear("vision_tower.patch_embedder.patch_embedding", net.pixel_values, net.H);
  const Shape corners{net.S, Dim(4)};
  const Tensor indices = net.tape.allocate(corners, Dtype::kInt64, "interp_indices");
  const Tensor weights = net.tape.allocate(corners, Dtype::kFp32, "interp_weights");
  Tensor rows = net.embedding("vision_tower.patch_embedder.position_embedding_table", indices,
                              Dim(net.arch.pictures.positions), net.H);
  rows = sum_over(mul(std::move(rows), unsqueeze(weights, -1)), 1, false);
  rows = to(std::move(rows), hidden.dtype());
  return add(std::move(hidden), std::move(rows));
}

// cos and sin of both coordinates, each pair of them twice.
void make_tables(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  for (const char* name : {"rotary_emb.inv_freq", "rotary_emb.original_inv_freq"}) t.buffer(name, net.hd.n() / 4 * 4);
  const Shape table{net.S, net.hd};
  const Tensor positions = t.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  Tensor cos = t.allocate(table, Dtype::kFp32, "cat");
  Tensor sin = t.allocate(table, Dtype::kFp32, "cat");
  net.shared.cos = to(std::move(cos), dtype);
  net.shared.sin = to(std::move(sin), dtype);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  const Tensor window_index = net.tape.allocate(Shape{net.S}, Dtype::kInt64, "window_index");
  const Tensor embeds = patches(net);
  Tensor hidden = net.layer_norm("vision_tower.ln_pre", embeds);
  hidden = gather_rows(std::move(hidden), window_index);
  make_tables(net, hidden.dtype());
  hidden = net.layers({"vision_tower.layers", net.arch.num_layers, block}, std::move(hidden));
  const Tensor reverse = net.tape.allocate(Shape{net.S}, Dtype::kInt64, "argsort");
  hidden = gather_rows(std::move(hidden), reverse);
  hidden = net.layer_norm("vision_tower.ln_post", std::move(hidden));
  // pixel_shuffle
  Tensor index = net.tape.allocate(Shape{net.S}, Dtype::kInt64, "pixel_shuffle_index");
  hidden = gather_rows(std::move(hidden), std::move(index));
  const Count squared = net.arch.pictures.merge * net.arch.pictures.merge;
  const Dim tokens(net.S.n() / squared);
  hidden = permute(view(std::move(hidden), Shape{tokens, Dim(squared), net.H}), {0, 2, 1});
  return reshape(std::move(hidden), Shape{tokens, Dim(net.H.n() * squared)});
}

const Program kTowerProgram = {tower};

Tensor features(Net& net) {
  Net& part = qwen_tower_part(net);
  Tensor rows = part.arch.program->forward(part);
  part.shared = {};
  part.pixel_values.reset();
  Scope in(net.tape, "vision_adapter", kFeatures);
  const Dim width(net.arch.pictures.width);
  rows = gelu(net.linear("vision_adapter.fc1", std::move(rows), width));
  rows = gelu(net.linear("vision_adapter.fc2", std::move(rows), width));
  rows = net.linear("vision_projection", std::move(rows), net.H);
  rows = gemma4_norm(net, "perception_emb_norm", std::move(rows), false);
  return joined_pictures(net, std::move(rows));
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

// MuseGlimmerConfig
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  text.report_unread("muse_glimmer");
  architecture.language = &kLanguage;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, architecture.tie_word_embeddings);
  architecture.pictures.width = fields.count({"projector_hidden_size"}, 4096);
  fields.accept({"out_hidden_size", "projector_hidden_act", "image_token_id", "video_token_id"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_tower(vision, part);
  part.program = &kTowerProgram;
  architecture.pictures.video_frames = part.pictures.frames;
  architecture.parts.push_back(std::move(part));
}

const Program kProgram = {forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {},
                          qwen_text_and_pictures};

constexpr ClassFacts kFacts = {.pictures = PictureRule::kPixels,
                               .behind_language = "vision_adapter vision_projection",
                               .layer_first = "attn.proj"};

}  // namespace

const Family kRows[] = {
    {"muse_glimmer", "MuseGlimmer", "MuseGlimmerForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows muse_glimmer_rows;
const FamilyRows muse_glimmer_rows = kRows;

}  // namespace tidemark
