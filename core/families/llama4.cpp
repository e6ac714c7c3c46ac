// Llama 4: layers that look at a chunk and turn, and layers that look at everything and do not; every expert sees every
// token. Its tower turns, too, and leaves a quarter of its tokens, each four wide.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/towers.hpp"
#include "core/job/defaults.hpp"
#include "core/layers/kept_loss.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// A list of numbers, one per layer.
bool listed(const Value* list, Count number) {
  if (list == nullptr || !list->is_array()) return false;
  for (const Value& item : list->items) {
    if (item.is_number() && item.real == static_cast<double>(number)) return true;
  }
  return false;
}

// Which layers turn (`no_rope_layers` has a one for those), which of them look at a chunk alone, which have experts.
void read_kinds_of_layers(ConfigFields& fields, Architecture& architecture) {
  const Count interval = fields.count({"no_rope_layer_interval"}, 4);
  const Count step = fields.count({"interleave_moe_layer_step"}, 1);
  const Value* turning = fields.find({"no_rope_layers"});
  const Value* with_experts = fields.find({"moe_layers"});
  const Value* types = fields.find({"layer_types"});
  const auto per_layer = [&](const Value* list) {
    return list != nullptr && list->is_array() && static_cast<Count>(list->items.size()) == architecture.num_layers;
  };
  const bool stated = with_experts != nullptr && with_experts->is_array();
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool turns = per_layer(turning) ? turning->items[at].real != 0.0 : (i + 1) % interval != 0;
    architecture.no_rope_layers.push_back(!turns);
    architecture.sliding_layers.push_back(per_layer(types) ? types->items[at].string == "chunked_attention" : turns);
    architecture.experts.dense_layers.push_back(stated ? !listed(with_experts, i) : (i + 1) % step != 0);
  }
}

// transformers 5.12.1 models/llama4/configuration_llama4.py: Llama4TextConfig. The feed-forward of layers without
// experts has a width of its own; that of experts is `intermediate_size`.
void read_llama4_text_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096 * 32);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = fields.flag({"use_qk_norm"}, true);
  architecture.query_scale = fields.flag({"attn_temperature_tuning"}, true);
  architecture.sliding_window = fields.nullable({"attention_chunk_size"}, 8192).value_or(0);
  read_kinds_of_layers(fields, architecture);
  read_experts(fields, architecture, {16, 1, 0}, {"num_local_experts"});
  // Not of transformers: checkpoints whose experts Axolotl has made linear layers ("llama4_linearized_experts").
  architecture.experts.listed = fields.flag({"linearized_experts"}, false);
  architecture.experts.shared_width = architecture.experts.width;
  architecture.intermediate_size = fields.count({"intermediate_size_mlp"}, 16384);
  // Llama4ForCausalLM adds no loss of its routers.
  fields.accept({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "floor_scale", "attn_scale",
                 "for_llm_compressor"});
}

constexpr const char* kModel = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextModel.forward";
constexpr const char* kRotary = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextRotaryEmbedding.forward";
constexpr const char* kLayer = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextAttention.forward";
constexpr const char* kMoe = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextMoe.forward";
constexpr const char* kRouter = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4Router.forward";
constexpr const char* kExperts = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextExperts.forward";
constexpr const char* kMlp = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextMLP.forward";
constexpr GatedNames kDense = {"feed_forward", "feed_forward.gate_proj", "feed_forward.activation_fn",
                               "feed_forward.up_proj", "feed_forward.down_proj"};
constexpr GatedNames kShared = {"feed_forward.shared_expert", "feed_forward.shared_expert.gate_proj",
                                "feed_forward.shared_expert.activation_fn", "feed_forward.shared_expert.up_proj",
                                "feed_forward.shared_expert.down_proj"};

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  complex_rotary_table(net, kRotary);
  return embeds;
}

