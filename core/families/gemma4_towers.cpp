// Gemma 4 and Gemma 3n that see and hear: the language model with its towers. Gemma 4's vision tower runs; what sees in
// Gemma 3n (timm's MobileNetV5) and what hears in all is there and never runs. Gemma 4 12B (gemma4_unified) has no
// towers: patches are projected, normalised and given a position.
#include <cmath>

#include "core/families/family.hpp"
#include "core/families/gemma4.hpp"
#include "core/families/towers.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kVision = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4VisionModel.forward";
constexpr const char* kVisionLayer =
    "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4VisionEncoderLayer.forward";
constexpr const char* kModel4 = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4Model.forward";
constexpr const char* kCap =
    "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4ForConditionalGeneration.forward";
constexpr const char* kModel3n = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nModel.forward";
constexpr const char* kUnified =
    "transformers 5.12 models/gemma4_unified/modeling_gemma4_unified.py: Gemma4UnifiedModel.forward";
constexpr const char* kUnifiedEyes =
    "transformers 5.12 models/gemma4_unified/modeling_gemma4_unified.py: Gemma4UnifiedVisionEmbedder.forward";
constexpr const char* kAudio = "transformers 5.12 models/gemma4/modeling_gemma4.py: Gemma4AudioModel";

/// Parameters of timm 1.0.31's mobilenetv5_300m_enc, counted there: none is of a linear layer.
constexpr Count kMobileNetParameters = 294126912;
/// Of the convolutions before the audio tower: channels, and the rest's width that a linear layer takes (128 mel bins,
/// halved twice, times the second's channels).
constexpr Count kMels = 128, kChannels[] = {128, 32}, kKernel = 9;

enum Parts : std::size_t { kEyes = 1, kEars = 2 };  ///< in Architecture::parts, behind what Gemma 4's attention is

/// Linear layers of an audio tower's layer: two to four times its width, two from there, one to twice, six as wide.
constexpr const char* kEars3n[] = {"ffw_layer_start.ffw_layer_1",
                                   "ffw_layer_end.ffw_layer_1",
                                   "ffw_layer_start.ffw_layer_2",
                                   "ffw_layer_end.ffw_layer_2",
                                   "lconv1d.linear_start",
                                   "lconv1d.linear_end",
                                   "attention.attn.q_proj",
                                   "attention.attn.k_proj",
                                   "attention.attn.v_proj",
                                   "attention.attn.relative_position_embedding.pos_proj",
                                   "attention.post"};
constexpr const char* kEars4[] = {"feed_forward1.ffw_layer_1.linear",
                                  "feed_forward2.ffw_layer_1.linear",
                                  "feed_forward1.ffw_layer_2.linear",
                                  "feed_forward2.ffw_layer_2.linear",
                                  "lconv1d.linear_start.linear",
                                  "lconv1d.linear_end.linear",
                                  "self_attn.q_proj.linear",
                                  "self_attn.k_proj.linear",
                                  "self_attn.v_proj.linear",
                                  "self_attn.relative_k_proj",
                                  "self_attn.post.linear"};

bool is_fourth(const Net& ears) {
  return ears.arch.embedding_dim > 0;
}

void declare_linear(Net& net, const char* name, Count in, Dim out, bool bias = false) {
  net.linear(name, net.tape.allocate(Shape{Dim(1), Dim(in)}, net.weight_dtype(2), "declared"), out, bias);
}

Tensor audio_layer(Net& net, Tensor hidden) {
  const Count width = net.H.n();
  for (int i = 0; i < 11; ++i) {
    const Count out = i < 2 ? 4 : i == 4 ? 2 : 1;
    declare_linear(net, is_fourth(net) ? kEars4[i] : kEars3n[i], i == 2 || i == 3 ? 4 * width : width,
                   Dim(out * width));
  }
  // The convolution of five tokens, nine norms and a scale of each column of a head.
  net.parameter("lconv1d.depthwise_conv1d", "weight", Shape{Dim(14 * width + net.hd.n())});
  return hidden;
}

