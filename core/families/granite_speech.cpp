// Granite Speech: conformer blocks that attend within stretches of frames, BLIP-2's Q-Former over windows of these, and
// Granite. The adapter that published files hold beside it is what LoRA of q_proj and v_proj makes.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/kept_loss.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kFeedForward =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechConformerFeedForward.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechConformerAttention.forward";
constexpr const char* kConvolution =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechConformerConvModule.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechConformerBlock.forward";
constexpr const char* kEncoder =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechCTCEncoder.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechEncoderProjector.forward";
constexpr const char* kModel =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechModel.forward";
constexpr const char* kHead =
    "transformers 5.12 models/granite_speech/modeling_granite_speech.py: GraniteSpeechForConditionalGeneration.forward";

/// Kinds of blocks: the one behind which letters join the states; of the Q-Former's layers, the one whose queries have
/// not met a window yet.
constexpr std::uint8_t kMiddle = 1, kFirst = 2;

// transformers 5.12.1 models/granite_speech/configuration_granite_speech.py: GraniteSpeechEncoderConfig.
Architecture read_encoder(ConfigFields& fields) {
  const Value nothing{Value::Kind::kObject};
  const Value* given = object_in(fields, "encoder_config");
  ConfigFields sound(given != nullptr ? *given : nothing, fields.path() + "/encoder_config", fields.issues());
  Architecture part;
  part.num_channels = sound.count({"input_dim", "num_mel_bins"}, 160);
  part.num_layers = sound.count({"num_layers", "num_hidden_layers"}, 10);
  part.hidden_size = sound.count({"hidden_dim", "hidden_size"}, 1024);
  part.intermediate_size = part.hidden_size * sound.count({"feedforward_mult"}, 4);
  part.num_heads = part.num_kv_heads = sound.count({"num_heads", "num_attention_heads"}, 8);
  part.head_dim = sound.nullable({"dim_head"}, std::nullopt).value_or(part.hidden_size / part.num_heads);
  part.vocab_size = sound.count({"output_dim"}, 42);
  part.max_positions = sound.count({"context_size"}, 200);
  part.num_buckets = 2 * sound.count({"max_pos_emb"}, 512) + 1;
  part.residual_dropout = sound.probability({"dropout"}, 0.1);
  part.conv_kernels = {sound.count({"conv_kernel_size"}, 15)};
  part.conv_dims = {part.hidden_size * sound.count({"conv_expansion_factor"}, 2)};
  for (Count i = 1; i <= part.num_layers; ++i) part.layer_kinds.push_back(i == part.num_layers / 2 ? kMiddle : 0);
  sound.accept({"model_type"});
  sound.report_unread("granite_speech_encoder");
  return part;
}

// transformers 5.12.1 models/granite_speech/configuration_granite_speech.py: GraniteSpeechConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "granite");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.pictures.window = fields.count({"window_size"}, 15);
  const Count rate = fields.count({"downsample_rate"}, 5);
  architecture.pictures.tokens = std::max<Count>(1, architecture.pictures.window / rate);
  fields.accept({"audio_token_index", "audio_token_id", "has_lora_adapter"});
  architecture.parts.push_back(read_encoder(fields));
  ConfigFields given(required_object(fields, "projector_config"), fields.path() + "/projector_config", fields.issues());
  Architecture queries = read_qformer(given);
  if (!queries.layer_kinds.empty()) queries.layer_kinds.front() |= kFirst;
  architecture.parts.push_back(std::move(queries));
}

/// GraniteSpeechFeatureExtractor: hops of 160 samples at 16 kHz, two of them in a frame, windows of frames.
struct Recording {
  Count frames = 0, windows = 1, tokens = 1;
};

Recording recording_of(const Architecture& a, const TrainingJob& job) {
  constexpr double kRate = 16000.0;
  constexpr Count kHop = 160;
  Recording r;
  r.frames = std::max<Count>(1, (static_cast<Count>(std::llround(job.audio_seconds * kRate)) / kHop + 1) / 2);
  r.windows = (r.frames + a.pictures.window - 1) / a.pictures.window;
  r.tokens = r.windows * a.pictures.tokens;
  return r;
}

// The processor hands over a mask always, and with a recording one of what the projector makes of it.
void inputs(Net& net) {
  text_inputs(net);
  if (!net.job.padding) {
    net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "attention_mask"));
  }
  if (!hears(net)) return;
  const Recording r = recording_of(net.arch, net.job);
  net.pixel_values = net.tape.allocate(Shape{net.B, Dim(r.frames), Dim(net.arch.parts[0].num_channels)}, Dtype::kFp32,
                                       "input_features");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, Dim(r.tokens)}, Dtype::kBool, "input_features_mask"));
}

/// Where a feed-forward's modules are.
struct FeedForward {
  const char *module, *norm, *up, *down;
};
constexpr FeedForward kBefore = {"ff1", "ff1.pre_norm", "ff1.up_proj", "ff1.down_proj"};
constexpr FeedForward kBehind = {"ff2", "ff2.pre_norm", "ff2.up_proj", "ff2.down_proj"};

