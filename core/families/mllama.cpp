// Mllama (Llama 3.2 Vision): a tower of pictures in four tiles, whose hidden states some layers of a Llama attend to.
#include <algorithm>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

std::vector<Count> numbers_of(const Value* list, std::vector<Count> standard) {
  if (list == nullptr || !list->is_array()) return standard;
  standard.clear();
  for (const Value& item : list->items) standard.push_back(item.is_integer() ? item.integer : -1);
  return standard;
}

// transformers 5.12.1 models/mllama/configuration_mllama.py: MllamaTextConfig.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 8);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"dropout"}, 0.0);
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  for (const Count i : numbers_of(fields.find({"cross_attention_layers"}), {3, 8, 13, 18, 23, 28, 33, 38})) {
    if (i >= 0 && i < architecture.num_layers) architecture.layer_kinds[static_cast<std::size_t>(i)] = 1;
  }
  fields.accept({"tie_word_embeddings", "model_type"});
}

// The same: MllamaVisionConfig.
void read_vision(ConfigFields& fields, Architecture& tower) {
  tower.model_type = "mllama_vision_model";
  tower.hidden_size = fields.count({"hidden_size"}, 1280);
  tower.intermediate_size = fields.count({"intermediate_size"}, 5120);
  tower.num_layers = fields.count({"num_hidden_layers"}, 32);
  tower.num_decoder_layers = fields.count({"num_global_layers"}, 8);
  tower.num_heads = tower.num_kv_heads = fields.count({"attention_heads", "num_attention_heads"}, 16);
  derive_head_dim(fields, tower);
  tower.num_channels = fields.count({"num_channels"}, 3);
  tower.image_size = square_side(fields, "image_size", 448);
  tower.patch_size = square_side(fields, "patch_size", 14);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu");
  tower.pictures.merge = fields.count({"max_num_tiles"}, 4);
  tower.pictures.layers = numbers_of(fields.find({"intermediate_layers_indices"}), {3, 7, 15, 23, 30});
  tower.layer_kinds.assign(static_cast<std::size_t>(tower.num_layers), 0);
  for (const Count i : tower.pictures.layers) {
    if (i >= 0 && i < tower.num_layers) tower.layer_kinds[static_cast<std::size_t>(i)] = 1;
  }
  const Value* ratios = fields.find({"supported_aspect_ratios"});
  tower.pictures.positions = ratios != nullptr && ratios->is_array() ? static_cast<Count>(ratios->items.size()) : 8;
  tower.pictures.width = fields.count({"vision_output_dim"}, 7680);
  const Count side = tower.image_size / tower.patch_size;
  tower.max_positions = side * side + 1;
  if (tower.pictures.width != tower.hidden_size * (1 + static_cast<Count>(tower.pictures.layers.size()))) {
    fields.error("INVALID_VALUE", "vision_output_dim", "This is not the width of what the tower hands out.");
  }
  fields.accept({"tie_word_embeddings", "model_type"});
}

extern const Program kText;

// The same: MllamaConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  text.report_unread("mllama");
  architecture.language = &kText;
  fields.accept({"image_token_index", "tie_word_embeddings"});
  Architecture tower;
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  read_vision(vision, tower);
  vision.report_unread("mllama");
  architecture.parts.push_back(std::move(tower));
}

constexpr const char* kModel = "transformers 5.12 models/mllama/modeling_mllama.py: MllamaModel.forward";
constexpr const char* kTower = "transformers 5.12 models/mllama/modeling_mllama.py: MllamaVisionModel.forward";
constexpr const char* kTowerLayer =
    "transformers 5.12 models/mllama/modeling_mllama.py: MllamaVisionEncoderLayer.forward";
constexpr const char* kCross =
    "transformers 5.12 models/mllama/modeling_mllama.py: MllamaCrossAttentionDecoderLayer.forward";
constexpr const char* kMask = "transformers 5.12 models/mllama/modeling_mllama.py: _prepare_cross_attention_mask";

