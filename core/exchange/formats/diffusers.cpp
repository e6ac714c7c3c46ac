// Command lines of diffusers' training scripts (diffusers 58eb52c examples/{dreambooth,text_to_image}/train_*.py:
// parse_args and main).
#include <cstdint>
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_diffusers(const Look& look) {
  const bool script = look.mentions("train_dreambooth") || look.mentions("train_text_to_image");
  return look.syntax == Look::Syntax::kShell && script && look.mentions("pretrained_model_name_or_path") ? 70 : 0;
}

/// What of the command its script's name says.
struct Facts {
  bool lora = false;
  bool xl = false;           ///< SDXL's scripts have pictures of 1024 by default
  bool dreambooth = false;   ///< four of them a batch, sixteen else
  bool transformer = false;  ///< not a U-Net
  bool flux = false;         ///< Flux, whose adapters lie on its feed-forwards, too
  std::int64_t singles = 0;  ///< Flux 2's blocks of one sequence, as many as the script names
  bool later = false;        ///< Flux 2 or Qwen-Image, whose text encoder goes to the host once it has encoded
};

Facts facts_of(const Launch& launch) {
  const std::string name = lower_case(base_name(launch.program));
  Facts facts;
  facts.lora = contains(name, "lora");
  facts.xl = contains(name, "sdxl");
  facts.dreambooth = contains(name, "dreambooth");
  const bool flux2 = contains(name, "flux2");
  if (flux2) facts.singles = contains(name, "klein") ? 24 : 48;
  facts.later = flux2 || contains(name, "qwen_image");
  facts.flux = contains(name, "flux") && !flux2;
  facts.transformer = facts.flux || facts.later || contains(name, "sd3");
  return facts;
}

void read_adapter(Args& args, const Facts& facts) {
  args.assume("method", of(facts.lora ? "lora" : "full"), "the script");
  if (!facts.lora) return;
  if (!args.copy("adapter.r", {"rank"})) args.assume("adapter.r", of(4), "default 4");
  args.copy("adapter.lora_dropout", {"lora_dropout"});
  if (const Arg* named = args.find("lora_layers"); named != nullptr)
    return args.state("adapter.target_modules", word_list(named->value), {named});
  Value unet = words({"to_k", "to_q", "to_v", "to_out.0"});
  if (facts.singles > 0) unet.items.push_back(of("to_qkv_mlp_proj"));
  for (std::int64_t i = 0; i < facts.singles; ++i) {
    unet.items.push_back(of("single_transformer_blocks." + std::to_string(i) + ".attn.to_out"));
  }
  const Value transformer = words({"attn.to_k", "attn.to_q", "attn.to_v", "attn.to_out.0", "attn.add_k_proj",
                                   "attn.add_q_proj", "attn.add_v_proj", "attn.to_add_out"});
  const Value flux = words({"attn.to_k", "attn.to_q", "attn.to_v", "attn.to_out.0", "attn.add_k_proj",
                            "attn.add_q_proj", "attn.add_v_proj", "attn.to_add_out", "ff.net.0.proj", "ff.net.2",
                            "ff_context.net.0.proj", "ff_context.net.2"});
  args.assume("adapter.target_modules",
              facts.flux                          ? flux
              : facts.transformer && !facts.later ? transformer
                                                  : unet,
              "the script");
}

/// What is frozen is cast to the dtype of autocast (main: weight_dtype); trained weights are loaded in fp32.
void read_precision(Args& args, const Facts& facts) {
  const Arg* mixed = args.find("mixed_precision");
  const std::string word = mixed == nullptr ? "no" : mixed->value.text;
  const bool half = word == "bf16" || word == "fp16";
  args.state("precision", precision_of(facts.lora && half ? word : "fp32", half ? word : ""), {mixed},
             mixed == nullptr ? "none unless accelerate's configuration says so" : "");
  if (facts.lora && word == "fp16") args.assume("adapter.dtype", of("fp32"), "cast_training_params under fp16");
}

