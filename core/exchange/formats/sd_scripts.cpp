// Command lines of kohya-ss/sd-scripts (48d368f, 2026-02-16: train_network.py, sdxl_train_network.py,
// flux_train_network.py, sd3_train_network.py, fine_tune.py, train_db.py, sdxl_train.py, flux_train.py, sd3_train.py;
// library/train_util.py has their arguments).
#include <algorithm>
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_sd_scripts(const Look& look) {
  if (look.syntax != Look::Syntax::kShell || !look.mentions("pretrained_model_name_or_path")) return 0;
  for (const char* script :
       {"train_network.py", "sdxl_train.py", "flux_train.py", "sd3_train.py", "fine_tune.py", "train_db.py"}) {
    if (look.mentions(script)) return 75;
  }
  return 0;
}

/// What of the command its script's name says.
struct Facts {
  bool network = false;  ///< adapters
  bool xl = false;
  bool flux = false;
  bool sd3 = false;
  bool dreambooth = false;  ///< train_db.py trains the text encoder unless told to stop
};

Facts facts_of(const Launch& launch) {
  const std::string name = lower_case(base_name(launch.program));
  return {contains(name, "network"), contains(name, "sdxl"), contains(name, "flux"), contains(name, "sd3"),
          contains(name, "train_db")};
}

/// A checkpoint is mostly a file of one's own: the script says which model it is one of.
void read_model(Args& args, const Facts& facts) {
  const Arg* named = args.find("pretrained_model_name_or_path");
  const std::string text = named == nullptr ? "" : named->value.text;
  const bool on_hub = text.find('/') != std::string::npos && text.find('/') == text.rfind('/') && text.front() != '/' &&
                      text.front() != '.' && text.find(".safetensors") == std::string::npos &&
                      text.find(".ckpt") == std::string::npos;
  if (on_hub) return args.state("model", of(text), {named});
  args.state("model",
             of(facts.xl     ? "stabilityai/stable-diffusion-xl-base-1.0"
                : facts.flux ? "black-forest-labs/FLUX.1-dev"
                : facts.sd3  ? "stabilityai/stable-diffusion-3-medium-diffusers"
                             : "stable-diffusion-v1-5/stable-diffusion-v1-5"),
             {named}, "the script's kind of model, whatever the checkpoint");
}

void read_adapter(Args& args, const Facts& facts) {
  args.assume("method", of(facts.network ? "lora" : "full"), "the script");
  if (!facts.network) return;
  if (!args.copy("adapter.r", {"network_dim"})) args.assume("adapter.r", of(4), "default 4");
  args.copy("adapter.lora_alpha", {"network_alpha"});
  args.copy("adapter.lora_dropout", {"network_dropout"});
  const Arg* module = args.find("network_module");
  const bool own = module == nullptr || module->value.text.substr(0, 13) == "networks.lora";
  if (!own)
    state(args.reading, "the network's module", of(module->value.text), {}, "answered by LoRA on linear layers");
  const bool unet = !facts.flux && !facts.sd3;
  args.assume(
      "adapter.target_modules",
      unet ? words({"proj_in", "proj_out", "to_q", "to_k", "to_v", "to_out.0", "ff.net.0.proj", "ff.net.2"})
           : of("all-linear"),
      unet ? "networks/lora.py: what lies in a Transformer2DModel" : "networks/lora_flux.py: the blocks' layers");
  if (args.on("full_bf16") || args.on("full_fp16")) {
    args.state("adapter.dtype", of(args.on("full_bf16") ? "bf16" : "fp16"),
               {args.find(args.on("full_bf16") ? "full_bf16" : "full_fp16")});
  }
}

/// What is frozen is cast to the type of autocast; what is trained in full is so with --full_bf16 alone.
void read_precision(Args& args, const Facts& facts) {
  const Arg* mixed = args.find("mixed_precision");
  const std::string word = mixed == nullptr ? "no" : mixed->value.text;
  const bool half = word == "bf16" || word == "fp16";
  const bool narrow = facts.network || args.on("full_bf16") || args.on("full_fp16");
  args.state("precision", precision_of(narrow && half ? word : "fp32", half ? word : ""), {mixed},
             mixed == nullptr ? "none unless accelerate's configuration says so" : "");
}

/// "1024", "1024,1024": width, height.
void read_resolution(Args& args) {
  const Arg* stated = args.find("resolution");
  if (stated == nullptr) return args.unknown("resolution: in the dataset's configuration");
  std::string text = stated->value.text;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());  // int() takes "1024, 768"
  const std::size_t comma = text.find(',');
  const Value width = to_value(plain_scalar(text.substr(0, comma)));
  const Value height = comma == std::string::npos ? width : to_value(plain_scalar(text.substr(comma + 1)));
  args.state("image_size", of(std::vector<Value>{height, width}), {stated});
}

