// Step 3.7 (StepFun), its texts: attention whose heads and rotary tables differ by kind of layer, each head behind a
// gate; clamped feed-forwards; experts chosen by sigmoids beside one that all tokens pass through. What sees stands
// beside it, and is declared alone.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/layers/norms.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7Model.forward";
constexpr const char* kText = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7TextModel.forward";
constexpr const char* kLayer = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7Attention.forward";
constexpr const char* kMlp = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7MLP.forward";
constexpr const char* kBlock = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7SparseMoeBlock.forward";
constexpr const char* kTower = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7VisionModel.forward";
constexpr const char* kTowerLayer =
    "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7VisionEncoderLayer.forward";

// Columns that turn in layers of that type: those of the first such layer where a list has an entry for each.
Count rotary_columns(ConfigFields& fields, const Architecture& architecture, bool slides) {
  std::optional<double> factor = rotary_factor_of(fields, slides ? "sliding_attention" : "full_attention");
  const Value* const list = fields.find({"partial_rotary_factors"});
  for (std::size_t i = 0; !factor && list != nullptr && i < list->items.size(); ++i) {
    const bool fits = i < architecture.sliding_layers.size() && (architecture.sliding_layers[i] != 0) == slides;
    const Value& part = list->items[i];
    if (fits && part.is_number()) factor = part.real;
  }
  if (factor && !(*factor >= 0.0 && *factor <= 1.0)) {
    fields.error("INVALID_VALUE", "partial_rotary_factors", "Each of these must lie between 0 and 1.");
  }
  return static_cast<Count>(static_cast<double>(architecture.head_dim) * factor.value_or(1.0));
}

// The word that a list of a further key has for each layer; such lists may go on behind the last one.
std::vector<std::string_view> words_of(ConfigFields& fields, std::string_view key, Count num_layers,
                                       std::initializer_list<std::string_view> known) {
  std::vector<std::string_view> words;
  const Value* const list = fields.find({key});
  if (list == nullptr || list->is_null()) return words;
  for (const Value& item : list->items) {
    const bool is_known = std::find(known.begin(), known.end(), item.string) != known.end();
    if (is_known && static_cast<Count>(words.size()) < num_layers) words.push_back(item.string);
  }
  if (static_cast<Count>(words.size()) == num_layers) return words;
  fields.error("INVALID_VALUE", key, "This must be a list of transformers' words, one for each layer.");
  return {};
}

// transformers 5.24 models/step3p7/configuration_step3p7.py: Step3p7TextConfig. Lists may have entries of layers behind
// the last, which predict further tokens and are not made.
void read_text(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.intermediate_size = fields.count({"intermediate_size"}, 11264);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 128000);
  architecture.num_kv_heads = fields.count({"num_key_value_heads", "num_attention_groups"}, 8);
  architecture.head_dim = fields.count({"head_dim"}, 128);
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  Experts& e = architecture.experts;
  e.count = fields.count({"n_routed_experts", "moe_num_experts", "num_local_experts"}, 288);
  e.per_token = fields.count({"num_experts_per_tok", "moe_top_k"}, 8);
  e.width = fields.count({"moe_intermediate_size"}, 1280);
  e.shared_width = fields.count({"share_expert_dim", "share_expert_dims"}, 1280);
  Count sliding_heads = fields.count({"num_sliding_attention_heads"}, architecture.num_heads);
  const Value* const other = object_in(fields, "attention_other_setting");
  const Value* const heads = other != nullptr ? other->find("num_attention_heads") : nullptr;
  if (heads != nullptr && heads->is_integer() && heads->integer > 0 && !fields.has({"num_sliding_attention_heads"})) {
    sliding_heads = heads->integer;
  }
  const auto types = words_of(fields, "layer_types", architecture.num_layers, {"full_attention", "sliding_attention"});
  const auto mlps = words_of(fields, "mlp_layer_types", architecture.num_layers, {"dense", "sparse"});
  bool slides = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(architecture.num_layers); ++i) {
    const bool local = !types.empty() && types[i] == "sliding_attention";
    slides = slides || local;
    architecture.sliding_layers.push_back(local);
    architecture.local_layers.push_back(local ? sliding_heads : architecture.num_heads);
    e.dense_layers.push_back(mlps.empty() ? i < 3 : mlps[i] == "dense");
  }
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  architecture.rotary_dim = rotary_columns(fields, architecture, false);
  architecture.latent.rope_dim = rotary_columns(fields, architecture, true);
  if (slides && architecture.sliding_window == 0) {
    fields.error("MISSING_FIELD", "sliding_window", "Layers that slide need a \"sliding_window\".");
  }
  if (architecture.num_heads % architecture.num_kv_heads != 0 || sliding_heads % architecture.num_kv_heads != 0 ||
      e.per_token > e.count) {
    fields.error("INVALID_VALUE", "num_key_value_heads",
                 "Heads of keys must divide those of queries, and a token can take no more experts than there are.");
  }
  if (fields.has({"moe_layers_enum"}) && mlps.empty()) {
    fields.error("UNSUPPORTED_VALUE", "moe_layers_enum", "Say \"mlp_layer_types\", an entry for each layer.");
  }
  if (fields.flag({"use_bidirectional_attention"}, false)) {
    fields.error("UNSUPPORTED_VALUE", "use_bidirectional_attention", "Only causal attention is modelled.", "false");
  }
  refuse_router_logits(fields);
  fields.accept({"gating", "query_pre_attn_scalar", "moe_router_scaling_factor", "swiglu_limits", "rope_theta",
                 "swiglu_limits_shared", "mtp_layer_types", "mtp_mlp_layer_types", "num_nextn_predict_layers",
                 "num_mtp_layers", "hidden_act", "rope_scaling", "model_type", "architectures", "dtype"});
}