void read_step(Args& args, const Facts& facts) {
  // train_dreambooth*.py: collate_fn: "Concat class and instance examples for prior preservation".
  const Arg* batch = args.find("train_batch_size");
  const std::int64_t samples = batch != nullptr ? batch->value.integer : 4;
  if (args.on("with_prior_preservation") && samples > 0) {
    args.state("micro_batch_size", of(2 * samples), {batch, args.find("with_prior_preservation")},
               "with pictures of the class");
  } else if (!args.copy("micro_batch_size", {"train_batch_size"})) {
    args.assume("micro_batch_size", of(facts.dreambooth ? 4 : 16), "the script's default");
  }
  if (!args.copy("gradient_accumulation_steps", {"gradient_accumulation_steps"}))
    args.assume("gradient_accumulation_steps", of(1), "default 1");
  const Arg* resolution = args.find("resolution");
  const Value side = resolution != nullptr ? to_value(resolution->value) : of(facts.xl ? 1024 : 512);
  args.state("image_size", of(std::vector<Value>{side, side}), {resolution},
             resolution == nullptr ? "the script's default" : "");
  const Arg* kept = args.find("gradient_checkpointing");
  args.state("gradient_checkpointing", of(args.on("gradient_checkpointing") ? "full" : "none"), {kept},
             kept == nullptr ? "off by default" : "");
  args.copy("max_grad_norm", {"max_grad_norm"});
  if (args.on("enable_xformers_memory_efficient_attention"))
    args.state("attention", of("xformers"), {args.find("enable_xformers_memory_efficient_attention")});
}

/// bitsandbytes' with a flag, else torch's; --optimizer names Prodigy beside AdamW.
void read_optimizer(Args& args) {
  const Arg* eight = args.find("use_8bit_adam");
  const Arg* named = args.find("optimizer");
  const std::string word = named == nullptr ? "adamw" : lower_case(named->value.text);
  const bool small = args.on("use_8bit_adam") && word == "adamw";
  args.state("optimizer",
             of(small             ? "adamw_8bit"
                : word == "adamw" ? "adamw_torch"
                                  : word),
             {small ? eight : named}, small || named != nullptr ? "" : "torch.optim.AdamW");
}

/// What a script leaves on the card to encode the text. SDXL's drops the list of its encoders and keeps their names,
/// Flux's for LoRA the other way round: both stay there, used or not.
void read_text_encoders(Args& args, const Facts& facts) {
  if (const Arg* trained = args.find("train_text_encoder"); args.on("train_text_encoder"))
    return args.state("text_encoders", of("trained"), {trained});
  if (const Arg* before = args.find("pre_compute_text_embeddings"); args.on("pre_compute_text_embeddings"))
    return args.state("text_encoders", of("cached"), {before});
  if (facts.later) return args.assume("text_encoders", of("cached"), "the script encodes before it trains");
  if (facts.dreambooth && facts.xl)
    return args.assume("text_encoders", of("frozen"), "the script drops their list, but not their names");
  if (facts.flux && facts.lora)
    return args.assume("text_encoders", of("frozen"), "the script drops their names, but not the list of them");
  const bool encodes_before = facts.transformer ? args.find("caption_column") == nullptr : facts.xl && !facts.lora;
  args.assume("text_encoders", of(encodes_before ? "cached" : "frozen"),
              encodes_before ? "the script encodes before it trains" : "the script encodes in each step");
}

void read_vae(Args& args, const Facts& facts) {
  if (const Arg* before = args.find("cache_latents"); args.on("cache_latents") && facts.transformer && facts.lora)
    return args.state("vae", of("cached"), {before});
  if (facts.xl && !facts.dreambooth && !facts.lora)
    return args.assume("vae", of("cached"), "the script encodes before it trains");
  const bool other = args.find("pretrained_vae_model_name_or_path") != nullptr && !facts.dreambooth;
  const bool wide = facts.xl ? !other : facts.transformer && !facts.flux && !facts.later;
  args.assume("vae", of(wide ? "fp32" : "mixed_precision"), "the script encodes pictures in each step");
}

void read_encoders(Args& args, const Facts& facts) {
  read_text_encoders(args, facts);
  read_vae(args, facts);
  if (args.on("use_ema")) state(args.reading, "the averaged copy of the weights", of(true), {}, "--use_ema");
}

void read_diffusers(const Look& look, Sources, Reading& reading) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  if (text.launch == nullptr) return tell_no_launch(reading, look);
  Args args(reading);
  const Facts facts = facts_of(*text.launch);
  read_script(args, look, text);
  state(reading, "framework.name", of("accelerate"), {}, "the script");
  read_launcher(args, *text.launch, file);
  args.copy("model", {"pretrained_model_name_or_path"});
  args.assume("task", of("diffusion"), "the script");
  read_adapter(args, facts);
  read_step(args, facts);
  read_precision(args, facts);
  read_optimizer(args);
  read_encoders(args, facts);
  if (!args.told("gpu")) args.unknown("gpu");
  args.tell_unread();
}

const Format kRows[] = {
    {"diffusers", "diffusers command", recognise_diffusers, read_diffusers, 80},
};

}  // namespace

extern const FormatRows diffusers_rows;
const FormatRows diffusers_rows = kRows;

}  // namespace tidemark::exchange