void declare_audio(Net& net) {
  if (net.arch.parts.size() <= kEars) return;
  Scope in(net.tape, "audio_tower", kAudio);
  Net& part = net.part(net.arch.parts[kEars], Dim(1), Dim(1));
  part.parameter("audio_tower.subsample_conv_projection", "weight",
                 Shape{Dim((kKernel + 1 + kKernel * kChannels[1]) * kChannels[0] + kChannels[1])});
  declare_linear(part, "audio_tower.subsample_conv_projection.input_proj_linear", kMels / 4 * kChannels[1], part.H);
  Stack stack{is_fourth(part) ? "audio_tower.layers" : "audio_tower.conformer", part.arch.num_layers, audio_layer};
  stack.checkpoints = false;
  part.layers(stack, {});
  if (is_fourth(part)) declare_linear(part, "audio_tower.output_proj", part.H.n(), Dim(part.arch.embedding_dim), true);
}

// transformers 5.12.1 models/gemma4/configuration_gemma4.py: Gemma4AudioConfig; gemma3n: Gemma3nAudioConfig.
void read_audio(ConfigFields& fields, Architecture& architecture, bool fourth) {
  static const Value kNothing{Value::Kind::kObject};
  const Value* given = object_in(fields, "audio_config");
  if (given == nullptr && fourth) return;
  ConfigFields audio(given != nullptr ? *given : kNothing, fields.path() + "/audio_config", fields.issues());
  Architecture ears;
  ears.hidden_size = audio.count({"hidden_size"}, fourth ? 1024 : 1536);
  ears.num_layers = audio.count({"num_hidden_layers", "conf_num_hidden_layers"}, 12);
  ears.num_heads = ears.num_kv_heads = audio.count({"num_attention_heads", "conf_num_attention_heads"}, 8);
  ears.head_dim = ears.hidden_size / ears.num_heads;
  ears.vocab_size = audio.count({"vocab_size"}, 128);
  if (fourth) ears.embedding_dim = audio.count({"output_proj_dims"}, 1536);
  architecture.parts.push_back(std::move(ears));
}

void read_rest(ConfigFields& fields, Architecture& architecture) {
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"image_token_id", "video_token_id", "audio_token_id", "boi_token_id", "eoi_token_id", "boa_token_id",
                 "eoa_token_id", "eoa_token_index", "vision_soft_tokens_per_image", "audio_soft_tokens_per_image",
                 "eos_token_id", "pad_token_id", "bos_token_id"});
}

// Their configurations make text_config one class (sub_configs), whatever model_type it names.
void read_own_language(ConfigFields& fields, Architecture& architecture, std::string_view type) {
  read_language(fields, architecture, type);
  const Value* named = required_object(fields, "text_config").find("model_type");
  if (named != nullptr && named->is_string() && named->string != type) {
    fields.error("INVALID_VALUE", "text_config", "Its language model is \"" + std::string{type} + "\".");
  }
}

void read_gemma3n(ConfigFields& fields, Architecture& architecture) {
  read_own_language(fields, architecture, "gemma3n_text");
  static const Value kNothing{Value::Kind::kObject};
  const Value* given = object_in(fields, "vision_config");
  ConfigFields vision(given != nullptr ? *given : kNothing, fields.path() + "/vision_config", fields.issues());
  if (vision.text({"architecture"}, "mobilenetv5_300m_enc") != "mobilenetv5_300m_enc") {
    vision.error("INVALID_VALUE", "architecture", "Only timm's mobilenetv5_300m_enc is modelled.");
  }
  Architecture eyes;
  eyes.hidden_size = vision.count({"hidden_size"}, 2048);
  eyes.vocab_size = vision.count({"vocab_size"}, 128);
  architecture.parts.push_back(std::move(eyes));
  read_audio(fields, architecture, false);
  read_rest(fields, architecture);
}