Tensor gated(Net& net, const char* module, const char* leaf, Tensor x) {
  Tensor gate = tanh(net.parameter(module, leaf, Shape{Dim(1)}));
  return mul(std::move(gate), std::move(x));
}

// -- the tower

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn", kTowerLayer);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q);
  Tensor k = net.linear("self_attn.k_proj", x, net.Q);
  Tensor v = net.linear("self_attn.v_proj", x, net.Q);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.causal = false;
  return net.linear("self_attn.o_proj", attention(net, q, k, v, options), net.H);
}

Tensor tower_block(Net& net, Tensor hidden, bool has_gates) {
  Scope in(net.tape, "", kTowerLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("input_layernorm", residual);
  h = attend(net, h);
  if (has_gates) h = gated(net, "", "gate_attn", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  const Tensor normed = net.layer_norm("post_attention_layernorm", std::move(h));
  h = activate(net.arch.activation, net.linear("mlp.fc1", normed, net.F, true));
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  if (has_gates) h = gated(net, "", "gate_ffn", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor local_layer(Net& net, Tensor hidden) {
  return tower_block(net, std::move(hidden), false);
}

Tensor global_layer(Net& net, Tensor hidden) {
  return tower_block(net, std::move(hidden), true);
}

// MllamaPrecomputedAspectRatioEmbedding.forward
Tensor with_tiles(Net& net, const char* module, const char* table, Tensor hidden, const Tensor& ids) {
  const Dim tiles(net.arch.pictures.merge), width(tiles.n() * net.H.n());
  Tensor rows = net.embedding(table, ids, Dim(net.arch.pictures.positions + 1), width);
  rows = view(std::move(rows), Shape{ids.dim(0), tiles, Dim(1), net.H});
  rows = gated(net, module, "gate", std::move(rows));
  return add(std::move(hidden), std::move(rows));
}

// MllamaPrecomputedPositionEmbedding.forward
Tensor with_positions(Net& net, Tensor hidden, const Tensor& ids) {
  constexpr const char* kModule = "vision_model.gated_positional_embedding";
  const Dim rows(net.arch.max_positions), tiles(net.arch.pictures.merge), one(1);
  Tensor gate = tanh(net.parameter(kModule, "gate", Shape{one}));
  Tensor rest = neg(gate);
  Tensor table = mul(std::move(rest), net.parameter(kModule, "embedding", Shape{rows, net.H}));
  hidden = add(std::move(hidden), view(std::move(table), Shape{one, one, rows, net.H}));
  Tensor of_tiles = net.embedding("vision_model.gated_positional_embedding.tile_embedding", ids,
                                  Dim(net.arch.pictures.positions + 1), Dim(tiles.n() * rows.n() * net.H.n()));
  of_tiles = view(std::move(of_tiles), hidden.shape());
  of_tiles = mul(std::move(gate), std::move(of_tiles));
  return add(std::move(hidden), std::move(of_tiles));
}

// _prepare_aspect_ratio_attention_mask: a square of all tokens of a picture.
void make_tower_mask(Net& net, Dim pictures, Dim tokens) {
  Tape& t = net.tape;
  const Shape square{pictures, Dim(1), tokens, tokens};
  Tensor rows = t.allocate(Shape{pictures, tokens}, net.weight_dtype(2), "repeat");
  rows = t.allocate(Shape{pictures, tokens}, net.weight_dtype(2), "rsub");
  const Tensor product = t.allocate(square, t.autocast().value_or(net.weight_dtype(2)), "bmm");
  net.shared.causal_mask = t.allocate(square, product.dtype(), "mul");
}

Tensor tower(Net& whole) {
  const Architecture& a = whole.arch.parts.front();
  const Dim n(picture_count(whole)), tiles(a.pictures.merge), one(1), patches(a.max_positions);
  const Dim padded((patches.n() + 7) / 8 * 8), tokens(tiles.n() * padded.n()), all(n.n() * tiles.n());
  Net& net = whole.part(a, n, tokens);
  Scope in(net.tape, "vision_model", kTower);
  const Tensor ids = net.tape.allocate(Shape{n, one}, Dtype::kInt64, "aspect_ratio_ids");
  Tensor pixels = whole.pixel_values;
  if (!pixels.defined()) {
    pixels = net.tape.allocate(Shape{all, Dim(a.num_channels), Dim(a.image_size), Dim(a.image_size)},
                               net.weight_dtype(4), "pixel_values");
  }
  const Tensor patch_embeds = patch_embedding(net, "vision_model.patch_embedding", std::move(pixels), false);
  Tensor h = reshape(patch_embeds, Shape{n, tiles, Dim(patches.n() - 1), net.H});
  h = with_tiles(net, "vision_model.pre_tile_positional_embedding",
                 "vision_model.pre_tile_positional_embedding.embedding", std::move(h), ids);
  h = view(std::move(h), Shape{all, Dim(patches.n() - 1), net.H});
  {
    const Tensor token = expand(net.parameter("vision_model", "class_embedding", Shape{net.H}), Shape{all, one, net.H});
    h = cat({&token, &h}, 1);
  }
  h = view(std::move(h), Shape{n, tiles, patches, net.H});
  h = with_positions(net, std::move(h), ids);
  h = net.layer_norm("vision_model.layernorm_pre", std::move(h));
  h = pad(std::move(h), 2, padded.n() - patches.n());
  make_tower_mask(net, n, tokens);
  h = view(std::move(h), Shape{n, tokens, net.H});
  h = net.layers({"vision_model.transformer.layers", a.num_layers, local_layer, false, Phase::kForward, keep_hidden},
                 std::move(h));
  const std::vector<Tensor> chosen = std::move(net.model_locals);
  net.model_locals.clear();
  h = net.layer_norm("vision_model.layernorm_post", std::move(h));
  h = view(std::move(h), Shape{n, tiles, padded, net.H});
  h = with_tiles(net, "vision_model.post_tile_positional_embedding",
                 "vision_model.post_tile_positional_embedding.embedding", std::move(h), ids);
  h = view(std::move(h), Shape{n, tokens, net.H});
  h = net.layers({"vision_model.global_transformer.layers", a.num_decoder_layers, global_layer, false, Phase::kForward,
                  keep_hidden},
                 std::move(h));
  net.model_locals.clear();
  std::vector<Tensor> columns;
  for (const Tensor& x : chosen) columns.push_back(unsqueeze(x, -1));
  // A census runs one layer of each kind.
  while (columns.size() < a.pictures.layers.size()) columns.push_back(unsqueeze(h, -1));
  Tensor others = cat(columns, -1);
  const Dim width(static_cast<Count>(columns.size()) * net.H.n());
  others = narrow(view(std::move(others), Shape{n, tiles, padded, width}), 2, 0, patches);
  h = narrow(view(std::move(h), Shape{n, tiles, padded, net.H}), 2, 0, patches);
  h = cat({&h, &others}, -1);
  columns.clear();
  net.shared = {};
  net.let_handed_out_go();
  return h;
}

// -- the language model

// [B, 1, S, tokens of all pictures], and which rows see any of them.
void make_cross_mask(Net& net) {
  Scope in(net.tape, "", kMask);
  Tape& t = net.tape;
  const Architecture& a = net.arch.parts.front();
  const Dtype dtype = net.weight_dtype(2);
  const Count pictures = std::max<Count>(1, net.job.images_per_sample);
  const Dim columns(pictures * a.pictures.merge * a.max_positions), one(1);
  const Shape whole{net.B, one, net.S, columns}, rows{net.B, one, net.S, one};
  Tensor mask = t.allocate(whole, Dtype::kInt64, "repeat_interleave");
  Tensor inverted = t.allocate(whole, Dtype::kFp32, "rsub");
  inverted = t.allocate(whole, dtype, "to");
  {
    const Tensor flags = t.allocate(whole, Dtype::kBool, "to");
    mask = t.allocate(whole, dtype, "masked_fill");
  }
  {
    const Tensor flags = t.allocate(whole, Dtype::kBool, "ne");
    net.shared.bias = t.allocate(rows, dtype, "type_as");
  }
  inverted.reset();
  net.shared.cross_mask = t.allocate(whole, dtype, "index");
  net.shared.bias = t.allocate(rows, dtype, "index");
}

Tensor cross_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "cross_attn", kCross);
  const Tensor x = std::move(hidden), states = net.shared.encoder_states;
  const Dim tokens(states.size(0) * states.size(1) / net.B.n());
  Tensor q = split_heads(net, net.linear("cross_attn.q_proj", x, net.Q), net.A, net.hd);
  q = rms_norm(net, "cross_attn.q_norm", std::move(q));
  const auto heads = [&](const char* name) {
    Tensor h = view(net.linear(name, states, net.K), Shape{net.B, tokens, net.Kv, net.hd});
    return transpose(std::move(h), 1, 2);
  };
  Tensor k = heads("cross_attn.k_proj");
  const Tensor v = heads("cross_attn.v_proj");
  k = rms_norm(net, "cross_attn.k_norm", std::move(k));
  AttentionOptions options;
  options.mask = net.shared.cross_mask;
  options.dropout = net.arch.attention_dropout;
  return net.linear("cross_attn.o_proj", attention(net, q, k, v, options), net.H);
}

Tensor cross_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kCross);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = cross_attention(net, std::move(h));
  Tensor part = gated(net, "", "cross_attn_attn_gate", h);
  h = add(residual, std::move(part));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  h = mul(select(net.shared.bias, 1), std::move(h));
  part = gated(net, "", "cross_attn_mlp_gate", h);
  return add(std::move(residual), std::move(part));
}