// 0.5 * ff(hidden_states) + hidden_states
Tensor half_of(Net& net, const FeedForward& names, const Tensor& hidden) {
  Tensor h;
  {
    Scope in(net.tape, names.module, kFeedForward);
    h = net.layer_norm(names.norm, hidden);
    h = silu(net.linear(names.up, std::move(h), net.F, true));
    h = dropout(std::move(h), net.arch.residual_dropout);
    h = net.linear(names.down, std::move(h), net.H, true);
    h = dropout(std::move(h), net.arch.residual_dropout);
  }
  h = mul_scalar(std::move(h));
  return add(std::move(h), hidden);
}

// torch.einsum("b m h c d, c r d -> b m h c r"): a product for each query's place, scaled.
Tensor by_distance(Net& net, const Tensor& q, const Tensor& table) {
  const Dim stretches = q.dim(0), context = q.dim(2);
  Tensor places = reshape(permute(q, {2, 0, 1, 3}), Shape{context, Dim(stretches.n() * net.A.n()), net.hd});
  Tensor h = matmul(std::move(places), transpose(table, 1, 2));
  h = permute(view(std::move(h), Shape{context, stretches, net.A, context}), {1, 2, 0, 3});
  return mul_scalar(std::move(h));
}

Tensor attend(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Dim context(net.arch.max_positions), inner(net.A.n() * net.hd.n());
  const Count stretches = (net.S.n() + context.n() - 1) / context.n(), rest = net.S.n() % context.n();
  const Dim rows(net.B.n() * stretches);
  Tensor x = net.layer_norm("attn.pre_norm", std::move(hidden));
  if (rest > 0) x = pad(std::move(x), 1, context.n() - rest);
  const auto heads = [&](Tensor y) {
    return transpose(view(reshape(std::move(y), Shape{rows, context, inner}), Shape{rows, context, net.A, net.hd}), 1,
                     2);
  };
  Tensor q = net.linear("attn.to_q", x, inner);
  Tensor kv = net.linear("attn.to_kv", x, Dim(2 * inner.n()));
  Pieces both = split(std::move(kv), -1, {inner, inner});
  q = heads(std::move(q));
  const Tensor k = heads(std::move(both.part[0])), v = heads(std::move(both.part[1]));
  const Tensor ids = net.tape.part_of_buffer(Shape{context, context}, Dtype::kInt64);
  const Tensor table = net.embedding("attn.rel_pos_emb", ids, Dim(net.arch.num_buckets), net.hd);
  Tensor bias = by_distance(net, q, table);
  if (rest > 0) {  // pos_attn[:, -1, :].masked_fill_(…)
    const Tensor mask = net.tape.allocate(Shape{context, context}, Dtype::kBool, "ones");
    const Tensor none = net.tape.part_of_buffer(Shape{Dim(1)}, bias.dtype());
    bias = copy_into(std::move(bias), Shape{net.B, net.A, context, context}, none);
  }
  net.attention_kernel = "math";
  const auto autocast = net.tape.autocast();  // scaled_dot_product_attention casts, and what it calls does not
  net.tape.set_autocast(std::nullopt);
  Tensor out = math_attention(q, k, v, std::move(bias), false, 0.0, false);
  net.tape.set_autocast(autocast);
  out = reshape(transpose(std::move(out), 1, 2), Shape{net.B, Dim(stretches * context.n()), inner});
  if (rest > 0) out = narrow(std::move(out), 1, 0, net.S);
  out = net.linear("attn.to_out", std::move(out), net.H, true);
  return dropout(std::move(out), net.arch.residual_dropout);
}

// nn.Conv1d to as many frames; `apart`: each channel is its own.
Tensor convolved(Net& net, const char* name, Tensor x, Dim out, Count kernel, bool apart) {
  Scope in(net.tape, name, kConvolution);
  const Tensor weight = net.parameter(name, "weight", Shape{out, apart ? Dim(1) : x.dim(1), Dim(kernel)});
  Tensor shift;
  if (!apart) shift = net.parameter(name, "bias", Shape{out});
  return convolution(std::move(x), weight, std::move(shift), {net.S});
}

Tensor convolve(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "conv", kConvolution);
  const Count kernel = net.arch.conv_kernels[0];
  const Dim inner(net.arch.conv_dims[0]), twice(2 * inner.n());
  Tensor h = net.layer_norm("conv.norm", hidden);
  h = convolved(net, "conv.up_conv", transpose(std::move(h), 1, 2), twice, 1, false);
  h = gated_channels(std::move(h));
  h = pad_last(std::move(h), kernel - 1);
  h = convolved(net, "conv.depth_conv.conv", std::move(h), inner, kernel, true);
  h = net.batch_norm("conv.batch_norm", std::move(h));
  h = silu(std::move(h));
  h = convolved(net, "conv.down_conv", std::move(h), net.H, 1, false);
  return dropout(transpose(std::move(h), 1, 2), net.arch.residual_dropout);
}

