// Voxtral: Whisper's encoder, of which four frames become one vector, two linear layers, and Llama.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/families/bart.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/voxtral/modeling_voxtral.py: VoxtralEncoder.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/voxtral/modeling_voxtral.py: VoxtralMultiModalProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/voxtral/modeling_voxtral.py: VoxtralModel.forward";
constexpr const char* kMask = "transformers 5.12 models/voxtral/modeling_voxtral.py: VoxtralModel.get_placeholder_mask";

// transformers 5.12.1 models/voxtral/configuration_voxtral.py: VoxtralConfig. Its text_config has defaults of its own
// beside Llama's, which every published file repeats: what is absent would be guessed.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const Value& text = required_object(fields, "text_config");
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_key_value_heads"}) {
    if (text.find(key) != nullptr) continue;
    fields.error("MISSING_FIELD", "text_config",
                 "\"" + std::string{key} + "\" is missing in \"text_config\": Voxtral's default is not Llama's.");
    return;
  }
  read_language(fields, architecture, "llama");
  architecture.pictures.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  fields.accept({"audio_token_id", "hidden_size", "vocab_size", "tie_word_embeddings"});
  architecture.parts.push_back(read_sound_tower(fields));
  const Architecture& tower = architecture.parts.front();
  const Count ratio = tower.hidden_size > 0 ? tower.intermediate_size / tower.hidden_size : 0;
  if (ratio < 1 || tower.intermediate_size % tower.hidden_size != 0 || tower.max_positions % ratio != 0) {
    fields.error("INVALID_VALUE", "audio_config",
                 "So many frames as \"intermediate_size\" is wider than \"hidden_size\" become one vector: this must "
                 "divide \"max_source_positions\".");
  }
}

// processing_voxtral.py _retrieve_input_features: hops of 10 ms, padded to whole windows of the encoder.
Count windows_of(const Architecture& a, const TrainingJob& job) {
  const auto hops = static_cast<Count>(std::llround(job.audio_seconds * 100.0)),
             window = 2 * a.parts.front().max_positions;
  return std::max<Count>(1, (hops + window - 1) / window);
}

Count tokens_of_window(const Architecture& tower) {
  return tower.max_positions * tower.hidden_size / tower.intermediate_size;
}

void inputs(Net& net) {
  text_inputs(net);
  if (!hears(net)) return;
  const Architecture& tower = net.arch.parts.front();
  const Dim windows(net.B.n() * windows_of(net.arch, net.job));
  net.pixel_values = net.tape.allocate(Shape{windows, Dim(tower.num_channels), Dim(2 * tower.max_positions)},
                                       Dtype::kFp32, "input_features");
}

Tensor heard(Net& net, Net& tower) {
  constexpr SoundNames kNames = {"audio_tower.conv1", "audio_tower.conv2", "audio_tower.embed_positions",
                                 "audio_tower.layers", SoundPositions::kWideTable};
  Tensor hidden;
  {
    Scope in(net.tape, "audio_tower", kTower);
    tower.input_ids = to(tower.input_ids, net.weight_dtype(3));
    Tensor embeds;
    hidden = encode_sound(tower, kNames, kTower, false, embeds);
    hidden = tower.layer_norm("audio_tower.layer_norm", std::move(hidden));
  }
  Scope in(net.tape, "multi_modal_projector", kProjector);
  const Dim rows(hidden.size(0) * tokens_of_window(tower.arch)), wide(tower.arch.intermediate_size);
  hidden = view(std::move(hidden), Shape{rows, wide});
  hidden = net.linear("multi_modal_projector.linear_1", std::move(hidden), net.H);
  hidden = activate(net.arch.pictures.activation, std::move(hidden));
  return net.linear("multi_modal_projector.linear_2", std::move(hidden), net.H);
}

// inputs_embeds[special_audio_mask].numel(): the chosen elements are made for a check alone.
void check_number(Net& net, const Tensor& features) {
  Scope in(net.tape, "", kMask);
  const Tensor indices = net.tape.allocate(Shape{Dim(features.numel()), Dim(3)}, Dtype::kInt64, "nonzero");
  const Tensor chosen = net.tape.allocate(Shape{Dim(features.numel())}, features.dtype(), "index");
}

Tensor merge(Net& net, Tensor embeds) {
  const Declared alone(net, !hears(net));
  const Architecture& sound = net.arch.parts.front();
  const Dim windows(alone ? 1 : net.B.n() * windows_of(net.arch, net.job));
  Net& tower = net.part(sound, windows, Dim(sound.max_positions));
  const Shape window{windows, Dim(sound.num_channels), Dim(2 * sound.max_positions)};
  tower.input_ids = alone ? net.tape.allocate(window, Dtype::kFp32, "input_features") : net.pixel_values;
  Tensor features = heard(net, tower);
  tower.input_ids.reset();
  if (alone) return embeds;
  net.wrapper_locals.push_back(features);  // outputs.audio_hidden_states
  check_number(net, features);
  return scatter_features(net, std::move(embeds), std::move(features), kModel);
}

/// masked_scatter wants one dtype, and the class casts nothing. Under autocast the projector's linear layers return its
/// dtype; packed ones that of their input, which a norm has made fp32.
bool dtypes_differ(const TrainingJob& job) {
  const Recipe& recipe = job.recipe;
  if (!recipe.autocast) return false;
  if (job.method == Method::kQlora)
    return recipe.weights != Dtype::kFp32 && job.quantization.prepare_kbit != PrepareKbit::kAll;
  return recipe.weights != *recipe.autocast;
}

void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.audio_seconds <= 0.0) return;
  const Count tokens = windows_of(a, job) * tokens_of_window(a.parts.front());
  if (tokens + 1 > job.sequence_length) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/sequence_length",
                      "A recording takes " + std::to_string(tokens) + " tokens, more than the sequence has.",
                      std::to_string(tokens + 1)});
  }
  if (dtypes_differ(job)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/precision",
                      "transformers 5.12 fails here: what Voxtral hears and its embeddings get different dtypes, which "
                      "masked_scatter refuses. Use \"bf16_amp\" or \"pure_bf16\".",
                      "bf16_amp"});
  }
}

constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}, {"Model", Head::kNone}};

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs, .check = check};

constexpr ClassFacts kFacts = {.hears_alone = true, .behind_language = "multi_modal_projector"};

}  // namespace

const Family kRows[] = {
    {"voxtral", "Voxtral", "VoxtralForConditionalGeneration", kClasses, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows voxtral_rows;
const FamilyRows voxtral_rows = kRows;

}  // namespace tidemark
