// Qwen2-Audio: Whisper's encoder with a mean over pairs of frames, a linear layer, and a language model of Qwen2's
// kind.
#include <algorithm>
#include <cmath>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/kept_loss.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/qwen2_audio/modeling_qwen2_audio.py: Qwen2AudioEncoder.forward";
constexpr const char* kMerge = "transformers 5.12 models/qwen2_audio/modeling_qwen2_audio.py: Qwen2AudioModel.forward";
constexpr const char* kLoss =
    "transformers 5.12 models/qwen2_audio/modeling_qwen2_audio.py: Qwen2AudioForConditionalGeneration.forward";

// transformers 5.12.1 models/qwen2_audio/configuration_qwen2_audio.py: Qwen2AudioConfig. What the language model's
// part leaves out is Qwen2Config's.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen2");
  fields.accept({"audio_token_index", "audio_token_id", "ignore_index", "vocab_size", "tie_word_embeddings"});
  architecture.parts.push_back(read_sound_tower(fields));
}

// processing_qwen2_audio.py: hops of 10 ms, which two strides of two make to frames, in a window that is always whole.
Count mel_frames(const Architecture& a, const TrainingJob& job) {
  return std::min(2 * a.parts.front().max_positions, static_cast<Count>(std::llround(job.audio_seconds * 100.0)));
}

Count audio_tokens(const Architecture& a, const TrainingJob& job) {
  return ((mel_frames(a, job) - 1) / 2 + 1 - 2) / 2 + 1;
}

void inputs(Net& net) {
  text_inputs(net);
  if (!hears(net)) return;
  const Architecture& tower = net.arch.parts.front();
  const Dim hops(2 * tower.max_positions);
  net.pixel_values = net.tape.allocate(Shape{net.B, Dim(tower.num_channels), hops}, Dtype::kFp32, "input_features");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, hops}, Dtype::kInt64, "feature_attention_mask"));
}

// create_bidirectional_mask over frames: none where every recording fills the window.
void mask_silence(Net& net, Net& tower) {
  Tape& t = net.tape;
  const Shape rows{net.B, tower.S};
  net.outer_locals.push_back(t.allocate(rows, Dtype::kBool, "padding_mask"));
  Tensor mask = t.allocate(rows, Dtype::kInt64, "audio_attention_mask_2d");
  net.outer_locals.push_back(mask);
  if (mel_frames(net.arch, net.job) == 2 * tower.arch.max_positions) return;
  if (!wants_flash(net.job)) {
    const Shape scores{net.B, Dim(1), tower.S, tower.S};
    mask = t.allocate(scores, Dtype::kBool, "padding mask (bool)");
    if (net.job.attention == AttentionKernel::kEager) mask = t.allocate(scores, net.weight_dtype(2), "eager mask");
  }
  net.outer_locals.push_back(mask);
  tower.shared.causal_mask = std::move(mask);
}

void pool_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  s.strides[0] = s.size(1) * s.size(2);
  s.strides[1] = 1;
  s.strides[2] = s.size(1);  // of channels, which the pooling sees before frames
  r[0] = t.allocate(s, g[0].dtype(), "avg_pool2d_backward");
}

// nn.AvgPool1d(2, stride=2) over frames, which lie as channels do in the last place: no copy is made first.
Tensor mean_of_pairs(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("avg_pool2d", pool_backward, {&x});
  t.save(n, x);
  Tensor out = t.allocate(Shape{x.dim(0), Dim(x.size(1) / 2), x.dim(2)}, x.dtype(), "avg_pool2d");
  t.attach(n, out);
  return out;
}

// Tower, mean and projector: [B, frames / 2, H].
Tensor heard(Net& net, Net& tower) {
  constexpr SoundNames kNames = {"audio_tower.conv1", "audio_tower.conv2", "audio_tower.embed_positions",
                                 "audio_tower.layers"};
  Scope in(net.tape, "audio_tower", kTower);
  tower.input_ids = to(tower.input_ids, net.weight_dtype(3));
  Tensor embeds;
  Tensor hidden = encode_sound(tower, kNames, kTower, false, embeds);
  hidden = mean_of_pairs(std::move(hidden));
  hidden = tower.layer_norm("audio_tower.layer_norm", std::move(hidden));
  net.outer_locals.push_back(hidden);
  return net.linear("multi_modal_projector.linear", std::move(hidden), net.H, true);
}