// (query_states * attn_scales).to(query_states.dtype)
Tensor scale_by_position(Net& net, Tensor q_in) {
  const Tensor q = std::move(q_in);
  Tensor scale = net.tape.allocate(Shape{net.S}, Dtype::kFp32, "to");
  for (const char* step : {"add", "div", "floor", "log1p", "mul", "add"}) {
    scale = net.tape.allocate(Shape{net.S}, Dtype::kFp32, step);
  }
  scale = view(std::move(scale), Shape{Dim(1), net.S, Dim(1), Dim(1)});
  scale = expand(std::move(scale), Shape{net.B, net.S, Dim(1), Dim(1)});
  Tensor scaled = mul(q, std::move(scale));
  return to(std::move(scaled), q.dtype());
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias, turns = net.rotates(net.layer_index);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (turns) {
    Rotated turned = rotate_complex(net, q, k, false);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  if (net.arch.qk_norm && turns) {
    q = l2_norm(net, "self_attn.qk_norm", std::move(q));
    k = l2_norm(net, "self_attn.qk_norm", std::move(k));
  }
  if (net.arch.query_scale && !turns) q = scale_by_position(net, std::move(q));
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.softmax_fp32 = false;
  options.cast_back = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

struct Scores {
  Tensor scores, logits;
};

Scores route(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "feed_forward.router", kRouter);
  const Dim experts(net.arch.experts.count);
  Scores r;
  const Tensor weight = net.parameter("feed_forward.router", "weight", Shape{experts, net.H});
  r.logits = linear(hidden, weight);
  const TopK best = topk(r.logits, Dim(net.arch.experts.per_token));
  Tensor scores = scatter_last(best.values, best.indices, experts);
  Tensor wide = to(scores, Dtype::kFp32);
  wide = sigmoid(std::move(wide));
  r.scores = to(std::move(wide), scores.dtype());
  return r;
}

Tensor experts(Net& net, Tensor rows_in) {
  Scope in(net.tape, "feed_forward.experts", kExperts);
  const Dim count(net.arch.experts.count), width(net.arch.experts.width);
  Projections p;
  p.up.weight = net.expert_parameter("feed_forward.experts", "gate_up_proj", Shape{count, net.H, Dim(2 * width.n())});
  p.down.weight = net.expert_parameter("feed_forward.experts", "down_proj", Shape{count, width, net.H});
  adapt(net, "feed_forward.experts", p);
  { const Tensor asked_for_its_shape = p.up.used(); }
  const Tensor rows = view(std::move(rows_in), Shape{count, net.T, net.H});
  const Tensor gate_up = matmul(rows, p.up.used());
  const Pieces pieces = split(gate_up, -1, {width, width});
  Tensor gate = activate(net.arch.activation, pieces.part[0]);
  gate = mul(pieces.part[1], std::move(gate));
  Tensor out = matmul(std::move(gate), p.down.used());
  return view(std::move(out), Shape{Dim(count.n() * net.T.n()), net.H});
}

// Experts of which bitsandbytes packs and adapters reach each matrix. All see every token; each writes its rows in
// place.
Tensor linear_experts(Net& net, Tensor rows_in) {
  constexpr const char* kLinear = "Axolotl 0.18 monkeypatch/models/llama4/modeling.py: Llama4TextExperts.forward";
  Scope in(net.tape, "feed_forward.experts", kLinear);
  const Dim count(net.arch.experts.count), width(net.arch.experts.width);
  std::vector<Parameter>& parameters = net.tape.parameters();
  const std::size_t known = parameters.size();
  const Shape part{net.T, net.H};
  const Tensor rows = view(std::move(rows_in), Shape{count, net.T, net.H});
  Tensor sum = zeros(net.tape, rows.shape(), rows.dtype(), "zeros_like");
  Tensor own, gate, up;  // names that the loop overwrites
  for (Count i = 0; i < count.n(); ++i) {
    own = select(rows, 0);
    gate = net.linear("feed_forward.experts.gate_projs.0", own, width);
    up = net.linear("feed_forward.experts.up_projs.0", own, width);
    Tensor out = mul(up, activate(net.arch.activation, gate));
    out = net.linear("feed_forward.experts.down_projs.0", std::move(out), net.H);
    sum = copy_into(std::move(sum), part, to(std::move(out), rows.dtype()));
  }
  for (std::size_t i = known; i < parameters.size(); ++i) parameters[i].is_expert = !parameters[i].is_adapter;
  return view(std::move(sum), Shape{Dim(count.n() * net.T.n()), net.H});
}

// Frameworks with code of their own send each token to its experts alone: torchtitan 0.2 models/moe/moe.py:
// MoE.forward, torchtune 0.6 modules/moe/moe.py: MoE.forward. transformers' grouped experts stand in.
Tensor moe_of_chosen(Net& net, const Tensor& hidden) {
  constexpr ExpertForm kForm = {.module = "feed_forward.experts", .source = kExperts, .transposed = true};
  Scope in(net.tape, "feed_forward", kMoe);
  const Tensor tokens = as_tokens(net, hidden);
  const Tensor weight = net.parameter("feed_forward.router", "weight", Shape{Dim(net.arch.experts.count), net.H});
  Tensor scores = to(linear(tokens, weight), Dtype::kFp32);
  TopK best = topk(sigmoid(std::move(scores)), Dim(net.arch.experts.per_token));
  Tensor chosen = to(std::move(best.values), tokens.dtype());
  Tensor routed = run_experts(net, kForm, tokens, std::move(best.indices), std::move(chosen));
  routed = behind_projection(net, "down_proj", as_sequences(net, std::move(routed)));
  Tensor out = gated_mlp(net, kShared, kMlp, hidden, net.width_of(net.arch.experts.shared_width));
  return add(std::move(out), std::move(routed));
}

Tensor moe(Net& net, Tensor hidden_in) {
  if (is_stood_for(net.job.framework)) return moe_of_chosen(net, std::move(hidden_in));
  Scope in(net.tape, "feed_forward", kMoe);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Scores routing = route(net, hidden);
  const Dim count(net.arch.experts.count), rows(count.n() * net.T.n());
  // hidden_states.repeat(E, 1)
  Tensor routed = expand(unsqueeze(hidden, 0), Shape{count, net.T, net.H});
  routed = contiguous(std::move(routed));
  routed = view(std::move(routed), Shape{rows, net.H});
  Tensor scales = transpose(routing.scores, 0, 1);
  scales = reshape(std::move(scales), Shape{rows, Dim(1)});
  routed = mul(std::move(routed), std::move(scales));
  const Tensor routed_out = net.arch.experts.listed ? linear_experts(net, routed) : experts(net, routed);
  Tensor out = gated_mlp(net, kShared, kMlp, hidden, Dim(net.arch.experts.shared_width));
  Tensor sum = view(routed_out, Shape{count, net.T, net.H});
  sum = sum_over(std::move(sum), 0, false);
  out = add_in_place(std::move(out), std::move(sum));
  return as_sequences(net, std::move(out));
}

Tensor feed_forward(Net& net, Tensor hidden) {
  return is_dense_layer(net) ? gated_mlp(net, kDense, kMlp, std::move(hidden), net.F) : moe(net, std::move(hidden));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = llama4_norm(net, "input_layernorm", residual);
  // `attention_states` is a name of its own: it lives until the layer returns.
  const Tensor attention_states = run_divided(net, std::move(h), self_attention);
  h = add(residual, attention_states);
  residual = h;
  h = llama4_norm(net, "post_attention_layernorm", std::move(h));
  h = run_divided(net, std::move(h), feed_forward);
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return llama4_norm(net, "model.norm", std::move(hidden));
}

// -- the tower --------------------------------------------------------------------------------------------------------

constexpr const char* kTower = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4VisionModel.forward";
constexpr const char* kAdapter =
    "transformers 5.12 models/llama4/modeling_llama4.py: Llama4VisionPixelShuffleMLP.forward";
constexpr const char* kUnfold = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4UnfoldConvolution.forward";
constexpr const char* kSeeing =
    "transformers 5.12 models/llama4/modeling_llama4.py: Llama4ForConditionalGeneration.forward";

void turn_complex(Net& net, Tensor& q, Tensor& k) {
  Rotated turned = rotate_complex(net, std::move(q), std::move(k), false);
  q = std::move(turned.q);
  k = std::move(turned.k);
}

Tensor tower_block(Net& net, Tensor hidden) {
  constexpr TowerLayer kNames = {"transformers 5.12 models/llama4/modeling_llama4.py: Llama4VisionEncoderLayer.forward",
                                 {"input_layernorm", "post_attention_layernorm"},
                                 "self_attn.q_proj",
                                 "self_attn.k_proj",
                                 "self_attn.v_proj",
                                 "self_attn.o_proj",
                                 "mlp.fc1",
                                 "mlp.fc2",
                                 turn_complex,
                                 true};
  return tower_layer(net, std::move(hidden), kNames);
}

// torch.nn.Unfold makes a copy, a column for each patch; a Linear follows.
Tensor unfolded_patches(Net& net) {
  Scope in(net.tape, "vision_model.patch_embedding", kUnfold);
  const Dim side(net.arch.patch_size), row(net.arch.num_channels * side.n() * side.n());
  const Tensor columns = net.tape.allocate(Shape{net.B, row, Dim(net.S.n() - 1)}, net.pixel_values.dtype(), "im2col");
  Tensor patches = net.linear("vision_model.patch_embedding.linear", transpose(columns, 1, 2), net.H);
  return net.hooked_inputs(std::move(patches));
}

// pixel_shuffle: two copies; Llama4VisionMLP2.
Tensor shuffled(Net& net, Tensor x_in) {
  Scope in(net.tape, "vision_model.vision_adapter", kAdapter);
  const Count s = net.arch.pictures.merge, side = net.arch.image_size / net.arch.patch_size, small = side / s;
  const Dim n = x_in.dim(0), wide(net.H.n() * s), wider(wide.n() * s);
  Tensor x = reshape(std::move(x_in), Shape{n, Dim(side), Dim(small), wide});
  x = contiguous(permute(std::move(x), {0, 2, 1, 3}));
  x = view(std::move(x), Shape{n, Dim(small), Dim(small), wider});
  x = contiguous(permute(std::move(x), {0, 2, 1, 3}));
  x = view(std::move(x), Shape{n, Dim(small * small), wider});
  x = net.linear("vision_model.vision_adapter.mlp.fc1", std::move(x), Dim(net.arch.pictures.window));
  x = dropout(activate(net.arch.activation, std::move(x)), net.arch.activation_dropout);
  x = net.linear("vision_model.vision_adapter.mlp.fc2", std::move(x), Dim(net.arch.pictures.tokens));
  return activate(net.arch.activation, std::move(x));
}

Tensor tower(Net& net) {
  constexpr const char* kName = "vision_model";
  Scope in(net.tape, kName, kTower);
  Tensor hidden = unfolded_patches(net);
  {
    Tensor token = net.parameter(kName, "class_embedding", Shape{net.H});
    const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), net.H});
    hidden = cat({&hidden, &tokens}, 1);
  }
  hidden = add(std::move(hidden), net.parameter(kName, "positional_embedding_vlm", Shape{net.S, net.H}));
  hidden = net.layer_norm("vision_model.layernorm_pre", std::move(hidden));
  net.tape.buffer("freqs_ci", net.S.n() * net.hd.n() * size_of(Dtype::kFp32));
  net.shared.cos = net.tape.part_of_buffer(Shape{Dim(1), net.S, net.hd}, Dtype::kFp32);
  hidden = net.layers({"vision_model.model.layers", net.arch.num_layers, tower_block}, std::move(hidden));
  hidden = net.layer_norm("vision_model.layernorm_post", std::move(hidden));
  return shuffled(net, narrow(hidden, 1, 0, Dim(net.S.n() - 1)));
}

