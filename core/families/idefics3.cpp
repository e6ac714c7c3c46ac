// Idefics 2 and 3, SmolVLM: pictures cut into tiles, SigLIP's tower on each; patches shuffled into fewer, wider ones,
// or (Idefics 2) resampled into a fixed number of latent vectors.
#include <algorithm>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/idefics3/modeling_idefics3.py: Idefics3VisionTransformer.forward";
constexpr const char* kEmbeddings =
    "transformers 5.12 models/idefics3/modeling_idefics3.py: Idefics3VisionEmbeddings.forward";
constexpr const char* kFeatures =
    "transformers 5.12 models/idefics3/modeling_idefics3.py: Idefics3Model.get_image_features";
constexpr const char* kConnector = "transformers 5.12 models/idefics3/modeling_idefics3.py: Idefics3Connector.forward";
constexpr const char* kModel = "transformers 5.12 models/idefics3/modeling_idefics3.py: Idefics3Model.inputs_merger";
constexpr const char* kPerceiver =
    "transformers 5.12 models/idefics2/modeling_idefics2.py: Idefics2PerceiverLayer.forward";
constexpr const char* kResampler = "transformers 5.12 models/idefics2/modeling_idefics2.py: Idefics2Connector.forward";
constexpr const char* kSmol = "transformers 5.12 models/smolvlm/modeling_smolvlm.py: SmolVLMModel.inputs_merger";

Tensor embeddings(Net& net) {
  const char* const kPositions = "vision_model.embeddings.position_embedding";
  Scope in(net.tape, "vision_model.embeddings", kEmbeddings);
  Tape& t = net.tape;
  // The patches' convolution is no input embedding here: the module around it is, and is hooked at its end.
  const char* const kConvolution = "vision_model.embeddings.patch_embedding";
  const Dim side(net.arch.patch_size);
  Tensor weight = net.parameter(kConvolution, "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor bias = net.parameter(kConvolution, "bias", Shape{net.H});
  const Tensor patches = patch_convolution(net.pixel_values, std::move(weight), std::move(bias));
  Tensor hidden = transpose(view(patches, Shape{net.B, net.H, net.S}), 1, 2);
  const Shape ids{net.B, net.S};
  const Tensor position_ids = t.allocate(ids, Dtype::kInt64, "full");
  const Tensor pos_ids = t.allocate(ids, Dtype::kInt64, "add");
  Tensor positions = net.embedding(kPositions, position_ids, Dim(net.arch.max_positions), net.H);
  hidden = add(std::move(hidden), std::move(positions));
  return net.hooked_inputs(std::move(hidden));
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_model", kTower);
  Tensor hidden = embeddings(net);
  // Where no picture of the batch is padded all places are seen, and sdpa's mask is dropped (masking_utils.py
  // _ignore_bidirectional_mask_sdpa).
  if (!net.job.assumptions.other_padding) make_bidirectional_mask(net, hidden);
  hidden = net.layers({"vision_model.encoder.layers", net.arch.num_layers, clip_layer}, std::move(hidden));
  hidden = net.layer_norm("vision_model.post_layernorm", std::move(hidden));
  net.shared.causal_mask.reset();
  return hidden;
}

}  // namespace

const Program kIdeficsTower = {tower};

namespace {

// transformers 5.12.1 models/idefics3/configuration_idefics3.py: Idefics3VisionConfig.
// Idefics2VisionConfig's width and heads are other ones.
void read_vision(ConfigFields& fields, Architecture& part, bool second) {
  read_tower_sizes(fields, part, second ? 768 : 1152, 12, second ? 12 : 16, 3072);
  part.image_size = square_side(fields, "image_size", 224);
  part.patch_size = square_side(fields, "patch_size", 32);
  part.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  const Count patches = part.image_size / part.patch_size;
  part.max_positions = patches * patches;
  part.program = &kIdeficsTower;
  fields.accept({"model_type", "max_image_size", "size", "tie_word_embeddings", "torch_dtype", "use_base_siglip"});
}

}  // namespace

