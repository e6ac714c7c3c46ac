#include "core/job/calibration.hpp"
#include "core/job/framework.hpp"
#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

void check_version(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  const auto add = [&](std::string_view code, Severity severity, std::string message, std::string suggestion) {
    issues.push_back({std::string{code}, severity, "/framework/version", std::move(message), std::move(suggestion)});
  };
  Framework framework;
  const Framework newest;
  const std::string shown_newest = std::to_string(newest.major) + "." + std::to_string(newest.minor);
  // "-5.1" and 5e+300 hold digits, too.
  const bool stated = v.text.front() != '-' && v.text.find("e+") == std::string::npos;
  if (!stated || !read_version(v.text, framework) || !framework.at_least(0, 1)) {
    add("INVALID_VALUE", Severity::kError,
        "\"framework.version\" holds no version number; write a release (\"5.24\") or a date (\"2026-07\").",
        shown_newest);
    return;
  }
  const std::string used = std::to_string(framework.major) + "." + std::to_string(framework.minor);
  if (is_date(v.text)) {
    add("ASSUMED_VERSION", Severity::kNote, "The date stands for release " + used + " as far as memory is concerned.",
        used);
  } else if (!newest.at_least(framework.major, framework.minor)) {
    add("ASSUMED_VERSION", Severity::kNote,
        "Releases up to " + shown_newest + " have been studied; this one is taken to behave the same.", shown_newest);
  }
}

void check_calibration(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (read_calibration(*v.document)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/calibration",
                    "\"calibration\" is not the document that `calibrate` returns, or a factor of it lies beyond 0.1 "
                    "to 10.",
                    ""});
}

// "0.21", "0.18.0", or from 1.0 on what is newest here.
int peft_minor(std::string_view text) {
  Framework read;
  if (!read_version(text, read)) return -1;
  return read.major > 0 ? Framework{}.peft : read.minor;
}

void check_peft(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  const std::string newest = "0." + std::to_string(Framework{}.peft);
  if (peft_minor(v.text) < 1) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/framework/peft",
                      "\"framework.peft\" holds no release of PEFT; write one (\"" + newest + "\").", newest});
  }
}

constexpr Choice kFrameworks[] = {
    {"transformers", 0, "Hugging Face models under its Trainer"},
    {"pytorch", 0,
     "a loop of one's own around Hugging Face models: outputs live through backward, no fp32 copies of them"},
    {"accelerate", 0, "a loop of one's own with accelerate: outputs live through backward, as fp32"},
    {"trl", 0, "TRL's SFTTrainer"},
    {"axolotl", 0, "axolotl: weights in bf16, re-entrant checkpointing"},
    {"llama_factory", 0, "LLaMA-Factory: what is trained in fp32, re-entrant checkpointing"},
    {"llama_factory_v1", 0,
     "LLaMA-Factory's own loop (USE_V1=1): full training in fp32, FSDP 2 gathers bf16, the loss is computed twice"},
    {"ms_swift", 0, "ms-swift: the checkpoint's dtype, fp32 ones in bf16"},
    {"autotrain", 0, "AutoTrain"},
    {"peft", 0, "", true, "transformers"},
    {"llamafactory", 0, "", true, "llama_factory"},
    {"llamafactory_v1", 0, "", true, "llama_factory_v1"},
    {"swift", 0, "", true, "ms_swift"},
    {"lightning", 0, "its strategies hold other things; a loop of one's own is pytorch", false},
    {"megatron", 0, "Megatron-Core: its own code of the model, its own parallelism"},
    {"megatron-lm", 0, "", true, "megatron"},
    {"nemo", 0, "", true, "megatron"},
    {"megatron-deepspeed", 0, "BigScience's Megatron-LM with DeepSpeed's pipeline: GPT, and BLOOM"},
    {"galvatron", 0, "Galvatron: transformers' stands in"},
    {"hetu-galvatron", 0, "", true, "galvatron"},
    {"torchtune", 0,
     "torchtune: its own code of Llama, Mistral and Qwen 2 on one GPU; elsewhere transformers' stands in, with a wide "
     "range"},
    {"torchtitan", 0,
     "torchtitan: its own Llama 3 and Qwen 3, by the date of its release or commit (framework.version); of other "
     "models the same"},
    {"litgpt", 0,
     "LitGPT: its own code of Llama, Mistral, Qwen 2, Gemma, Phi, StableLM, Pythia and Falcon on one GPU; elsewhere "
     "transformers' stands in"},
    {"nemo-automodel", 0, "NeMo AutoModel: transformers' stands in"},
    {"automodel", 0, "", true, "nemo-automodel"},
    {"unsloth", 0,
     "Unsloth 2026.10.9 and 2026.8: FastLanguageModel's own code of Llama, Mistral, Qwen 2 and 3, Gemma and Granite "
     "with LoRA on one GPU; elsewhere transformers' stands in, with a wide range"},
    {"sd_scripts", 0,
     "kohya-ss/sd-scripts: its own U-Nets of Stable Diffusion 1 and SDXL; of other denoisers diffusers' stand in"},
    {"sd-scripts", 0, "", true, "sd_scripts"},
    {"kohya", 0, "", true, "sd_scripts"},
    {"kohya_ss", 0, "", true, "sd_scripts"},
    {"deepspeed", 0, "DeepSpeed engine", false},
};