const Program kTowerProgram = {tower};

// transformers 5.12.1 models/llama4/configuration_llama4.py: Llama4VisionConfig. The adapter's first matrix has
// `intermediate_size` columns, as its input has by the shuffle.
void read_vision(ConfigFields& fields, Architecture& part) {
  read_tower_sizes(fields, part, 768, 34, 16, 5632);
  part.image_size = square_side(fields, "image_size", 448);
  part.patch_size = square_side(fields, "patch_size", 14);
  part.activation = Activation::kGelu;  // nn.GELU(), whatever hidden_act says
  part.activation_dropout = fields.probability({"projector_dropout"}, 0.0);
  const double ratio = fields.number({"pixel_shuffle_ratio"}, 0.5);
  part.pictures.merge = ratio > 0.0 && ratio <= 1.0 ? static_cast<Count>(1.0 / ratio) : 1;
  part.pictures.window = fields.count({"projector_input_dim"}, 4096);
  part.pictures.tokens = fields.count({"projector_output_dim"}, 4096);
  const Count side = part.image_size / part.patch_size, merged = part.pictures.merge * part.pictures.merge;
  if (side % part.pictures.merge != 0 || part.hidden_size * merged != part.intermediate_size) {
    fields.error("INVALID_VALUE", "pixel_shuffle_ratio",
                 "The tower's tokens, shuffled together by \"pixel_shuffle_ratio\", must be as wide as "
                 "\"intermediate_size\": the adapter multiplies them by a matrix of that width.");
  }
  part.max_positions = side * side + 1;
  part.program = &kTowerProgram;
  fields.accept({"model_type", "architectures", "hidden_act", "norm_eps", "rope_theta", "rope_parameters",
                 "vision_output_dim", "vision_feature_layer", "vision_feature_select_strategy",
                 "multi_modal_projector_bias", "dtype", "torch_dtype"});
}