// Without pictures the layers that attend to them are left out.
Tensor layer(Net& net, Tensor hidden) {
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 0) {
    return pre_norm_layer(net, std::move(hidden), kModel, llama_attention, llama_mlp);
  }
  const Declared alone(net);
  if (!alone) return cross_layer(net, std::move(hidden));
  cross_layer(net, hidden);
  return hidden;
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Architecture& a = net.arch.parts.front();
  const Dim side(a.image_size), all(picture_count(net) * a.pictures.merge);
  net.pixel_values = given_pixels(net, Shape{all, Dim(a.num_channels), side, side});
  integer_input(net, Shape{net.B, Dim(net.job.images_per_sample)}, "aspect_ratio_ids");
  integer_input(net, Shape{all}, "aspect_ratio_mask");
  integer_input(net, Shape{net.T, Dim(net.job.images_per_sample * a.pictures.merge)}, "cross_attention_mask");
}

// What the layers attend to: the tower's hidden states in the language model's width.
void see(Net& net) {
  Scope in(net.tape, "", kModel);
  const Declared unused(net);
  Tensor states = tower(net);
  if (!unused) net.outer_locals.push_back(states);  // MllamaModel.forward: vision_outputs
  if (!unused) net.keep_image_output(states);
  states = net.linear("multi_modal_projector", std::move(states), net.H, true);
  const Shape rows{Dim(states.size(0) * states.size(1)), states.dim(2), net.H};
  net.shared.encoder_states = view(std::move(states), rows);
  make_cross_mask(net);
}

// The table has eight rows more than the head.
Tensor embed(Net& net) {
  see(net);
  const Dim words = net.V;
  net.V = Dim(words.n() + 8);
  Tensor embeds = llama_embed(net);
  net.V = words;
  return embeds;
}

const Program kText = {one_stack<embed, layer, llama_norm>, llama_head};
const Program kProgram = {.forward = one_stack<embed, layer, llama_norm>,
                          .lm_head = language_head,
                          .inputs = inputs,
                          .attention = {.flash_until = 23}};

// Every picture becomes max_num_tiles tiles, of which those beyond its own are nought.
constexpr ClassFacts kFacts = {
    .pictures = PictureRule::kOwnSize,
    .behind_language = "multi_modal_projector",
    .made_first = "layernorm_post post_tile_positional_embedding.embedding post_tile_positional_embedding"};

}  // namespace

const Family kRows[] = {
    {"mllama", "Mllama", "MllamaForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows mllama_rows;
const FamilyRows mllama_rows = kRows;

}  // namespace tidemark