Tensor merge(Net& net, Tensor embeds) {
  const Declared alone(net, !hears(net));
  Net& tower = net.part(net.arch.parts.front(), net.B, Dim(net.arch.parts.front().max_positions));
  const Shape window{net.B, Dim(tower.arch.num_channels), Dim(2 * tower.S.n())};
  tower.input_ids = alone ? net.tape.allocate(window, Dtype::kFp32, "input_features") : net.pixel_values;
  if (!alone) mask_silence(net, tower);
  Tensor features = heard(net, tower);
  if (alone) return embeds;
  Scope in(net.tape, "", kMerge);
  const Dim rows(net.B.n() * features.size(1)), tokens(net.B.n() * audio_tokens(net.arch, net.job));
  features = take(view(std::move(features), Shape{rows, net.H}), 0, tokens);
  return scatter_features(net, std::move(embeds), std::move(features), kMerge);
}

// The class's own loss.
Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  const Tensor logits = program.lm_head(net, std::move(hidden));
  Scope in(net.tape, "loss", kLoss);
  out.loss = kept_cross_entropy(net, logits);
  out.rest = {logits};
  return out;
}

void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.audio_seconds > 0.0 && audio_tokens(a, job) + 1 > job.sequence_length) {
    issues.push_back(
        {"INVALID_VALUE", Severity::kError, "/sequence_length",
         "A recording takes " + std::to_string(audio_tokens(a, job)) + " tokens, more than the sequence has.",
         std::to_string(audio_tokens(a, job) + 1)});
  }
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, conditional_generation}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}};

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .hears_alone = true, .no_split = NoSplit::kOtherParts};

}  // namespace

bool hears(const Net& net) {
  return net.job.audio_seconds > 0.0;
}

void read_sound_sizes(ConfigFields& audio, Architecture& tower) {
  tower.hidden_size = audio.count({"d_model", "hidden_size"}, 1280);
  tower.num_layers = audio.count({"encoder_layers", "num_hidden_layers"}, 32);
  tower.num_heads = tower.num_kv_heads = audio.count({"encoder_attention_heads", "num_attention_heads"}, 20);
  tower.intermediate_size = audio.count({"encoder_ffn_dim", "intermediate_size"}, 5120);
  tower.max_positions = audio.count({"max_source_positions"}, 1500);
  tower.num_channels = audio.count({"num_mel_bins"}, 128);
  tower.activation = read_activation(audio, {"activation_function"}, "gelu");
}

// transformers 5.12.1 models/qwen2_audio/configuration_qwen2_audio.py: Qwen2AudioEncoderConfig; models/voxtral:
// VoxtralEncoderConfig, whose keys are the same by its attribute_map.
Architecture read_sound_tower(ConfigFields& fields) {
  Architecture tower;
  tower.model_type = "qwen2_audio_encoder";
  ConfigFields audio(required_object(fields, "audio_config"), fields.path() + "/audio_config", fields.issues());
  read_sound_sizes(audio, tower);
  tower.residual_dropout = tower.embedding_dropout = audio.probability({"dropout"}, 0.0);
  tower.attention_dropout = audio.probability({"attention_dropout"}, 0.0);
  tower.activation_dropout = audio.probability({"activation_dropout"}, 0.0);
  derive_head_dim(audio, tower);
  note_layerdrop(audio, audio.has({"layerdrop"}) ? "layerdrop" : "encoder_layerdrop", 0.0);
  audio.accept({"model_type", "scale_embedding", "init_std", "initializer_range", "vocab_size"});
  audio.report_unread("qwen2_audio_encoder");
  return tower;
}

const Family kRows[] = {
    {"qwen2_audio", "Qwen2Audio", "Qwen2AudioForConditionalGeneration", kClasses, read_config, &kProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows qwen2_audio_rows;
const FamilyRows qwen2_audio_rows = kRows;

}  // namespace tidemark