// transformers 5.12.1 models/gemma4/configuration_gemma4.py: Gemma4Config, Gemma4VisionConfig.
void read_gemma4(ConfigFields& fields, Architecture& architecture) {
  read_own_language(fields, architecture, "gemma4_text");
  const Value& text = required_object(fields, "text_config");
  const Value* both = text.find("use_bidirectional_attention");
  architecture.bidirectional = both != nullptr && both->is_string();
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture eyes;
  read_tower_sizes(vision, eyes, 768, 16, 12, 3072);
  eyes.head_dim = vision.count({"head_dim"}, 64);
  eyes.activation = read_activation(vision, {"hidden_activation"}, "gelu_pytorch_tanh");
  eyes.patch_size = vision.count({"patch_size"}, 16);
  eyes.pictures.merge = vision.count({"pooling_kernel_size"}, 3);
  eyes.pictures.positions = vision.count({"position_embedding_size"}, 10240);
  eyes.clip_qkv = vision.flag({"use_clipped_linears"}, false);
  eyes.norm_bias = vision.flag({"standardize"}, false);
  eyes.image_size = 768;
  architecture.parts.push_back(std::move(eyes));
  read_audio(fields, architecture, true);
  // _no_split_modules name the layers of a tower that hears, too.
  if (architecture.parts.size() < 2) architecture.facts.no_split = NoSplit::kAbsentToo;
  read_rest(fields, architecture);
}

// transformers 5.12.1 models/gemma4_unified/configuration_gemma4_unified.py: Gemma4UnifiedConfig,
// Gemma4UnifiedVisionConfig, Gemma4UnifiedAudioConfig.
void read_unified(ConfigFields& fields, Architecture& architecture) {
  read_own_language(fields, architecture, "gemma4_unified_text");
  const Value* both = required_object(fields, "text_config").find("use_bidirectional_attention");
  architecture.bidirectional = both == nullptr || both->is_string();
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture eyes;
  eyes.hidden_size = vision.count({"mm_embed_dim"}, 3840);
  eyes.patch_size = vision.count({"patch_size"}, 16);
  eyes.pictures.merge = vision.count({"pooling_kernel_size"}, 3);
  eyes.pictures.positions = vision.count({"mm_posemb_size"}, 1120);
  eyes.image_size = 768;
  if (vision.count({"output_proj_dims"}, 3840) != eyes.hidden_size) {
    vision.error("INVALID_VALUE", "output_proj_dims",
                 "\"output_proj_dims\" must be \"mm_embed_dim\": the class projects what is as wide as the latter.");
  }
  architecture.parts.push_back(std::move(eyes));
  if (const Value* given = object_in(fields, "audio_config"); given != nullptr) {
    ConfigFields audio(*given, fields.path() + "/audio_config", fields.issues());
    Architecture ears;
    ears.hidden_size = audio.count({"audio_embed_dim", "hidden_size"}, 640);
    architecture.parts.push_back(std::move(ears));
  }
  read_rest(fields, architecture);
}

/// Pictures as the processor hands them over: padded to as many patches as 280 tokens take.
struct Sizes {
  Count pictures, patches, tokens;
};
constexpr Count kMostTokens = 280;  ///< max_soft_tokens
Sizes sizes(const Net& net) {
  // image_processing_gemma4.py get_aspect_ratio_preserving_size: the largest of that shape.
  const Architecture& eyes = net.arch.parts[kEyes];
  const Count k = eyes.pictures.merge;
  const Sizes most{picture_count(net), kMostTokens * k * k, kMostTokens};
  if (net.job.images_per_sample == 0) return most;
  const double side = static_cast<double>(eyes.image_size);
  const double height = net.job.image_height > 0 ? static_cast<double>(net.job.image_height) : side;
  const double width = net.job.image_height > 0 ? static_cast<double>(net.job.image_width) : side;
  const double factor = std::sqrt(static_cast<double>(kMostTokens) / (height * width));
  const auto cells = [&](double x) { return std::max<Count>(1, static_cast<Count>(factor * x)); };
  return {most.pictures, most.patches, std::min(kMostTokens, cells(height) * cells(width))};
}