// Step3p7VisionConfig
void read_tower(ConfigFields& fields, Architecture& tower) {
  tower.attention_bias = tower.attention_out_bias = tower.mlp_bias = true;
  tower.hidden_size = fields.count({"width", "hidden_size"}, 1536);
  tower.num_layers = fields.count({"layers", "num_hidden_layers"}, 47);
  tower.num_heads = tower.num_kv_heads = fields.count({"heads", "num_attention_heads"}, 16);
  tower.intermediate_size =
      static_cast<Count>(static_cast<double>(tower.hidden_size) * fields.multiplier({"mlp_ratio"}, 8960.0 / 1536.0));
  tower.activation = read_activation(fields, {"hidden_act"}, "quick_gelu");
  tower.num_channels = fields.count({"num_channels"}, 3);
  tower.image_size = fields.count({"image_size"}, 728);
  tower.patch_size = fields.count({"patch_size"}, 14);
  derive_head_dim(fields, tower);
  tower.max_positions = (tower.image_size / tower.patch_size) * (tower.image_size / tower.patch_size);
  fields.accept({"layer_norm_eps", "layer_scale_init_value", "ls_init_value", "rope_parameters", "intermediate_size",
                 "max_position_embeddings", "attention_dropout", "model_type"});
  fields.report_unread("step3p7");
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables_by_kind(net, embeds.dtype(), net.arch.latent.rope_dim);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Dim heads(net.arch.local_layers[static_cast<std::size_t>(net.layer_index)]), wide(heads.n() * net.hd.n());
  Tensor q = view(net.linear("self_attn.q_proj", x, wide, bias), Shape{net.B, net.S, heads, net.hd});
  q = transpose(gemma_norm(net, "self_attn.q_norm", std::move(q)), 1, 2);
  Tensor k = view(net.linear("self_attn.k_proj", x, net.K, bias), Shape{net.B, net.S, net.Kv, net.hd});
  k = transpose(gemma_norm(net, "self_attn.k_norm", std::move(k)), 1, 2);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  const Tensor gate = net.linear("self_attn.g_proj", x, heads);
  turn_by_kind(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  Tensor open = sigmoid(unsqueeze(gate, -1));
  out = mul(view(std::move(out), Shape{net.B, net.S, heads, net.hd}), std::move(open));
  out = view(std::move(out), Shape{net.B, net.S, wide});
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

// Step3p7MLP.forward
Tensor clamped_mlp(Net& net, const GatedNames& names, const Tensor& x, Dim width) {
  Scope in(net.tape, names.scope, kMlp);
  const bool bias = net.arch.mlp_bias;
  Tensor gate = silu(net.linear(names.gate, x, width, bias));
  gate = clamp(std::move(gate));
  Tensor up = net.linear(names.up, x, width, bias);
  up = clamp(std::move(up));
  Tensor product = mul(gate, up);
  return net.linear(names.down, std::move(product), net.H, bias);
}

Tensor apply_gate(Net&, const ExpertForm&, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  const Dim half(gate_up.size(-1) / 2);
  const Pieces halves = split(gate_up, -1, {half, half});
  Tensor gate = silu(halves.part[0]);
  gate = clamp(std::move(gate));
  const Tensor up = clamp(halves.part[1]);
  return mul(std::move(gate), up);
}

constexpr ExpertForm kForm = {.source = "transformers 5.24 models/step3p7/modeling_step3p7.py: Step3p7Experts.forward",
                              .gate = apply_gate};
constexpr GatedNames kDense = {"mlp", "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"};

Tensor feed_forward(Net& net, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  if (is_dense_layer(net)) return clamped_mlp(net, kDense, hidden, net.F);
  Scope in(net.tape, "mlp", kBlock);
  const Tensor tokens = as_tokens(net, hidden);
  const Tensor shared = clamped_mlp(net, kSharedExperts, tokens, Dim(net.arch.experts.shared_width));
  net.tape.buffer("mlp.gate.e_score_correction_bias", 4 * net.arch.experts.count);
  const Routing routing = minimax_m2_routing(net, tokens);
  Tensor out = run_experts_in_turn(net, kForm, tokens, routing.indices, routing.weights);
  out = mul_scalar(std::move(out));
  return as_sequences(net, add(std::move(out), shared));
}

Tensor gemma_normed(Net& net, const char* name, Tensor x) {
  return gemma_norm(net, name, std::move(x));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, feed_forward, gemma_normed);
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma_norm(net, "model.norm", std::move(hidden));
}

const Program kLanguage = {one_stack<embed, layer, norm>, llama_head};

// What sees, as far as its weights go: never run.
Tensor block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kTowerLayer);
  Tensor h = net.layer_norm("layernorm_before", hidden);
  for (const char* name : {"self_attn.k_proj", "self_attn.v_proj", "self_attn.q_proj", "self_attn.out_proj"}) {
    h = net.linear(name, std::move(h), net.H, true);
  }
  h = mul(net.parameter("", "lambda_1", Shape{net.H}), std::move(h));
  h = net.layer_norm("layernorm_after", std::move(h));
  h = net.linear("mlp.fc1", std::move(h), net.F, true);
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  return mul(net.parameter("", "lambda_2", Shape{net.H}), std::move(h));
}