// transformers 5.12.1 models/llama4/configuration_llama4.py: Llama4Config.
void read_llama4(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "llama4_text");
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  if (has_error(fields.issues())) return;
  Architecture part;
  read_vision(vision, part);
  vision.report_unread(architecture.model_type);
  architecture.parts.push_back(std::move(part));
  fields.accept({"tie_word_embeddings", "boi_token_index", "eoi_token_index", "image_token_index"});
}

Tensor features(Net& net) {
  Net& part = tower_part(net, Dim(tile_count(net)));
  // Among the outputs: what the tower gives, in front of the projector.
  net.image_hidden_states = part.arch.program->forward(part);
  const Tensor seen = net.image_hidden_states;
  Tensor rows = view(seen, Shape{Dim(seen.size(0) * seen.size(1)), seen.dim(2)});
  return net.linear("multi_modal_projector.linear_1", std::move(rows), net.H);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kSeeing, false);
}

// Until transformers 5.16 its own loss: logits where the mask is not 0, in their dtype, and labels likewise.
Outputs seeing_lm(Net& net, const Program& program, Tensor hidden) {
  if (net.job.framework.at_least(5, 17) || net.job.loss != Loss::kDefault || is_stood_for(net.job.framework)) {
    return causal_lm(net, program, std::move(hidden));
  }
  Tensor logits = program.lm_head(net, std::move(hidden));
  Scope in(net.tape, "loss", kSeeing);
  Outputs out;
  out.loss = kept_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
  return out;
}

