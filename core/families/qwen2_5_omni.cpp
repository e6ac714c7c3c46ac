// Qwen2.5-Omni's thinker: an encoder of sound whose attention stays within two seconds, Qwen2.5-VL's tower and language
// model. The talker, which speaks, is beside it and not trained.
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

constexpr const char* kTower =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: Qwen2_5OmniVisionEncoder.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: Qwen2_5OmniVisionBlock.forward";
constexpr const char* kVisionAttention =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: Qwen2_5OmniVisionAttention.forward";
constexpr const char* kSound =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: Qwen2_5OmniAudioEncoder.forward";
constexpr const char* kSoundLayer =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: Qwen2_5OmniAudioEncoderLayer.forward";
constexpr const char* kThinker =
    "transformers 5.12 models/qwen2_5_omni/modeling_qwen2_5_omni.py: "
    "Qwen2_5OmniThinkerForConditionalGeneration.forward";

/// Mel hops of the window that the checkpoints' feature extractor pads to (nb_max_frames of 300 s at 10 ms).
constexpr Count kWindow = 30000;

// transformers 5.12.1 models/qwen2_5_omni/configuration_qwen2_5_omni.py: Qwen2_5OmniAudioEncoderConfig.
Architecture read_sound(ConfigFields& fields) {
  ConfigFields audio(required_object(fields, "audio_config"), fields.path() + "/audio_config", fields.issues());
  Architecture tower;
  read_sound_sizes(audio, tower);
  tower.attention_out_bias = true;
  tower.pictures.window = 2 * audio.count({"n_window"}, 100);
  tower.pictures.width = audio.count({"output_dim"}, 3584);
  derive_head_dim(audio, tower);
  audio.accept({"model_type", "scale_embedding", "initializer_range", "dropout", "attention_dropout",
                "activation_dropout", "encoder_layerdrop", "init_std"});
  audio.report_unread("qwen2_5_omni_audio_encoder");
  return tower;
}

/// One recording, in mel hops and in what the encoder makes of them.
struct Recording {
  Count hops, frames, tokens;
};
Recording recording_of(const TrainingJob& job) {
  const Count hops = std::clamp<Count>(static_cast<Count>(std::llround(job.audio_seconds * 100.0)), 1, kWindow);
  const Count frames = (hops - 1) / 2 + 1;
  return {hops, frames, std::max<Count>(1, (frames - 2) / 2 + 1)};
}

/// Frames of each chunk, recording by recording.
std::vector<Count> chunks_of(const Net& tower) {
  const Count window = tower.arch.pictures.window, hops = recording_of(tower.job).hops;
  const Count rows = tower.S.n() / recording_of(tower.job).frames;
  std::vector<Count> lengths;
  for (Count row = 0; row < rows; ++row) {
    for (Count left = hops; left > 0; left -= window) lengths.push_back((std::min(left, window) - 1) / 2 + 1);
  }
  return lengths;
}

void inputs(Net& net) {
  text_inputs(net);
  // Its processor always hands over a mask, which the forward wants to count positions.
  if (!net.attention_mask.defined() && net.job.preference == Preference::kNone) {
    net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "attention_mask"));
  }
  qwen_picture_inputs(net);
  if (!hears(net)) return;
  const Dim hops(kWindow), bins(net.arch.parts.back().num_channels);
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, bins, hops}, Dtype::kFp32, "input_features"));
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, hops}, Dtype::kInt64, "feature_attention_mask"));
}

// -- sound

}  // namespace

