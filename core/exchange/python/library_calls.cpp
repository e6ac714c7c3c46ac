#include "core/exchange/python/library_calls.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/exchange/word_list.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

// TRL's GMPOTrainer and GRPOWithReplayBufferTrainer hold on the card what GRPOTrainer holds (f2cd5771
// experimental/gmpo, grpo_with_replay_buffer).
constexpr PyTrainer kTrainers[] = {{"GRPOTrainer", "grpo"},
                                   {"GMPOTrainer", "grpo"},
                                   {"GRPOWithReplayBufferTrainer", "grpo"},
                                   {"RLOOTrainer", "rloo"},
                                   {"PPOTrainer", "ppo"},
                                   {"PPOv2Trainer", "ppo"},
                                   {"DPOTrainer", "dpo"},
                                   {"KTOTrainer", "kto"},
                                   {"BCOTrainer", "bco"},
                                   {"TPOTrainer", "tpo"},
                                   {"PRMTrainer", "prm"},
                                   {"ORPOTrainer", "orpo"},
                                   {"CPOTrainer", "simpo"},
                                   {"RewardTrainer", "reward"},
                                   {"GKDTrainer", "gkd"},
                                   {"OnlineDPOTrainer", "online_dpo"},
                                   {"NashMDTrainer", "nash_md"},
                                   {"IWOPDTrainer", "iw_opd"},
                                   {"AsyncGRPOTrainer", "async_grpo"},
                                   {"SFTTrainer", "sft"},
                                   {"UnslothTrainer", "sft"},
                                   {"SentenceTransformerTrainer", "embedding"},
                                   {"SparseEncoderTrainer", "embedding"},
                                   {"CrossEncoderTrainer", "classification"},
                                   {"Seq2SeqTrainer", ""},
                                   {"Trainer", ""},
                                   {"SentenceTransformersFinetuneEngine", "embedding"}};

constexpr std::string_view kArguments =
    " GRPOConfig GMPOConfig GRPOWithReplayBufferConfig RLOOConfig PPOConfig PPOv2Config DPOConfig OnlineDPOConfig "
    "KTOConfig BCOConfig PRMConfig"
    " TPOConfig NashMDConfig IWOPDConfig AsyncGRPOConfig"
    " ORPOConfig CPOConfig RewardConfig GKDConfig SFTConfig SentenceTransformerTrainingArguments"
    " SparseEncoderTrainingArguments CrossEncoderTrainingArguments Seq2SeqTrainingArguments"
    " UnslothTrainingArguments TrainingArguments ";

constexpr std::pair<std::string_view, std::string_view> kAdapterKinds[] = {{"AdaLoraConfig", "adalora"},
                                                                           {"IA3Config", "ia3"},
                                                                           {"LoHaConfig", "loha"},
                                                                           {"LoKrConfig", "lokr"},
                                                                           {"VeraConfig", "vera"},
                                                                           {"OFTConfig", "oft"},
                                                                           {"BOFTConfig", "boft"},
                                                                           {"LNTuningConfig", "ln_tuning"},
                                                                           {"PromptTuningConfig", "prompt_tuning"},
                                                                           {"PromptEncoderConfig", "p_tuning"},
                                                                           {"PrefixTuningConfig", "prefix_tuning"}};

}  // namespace

std::span<const PyTrainer> known_trainers() {
  return kTrainers;
}

bool is_arguments(const PyObject& call) {
  return is_in(kArguments, last_word(call.name)) ||
         std::any_of(call.bases.begin(), call.bases.end(),
                     [](const std::string& base) { return is_in(kArguments, last_word(base)); });
}

bool loads_model(const PyObject& call) {
  for (const char* other : {"Tokenizer", "Processor", "AutoConfig", "FeatureExtractor", "Scheduler", "PeftModel"}) {
    if (contains(call.name, other)) return false;
  }
  for (const char* loads : {"from_pretrained", "SentenceTransformer", "CrossEncoder", "SparseEncoder", "create_model",
                            "AutoModelForCausalLM.from_config", "get_model"}) {
    if (call.is(loads)) return true;
  }
  return false;
}

bool is_fast_adapter(const PyObject& call) {
  return call.is("get_peft_model") && contains(call.name, "Fast");
}

bool is_fast_encoder(const PyObject& call) {
  return contains(call.name, "FastSentenceTransformer");
}

std::string_view adapter_kind(const PyObject& call) {
  for (const auto& [name, kind] : kAdapterKinds) {
    if (call.is(name)) return kind;
  }
  return {};
}

std::string unmodelled_kind(const PyObject& call) {
  constexpr std::string_view kEnding = "Config";
  const std::string name = lower_case(last_word(call.name));
  if (!call.name.starts_with("peft") || !call.name.ends_with(kEnding)) return {};
  const std::string kind = name.substr(0, name.size() - kEnding.size());
  const bool other = is_in(" adaptionprompt cartridge cpt multitaskprompttuning osf trainabletokens xlora ", kind);
  return other || lora_stands_for(kind) ? kind : std::string{};
}

}  // namespace tidemark::exchange