/// `rows` of each picture, and how many pixels a side each has.
void patch_inputs(Net& net, Count rows, Count side) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Dim pictures(picture_count(net));
  const Shape shape{pictures, Dim(rows), Dim(3 * side * side)};
  net.pixel_values = net.tape.allocate(shape, Dtype::kFp32, "pixel_values");
  // FSDP casts what its root is given (cast_forward_inputs of 1's MixedPrecision and 2's MixedPrecisionPolicy).
  const DataParallel& how = net.job.data_parallel;
  const bool casts = how.is_sharded() && is_fsdp(how.sharding);
  if (const auto gathered = mixed_precision(net.job).gathered; casts && gathered && *gathered != Dtype::kFp32) {
    net.more_inputs.push_back(std::move(net.pixel_values));
    net.pixel_values = net.tape.allocate(shape, *gathered, "_to_copy");
  }
  integer_input(net, Shape{pictures, Dim(rows), Dim(2)}, "image_position_ids");
  integer_input(net, Shape{net.B, net.S}, "mm_token_type_ids");
}

void inputs4(Net& net) {
  patch_inputs(net, sizes(net).patches, net.arch.parts[kEyes].patch_size);
}

// Of Gemma 4 12B merge² patches are one row.
Count side_of_row(const Net& net) {
  return net.arch.parts[kEyes].patch_size * net.arch.parts[kEyes].pictures.merge;
}

void unified_inputs(Net& net) {
  patch_inputs(net, kMostTokens, side_of_row(net));
}

// Gemma4ClippableLinear.forward
Tensor clippable(Net& net, const char* name, Tensor x, Dim out) {
  if (!net.arch.clip_qkv) return net.linear(name, std::move(x), out);
  net.tape.buffer(name, 4 * 512);  // four numbers, each in a block of its own
  Tensor h = clamp(std::move(x));
  h = net.linear(name, std::move(h), out);
  return clamp(std::move(h));
}

// apply_multidimensional_rope: half of a head by the patch's column, half by its row.
Tensor turned(Net& net, const char* name, Tensor x) {
  x = gemma4_norm(net, name, std::move(x));
  const Dim half(net.hd.n() / 2);
  const Pieces parts = split(std::move(x), -1, {half, half});
  Tensor by[2];
  for (Count i = 0; i < 2; ++i) {
    const Tensor cos = unsqueeze(narrow(net.shared.cos, -1, i * half.n(), half), 2);
    const Tensor sin = unsqueeze(narrow(net.shared.sin, -1, i * half.n(), half), 2);
    by[i] = rotate_by(parts.part[static_cast<std::size_t>(i)], cos, sin);
  }
  return transpose(cat({&by[0], &by[1]}, -1), 1, 2);
}

Tensor vision_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kVisionLayer);
  const Tensor x = std::move(hidden);
  const Shape heads{net.B, net.S, net.A, net.hd};
  const Tensor q = turned(net, "self_attn.q_norm", view(clippable(net, "self_attn.q_proj.linear", x, net.Q), heads));
  const Tensor k = turned(net, "self_attn.k_norm", view(clippable(net, "self_attn.k_proj.linear", x, net.Q), heads));
  Tensor v = view(clippable(net, "self_attn.v_proj.linear", x, net.Q), heads);
  v = transpose(gemma4_norm(net, "self_attn.v_norm", std::move(v), false), 1, 2);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  Tensor out = attention(net, q, k, v, options);
  return clippable(net, "self_attn.o_proj.linear", std::move(out), net.H);
}