Tensor features(Net& net) {
  Net& tower = tower_part(net, Dim(1));
  Scope in(net.tape, "vision_model", kTower);
  const Dim side(tower.arch.image_size / tower.arch.patch_size), rows(side.n() * side.n());
  Tensor hidden = patch_embedding(tower, "vision_model.embeddings.patch_embedding", tower.pixel_values, false);
  net.tape.buffer("vision_model.embeddings.position_ids", rows.n() * 8);
  Tensor positions = tower.parameter("vision_model.embeddings.position_embedding", "weight", Shape{rows, tower.H});
  hidden = add(std::move(hidden), std::move(positions));
  hidden = tower.layer_norm("vision_model.pre_layernorm", std::move(hidden));
  for (const char* name : {"vision_model.rotary_emb.inv_freq", "vision_model.rotary_emb.original_inv_freq"}) {
    net.tape.buffer(name, tower.hd.n() / 4 * 4);
  }
  hidden = tower.layers({"vision_model.layers", tower.arch.num_layers, block}, std::move(hidden));
  hidden = view(contiguous(transpose(std::move(hidden), 1, 2)), Shape{Dim(1), tower.H, side, side});
  for (const char* name : {"vision_model.downsampler1", "vision_model.downsampler2"}) {
    const Dim out(2 * hidden.size(1)), half((hidden.size(2) + 1) / 2);
    Tensor weight = tower.parameter(name, "weight", Shape{out, hidden.dim(1), Dim(3), Dim(3)});
    Tensor bias = tower.parameter(name, "bias", Shape{out});
    hidden = convolution(std::move(hidden), std::move(weight), std::move(bias), {half, half});
  }
  const Dim tokens(hidden.size(2) * hidden.size(3)), channels = hidden.dim(1);
  hidden = contiguous(transpose(view(std::move(hidden), Shape{Dim(1), channels, tokens}), 1, 2));
  return net.linear("multi_modal_projector", std::move(hidden), net.H, net.arch.pictures.bias);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

// Step3p7Config
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  text.report_unread("step3p7");
  architecture.language = &kLanguage;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, architecture.tie_word_embeddings);
  architecture.pictures.bias = fields.flag({"projector_bias"}, false);
  fields.accept({"image_token_id"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_tower(vision, part);
  architecture.parts.push_back(std::move(part));
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.images_per_sample == 0) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/images_per_sample",
                    "Of Step 3.7 texts alone are modelled: what its processor makes of pictures is not known here. Use "
                    "0.",
                    "0"});
}

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .inputs = qwen_text_and_pictures,
                          .attention = kNoFlash,
                          .check = check};

constexpr ClassFacts kFacts = {.one_experts_form = true, .behind_language = "multi_modal_projector"};

}  // namespace

const Family kRows[] = {
    {"step3p7", "Step3p7", "Step3p7ForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows step3p7_rows;
const FamilyRows step3p7_rows = kRows;

}  // namespace tidemark