void read_idefics_tower(ConfigFields& fields, Architecture& part) {
  read_vision(fields, part, false);
}

namespace {

// transformers 5.12.1 models/idefics3/configuration_idefics3.py: Idefics3Config.
void read_idefics(ConfigFields& fields, Architecture& architecture, bool second) {
  read_language(fields, architecture, second ? "mistral" : "llama");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.pictures.merge = fields.count({"scale_factor"}, 2);
  fields.accept({"image_token_id", "pad_token_id", "image_seq_len", "vocab_size", "freeze_config", "use_base_siglip"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_vision(vision, part, second);
  vision.report_unread(architecture.model_type);
  architecture.parts.push_back(std::move(part));
}

void read_idefics3(ConfigFields& fields, Architecture& architecture) {
  architecture.pictures.video_frames = architecture.model_type == "smolvlm" ? 1 : 0;
  read_idefics(fields, architecture, false);
}

// transformers 5.12.1 models/idefics2/configuration_idefics2.py: Idefics2Config, Idefics2PerceiverConfig.
void read_idefics2(ConfigFields& fields, Architecture& architecture) {
  static const Value kNothing{Value::Kind::kObject};
  read_idefics(fields, architecture, true);
  const Value* given = object_in(fields, "perceiver_config");
  ConfigFields perceiver(given == nullptr ? kNothing : *given, fields.path() + "/perceiver_config", fields.issues());
  Architecture part;
  part.hidden_size = architecture.hidden_size;  // Idefics2Config.__post_init__
  part.num_layers = perceiver.count({"resampler_depth"}, 3);
  part.num_heads = perceiver.count({"resampler_n_heads"}, 16);
  part.num_kv_heads = perceiver.count({"num_key_value_heads"}, 4);
  part.head_dim = perceiver.count({"resampler_head_dim"}, 96);
  part.pictures.tokens = perceiver.count({"resampler_n_latents"}, 64);
  part.activation = read_activation(perceiver, {"hidden_act"}, "silu");
  perceiver.accept({"model_type", "hidden_size", "attention_dropout", "qk_layer_norms_perceiver"});
  architecture.parts.push_back(std::move(part));
}

Count tiles_of(const Net& net) {
  return std::max<Count>(1, net.job.image_tiles);
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const PictureSize size = picture_size(net);
  const Dim n(net.job.images_per_sample * tiles_of(net)), height(size.height), width(size.width);
  net.pixel_values = given_pixels(net, Shape{net.B, n, Dim(3), height, width});
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, n, height, width}, Dtype::kBool, "pixel_attention_mask"));
}

// Idefics3Connector.pixel_shuffle
Tensor shuffled(Net& net, const Tensor& hidden, PictureSize grid) {
  const Count s = net.arch.pictures.merge;
  const Dim n = hidden.dim(0), width = hidden.dim(2);
  const Dim rows(grid.height), columns(grid.width / s);
  Tensor x = view(hidden, Shape{n, rows, columns, Dim(width.n() * s)});
  x = permute(std::move(x), {0, 2, 1, 3});
  x = reshape(std::move(x), Shape{n, columns, Dim(rows.n() / s), Dim(width.n() * s * s)});
  x = permute(std::move(x), {0, 2, 1, 3});
  return reshape(std::move(x), Shape{n, Dim(rows.n() / s * columns.n()), Dim(width.n() * s * s)});
}

/// The tower on all tiles, with what get_image_features holds while the connector runs.
struct Seen {
  Tensor pixels, mask, patch_mask, last;
  PictureSize grid;
};