// torchtitan 0.2 models/llama4/infra/parallelize.py: apply_moe_ep_tp, around grouped experts alone.
void check_company(const TrainingJob& job, Issues& issues) {
  const auto refuse = [&issues](const char* path, const char* message) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, path, message, "1"});
  };
  if (job.tensor.is_used() && (!is_stood_for(job.framework) || job.images_per_sample > 0)) {
    refuse("/parallelism/tensor",
           "Of Llama 4 tensor parallelism is modelled where torchtitan's or torchtune's experts are stood for, without "
           "pictures.");
  }
  if (job.pipeline.is_used() && !job.pipeline.is_device_map())
    refuse("/parallelism/pipeline", "Pipelines of Llama 4 are not modelled.");
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_company(job, issues);
  check_router_is_whole(architecture, job, issues);
}

// Llama4TextExperts.forward: bmm.
constexpr ClassFacts kTextFacts = {.one_experts_form = true};
// image_processing_llama4.py: get_best_fit, among max_patches.
constexpr ClassFacts kFacts = {.one_experts_form = true,
                               .pictures = PictureRule::kCoveringTiles,
                               .most_tiles = 16,
                               .made_first = "layernorm_post",
                               .full_name = name_beside_whole};

}  // namespace

// modeling_llama4.py: Llama4Router; modeling_phimoe.py: PhimoeTopKRouter.
void check_router_is_whole(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (!job.has_adapter() || job.adapter.learns_prompt() ||
      job.adapter.target_modules.kind != ModuleChoice::Kind::kAllLinear) {
    return;
  }
  issues.push_back(
      {"INVALID_VALUE", Severity::kError, "/adapter/target_modules",
       "\"all-linear\" reaches the router, a Linear that returns two tensors: PEFT fails. Name the modules.",
       "attention"});
}

constexpr ClassSuffix kClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};

constexpr HeadForward kHeads[] = {{Head::kCausalLm, seeing_lm}};

const Program kLlama4Program = {.forward = one_stack<embed, layer, norm>,
                                .lm_head = llama_head,
                                .attention = kNoFlash,
                                .is_divisible = true,
                                .check = check};
const Program kSeeingProgram = {.forward = forward_with_pictures<merge>,
                                .lm_head = language_head,
                                .heads = kHeads,
                                .inputs = tile_inputs,
                                .attention = kNoFlash,
                                .is_divisible = true,
                                .check = check};
constexpr ClassSuffix kSeeingClass[] = {{"ForConditionalGeneration", Head::kCausalLm}};

const Family kRows[] = {
    {"llama4_text", "Llama4", "Llama4ForCausalLM", kClasses, read_llama4_text_config, &kLlama4Program, kModelLayers,
     kTextFacts},
    {"llama4", "Llama4", "Llama4ForConditionalGeneration", kSeeingClass, read_llama4, &kSeeingProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows llama4_rows;
const FamilyRows llama4_rows = kRows;

}  // namespace tidemark