Tensor block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor x = half_of(net, kBefore, std::move(hidden));
  Tensor h = attend(net, x);
  x = add(std::move(h), x);
  h = convolve(net, x);
  x = add(std::move(h), x);
  x = half_of(net, kBehind, x);
  return net.layer_norm("post_norm", std::move(x));
}

// Behind the middle block: what letters the states stand for joins them.
Tensor behind_block(Net& net, Tensor hidden) {
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] != kMiddle) return hidden;
  Tensor letters = net.linear("encoder.out", clone(hidden), Dim(net.arch.vocab_size), true);
  letters = net.linear("encoder.out_mid", softmax(std::move(letters)), net.H, true);
  return add_in_place(std::move(hidden), std::move(letters));
}

Tensor encode(Net& net, Tensor features) {
  Scope in(net.tape, "encoder", kEncoder);
  net.tape.buffer("encoder.attention_dists", net.arch.max_positions * net.arch.max_positions * size_of(Dtype::kInt64));
  Tensor hidden = net.linear("encoder.input_linear", std::move(features), net.H, true);
  return net.layers({"encoder.layers", net.arch.num_layers, block, false, Phase::kForward, behind_block},
                    std::move(hidden));
}

// Windows of frames, of which each becomes as many tokens as there are queries: [B, tokens, H].
Tensor project(Net& net, Tensor hidden, const Recording& r) {
  Scope in(net.tape, "projector", kProjector);
  const Architecture& arch = net.arch.parts.back();
  const Dim windows(net.B.n() * r.windows), window(net.arch.pictures.window), width = hidden.dim(2), one(1);
  hidden = pad(std::move(hidden), 1, r.windows * window.n() - r.frames);
  hidden = view(std::move(hidden), Shape{windows, window, width});
  Net& part = net.part(arch, windows, Dim(net.arch.pictures.tokens));
  const Tensor queries = part.parameter("projector", "query", Shape{one, part.S, part.H});
  Tensor asked = qformer(part, "projector.qformer.layernorm", "projector.qformer.encoder.layer", queries, hidden);
  asked = view(std::move(asked), Shape{net.B, Dim(r.tokens), part.H});
  return net.linear("projector.linear", std::move(asked), net.H, true);
}

Tensor merge(Net& net, Tensor embeds) {
  const Declared alone(net, !hears(net));
  const Architecture& sound = net.arch.parts.front();
  const Recording r = recording_of(net.arch, net.job);
  const Shape shape{net.B, Dim(r.frames), Dim(sound.num_channels)};
  Tensor features = alone ? net.tape.allocate(shape, Dtype::kFp32, "input_features") : net.pixel_values;
  Net& encoder = net.part(sound, net.B, Dim(r.frames));
  Tensor hidden = encode(encoder, to(std::move(features), net.weight_dtype(2)));
  Tensor made = project(net, std::move(hidden), r);
  if (alone) return embeds;
  net.image_hidden_states = made;  // audio_hidden_states: among the outputs
  Scope in(net.tape, "", kModel);
  const Dim tokens(net.B.n() * r.tokens);
  made = to(std::move(made), embeds.dtype());
  const Tensor places = net.tape.allocate(Shape{tokens, Dim(2)}, Dtype::kInt64, "nonzero");
  made = index_pairs(std::move(made), places, places, tokens);
  {
    const Tensor indices = net.tape.allocate(Shape{Dim(made.numel()), Dim(3)}, Dtype::kInt64, "nonzero");
    const Tensor chosen = net.tape.allocate(Shape{Dim(made.numel())}, made.dtype(), "index");
  }
  return scatter_features(net, std::move(embeds), std::move(made), kModel);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

// The class's own loss.
Outputs causal(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  Tensor logits = program.lm_head(net, std::move(hidden));
  Scope in(net.tape, "loss", kHead);
  out.loss = kept_cross_entropy(net, logits, true);
  out.rest = {std::move(logits)};
  if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
  return out;
}

void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.loss != Loss::kDefault) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/loss",
         "Granite Speech's class computes its loss itself, from all logits: none takes its place. Use \"default\".",
         "default"});
  }
  if (job.audio_seconds <= 0.0) return;
  const Count tokens = recording_of(a, job).tokens;
  if (tokens + 1 > job.sequence_length) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/sequence_length",
                      "A recording takes " + std::to_string(tokens) + " tokens, more than the sequence has.",
                      std::to_string(tokens + 1)});
  }
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, causal}, {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}, {"Model", Head::kNone}};

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = kNoFlash,
                          .checkpoints = false,
                          .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .hears_alone = true, .no_split = NoSplit::kNotTower};

}  // namespace

const Family kRows[] = {
    {"granite_speech", "GraniteSpeech", "GraniteSpeechForConditionalGeneration", kClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows granite_speech_rows;
const FamilyRows granite_speech_rows = kRows;

}  // namespace tidemark