Seen seen(Net& net) {
  Scope in(net.tape, "", kFeatures);
  Tape& t = net.tape;
  const Architecture& part = net.arch.parts.front();
  const PictureSize size = picture_size(net);
  Seen s;
  s.grid = {size.height / part.patch_size, size.width / part.patch_size};
  const Dim n(picture_count(net) * tiles_of(net));
  const Shape pixels{n, Dim(part.num_channels), Dim(size.height), Dim(size.width)};
  Net& tower_net = net.part(part, n, Dim(s.grid.height * s.grid.width));
  t.scratch({{pixels.numel(), "eq"}});
  // Pictures that are padding alone are left out by an index: a copy of all others, and of their masks.
  s.pixels = t.allocate(pixels, net.weight_dtype(4), "index");
  s.mask = t.allocate(Shape{n, Dim(size.height), Dim(size.width)}, Dtype::kBool, "index");
  s.patch_mask = t.allocate(Shape{n, tower_net.S}, Dtype::kBool, "gt");
  tower_net.pixel_values = s.pixels;
  s.last = part.program->forward(tower_net);
  tower_net.pixel_values.reset();
  return s;
}

Tensor features(Net& net) {
  const Seen s = seen(net);
  Scope in(net.tape, "connector", kConnector);
  Tensor x = shuffled(net, s.last, s.grid);
  return net.linear("connector.modality_projection.proj", std::move(x), net.H);
}

/// Idefics2MLP
struct MlpNames {
  const char *gate, *up, *down;
};
constexpr MlpNames kProjection = {"connector.modality_projection.gate_proj", "connector.modality_projection.up_proj",
                                  "connector.modality_projection.down_proj"};
constexpr MlpNames kLatentMlp = {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"};

Tensor gated(Net& net, const Tensor& x, const MlpNames& names, Dim inner, Dim outer, Activation activation) {
  Tensor gate = net.linear(names.gate, x, inner);
  gate = activate(activation, std::move(gate));
  Tensor up = net.linear(names.up, x, inner);
  gate = mul(std::move(gate), std::move(up));
  return net.linear(names.down, std::move(gate), outer);
}

// Idefics2PerceiverLayer.forward on the latents; the context is the resampler's first local.
Tensor perceiver_layer(Net& net, Tensor latents_in) {
  Scope in(net.tape, "", kPerceiver);
  const Tensor residual = std::move(latents_in);
  const Dim latents_count = residual.dim(1);
  Tensor latents = rms_norm(net, "input_latents_norm", residual);
  const Tensor context = rms_norm(net, "input_context_norm", net.model_locals.front());
  {
    const Tensor both = cat({&context, &latents}, 1);
    const Dim length = both.dim(1);
    Tensor q = net.linear("self_attn.q_proj", latents, net.Q);
    Tensor k = net.linear("self_attn.k_proj", both, net.K);
    Tensor v = net.linear("self_attn.v_proj", both, net.K);
    q = transpose(view(std::move(q), Shape{net.B, latents_count, net.A, net.hd}), 1, 2);
    k = transpose(view(std::move(k), Shape{net.B, length, net.Kv, net.hd}), 1, 2);
    v = transpose(view(std::move(v), Shape{net.B, length, net.Kv, net.hd}), 1, 2);
    AttentionOptions options;
    options.causal = false;
    options.mask = net.shared.causal_mask;
    const Tensor out = attention(net, q, k, v, options);
    latents = net.linear("self_attn.o_proj", out, net.H);
  }
  const Tensor attended = add(residual, std::move(latents));
  Tensor h = rms_norm(net, "post_attention_layernorm", attended);
  h = gated(net, h, kLatentMlp, Dim(4 * net.H.n()), net.H, net.arch.activation);
  return add(attended, std::move(h));
}

Tensor resampled_features(Net& net) {
  const Seen s = seen(net);
  Scope in(net.tape, "connector", kResampler);
  Tensor context = gated(net, s.last, kProjection, net.F, net.H, net.arch.activation);
  const Architecture& part = net.arch.parts.back();
  Net& resampler = net.part(part, context.dim(0), context.dim(1));
  const Dim latents(part.pictures.tokens);
  Tensor table = net.parameter("connector.perceiver_resampler", "latents", Shape{latents, net.H});
  Tensor x = expand(unsqueeze(std::move(table), 0), Shape{context.dim(0), latents, net.H});
  {
    // No latent is padding.
    const bool eager = net.job.attention == AttentionKernel::kEager;
    const Dim keys(latents.n() + context.size(1));
    const bool has_mask = !net.job.assumptions.other_padding;
    if (has_mask) resampler.shared.causal_mask = bidirectional_mask(resampler, x, eager, latents, keys);
  }
  resampler.model_locals = {std::move(context)};
  Stack stack{"connector.perceiver_resampler.layers", part.num_layers, perceiver_layer};
  stack.checkpoints = false;
  x = resampler.layers(stack, std::move(x));
  resampler.model_locals.clear();
  x = rms_norm(net, "connector.perceiver_resampler.norm", std::move(x));
  resampler.shared.causal_mask.reset();
  const Shape rows{Dim(x.size(0) * x.size(1)), net.H};
  return view(std::move(x), rows);
}

Tensor merge_resampled(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), resampled_features, kModel);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