Tensor vision_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kVisionLayer);
  const Tensor x = std::move(hidden);
  Tensor h = activate(net.arch.activation, clippable(net, "mlp.gate_proj.linear", x, net.F));
  Tensor up = clippable(net, "mlp.up_proj.linear", x, net.F);
  return clippable(net, "mlp.down_proj.linear", mul(std::move(h), std::move(up)), net.H);
}

Tensor vision_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kVisionLayer);
  Tensor residual = std::move(hidden);
  Tensor h = vision_attention(net, gemma4_norm(net, "input_layernorm", residual));
  h = gemma4_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = vision_mlp(net, gemma4_norm(net, "pre_feedforward_layernorm", std::move(h)));
  h = gemma4_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(residual, std::move(h));
}

Tensor patches_embedded(Net& net) {
  constexpr const char* kModule = "vision_tower.patch_embedder";
  Tape& t = net.tape;
  const Shape all{net.B, net.S};
  Tensor pixels = mul_scalar(add_scalar(net.pixel_values));
  Tensor table =
      net.parameter(kModule, "position_embedding_table", Shape{Dim(2), Dim(net.arch.pictures.positions), net.H});
  Tensor cast = to(pixels, table.dtype());
  const Tensor hidden = net.linear("vision_tower.patch_embedder.input_proj", std::move(cast), net.H);
  const Tensor ids = t.allocate(Shape{net.B, net.S, Dim(2)}, Dtype::kInt64, "clamp");
  const Tensor x = embedding(select(ids, 2), select(table, 0));
  const Tensor y = embedding(select(ids, 2), select(table, 0));
  Tensor positions = add(x, y);
  positions = where(t.allocate(Shape{net.B, net.S, Dim(1)}, Dtype::kBool, "padding"), std::move(positions),
                    t.allocate(Shape{}, hidden.dtype(), "scalar"));
  return add(hidden, std::move(positions));
}

// Gemma4VisionPooler.forward: patches averaged by a product, scaled in fp32; then the padding is left out.
Tensor pooled(Net& net, Tensor hidden, const Sizes& n) {
  Tape& t = net.tape;
  const Dtype dtype = hidden.dtype();
  const Shape shares{net.B, net.S, Dim(n.patches / (net.arch.pictures.merge * net.arch.pictures.merge))};
  Tensor h = masked_fill(std::move(hidden), t.allocate(Shape{net.B, net.S, Dim(1)}, Dtype::kBool, "padding"));
  t.allocate(shares, Dtype::kInt64, "one_hot");
  const Tensor weights = t.allocate(shares, Dtype::kFp32, "div");
  h = to(matmul(transpose(weights, 1, 2), to(std::move(h), Dtype::kFp32)), dtype);
  h = mul_scalar(to(std::move(h), Dtype::kFp32));
  h = reshape(std::move(h), Shape{Dim(net.B.n() * shares.dims[2].n()), net.H});
  h = index_some(std::move(h), t.allocate(Shape{net.B, shares.dims[2]}, Dtype::kBool, "mask"),
                 Dim(n.pictures * n.tokens));
  if (net.arch.norm_bias) h = mul_scalar(add_scalar(std::move(h)));
  return to(std::move(h), dtype);
}

Tensor vision_tower(Net& net, const Sizes& n) {
  Scope in(net.tape, "vision_tower", kVision);
  const Tensor embeds = patches_embedded(net);
  const Shape table{net.B, net.S, net.hd};
  if (n.tokens * net.arch.pictures.merge * net.arch.pictures.merge < n.patches && !wants_flash(net.job)) {
    const Shape scores{net.B, Dim(1), net.S, net.S};
    Tensor mask = net.tape.allocate(scores, Dtype::kBool, "padding mask (bool)");
    if (net.job.attention == AttentionKernel::kEager) mask = net.tape.allocate(scores, embeds.dtype(), "eager mask");
    net.shared.causal_mask = std::move(mask);
  }
  net.shared.cos = to(net.tape.allocate(table, Dtype::kFp32, "cat"), embeds.dtype());
  net.shared.sin = to(net.tape.allocate(table, Dtype::kFp32, "cat"), embeds.dtype());
  Tensor hidden = net.layers({"vision_tower.encoder.layers", net.arch.num_layers, vision_layer}, embeds);
  net.shared = {};
  return pooled(net, std::move(hidden), n);
}