// Qwen2_5OmniAudioEncoderLayer.forward
Tensor omni_sound_layer(Net& net, Tensor hidden, const std::vector<Count>& lengths, bool key_bias, const char* source) {
  Scope in(net.tape, "", source);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("self_attn_layer_norm", residual);
  {
    Scope attention(net.tape, "self_attn", source);
    const Tensor x = std::move(h);
    const Shape heads{net.S, net.A, net.hd};
    Tensor q = view(net.linear("self_attn.q_proj", x, net.H, true), heads);
    Tensor k = view(net.linear("self_attn.k_proj", x, net.H, key_bias), heads);
    Tensor v = view(net.linear("self_attn.v_proj", x, net.H, true), heads);
    h = attend_in_stretches(net, std::move(q), std::move(k), std::move(v), lengths, "self_attn.out_proj");
  }
  h = add(residual, std::move(h));
  residual = h;
  h = net.layer_norm("final_layer_norm", std::move(h));
  h = net.linear("fc1", std::move(h), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("fc2", std::move(h), net.H, true);
  h = add(std::move(residual), std::move(h));
  return h.dtype() == Dtype::kFp16 ? clamp(std::move(h)) : h;
}

namespace {

Tensor sound_layer(Net& net, Tensor hidden) {
  return omni_sound_layer(net, std::move(hidden), chunks_of(net), false, kSoundLayer);
}

Tensor convolve(Net& net, const char* name, const Tensor& x, Count frames) {
  Scope in(net.tape, name, kSound);
  const Tensor weight = net.parameter(name, "weight", Shape{net.H, x.dim(1), Dim(3)});
  const Tensor bias = net.parameter(name, "bias", Shape{net.H});
  return convolution(x, weight, bias, {Dim(frames)});
}

// Chunks of all recordings, padded to the longest, through both convolutions; then the frames that are no padding.
Tensor frames_of(Net& net, Dim hops) {
  Tape& t = net.tape;
  const Count window = net.arch.pictures.window, bins = net.arch.num_channels;
  const Count longest = std::min(window, recording_of(net.job).hops), after = (longest - 1) / 2 + 1;
  const Dim chunks(static_cast<Count>(chunks_of(net).size())), columns(longest);
  const Tensor flat = t.allocate(Shape{hops, Dim(bins)}, Dtype::kFp32, "index");
  Tensor padded = t.allocate(Shape{chunks, columns, Dim(bins)}, Dtype::kFp32, "pad_sequence");
  const Tensor valid = t.allocate(Shape{net.S}, Dtype::kInt64, "valid_indices");
  padded = to(transpose(std::move(padded), 1, 2), net.weight_dtype(3));
  const Tensor mask = t.allocate(Shape{chunks, Dim(1), columns}, Dtype::kInt64, "padded_mask");
  Tensor h = net.hooked_inputs(convolve(net, "audio_tower.conv1", padded, longest));
  h = mul(gelu(std::move(h)), mask);
  h = gelu(convolve(net, "audio_tower.conv2", h, after));
  h = transpose(std::move(h), 1, 2);
  t.buffer("audio_tower.positional_embedding", net.arch.max_positions * net.H.n() * 4);
  {
    const Tensor places = t.allocate(Shape{Dim(1), Dim(after), net.H}, h.dtype(), "to");
    h = add(h, places);
  }
  const Tensor grid = reshape(h, Shape{Dim(chunks.n() * after), net.H});
  // The names of the forward that live until it returns.
  for (const Tensor& held : {flat, padded, mask, h}) net.outer_locals.push_back(held);
  return index_rows(grid, valid);
}

Tensor sound_tower(Net& net, Dim hops) {
  Scope in(net.tape, "audio_tower", kSound);
  net.parameter("audio_tower.audio_bos_eos_token", "weight", Shape{Dim(2), Dim(net.arch.pictures.width)});
  Tensor hidden = frames_of(net, hops);
  hidden = net.layers({"audio_tower.layers", net.arch.num_layers, sound_layer}, std::move(hidden));
  const Dim pairs(net.S.n() / recording_of(net.job).frames * recording_of(net.job).tokens);
  Tensor first = net.tape.allocate(Shape{pairs}, Dtype::kInt64, "pool_indices");
  Tensor second = net.tape.allocate(Shape{pairs}, Dtype::kInt64, "add");
  first = gather_rows(hidden, std::move(first));
  second = gather_rows(hidden, std::move(second));
  hidden = add(std::move(first), std::move(second));
  hidden = mul_scalar(std::move(hidden));
  hidden = net.layer_norm("audio_tower.ln_post", std::move(hidden));
  hidden = net.linear("audio_tower.proj", std::move(hidden), Dim(net.arch.pictures.width), true);
  net.outer_locals.clear();
  return hidden;
}

Tensor with_sound(Net& net, Tensor embeds) {
  const Declared alone(net, !hears(net));
  const Recording one = recording_of(net.job);
  const Count rows = alone ? 1 : net.B.n();
  Net& tower = net.part(net.arch.parts.back(), Dim(1), Dim(rows * one.frames));
  const Tensor features = sound_tower(tower, Dim(rows * one.hops));
  if (alone) return embeds;
  net.wrapper_locals.push_back(features);
  return scatter_features(net, std::move(embeds), features, kThinker);
}

// -- pictures

// apply_rotary_pos_emb_vision: tables of its own in each call.
Tensor turned(Net& net, Tensor states_in) {
  const Tensor states = std::move(states_in);
  const Tensor x = to(states, Dtype::kFp32);
  const Shape table{net.S, Dim(1), net.hd};
  const auto tabled = [&](const char* name) {
    const Tensor once = net.tape.allocate(Shape{net.S, Dim(net.hd.n() / 2)}, Dtype::kFp32, name);
    return net.tape.allocate(table, Dtype::kFp32, "repeat");
  };
  const Tensor cos = tabled("cos");
  const Tensor sin = tabled("sin");
  return to(rotate_by(x, cos, sin), states.dtype());
}

Tensor vision_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kVisionAttention);
  const Tensor x = std::move(hidden);
  const Shape heads{net.S, net.A, net.hd};
  Tensor q = view(net.linear("attn.q", x, net.H, true), heads);
  Tensor k = view(net.linear("attn.k", x, net.H, true), heads);
  Tensor v = view(net.linear("attn.v", x, net.H, true), heads);
  Tensor q_turned = turned(net, q);
  q = std::move(q_turned);
  Tensor k_turned = turned(net, k);
  k = std::move(k_turned);
  return attend_in_stretches(net, std::move(q), std::move(k), std::move(v), vision_lengths(net), "attn.proj");
}