// SmolVLM puts the features into zeros and takes one or the other per token, where Idefics 3 scatters.
Tensor merge_smol(Net& net, Tensor embeds) {
  {
    const Declared alone(net);
    if (alone) {
      features(net);
      return embeds;
    }
  }
  const Tensor hidden = features(net);
  net.image_hidden_states = hidden;
  net.outer_locals.push_back(hidden);
  Scope in(net.tape, "", kSmol);
  Tape& t = net.tape;
  const Shape row{net.B, net.S};
  const Tensor mask = t.allocate(row, Dtype::kBool, "eq");
  std::vector<Tensor> counts;
  for (const char* step : {"cumsum", "floor_divide", "remainder", "add"}) {
    counts.push_back(t.allocate(row, Dtype::kInt64, step));
  }
  const Tensor zeros_like = zeros(t, embeds.shape(), embeds.dtype(), "zeros_like");
  const Dim rows(hidden.size(0) * hidden.size(1));
  Tensor indices = t.allocate(Shape{rows, Dim(2)}, Dtype::kInt64, "index");
  Tensor values = gather_rows(view(hidden, Shape{rows, net.H}), std::move(indices));
  indices = t.allocate(Shape{rows, Dim(2)}, Dtype::kInt64, "nonzero");
  const Tensor image_embeds = put_rows(zeros_like, std::move(indices), std::move(values));
  return where(unsqueeze(mask, -1), image_embeds, std::move(embeds));
}

const Program kIdefics3 = {forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};
const Program kIdefics2 = {
    forward_with_pictures<merge_resampled>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};
const Program kSmolVlm = {
    forward_with_pictures<merge_smol>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};

std::string full_name_of(const Architecture& architecture, std::string_view path) {
  return name_within_body(architecture, path, "text_model.");
}

constexpr ClassFacts kTwoFacts = {.no_split = NoSplit::kAbsentToo,
                                  .named_anew_since = 15,
                                  .named_anew = NoSplit::kOtherParts,
                                  .divides_tower_layers = true,
                                  .pictures = PictureRule::kLongestSide,
                                  .tiles = true,
                                  .full_name = full_name_of};
constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo,
                               .named_anew_since = 15,
                               .named_anew = NoSplit::kOtherParts,
                               .divides_tower_layers = true,
                               .pictures = PictureRule::kFourTiles,
                               .full_name = full_name_of};

}  // namespace

const Family kRows[] = {
    {"idefics2", "Idefics2", "Idefics2ForConditionalGeneration", kSeeingClasses, read_idefics2, &kIdefics2,
     kModelLayers, kTwoFacts},
    {"idefics3", "Idefics3", "Idefics3ForConditionalGeneration", kSeeingClasses, read_idefics3, &kIdefics3,
     kModelLayers, kFacts},
    {"smolvlm", "SmolVLM", "SmolVLMForConditionalGeneration", kSeeingClasses, read_idefics3, &kSmolVlm, kModelLayers,
     kFacts},
};

extern const FamilyRows idefics3_rows;
const FamilyRows idefics3_rows = kRows;

}  // namespace tidemark