// Gemma4MultimodalEmbedder.forward
Tensor features4(Net& net) {
  const Sizes n = sizes(net);
  Net& part = net.part(net.arch.parts[kEyes], Dim(n.pictures), Dim(n.patches));
  const Count patch = part.arch.patch_size;
  part.pixel_values = net.pixel_values.defined()
                          ? net.pixel_values
                          : net.tape.allocate(Shape{part.B, part.S, Dim(3 * patch * patch)}, Dtype::kFp32, "pixels");
  Tensor h = vision_tower(part, n);
  part.pixel_values.reset();
  Scope in(net.tape, "embed_vision", kModel4);
  h = gemma4_norm(net, "embed_vision.embedding_pre_projection_norm", std::move(h), false);
  return net.linear("embed_vision.embedding_projection", std::move(h), net.H);
}

Tensor merge4(Net& net, Tensor embeds) {
  Scope in(net.tape, "", kModel4);
  {
    const Declared alone(net, true);
    declare_audio(net);
    if (net.arch.parts.size() > kEars) {
      declare_linear(net, "embed_audio.embedding_projection", net.arch.parts[kEars].embedding_dim, net.H);
    }
  }
  // llm_inputs_embeds, a name that nothing reads
  if (net.arch.layer_input_width > 0) net.outer_locals.push_back(clone(detach(embeds)));
  return merge_features(net, std::move(embeds), features4, kModel4);
}

// Gemma4UnifiedVisionEmbedder.forward: a position is a row for the patch's column and one for its row, summed.
Tensor positions_of_patches(Net& part) {
  Tape& t = part.tape;
  const Shape places{part.B, part.S, Dim(2)};
  const Dim rows(part.T.n() * 2);
  const Tensor table =
      part.parameter("embed_vision", "pos_embedding", Shape{Dim(part.arch.pictures.positions), Dim(2), part.H});
  const Tensor clamped = t.allocate(places, Dtype::kInt64, "clamp");
  Tensor valid = t.allocate(places, Dtype::kBool, "ne");
  valid = t.allocate(places, table.dtype(), "to");
  const Tensor axes = t.allocate(Shape{Dim(2)}, Dtype::kInt64, "arange");
  Tensor chosen = index_pairs(table, clamped, axes, rows);
  chosen = view(std::move(chosen), Shape{part.B, part.S, Dim(2), part.H});
  chosen = mul(std::move(chosen), unsqueeze(valid, -1));
  return sum_over(std::move(chosen), 2, false);
}

// Gemma4UnifiedModel.get_image_features: what is padding is left out at the end.
Tensor unified_features(Net& net) {
  Tape& t = net.tape;
  const Sizes n = sizes(net);
  Net& part = net.part(net.arch.parts[kEyes], Dim(n.pictures), Dim(kMostTokens));
  const Count side = side_of_row(net);
  const Dtype dtype = net.weight_dtype(2);
  const Shape rows{part.B, part.S, Dim(3 * side * side)};
  const Tensor pixels = net.pixel_values.defined() ? net.pixel_values : t.allocate(rows, Dtype::kFp32, "pixels");
  Tensor h;
  {
    Scope in(t, "embed_vision", kUnifiedEyes);
    h = part.layer_norm("embed_vision.patch_ln1", to(pixels, dtype));
    h = part.linear("embed_vision.patch_dense", std::move(h), part.H, true);
    h = part.layer_norm("embed_vision.patch_ln2", std::move(h));
    const Tensor positions = positions_of_patches(part);
    h = add(std::move(h), positions);
    h = part.layer_norm("embed_vision.pos_norm", std::move(h));
    h = to(std::move(h), dtype);
    h = gemma4_norm(part, "embed_vision.multimodal_embedder.embedding_pre_projection_norm", std::move(h), false);
    h = part.linear("embed_vision.multimodal_embedder.embedding_projection", std::move(h), net.H);
  }
  Scope in(t, "", kUnified);
  const Tensor padding = t.allocate(Shape{part.B, part.S}, Dtype::kBool, "all");
  const Dim kept(n.pictures * n.tokens);
  h = view(std::move(h), Shape{part.T, net.H});
  return index_some(std::move(h), t.allocate(Shape{kept, Dim(2)}, Dtype::kInt64, "nonzero"), kept);
}