Tensor block(Net& net, Tensor hidden) {
  return qwen_gated_block(net, std::move(hidden), kBlock, vision_attention);
}

Tensor tower(Net& net) {
  return qwen_window_tower(net, kTower, block, false);
}

const Program kTowerProgram = {tower};

Tensor with_pictures(Net& net, Tensor embeds) {
  const Declared alone(net);
  Net& part = qwen_tower_part(net);
  const Tensor features = part.arch.program->forward(part);
  net.image_outputs = std::exchange(part.image_outputs, {});
  part.shared = {};
  part.pixel_values.reset();
  if (alone) return embeds;
  net.wrapper_locals.push_back(features);
  return scatter_features(net, std::move(embeds), features, kThinker);
}

// The class has its head, too: what its forward names lives until the loss is made.
Tensor merge(Net& net, Tensor embeds) {
  embeds = with_sound(net, std::move(embeds));
  net.picture_tokens = 0;
  embeds = with_pictures(net, std::move(embeds));
  if (hears(net)) net.picture_tokens += recording_of(net.job).tokens + 2;
  net.wrapper_locals.push_back(embeds);
  return embeds;
}

}  // namespace

void add_sound(ConfigFields& fields, Architecture& architecture, Architecture sound) {
  architecture.parts.push_back(std::move(sound));
  if (architecture.hidden_size > 0 && architecture.parts.back().pictures.width != architecture.hidden_size) {
    fields.error("INVALID_VALUE", "audio_config", "\"output_dim\" must be the language model's width.");
  }
}

