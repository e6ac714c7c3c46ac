// Qwen3-Omni's thinker: an encoder of sound whose second of mel hops becomes thirteen tokens through three convolutions
// of pictures, and whose attention stays within a few seconds; Qwen3-VL's tower and language model of experts. The
// talker, which speaks, is beside it and not trained.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

constexpr const char* kSound =
    "transformers 5.12 models/qwen3_omni_moe/modeling_qwen3_omni_moe.py: Qwen3OmniMoeAudioEncoder.forward";
constexpr const char* kSoundLayer =
    "transformers 5.12 models/qwen3_omni_moe/modeling_qwen3_omni_moe.py: Qwen3OmniMoeAudioEncoderLayer.forward";
constexpr const char* kThinker =
    "transformers 5.12 models/qwen3_omni_moe/modeling_qwen3_omni_moe.py: "
    "Qwen3OmniMoeThinkerForConditionalGeneration.forward";

// transformers 5.12.1 models/qwen3_omni_moe/configuration_qwen3_omni_moe.py: Qwen3OmniMoeAudioEncoderConfig. The
// class's own n_window, 100, makes more places than its convolutions do.
Architecture read_sound(ConfigFields& fields) {
  ConfigFields audio(required_object(fields, "audio_config"), fields.path() + "/audio_config", fields.issues());
  Architecture tower;
  read_sound_sizes(audio, tower);
  tower.attention_out_bias = true;
  Pictures& p = tower.pictures;
  p.window = 2 * audio.count({"n_window"}, 100);
  p.tokens = audio.count({"n_window_infer"}, 400) / p.window;
  p.depth = audio.count({"conv_chunksize"}, 500);
  tower.pooler_size = audio.count({"downsample_hidden_size"}, 480);
  p.width = audio.count({"output_dim"}, 3584);
  derive_head_dim(audio, tower);
  if (p.window > 100 || p.tokens < 1) {
    // Of a configuration that is not there nothing is wrong.
    if (!has_error(audio.issues())) {
      audio.error("INVALID_VALUE", "n_window",
                  "Windows of at most 100 hops (\"n_window\": 50) are modelled, \"n_window_infer\" of one or more.");
    }
    p.window = p.tokens = 1;
  }
  audio.accept({"model_type", "scale_embedding", "initializer_range", "dropout", "attention_dropout",
                "activation_dropout", "encoder_layerdrop", "init_std", "num_hidden_layers"});
  audio.report_unread("qwen3_omni_moe_audio_encoder");
  return tower;
}

// _get_feat_extract_output_lengths: three halvings of what is left of each hundred, thirteen of a whole one.
Count tokens_of(Count hops) {
  Count left = hops % 100;
  for (int i = 0; i < 3; ++i) left = (left + 1) / 2;
  return left + hops / 100 * 13;
}

Count hops_of(const TrainingJob& job) {
  return std::max<Count>(1, static_cast<Count>(std::llround(job.audio_seconds * 100.0)));
}

// Its convolutions refuse the processor's fp32 beside weights of 16 bits, where autocast does not cast both: without,
// whoever calls it casts the features.
Dtype features_dtype(const Net& net) {
  return net.job.recipe.autocast ? Dtype::kFp32 : net.weight_dtype(4);
}

void inputs(Net& net) {
  text_inputs(net);
  // Its processor always hands over a mask, which the forward wants to count positions.
  if (!net.attention_mask.defined() && net.job.preference == Preference::kNone) {
    net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "attention_mask"));
  }
  qwen_picture_inputs(net);
  if (!hears(net)) return;
  const Dim hops(hops_of(net.job)), bins(net.arch.parts.back().num_channels);
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, bins, hops}, features_dtype(net), "input_features"));
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, hops}, Dtype::kInt64, "feature_attention_mask"));
}

// -- sound

// get_audio_cu_seqlens: windows of so many chunks, recording by recording.
std::vector<Count> lengths_of(const Net& tower) {
  const Count one = tokens_of(hops_of(tower.job)), rows = tower.S.n() / one;
  const Count window = tokens_of(std::min(tower.arch.pictures.window, hops_of(tower.job))) * tower.arch.pictures.tokens;
  std::vector<Count> lengths;
  for (Count row = 0; row < rows; ++row) {
    for (Count left = one; left > 0; left -= window) lengths.push_back(std::min(left, window));
  }
  return lengths;
}