Tensor merge_unified(Net& net, Tensor embeds) {
  Scope in(net.tape, "", kUnified);
  if (net.arch.parts.size() > kEars) {
    const Declared alone(net, true);
    declare_linear(net, "embed_audio.embedding_projection", net.arch.parts[kEars].hidden_size, net.H);
  }
  return merge_features(net, std::move(embeds), unified_features, kUnified);
}

// Gemma3nMultimodalEmbedder.forward of ids: tokens of a vocabulary that texts have none of, in every forward.
Tensor hard_tokens(Net& net, Tensor embeds, const Architecture& part, const char* const (&names)[5]) {
  Tape& t = net.tape;
  const Dim width(part.hidden_size);
  const Tensor mask = t.allocate(Shape{net.B, net.S, Dim(1)}, Dtype::kBool, "ge");
  const Tensor ids = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "where");
  Tensor h =
      net.embedding(names[0], t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "sub"), Dim(part.vocab_size), width);
  h = gemma4_norm(net, names[1], std::move(h));
  net.parameter(names[2], "weight", Shape{width});
  h = net.linear(names[3], std::move(h), net.H);
  h = gemma4_norm(net, names[4], std::move(h), false);
  h = to(std::move(h), embeds.dtype());
  net.outer_locals.push_back(ids);
  net.outer_locals.push_back(h);
  return where(mask, std::move(h), std::move(embeds));
}

Tensor merge3n(Net& net, Tensor embeds) {
  Scope in(net.tape, "", kModel3n);
  {
    const Declared alone(net, true);
    net.parameter("vision_tower", "weight", Shape{Dim(kMobileNetParameters)});
    declare_audio(net);
  }
  embeds =
      hard_tokens(net, std::move(embeds), net.arch.parts[kEyes],
                  {"embed_vision.embedding", "embed_vision.hard_embedding_norm", "embed_vision.soft_embedding_norm",
                   "embed_vision.embedding_projection", "embed_vision.embedding_post_projection_norm"});
  return hard_tokens(net, std::move(embeds), net.arch.parts[kEars],
                     {"embed_audio.embedding", "embed_audio.hard_embedding_norm", "embed_audio.soft_embedding_norm",
                      "embed_audio.embedding_projection", "embed_audio.embedding_post_projection_norm"});
}

void check3n(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  architecture.language->check(architecture, job, issues);
  if (job.images_per_sample == 0) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/images_per_sample",
                    "Gemma 3n's vision tower, timm's MobileNetV5, is not modelled: only texts are. Use 0.", "0"});
}