// Three models are in it. LLaMA-Factory (model/loader.py) trains `model.thinker` and lets go of the others.
void read_thinker_of(ConfigFields& fields, Architecture& architecture, const char* model_type, const char* class_name,
                     void (*read)(ConfigFields&, Architecture&)) {
  ConfigFields thinker(required_object(fields, "thinker_config"), fields.path() + "/thinker_config", fields.issues());
  architecture.model_type = model_type;
  architecture.class_name = class_name;
  if (architecture.head == Head::kSequenceClassification) {
    const std::string_view whole = "ForConditionalGeneration";
    architecture.class_name.resize(architecture.class_name.size() - whole.size());
    architecture.class_name += "ForSequenceClassification";
  }
  read(thinker, architecture);
  thinker.report_unread(model_type);
  fields.note("ASSUMED_DEFAULT", "talker_config",
              "The thinker alone is loaded: where the talker and what makes waves of its tokens stay beside it, add "
              "their frozen weights (ms-swift: set ENABLE_AUDIO_OUTPUT=0 to leave them out).");
}

// ms-swift calls `score` when the thinker's forward has returned, and its names are gone.
static Outputs thinker_scores(Net& net, const Program& program, Tensor hidden) {
  net.wrapper_locals.clear();
  return sequence_classification(net, program, std::move(hidden));
}

constinit const HeadForward kThinkerHeads[2] = {{Head::kCausalLm, causal_lm},
                                                {Head::kSequenceClassification, thinker_scores}};

void check_recording(Count tokens, const TrainingJob& job, Issues& issues) {
  const Count taken = tokens + 2;
  if (job.audio_seconds <= 0.0 || taken <= job.sequence_length) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/sequence_length",
                    "A recording takes " + std::to_string(taken) + " tokens, more than the sequence has.",
                    std::to_string(taken)});
}

namespace {

// transformers 5.12.1 models/qwen2_5_omni/configuration_qwen2_5_omni.py: Qwen2_5OmniThinkerConfig.
void read_thinker(ConfigFields& fields, Architecture& architecture) {
  {
    ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
    read_qwen2_vl_text(text, architecture);
    accept_rotation(text);
    text.accept({"tie_word_embeddings", "init_std", "initializer_range"});
    text.report_unread("qwen2_5_omni_thinker");
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  fields.accept({"audio_token_index", "image_token_index", "video_token_index", "audio_token_id",
                 "audio_start_token_id", "audio_end_token_id", "user_token_id", "position_id_per_seconds",
                 "seconds_per_chunk", "init_std", "initializer_range", "ignore_index"});
  read_qwen_tower(fields, architecture, read_window_tower);
  architecture.language = &kQwen2VlLanguage;
  if (architecture.parts.empty()) return;
  architecture.parts.front().program = &kTowerProgram;
  add_sound(fields, architecture, read_sound(fields));
}

// Qwen2_5OmniConfig
void read_whole(ConfigFields& fields, Architecture& architecture) {
  read_thinker_of(fields, architecture, "qwen2_5_omni_thinker", "Qwen2_5OmniThinkerForConditionalGeneration",
                  read_thinker);
  fields.accept({"talker_config", "token2wav_config", "enable_audio_output", "enable_talker", "tie_word_embeddings"});
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  check_recording(recording_of(job).tokens, job, issues);
}

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .heads = kThinkerHeads,
                          .inputs = inputs,
                          .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kOtherParts, .full_name = name_as_is};

}  // namespace

const Family kRows[] = {
    {"qwen2_5_omni", "Qwen2_5Omni", "Qwen2_5OmniForConditionalGeneration", kOmniClasses, read_whole, &kProgram,
     kModelLayers, kFacts},
    {"qwen2_5_omni_thinker", "Qwen2_5OmniThinker", "Qwen2_5OmniThinkerForConditionalGeneration", kHearingClasses,
     read_thinker, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows qwen2_5_omni_rows;
const FamilyRows qwen2_5_omni_rows = kRows;

}  // namespace tidemark