Tensor sound_layer(Net& net, Tensor hidden) {
  return omni_sound_layer(net, std::move(hidden), lengths_of(net), true, kSoundLayer);
}

// One of three: halves both sides.
Tensor halved(Net& net, const char* name, Tensor x) {
  Scope in(net.tape, name, kSound);
  const Dim channels(net.arch.pooler_size), side(3), rows((x.size(2) + 1) / 2), columns((x.size(3) + 1) / 2);
  const Tensor weight = net.parameter(name, "weight", Shape{channels, x.dim(1), side, side});
  const Tensor bias = net.parameter(name, "bias", Shape{channels});
  return convolution(std::move(x), weight, bias, {rows, columns});
}

Tensor convolved(Net& net, Tensor chunks) {
  Tensor h = gelu(net.hooked_inputs(halved(net, "audio_tower.conv2d1", std::move(chunks))));
  h = gelu(halved(net, "audio_tower.conv2d2", std::move(h)));
  return gelu(halved(net, "audio_tower.conv2d3", std::move(h)));
}

// Chunks of all recordings, padded to the longest, a few hundred at a time; then the places that are no padding.
Tensor frames_of(Net& net, Dim rows, Count hops) {
  Tape& t = net.tape;
  const Pictures& p = net.arch.pictures;
  const Dim bins(net.arch.num_channels), longest(std::min(p.window, hops));
  const Count chunks = rows.n() * ((hops + p.window - 1) / p.window);
  const Tensor flat = t.allocate(Shape{Dim(rows.n() * hops), bins}, features_dtype(net), "index");
  const Tensor padded =
      transpose(t.allocate(Shape{Dim(chunks), longest, bins}, features_dtype(net), "pad_sequence"), 1, 2);
  const Tensor valid = t.allocate(Shape{net.S}, Dtype::kInt64, "valid_indices");
  std::vector<Count> sizes;
  for (Count left = chunks; left > 0; left -= p.depth) sizes.push_back(std::min(left, p.depth));
  const Pieces pieces = split(unsqueeze(padded, 1), 0, sizes);
  const std::size_t place = t.parameter_place();  // the same for each
  std::vector<Tensor> embeds;
  for (const Tensor& piece : pieces.part) {
    t.set_parameter_place(place);
    embeds.push_back(convolved(net, piece));
  }
  Tensor h = cat(embeds, 0);
  const Dim n(chunks), places = h.dim(3), wide(h.size(1) * h.size(2));
  h = view(contiguous(permute(std::move(h), {0, 3, 1, 2})), Shape{n, places, wide});
  h = net.linear("audio_tower.conv_out", std::move(h), net.H);
  t.buffer("audio_tower.positional_embedding.positional_embedding", net.arch.max_positions * net.H.n() * 4);
  const Tensor positions = t.allocate(Shape{Dim(1), places, net.H}, h.dtype(), "to");
  h = add(std::move(h), positions);
  // The names of the forward that live until it returns.
  for (const Tensor& held : {flat, padded, valid, positions, h}) net.outer_locals.push_back(held);
  net.outer_locals.insert(net.outer_locals.end(), embeds.begin(), embeds.end());
  return index_rows(view(h, Shape{Dim(n.n() * places.n()), net.H}), valid);
}

Tensor sound_tower(Net& net, Dim rows, Count hops) {
  Scope in(net.tape, "audio_tower", kSound);
  Tensor hidden = frames_of(net, rows, hops);
  hidden = net.layers({"audio_tower.layers", net.arch.num_layers, sound_layer}, std::move(hidden));
  hidden = net.layer_norm("audio_tower.ln_post", std::move(hidden));
  hidden = net.linear("audio_tower.proj1", std::move(hidden), net.H, true);
  hidden = activate(net.arch.activation, std::move(hidden));
  hidden = net.linear("audio_tower.proj2", std::move(hidden), Dim(net.arch.pictures.width), true);
  net.outer_locals.clear();
  return hidden;
}