// modeling_gemma4.py Gemma4VisionPatchEmbedder.forward: pixel_values.to(self.input_proj.weight.dtype), which is bytes
// where that is packed. peft 0.18 tuners/lora/bnb.py Linear4bit.forward makes floats of them only without autocast;
// under it F.dropout ("result type Float can't be cast to the desired output type") and lora_A fail.
void check_packed_patches(const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || !job.quantization.is_bitsandbytes() || !job.recipe.autocast) return;
  if ((job.images_per_sample == 0 && job.video_frames == 0) || job.freeze_vision || job.framework.name == "unsloth")
    return;
  const Adapter& adapter = job.adapter;
  const bool all = adapter.target_modules.kind == ModuleChoice::Kind::kAllLinear && adapter.exclude_modules.empty();
  if (!all || adapter.learns_prompt()) return;
  issues.push_back(
      {"INVALID_COMBINATION", Severity::kError, "/adapter/target_modules",
       "Gemma 4 casts patches to the bytes of its packed projection, and under autocast PEFT hands these "
       "to the adapter, which fails. Set \"freeze_vision\" to true, name \"exclude_modules\", or use \"pure_bf16\".",
       ""});
}

// peft 0.18 tuners/lora/model.py _create_new_module: the towers' layers of these names are Gemma4ClippableLinear, which
// hold an nn.Linear.
void check4(const Architecture&, const TrainingJob& job, Issues& issues) {
  check_packed_patches(job, issues);
  if (!job.has_adapter() || job.adapter.target_modules.kind != ModuleChoice::Kind::kNames) return;
  if (job.framework.name == "unsloth") return;  // it adapts the Linear inside
  for (const std::string& name : job.adapter.target_modules.names) {
    if (name.size() < 5 || name.find('.') != std::string::npos || name.substr(name.size() - 5) != "_proj") continue;
    issues.push_back({"INVALID_VALUE", Severity::kError, "/adapter/target_modules",
                      "\"" + name + "\" is also a Gemma4ClippableLinear of the towers, which PEFT refuses. Use " +
                          "\"all-linear\" or an expression that begins with \".*language_model\".",
                      "all-linear"});
    return;
  }
}

// Where the head is an identity, what the class does to its logits it does to the hidden states.
Outputs capped_scores(Net& net, const Program& program, Tensor hidden) {
  if (net.arch.logit_softcap) {
    Scope in(net.tape, "", kCap);
    hidden = mul_scalar(std::move(hidden));
    hidden = tanh(std::move(hidden));
    hidden = mul_scalar(std::move(hidden));
  }
  return sequence_classification(net, program, std::move(hidden));
}

constexpr HeadForward kHeads[] = {
    {Head::kCausalLm, causal_lm}, {Head::kSequenceClassification, capped_scores}, {Head::kNone, body_alone}};

const Program kGemma4 = {.forward = forward_with_pictures<merge4>,
                         .lm_head = language_head,
                         .heads = kHeads,
                         .inputs = inputs4,
                         .attention = kFlashUntil523,
                         .check = check4};
const Program kGemma4Unified = {.forward = forward_with_pictures<merge_unified>,
                                .lm_head = language_head,
                                .heads = kHeads,
                                .inputs = unified_inputs,
                                .attention = kFlashUntil523,
                                .check = refuse_packed_pictures};
const Program kGemma3n = {
    .forward = forward_with_pictures<merge3n>, .lm_head = language_head, .heads = kHeads, .check = check3n};

// Gemma4Model.__init__, Gemma4UnifiedModel.__init__
constexpr ClassFacts kFacts = {.behind_language = "embed_vision model.embed_tokens_per_layer model.per_layer"};

}  // namespace

const Family kRows[] = {
    {"gemma4", "Gemma4", "Gemma4ForConditionalGeneration", kSeeingClasses, read_gemma4, &kGemma4, kModelLayers, kFacts},
    {"gemma4_unified", "Gemma4Unified", "Gemma4UnifiedForConditionalGeneration", kSeeingClasses, read_unified,
     &kGemma4Unified, kModelLayers, kFacts},
    {"gemma3n", "Gemma3n", "Gemma3nForConditionalGeneration", kSeeingClasses, read_gemma3n, &kGemma3n},
};

extern const FamilyRows gemma4_towers_rows;
const FamilyRows gemma4_towers_rows = kRows;

}  // namespace tidemark