void read_step(Args& args) {
  if (!args.copy("micro_batch_size", {"train_batch_size"}))
    args.assume("micro_batch_size", of(1),
                args.has("dataset_config") ? "the dataset's configuration may say" : "default 1");
  if (!args.copy("gradient_accumulation_steps", {"gradient_accumulation_steps"}))
    args.assume("gradient_accumulation_steps", of(1), "default 1");
  read_resolution(args);
  const Arg* kept = args.find("gradient_checkpointing");
  args.state("gradient_checkpointing", of(args.on("gradient_checkpointing") ? "full" : "none"), {kept},
             kept == nullptr ? "off by default" : "");
  args.copy("max_grad_norm", {"max_grad_norm"});
  const Arg* kernel = args.any({"xformers", "sdpa"});
  args.state("attention",
             of(kernel == nullptr           ? "eager"
                : kernel->key == "xformers" ? "xformers"
                                            : "sdpa"),
             {kernel}, kernel == nullptr ? "neither --xformers nor --sdpa" : "");
}

/// library/train_util.py get_optimizer.
void read_optimizer(Args& args) {
  const Arg* eight = args.find("use_8bit_adam");
  const Arg* named = args.find("optimizer_type");
  const std::string word = named == nullptr ? "" : lower_case(named->value.text);
  static constexpr std::pair<std::string_view, const char*> kNames[] = {{"adamw", "adamw_torch"},
                                                                        {"adamw8bit", "adamw_8bit"},
                                                                        {"pagedadamw8bit", "paged_adamw_8bit"},
                                                                        {"pagedadamw", "paged_adamw_32bit"},
                                                                        {"pagedadamw32bit", "paged_adamw_32bit"},
                                                                        {"lion8bit", "lion_8bit"},
                                                                        {"pagedlion8bit", "paged_lion_8bit"},
                                                                        {"sgdnesterov", "sgd_momentum"},
                                                                        {"adamwschedulefree", "schedule_free_adamw"}};
  std::string name = args.on("use_8bit_adam") ? "adamw_8bit" : word.empty() ? "adamw_torch" : word;
  for (const auto& [theirs, ours] : kNames) {
    if (word == theirs) name = ours;
  }
  args.state("optimizer", of(name), {args.on("use_8bit_adam") ? eight : named},
             eight == nullptr && named == nullptr ? "AdamW by default" : "");
}

void read_encoders(Args& args, const Facts& facts) {
  const Arg* cached = args.any({"cache_text_encoder_outputs", "cache_text_encoder_outputs_to_disk"});
  const Arg* alone = args.find("network_train_unet_only");
  const Arg* trained = args.find("train_text_encoder");
  if (cached != nullptr)
    args.state("text_encoders", of("cached"), {cached});
  else if (facts.network && alone != nullptr)
    args.state("text_encoders", of("frozen"), {alone});
  else if (facts.network || facts.dreambooth)
    args.assume("text_encoders", of("trained"), "without --network_train_unet_only");
  else
    args.state("text_encoders", of(trained != nullptr ? "trained" : "frozen"), {trained},
               trained == nullptr ? "encoded in each step" : "");
  const Arg* latents = args.any({"cache_latents", "cache_latents_to_disk"});
  const Arg* wide = args.find("no_half_vae");
  args.state("vae",
             of(latents != nullptr ? "cached"
                : wide != nullptr  ? "fp32"
                                   : "mixed_precision"),
             {latents != nullptr ? latents : wide},
             latents == nullptr && wide == nullptr ? "pictures in each step" : "");
}

/// What changes memory and is not counted.
void read_rest(Args& args) {
  for (const char* key : {"fp8_base", "fp8_base_unet", "blocks_to_swap", "cpu_offload_checkpointing",
                          "fused_backward_pass", "network_args", "deepspeed"}) {
    if (args.on(key)) not_counted(args.reading, std::string{"--"} + key, args.find(key)->origins);
  }
}

void read_sd_scripts(const Look& look, Sources, Reading& reading) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  if (text.launch == nullptr) return tell_no_launch(reading, look);
  Args args(reading);
  const Facts facts = facts_of(*text.launch);
  read_script(args, look, text);
  state(reading, "framework.name", of("sd_scripts"), {}, "the script");
  read_launcher(args, *text.launch, file);
  read_model(args, facts);
  args.assume("task", of("diffusion"), "the script");
  read_adapter(args, facts);
  read_step(args);
  read_precision(args, facts);
  read_optimizer(args);
  read_encoders(args, facts);
  read_rest(args);
  if (!args.told("gpu")) args.unknown("gpu");
  args.tell_unread();
}

const Format kRows[] = {
    {"sd_scripts", "sd-scripts command", recognise_sd_scripts, read_sd_scripts, 80},
};

}  // namespace

extern const FormatRows sd_scripts_rows;
const FormatRows sd_scripts_rows = kRows;

}  // namespace tidemark::exchange