constexpr Choice kLayers[] = {
    {"transformer_engine", 0, "Transformer Engine's layers"},
    {"local", 1, "Megatron-Core's own, with unfused attention"},
};

constexpr Choice kCrossEntropies[] = {
    {"none", number(MegatronLoss::kNone), "in one fp32 copy of the logits"},
    {"native", number(MegatronLoss::kNative), "compiled: two of them"},
    {"te", number(MegatronLoss::kTransformerEngine), "Transformer Engine's: in the logits' place"},
};

constexpr Option kOptions[] = {
    choice("framework.name", "\"transformers\"", kFrameworks, "Framework",
           "Who runs the step: its defaults hold where nothing is stated.")
        .spelled("--framework")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.framework.name = v.text; }),
    text("framework.version", "\"5.24\"", "Release",
         "Release of transformers beneath it (5.24, 5.12, 4.46), of torchtitan (0.2.0) or Unsloth (2026.10.9), or a "
         "date "
         "(2026-07): defaults and copies of the logits depend on it.")
        .digits()
        .further()
        .checked(check_version)
        .sets([](Request& r, const OptionValue& v) {
          read_version(v.text, r.job.framework);
          r.job.framework.date = date_in(v.text);
        }),
    text("framework.peft", "\"0.21\"", "Release of PEFT",
         "Release of PEFT (0.18, 0.21): from 0.20 on what names the experts of a mixture, all-linear among it, adapts "
         "their "
         "weights where transformers 5 has them in one parameter.")
        .digits()
        .further()
        .checked(check_peft)
        .sets([](Request& r, const OptionValue& v) { r.job.framework.peft = peft_minor(v.text); }),
    choice("megatron.transformer_impl", "\"transformer_engine\"", kLayers, "Megatron-Core's layers",
           "Whose layers Megatron-Core builds.")
        .further()
        .into<&TrainingJob::megatron, &Megatron::local_layers>(),
    choice("megatron.cross_entropy_fusion_impl", "\"none\"", kCrossEntropies, "Megatron-Core's loss",
           "What computes Megatron-Core's cross entropy.")
        .further()
        .into<&TrainingJob::megatron, &Megatron::loss>(),
    flag("megatron.gradient_accumulation_fusion", true, "Gradients added as they are made",
         "Megatron-Core's products of weights' gradients add to the fp32 buffer; off with "
         "--no-gradient-accumulation-fusion.")
        .further()
        .into<&TrainingJob::megatron, &Megatron::fuses_gradients>(),
    flag(
        "deterministic", false, "Deterministic cuBLAS",
        "CUBLAS_WORKSPACE_CONFIG=:4096:8, which torch.use_deterministic_algorithms wants: 32 MiB a handle on any card.")
        .further()
        .into<&TrainingJob::deterministic>(),
    flag("allocator.expandable_segments", false, "Expandable segments", "PYTORCH_ALLOC_CONF=expandable_segments:True.")
        .spelled("--expandable-segments")
        .sets([](Request& r, const OptionValue& v) {
          r.job.expandable_segments = v.boolean;
          r.open.expandable_segments = false;
        }),
    texts("not_counted", "[]", "Not counted",
          "What the job does besides that moves memory and is not modelled, in words of its own: the answer says so "
          "and its range is wider.")
        .further()
        .into<&TrainingJob::not_counted>(),
    real("overrides.fragmentation_gib", "null", "Fragmentation",
         "Memory lost to fragmentation, taken off what a card can give.")
        .within(0, 1e5, "GiB")
        .spelled("--fragmentation-gib")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.overrides.fragmentation_gib = v.real; }),
    real("overrides.misc_overhead_gib", "null", "Taken by others",
         "Memory that others take on the card: other processes, a desktop, NCCL.")
        .within(0, 1e5, "GiB")
        .spelled("--misc-overhead-gib")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.overrides.misc_overhead_gib = v.real;
          r.job.misc_overhead = static_cast<Bytes>(v.real * static_cast<double>(kGiB));
        }),
    real("overrides.cuda_context_gib", "null", "CUDA context",
         "CUDA context with its kernels, instead of the catalog's figure.")
        .within(0, 1e3, "GiB")
        .spelled("--cuda-context-gib")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.overrides.cuda_context_gib = v.real; }),
    of_type(OptionType::kDocument, "calibration", "null", "Calibration",
            "The document that `calibrate` returns: factors fitted to measurements of your own.")
        .further()
        .checked(check_calibration)
        .sets([](Request& r, const OptionValue& v) {
          r.calibration = read_calibration(*v.document);
          if (r.calibration) r.job.activations_factor = r.calibration->activations;
        }),
};

}  // namespace

constinit const Topic kRuntimeTopic{{"runtime", "Framework and allocator"}, kPacked<kOptions>};

}  // namespace tidemark