Tensor with_sound(Net& net, Tensor embeds) {
  const Declared alone(net, !hears(net));
  const Dim rows(alone ? 1 : net.B.n());
  const Count hops = hops_of(net.job);
  Net& tower = net.part(net.arch.parts.back(), Dim(1), Dim(rows.n() * tokens_of(hops)));
  const Tensor features = sound_tower(tower, rows, hops);
  if (alone) return embeds;
  net.wrapper_locals.push_back(features);
  return scatter_features(net, std::move(embeds), features, kThinker);
}

// -- the thinker

// All that the tower hands out has names in the forward of the class with the head.
Tensor with_pictures(Net& net, Tensor embeds) {
  const Declared alone(net);
  const Tensor features = qwen3_vl_features(net);
  if (alone) {
    net.outer_locals.clear();
    net.handed_out.clear();
    return embeds;
  }
  for (Tensor& made : net.outer_locals) net.wrapper_locals.push_back(std::move(made));
  net.outer_locals.clear();
  for (const auto& [layer, deep] : net.handed_out) net.wrapper_locals.push_back(deep);
  return scatter_features(net, std::move(embeds), features, kThinker);
}

Tensor merge(Net& net, Tensor embeds) {
  embeds = with_sound(net, std::move(embeds));
  net.picture_tokens = 0;
  embeds = with_pictures(net, std::move(embeds));
  if (hears(net)) net.picture_tokens += tokens_of(hops_of(net.job)) + 2;
  net.wrapper_locals.push_back(embeds);
  return embeds;
}

// transformers 5.12.1 models/qwen3_omni_moe/configuration_qwen3_omni_moe.py: Qwen3OmniMoeThinkerConfig,
// Qwen3OmniMoeTextConfig.
void read_thinker(ConfigFields& fields, Architecture& architecture) {
  {
    ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
    read_qwen3_vl_moe_text(text, architecture, 4, {128, 8, 768});
    architecture.experts.normalised = text.flag({"norm_topk_prob"}, true);
    text.accept({"use_sliding_window", "sliding_window", "shared_expert_intermediate_size", "use_qk_norm"});
    text.report_unread("qwen3_omni_moe_thinker");
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  fields.accept({"audio_token_id", "audio_start_token_id", "audio_end_token_id", "user_token_id",
                 "position_id_per_seconds", "seconds_per_chunk", "initializer_range"});
  read_qwen3_vl_tower(fields, architecture);
  if (architecture.parts.empty()) return;
  architecture.parts.front().model_type = "qwen3_omni_moe_vision_encoder";
  add_sound(fields, architecture, read_sound(fields));
}

// Qwen3OmniMoeConfig
void read_whole(ConfigFields& fields, Architecture& architecture) {
  read_thinker_of(fields, architecture, "qwen3_omni_moe_thinker", "Qwen3OmniMoeThinkerForConditionalGeneration",
                  read_thinker);
  fields.accept({"talker_config", "code2wav_config", "enable_audio_output", "tie_word_embeddings", "im_start_token_id",
                 "im_end_token_id", "system_token_id", "user_token_id", "assistant_token_id", "tts_pad_token_id",
                 "tts_bos_token_id", "tts_eos_token_id"});
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  check_recording(tokens_of(hops_of(job)), job, issues);
}

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .heads = kThinkerHeads,
                          .inputs = inputs,
                          .check = check};

// Qwen3OmniMoeThinkerForConditionalGeneration names "Qwen3OmniMoeDecoderLayer"; its layers are of another class.
constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kAbsentToo, .full_name = name_as_is};

}  // namespace

const Family kRows[] = {
    {"qwen3_omni_moe", "Qwen3OmniMoe", "Qwen3OmniMoeForConditionalGeneration", kHearingClasses, read_whole, &kProgram,
     kModelLayers, kFacts},
    {"qwen3_omni_moe_thinker", "Qwen3OmniMoeThinker", "Qwen3OmniMoeThinkerForConditionalGeneration", kHearingClasses,
     read_thinker, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows qwen3_omni_rows;
const FamilyRows qwen3_omni_rows = kRows;

}  // namespace tidemark
