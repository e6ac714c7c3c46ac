#include "core/job/check.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/job/check_own_loop.hpp"
#include "core/job/check_packed.hpp"
#include "core/job/default_loss.hpp"
#include "core/job/defaults.hpp"
#include "core/job/expert_lists.hpp"
#include "core/job/framework.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/model/denoiser_encoders.hpp"
#include "core/units/fp4_blocks.hpp"

namespace tidemark {
namespace {

void add(Issues& issues, std::string_view code, Severity severity, std::string_view path, std::string message,
         std::string suggestion = "") {
  issues.push_back({std::string{code}, severity, std::string{path}, std::move(message), std::move(suggestion)});
}

/// The first of the options under that key ("adapter."), or an empty name.
std::string_view first_under(const std::vector<std::string_view>& given, std::string_view prefix) {
  for (std::string_view name : given) {
    if (name.substr(0, prefix.size()) == prefix) return name;
  }
  return {};
}

bool has(const std::vector<std::string_view>& given, std::string_view option) {
  return std::find(given.begin(), given.end(), option) != given.end();
}

bool divides_parameters(const DataParallel& how) {
  return how.is_sharded() && how.sharding != Sharding::kZero1 && how.sharding != Sharding::kZero2;
}

/// trl 1.9 trainer/sft_trainer.py: __init__; base_config.py, where gradient_checkpointing is True since 0.22.
void check_trl(const Request& request, const std::vector<std::string_view>& given, Issues& issues) {
  const TrainingJob& job = request.job;
  if (request.foreign.padding_free && !job.packing && job.preference == Preference::kNone) {
    add(issues, "UNBOUNDED_LENGTH", Severity::kWarning, "/padding_free",
        "TRL's SFTTrainer refuses padding_free without packing (ValueError since 1.0) unless max_length is None: it "
        "cuts no samples then. Pack them, or set max_length to None; the figure is of samples of sequence_length.");
  }
  if (job.packing && (job.images_per_sample > 0 || job.video_frames > 0)) {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/packing",
        "TRL's SFTTrainer refuses to pack samples of a model that sees. Set \"packing\" to false.");
  }
  if (has(given, "gradient_checkpointing") || !first_under(given, "gradient_checkpointing.").empty()) return;
  add(issues, "ASSUMED_DEFAULT", Severity::kNote, "/gradient_checkpointing",
      "TRL's trainers checkpoint every layer since 0.22 unless they are told not to; here nothing is checkpointed "
      "where the request does not say so. Set \"gradient_checkpointing\" to \"full\" if your script leaves it to TRL.",
      "full");
}

/// How many micro-batches are alive decides what the first stages of a pipeline hold.
void check_micro_batches(const TrainingJob& job, const std::vector<std::string_view>& given, Issues& issues) {
  if (!job.pipeline.is_used() || job.pipeline.is_device_map() || has(given, "parallelism.num_micro_batches")) return;
  add(issues, "ASSUMED_DEFAULT", Severity::kNote, "/parallelism/num_micro_batches",
      "The request does not say how many micro-batches a step of the pipeline runs: as many as it has stages are "
      "assumed.");
}

/// torchao 0.18 float8: what of it is modelled.
void check_float8(const TrainingJob& job, Issues& issues) {
  if (job.float8 == Float8::kNone) return;
  if (job.method != Method::kFull || job.gpus() > 1 || job.is_megatron() || job.compiled) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/float8",
        "float8 is modelled for full training on one GPU without torch.compile.", "none");
  }
}

/// ml-cross-entropy 5f0c7a7 cce_backward.py cce_backward_kernel: assert e.dtype in (torch.float16, torch.bfloat16), and
/// of the head's weight. Autocast changes neither; FSDP gathers weights in 16 bits.
void check_cut_cross_entropy(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const bool cuts = job.loss == Loss::kCutCrossEntropy && a.head == Head::kCausalLm;
  if (!cuts || job.recipe.weights != Dtype::kFp32 || job.data_parallel.is_sharded()) return;
  add(issues, "INVALID_VALUE", Severity::kError, "/precision",
      "Cut cross-entropy asserts that hidden states and the head have 16 bits, and fails in backward beside fp32 "
      "weights, autocast or not.",
      "bf16_amp");
}

/// axolotl 067b021 utils/quantization.py get_quantization_config: the pairs that torchao trains.
bool has_fake_pair(const Qat& qat) {
  switch (qat.weights) {
    case FakeQuant::kInt4:
      return qat.activations <= FakeQuant::kFloat8 && qat.activations != FakeQuant::kInt4;
    case FakeQuant::kFloat8:
      return qat.activations == FakeQuant::kFloat8;
    case FakeQuant::kMxfp4:
    case FakeQuant::kNvfp4:
      return !qat.embeddings && (qat.activations == FakeQuant::kNone || qat.activations == qat.weights);
    default:
      return qat.activations == FakeQuant::kNone && !qat.embeddings;
  }
}

/// torchao 0.18 quantization/qat: what of it is modelled.
void check_qat(const TrainingJob& job, Issues& issues) {
  if (!has_fake_pair(job.qat)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/qat/activation_dtype",
        "torchao trains int4 weights with inputs as they are, in int8 or fp8, fp8 weights with fp8 inputs, and mxfp4 "
        "or nvfp4 of both, without a token table.",
        "none");
  }
  if (!job.qat.is_used()) return;
  // prototype/qat/mx.py MXFakeQuantizedLinear.forward: assert fq.dtype == x.dtype.
  if (job.qat.weights == FakeQuant::kMxfp4 && job.recipe.autocast && job.recipe.weights == Dtype::kFp32) {
    add(issues, "INVALID_VALUE", Severity::kError, "/precision",
        "torchao's linear layers of MXFP4 assert that they return their input's dtype, which autocast changes where "
        "weights are fp32.",
        "bf16_amp");
  }
  const bool divides = job.tensor.is_used() || job.pipeline.is_used() || job.expert > 1;
  if (job.method != Method::kFull || divides || job.is_megatron() || job.compiled || job.float8 != Float8::kNone) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/qat/weight_dtype",
        "Quantisation-aware training is modelled for full training with data-parallel GPUs, without torch.compile and "
        "float8.",
        "none");
  }
}

/// torchao 0.18 fake_quantizer.py: w.view(rows, -1, group_size), to_mx and to_nvfp4: rows are whole groups.
void check_qat_groups(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Qat& qat = job.qat;
  if (!qat.is_used() || qat.weights == FakeQuant::kFloat8) return;
  const Count size = qat.weights == FakeQuant::kInt4    ? qat.group_size
                     : qat.weights == FakeQuant::kMxfp4 ? kMxBlock
                                                        : kNvBlock;
  for (const Count columns : {a.hidden_size, a.intermediate_size, a.num_heads * a.head_dim}) {
    if (columns % size == 0) continue;
    add(issues, "INVALID_VALUE", Severity::kError, "/qat/group_size",
        "torchao fails: a linear layer of this model has " + std::to_string(columns) +
            " inputs, which are no whole groups of " + std::to_string(size) + ".",
        "32");
    return;
  }
}

bool is_flash(const TrainingJob& job) {
  return job.attention == AttentionKernel::kFlashAttention2 || job.attention == AttentionKernel::kFlashAttention3;
}

/// Do an adapter's targets include modules that PEFT refuses in models of Mamba? peft 0.18 tuners/tuners_utils.py
/// _check_lora_target_modules_mamba: of LoRA and AdaLoRA.
bool reaches_mamba_projection(const Architecture& architecture, const Adapter& adapter) {
  const std::string& type = architecture.model_type;
  constexpr std::string_view kTypes[] = {"falcon_h1", "falcon_mamba", "mamba", "mamba2"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) return false;
  if (adapter.kind != AdapterKind::kLora && adapter.kind != AdapterKind::kAdaLora) return false;
  const ModuleChoice& targets = adapter.target_modules;
  if (targets.kind == ModuleChoice::Kind::kAllLinear) return true;
  const auto names = [](std::string_view text) {
    return text.find("out_proj") != std::string_view::npos || text.find("conv1d") != std::string_view::npos;
  };
  if (targets.kind == ModuleChoice::Kind::kExpression) return names(targets.expression);
  return std::any_of(targets.names.begin(), targets.names.end(), names);
}

/// What FlashAttention's own interface refuses, whatever the card.
void check_flash(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (!is_flash(job)) return;
  // transformers 5.12 integrations/flash_attention.py get_target_dtype: without autocast the inputs keep the weights'
  // dtype, which under FSDP is that of the gathered ones; flash-attention 2.8 csrc/flash_attn/flash_api.cpp mha_fwd
  // takes fp16 and bf16 only.
  if (computing_dtype(job) == Dtype::kFp32) {
    add(issues, "INVALID_VALUE", Severity::kError, "/attention",
        "FlashAttention only takes fp16 and bf16: with fp32 weights it needs autocast. Use \"precision\": \"amp_bf16\" "
        "or "
        "\"attention\": \"sdpa\".",
        "sdpa");
  }
  constexpr Count kWidestHead = 256;     // the same: "FlashAttention forward only supports head dimension at most 256"
  Count widest = architecture.head_dim;  // Gemma 4's layers that attend to everything have wider ones
  for (const Architecture& part : architecture.parts) widest = std::max(widest, part.head_dim);
  if (widest > kWidestHead) {
    add(issues, "INVALID_VALUE", Severity::kError, "/attention",
        "FlashAttention only takes heads of at most " + std::to_string(kWidestHead) +
            " dimensions; this model's have " + std::to_string(widest) + ". Use \"attention\": \"sdpa\".",
        "sdpa");
  }
}

/// KTransformers' experts on the CPU: kt-kernel/python/sft/arch.py get_moe_arch_config, and what of it is modelled.
void check_host_experts(const Architecture& a, const TrainingJob& job, Issues& issues) {
  constexpr std::string_view kPath = "/moe/implementation";
  constexpr std::string_view kKnown[] = {
      "deepseek_v2",       "deepseek_v3", "qwen2_moe",        "qwen3_moe", "qwen3_vl_moe",
      "qwen3_vl_moe_text", "qwen3_5_moe", "qwen3_5_moe_text", "glm4_moe",  "mixtral"};
  if (std::find(std::begin(kKnown), std::end(kKnown), a.model_type) == std::end(kKnown)) {
    add(issues, "INVALID_VALUE", Severity::kError, kPath,
        "KTransformers knows no experts of this model type and raises KTAMXModelNotSupportedError.", "default");
  }
  const bool lora = job.method == Method::kLora && job.adapter.kind == AdapterKind::kLora;
  const bool placed = job.gpus() == 1 || (job.data_parallel.sharding == Sharding::kFsdp2 &&
                                          job.gpus() == job.data_parallel.degree && !job.offload.parameters);
  if (!lora || !placed || job.preference != Preference::kNone || job.is_megatron()) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, kPath,
        "KTransformers' experts on the CPU are modelled for LoRA on one GPU or under FSDP 2, with weights on the card "
        "beside them.",
        "default");
  }
}

/// Mixtures of experts.
void check_experts(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (a.experts.count > 0 && !lists_experts(a, job) && job.method == Method::kQlora && !job.quantization.experts) {
    add(issues, "NOT_QUANTISED", Severity::kWarning, "/method",
        "The experts stay in 16 bits: transformers 5 keeps those of a layer in one parameter, and bitsandbytes packs "
        "linear layers only.");
  }
  if (a.experts.count > 0 && job.method == Method::kQlora && job.quantization.experts &&
      divides_parameters(job.data_parallel)) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/quantization/moe_experts",
        "Packed experts are not modelled where GPUs divide weights (FSDP, ZeRO-3). ZeRO-2 leaves them whole.");
  }
  if (a.experts.count > 0 && !job.framework.at_least(5, 0) && !listed_by_unsloth(a, job)) {
    constexpr std::string_view kRead[] = {"mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "deepseek_v3", "dbrx"};
    if (std::find(std::begin(kRead), std::end(kRead), a.model_type) == std::end(kRead)) {
      add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/framework/version",
          "Before transformers 5 experts were lists of linear layers; of this model that form is not modelled. Use "
          "5.12.",
          "5.12");
    }
    add(issues, "ASSUMED_ROUTING", Severity::kNote, "/framework/version",
        "Before transformers 5 each expert is a module of linear layers, quantised and adapted like all others, and "
        "runs on the tokens sent to it: an even number is assumed (moe.load_imbalance states another). The form is "
        "read from the modelling files of 4.57; no record covers it.");
  }
  const int since = a.facts.experts_forms_since;
  const bool one_form = a.facts.one_experts_form && (since == 0 || !job.framework.at_least(5, since));
  if (job.has_experts_on_host()) {
    check_host_experts(a, job, issues);
  } else if (job.experts != ExpertsKernel::kGroupedMm &&
             (one_form || (a.experts.count == 0 && a.language == nullptr))) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/moe/implementation",
        a.experts.count == 0 ? "This model has no experts."
                             : "This model's code computes its experts in one way only.");
  }
  const bool loops = a.experts.count > 0 && (a.experts.listed || job.experts == ExpertsKernel::kEager);
  if (job.load_imbalance > 1.0 && !loops && a.language == nullptr) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/moe/load_imbalance",
        a.experts.count == 0
            ? "This model has no experts."
            : "Only loops over experts (\"moe.implementation\" eager) need more where routing is uneven.");
  } else if (loops &&
             job.load_imbalance * static_cast<double>(a.experts.per_token) > static_cast<double>(a.experts.count)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/moe/load_imbalance",
        "The busiest of " + std::to_string(a.experts.count) + " experts gets at most all tokens: " +
            std::to_string(a.experts.count / a.experts.per_token) + " times an even split.");
  }
}

/// Layers that keep a state.
void check_states(const Architecture& a, const TrainingJob& job, Issues& issues) {
  // peft 0.18 tuners/tuners_utils.py: _check_lora_target_modules_mamba.
  if ((job.method == Method::kLora || job.method == Method::kQlora) && reaches_mamba_projection(a, job.adapter)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/target_modules",
        "PEFT refuses adapters on out_proj and conv1d of " + a.model_type +
            ", which \"all-linear\" reaches, too: name the other modules.",
        "in_proj");
  }
  if (a.ssm.kernel > 0 || a.ssm.width > 0) {
    add(issues, "ASSUMED_KERNELS", Severity::kNote, "/kernels",
        job.torch_scan ? "Layers that keep a state are taken to run on torch alone; the fused kernels need far less."
                       : "Layers that keep a state are taken to run on the fused kernels of fla, mamba_ssm and "
                         "causal_conv1d; without these, \"kernels\": \"torch\" says what they need.",
        job.torch_scan ? "fused" : "torch");
  } else if (job.torch_scan && a.language == nullptr) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/kernels", "This model has no layers that keep a state.",
        "fused");
  }
}

/// Pictures, of models of them alone.
void check_pictures(const Architecture& a, const TrainingJob& job, Issues& issues) {
  constexpr Count kLeastSide = 32;  // five times halved, something is left
  if (a.image_size > 0 && a.language == nullptr && job.image_height > 0 &&
      std::min(job.image_height, job.image_width) < kLeastSide) {
    add(issues, "INVALID_VALUE", Severity::kError, "/image_size", "Pictures of at least 32 pixels a side are modelled.",
        "224");
  }
}

void check_encoders(const Denoiser& denoiser, Issues& issues) {
  if (encoders_of(denoiser).count == 0) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/text_encoders",
        "Which encoders belong to a denoiser of this width is not known: those of Stable Diffusion 1 to 3, SDXL, "
        "Flux, Flux 2 and Qwen-Image are. Leave \"vae\" and \"text_encoders\" at \"cached\".",
        "cached");
  }
}

/// Diffusion models, as diffusers' training scripts run them.
void check_denoiser(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (a.denoiser.latents == 0) {
    if (runs_sd_scripts(job)) {
      add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/framework/name",
          "sd-scripts trains diffusion models: name one, or another framework.", "transformers");
    }
    if (job.vae != Vae::kCached || job.text_encoders) {
      add(issues, "IGNORED_OPTION", Severity::kWarning, job.vae != Vae::kCached ? "/vae" : "/text_encoders",
          "Only diffusion models have these encoders beside them; it has no effect.", "cached");
    }
    return;
  }
  if (job.vae == Vae::kCached || !job.text_encoders) {
    add(issues, "ASSUMED_DEFAULT", Severity::kNote, job.vae == Vae::kCached ? "/vae" : "/text_encoders",
        std::string(job.vae != Vae::kCached ? "Embeddings of the text are"
                    : job.text_encoders     ? "Latents are"
                                            : "Latents and embeddings of the text are") +
            " taken to have been made before; what stays on the card to make them in each step is counted where "
            "\"vae\" and \"text_encoders\" say so.");
  }
  if (job.vae != Vae::kCached || job.text_encoders) check_encoders(a.denoiser, issues);
  const auto refuse = [&](std::string_view path, std::string message, std::string_view use) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message), std::string{use});
  };
  const bool own = runs_sd_scripts(job);
  const bool again = checkpoints_reentrantly(a.denoiser, job);
  const bool other_form = job.use_reentrant != again;
  if (job.checkpointing != Checkpointing::kNone && (job.checkpointing != Checkpointing::kFull || other_form)) {
    refuse(other_form ? "/use_reentrant" : "/gradient_checkpointing",
           again ? "sd-scripts' U-Net of SDXL checkpoints re-entrantly: use \"full\" with \"use_reentrant\" true."
                 : "diffusers checkpoints each resnet and each transformer block, and not re-entrantly: use \"full\" "
                   "with \"use_reentrant\" false.",
           !other_form ? "full"
           : again     ? "true"
                       : "false");
  }
  if (job.attention == AttentionKernel::kEager) {
    refuse("/attention",
           own ? "sd-scripts without --xformers and --sdpa makes all scores at once, which is not modelled: use one."
               : "diffusers runs scaled_dot_product_attention; its processors without are not modelled.",
           "sdpa");
  }
  if (own && job.has_adapter() && (job.adapter.kind != AdapterKind::kLora || job.adapter.use_dora)) {
    refuse("/adapter/kind", "Of sd-scripts' networks LoRA is modelled.", "lora");
  }
  if (job.method == Method::kQlora) {
    refuse("/method", "Quantised denoisers are not modelled. Use \"lora\".", "lora");
  }
  if (job.gpus() > 1 && (job.data_parallel.is_sharded() || job.tensor.is_used() || job.pipeline.is_used())) {
    refuse("/parallelism", "Diffusion models are modelled on GPUs that each hold all of the model.", "");
  }
}

/// What only some kinds of models have: pictures, waves, a decoder.
void check_parts(const Architecture& a, const TrainingJob& job, Issues& issues) {
  // No text: the size of the pictures, the length of the sound says how many tokens there are. CLIP's texts have a
  // length of their own.
  const bool is_seen_or_heard = a.image_size > 0 || !a.conv_dims.empty();
  if (job.sequence_length == 0 && (!is_seen_or_heard || a.language != nullptr)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/sequence_length",
        "Only models of pictures or of sound alone take no sequence length; say how many tokens a sample has.", "2048");
  }
  // modeling_wav2vec2.py Wav2Vec2Model.forward, modeling_hubert.py.
  if (!a.conv_dims.empty() && job.padding) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/padding",
        "Recordings are taken to be equally long: what a mask of padding adds is not counted.", "false");
  }
  if (a.masks_time) {
    add(issues, "ASSUMED_DEFAULT", Severity::kNote, "/config/mask_time_prob",
        "SpecAugment draws what it masks at each step: the few indices of those stretches are not counted.");
  }
  const bool hears_alone = a.facts.hears_alone;
  const bool has_pictures = job.images_per_sample > 0 || job.video_frames > 0;
  const bool sized = job.image_height > 0 || job.image_tiles > 0;
  if (hears_alone && (has_pictures || sized)) {
    add(issues, "IGNORED_OPTION", Severity::kWarning,
        job.images_per_sample > 0 ? "/images_per_sample"
        : job.video_frames > 0    ? "/video_frames"
                                  : "/image_size",
        "This model hears and does not see: pictures have no effect.");
  }
  if (a.language == nullptr && (has_pictures || job.freeze_vision || job.freeze_projector || job.freeze_llm ||
                                (sized && a.image_size == 0 && a.denoiser.latents == 0))) {
    add(issues, "IGNORED_OPTION", Severity::kWarning,
        job.images_per_sample > 0 ? "/images_per_sample"
        : job.video_frames > 0    ? "/video_frames"
        : sized                   ? "/image_size"
                                  : "/freeze_vision",
        "This model does not see: pictures, and parts of it by role, have no effect.");
  } else if (a.language != nullptr && !hears_alone && sized && !has_pictures) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/image_size",
        "No sample has a picture: say how many in \"images_per_sample\", or \"video_frames\".");
  }
  const bool sees_alone = a.image_size > 0 && a.language == nullptr && a.vocab_size == 0;
  if (job.padding && sees_alone && a.num_decoder_layers == 0) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/padding", "Pictures have no padding: it has no effect.",
        "false");
  }
  if (job.decoder_sequence_length > 0 && a.num_decoder_layers == 0) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/decoder_sequence_length",
        "Only encoder-decoders have a length of their own for the decoder; \"sequence_length\" counts.");
  }
  // A spectrogram has bins and frames, and no convolutions with kernels of their own.
  if (job.audio_seconds > 0.0 && a.conv_kernels.empty() && !hears_alone && !a.model_type.ends_with("_thinker")) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/audio_seconds",
        "Only models that hear the wave itself depend on its length; the others pad every recording to their window.");
  }
}

/// Evaluation that its own options do not fit.
void check_evaluation(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Evaluation& e = job.evaluation;
  if (e.micro_batch_size == 0 && (e.generates || e.keeps_logits)) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/evaluation",
        "Evaluation is counted where \"evaluation.micro_batch_size\" says its batch.");
  }
  if (!e.generates) return;
  if (a.head != Head::kCausalLm && a.head != Head::kSeq2SeqLm) {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/evaluation/generate",
        "This class does not generate: leave \"evaluation.generate\" out.");
  } else if (job.preference != Preference::kNone) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/evaluation/generate",
        "Generation in the evaluation of preferences is not modelled; leave \"evaluation.generate\" out.");
  }
}

/// Frameworks whose loop is transformers' Trainer, or calls its label smoother.
bool runs_trainer(const Framework& framework) {
  constexpr std::string_view kTrainers[] = {"transformers", "trl", "llama_factory", "ms_swift", "autotrain", "axolotl"};
  return std::find(std::begin(kTrainers), std::end(kTrainers), framework.name) != std::end(kTrainers);
}

/// Whether the class returns logits of words or of one label each.
bool takes_label_smoothing(const Architecture& architecture) {
  switch (architecture.head) {
    case Head::kCausalLm:
    case Head::kMaskedLm:
    case Head::kSeq2SeqLm:
    case Head::kTokenClassification:
      return architecture.language == nullptr;
    case Head::kSequenceClassification:
      return architecture.language == nullptr && architecture.problem_type == ProblemType::kSingleLabel;
    default:
      return false;
  }
}

/// The loss that the Trainer makes of logits.
void check_label_smoothing(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.label_smoothing <= 0.0) return;
  const auto refuse = [&](std::string_view code, std::string message) {
    add(issues, code, Severity::kError, "/label_smoothing_factor", std::move(message));
  };
  if (!runs_trainer(job.framework)) {
    refuse("INVALID_COMBINATION",
           "Label smoothing is an argument of transformers' Trainer, which does not run this step. Leave it out.");
  } else if (job.preference != Preference::kNone) {
    refuse("INVALID_COMBINATION",
           "TRL's trainers on preferences make their own loss, and label_smoothing_factor changes nothing there. Leave "
           "it out: the label_smoothing of DPO takes no memory.");
  } else if (!takes_label_smoothing(a)) {
    refuse("UNSUPPORTED_OPTION",
           "Label smoothing is modelled of language models and classifiers of text. Leave it out for this class.");
  } else if (job.gpus() > job.data_parallel.degree || job.data_parallel.is_one_process()) {
    refuse("UNSUPPORTED_OPTION",
           "Label smoothing is modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP.");
  }
}

/// What only some classes of a model have a use for.
void check_class(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.loss == Loss::kMeanSquare && a.head != Head::kNone) {
    add(issues, "INVALID_VALUE", Severity::kError, "/loss",
        "\"mean_square\" is of a body without a head (\"architecture\": \"…Model\"); this class has a loss of its own.",
        "default");
  }
  // transformers 5.12 trainer.py compute_loss, whose outputs["loss"] is not there.
  if (job.loss == Loss::kDefault && a.head == Head::kNone && job.framework.name == "transformers") {
    add(issues, "ASSUMED_DEFAULT", Severity::kNote, "/loss",
        "A class without a head returns no loss, and the Trainer raises a ValueError: the figure is that of a loss of "
        "its last hidden state.",
        "mean_square");
  }
  if (job.loss != Loss::kDefault && job.loss != Loss::kMeanSquare && a.head != Head::kCausalLm) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/loss",
        "Fused and chunked losses replace that of a causal language model; this model's own loss is computed.",
        "default");
  }
  // trl 1.9 trainer/sft_trainer.py __init__: the loss reads the head's weight and would leave its adapter out.
  if (job.loss == Loss::kChunked && job.framework.name == "trl" && a.head == Head::kCausalLm && adapts_head(job)) {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/loss",
        "TRL's loss in chunks, its default since 1.7, refuses an adapter on lm_head. Set \"loss\" to \"default\" "
        "(loss_type \"nll\"), or leave \"lm_head\" out of the adapted modules.",
        "default");
  }
  // The same, _ChunkedCELMHeadOutput: the graph of entropy_sum, which no backward runs, holds each chunk's softmax.
  if (job.loss == Loss::kChunked && job.keep_outputs && a.head == Head::kCausalLm && !is_stood_for(job.framework)) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/keep_outputs",
        "Outputs of TRL's loss in chunks, held through backward, keep every chunk's softmax, which is not modelled. "
        "Set \"keep_outputs\" to false.",
        "false");
  }
  if (job.packing && a.head != Head::kCausalLm) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/packing",
        "Samples are packed for causal language models only; rows are taken as one sample each.");
  }
  if (a.head == Head::kMultipleChoice || a.head == Head::kDoubleHeads) {
    add(issues, "ASSUMED_DEFAULT", Severity::kNote, "/micro_batch_size",
        "A micro batch counts rows: one for each choice of each question.");
  }
}

/// Generated answers on several GPUs.
void check_rollout(const TrainingJob& job, Issues& issues) {
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message));
  };
  const DataParallel& how = job.data_parallel;
  if (job.is_megatron()) {
    if (job.rollout.engine == RolloutEngine::kServer && job.preference == Preference::kGrpo) return;
    if (job.rollout.engine == RolloutEngine::kVllm && job.rollout.sleeps && job.preference == Preference::kGrpo) return;
    refuse("/rollout/engine",
           "Under Megatron-Core GRPO is modelled with a vLLM elsewhere, or one that sleeps while the model trains.");
    return;
  }
  if (job.gpus() > how.degree || (job.gpus() > 1 && !how.is_replicated() && !how.is_sharded())) {
    refuse("/parallelism",
           "Generated answers are modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP of "
           "TRL's trainers.");
    return;
  }
  if (!divides_parameters(how)) return;
  const bool vllm = job.rollout.engine != RolloutEngine::kTransformers;
  // trl 1.9 generation/vllm_generation.py _sync_fsdp1_params_to_vllm, tried with torch 2.14 (TRL's pull request 3582
  // tells of the same).
  // torch 2.14 _fsdp_state.py _lazy_init: PeftModel.generate calls the model inside, of which no unit is the root.
  if (how.sharding == Sharding::kFsdp2 && !vllm && job.has_adapter()) {
    refuse("/rollout/engine",
           "Under FSDP 2 PEFT's generate() fails: it calls the model inside, and torch wants the root to be called "
           "first (\"FSDP requires a single root module\"). Let vLLM generate.");
  }
  if (job.method == Method::kQlora) {
    refuse(
        "/method",
        "Generated answers of packed weights that GPUs divide are not modelled: adapters cannot be merged into 4-bit "
        "parts.");
  }
  if (how.sharding == Sharding::kZero3 && !vllm && !job.rollout.gathers && job.has_adapter()) {
    refuse("/rollout/gather_weights",
           "With adapters ZeRO-3's generation is modelled with all weights gathered (ds3_gather_for_generation).");
  }
  if (how.sharding == Sharding::kFsdp1 && job.has_adapter()) {
    refuse("/method", "Generated answers under FSDP 1 are modelled for full training.");
  }
  if (how.sharding == Sharding::kFsdp1 && vllm) {
    refuse("/rollout/engine",
           "Under FSDP 1 TRL cannot send weights to vLLM: it makes the layers' units whole before the model's own has "
           "begun (\"Non-root FSDP instance's `_is_root` should not have been set yet\"). FSDP 2 can.");
  }
}

/// Answers scored by a frozen model's states. Axolotl 067b021 src/axolotl/core/trainers/ebft/trainer.py.
void check_features(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.rollout.features == 0) return;
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message));
  };
  if (job.data_parallel.is_sharded()) {
    refuse("/feature_layers", "Such rewards are modelled where each GPU holds the whole model.");
  }
  if (job.reference == Reference::kCopy) {
    refuse("/beta", "Beside such rewards a reference's copy is not modelled: use 0.");
  }
  if (job.rollout.features > a.num_layers + 1) {
    refuse("/feature_layers", "The model has " + std::to_string(a.num_layers + 1) + " hidden states.");
  }
}

/// Distillation. trl 1.9 experimental/gkd/gkd_config.py: __post_init__, gkd_trainer.py: __init__. Of generated answers:
/// ms-swift 3602360a rlhf_trainers/grpo_trainer.py: _compute_teacher_logps.
void check_teacher(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const auto refuse = [&](std::string_view code, std::string_view path, std::string message) {
    add(issues, code, Severity::kError, path, std::move(message));
  };
  const Architecture& teacher = *a.teacher;
  const bool alike = (teacher.language == nullptr && a.language == nullptr) || teacher.model_type == a.model_type;
  if (teacher.program == nullptr || teacher.head != Head::kCausalLm || !alike) {
    refuse("UNSUPPORTED_VALUE", "/teacher_model",
           "A teacher is modelled that is a causal language model of text, or that sees as the student does: of one "
           "model type.");
  } else if (job.distils() && teacher.vocab_size != a.vocab_size) {
    refuse("INVALID_VALUE", "/teacher_model",
           "TRL's GKDTrainer refuses this: the vocabulary of the teacher has " + std::to_string(teacher.vocab_size) +
               " tokens, that of the student " + std::to_string(a.vocab_size) + ".");
  }
  if (job.distillation.beta > 1.0) refuse("INVALID_VALUE", "/beta", "TRL's GKDConfig takes 0 to 1.");
  const DataParallel& how = job.data_parallel;
  if (job.gpus() > how.degree || how.is_one_process() || job.is_megatron()) {
    refuse("UNSUPPORTED_VALUE", "/parallelism",
           "A teacher is modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP.");
  }
  if (job.distils()) return;
  if (job.framework.name != "ms_swift") {
    refuse("UNSUPPORTED_VALUE", "/teacher_model",
           "Of those that generate answers ms-swift's GRPO has a teacher (framework.name \"ms_swift\").");
  }
  const bool whole = !how.is_sharded() || how.sharding == Sharding::kZero1 || how.sharding == Sharding::kZero2;
  if (!whole && job.reference == Reference::kCopy) {
    refuse("UNSUPPORTED_VALUE", "/teacher_model",
           "A teacher is not modelled beside a copy of the model where GPUs divide both. Set \"beta\" to 0.");
  }
}

/// Proximal policy optimisation. trl 1.9 experimental/ppo/ppo_trainer.py: __init__, train.
void check_critic(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message));
  };
  // LLaMA-Factory 0.9 train/ppo: TRL 0.9's trainer, a value head on the policy and rewards by adapters. ms-swift
  // 3602360a rlhf_trainers/ppo_trainer.py: TRL's loop inside a trainer of its own, which no record holds.
  if (job.framework.name != "trl" && job.framework.name != "transformers") {
    refuse("/task", "PPO is modelled as TRL's own scripts run it; what " + job.framework.name +
                        " makes of it is other code, of which there is no record.");
  }
  if (a.num_decoder_layers > 0) refuse("/task", "PPO is modelled of decoders.");
  if (job.gpus() > 1 || job.is_megatron()) {
    refuse("/parallelism", "PPO is modelled on one GPU: no record holds its four models on several.");
  }
  if (job.method == Method::kQlora) {
    refuse("/method",
           "PPO is modelled of full training and LoRA: TRL's script packs the value model likewise, and trains what of "
           "it stays.");
  }
  if (job.rollout.engine != RolloutEngine::kTransformers) {
    refuse("/rollout/engine", "PPOTrainer generates by the model's own generate().");
  }
}

/// Pairs of generated answers. trl 1.9 experimental/online_dpo/online_dpo_trainer.py: __init__, training_step.
void check_pairs(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message));
  };
  if (job.framework.name != "trl" && job.framework.name != "transformers") {
    refuse("/task", "Online DPO is modelled as TRL's own trainer runs it; what " + job.framework.name +
                        " makes of it is other code, of which there is no record.");
  }
  if (a.num_decoder_layers > 0) refuse("/task", "Online DPO is modelled of decoders.");
  if (job.gpus() > 1 || job.is_megatron()) {
    refuse("/parallelism", "Online DPO is modelled on one GPU: no record holds its three models on several.");
  }
  if (job.rollout.engine != RolloutEngine::kTransformers) {
    refuse("/rollout/engine", "Online DPO is modelled with the model's own generate().");
  }
  if (job.reference == Reference::kPrecomputed) {
    refuse("/reference_model/precompute", "Generated answers are new: no reference can have scored them before.");
  }
  if (job.offload.activations) {
    refuse("/offload/activations", "Generated answers are modelled without offloaded activations.");
  }
}

/// Prompt and answer share the sequence.
void check_answer(const TrainingJob& job, Issues& issues) {
  if (!job.rolls_out() || job.rollout.answer < job.sequence_length) return;
  add(issues, "INVALID_VALUE", Severity::kError, "/max_completion_length",
      "\"sequence_length\" counts prompt and answer, and the answer alone has " + std::to_string(job.rollout.answer) +
          " tokens. Make it longer, or state max_prompt_length in its place.");
}

/// Single answers. trl 1.9 trainer/kto_trainer.py, experimental/bco/bco_trainer.py: __init__, which LLaMA-Factory and
/// ms-swift do not call.
void check_single_answers(const TrainingJob& job, Issues& issues) {
  constexpr std::string_view kOwn[] = {"llama_factory", "ms_swift", "pytorch"};
  const bool own = std::find(std::begin(kOwn), std::end(kOwn), job.framework.name) != std::end(kOwn);
  if (own || job.is_megatron()) return;
  if (job.preference == Preference::kKto && job.micro_batch_size < 2) {
    add(issues, "INVALID_VALUE", Severity::kError, "/micro_batch_size",
        "TRL's KTOTrainer refuses batches of one answer (ValueError). Use at least 2, and fewer micro-batches in a "
        "step.",
        "2");
  }
  const bool gathers = job.data_parallel.is_sharded() && job.data_parallel.sharding == Sharding::kZero3;
  if (job.preference == Preference::kBco && gathers && job.reference == Reference::kPrecomputed) {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/reference_model/precompute",
        "TRL's BCOTrainer refuses precompute_ref_log_probs under ZeRO-3 (ValueError). Leave it out, or use ZeRO-2.");
  }
}

/// Training on preferences.
void check_preference(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.preference == Preference::kNone) return;
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, path, std::move(message));
  };
  const bool scores = job.preference == Preference::kReward;
  // trl 1.9 trainer/dpo_trainer.py DataCollatorForVisionPreference, kto_trainer.py
  // DataCollatorForVisionUnpairedPreference; of ORPO's, CPO's and rewards' trainers none has one.
  const bool by_text = scores && job.images_per_sample == 0 && job.video_frames == 0;
  // ms-swift 3602360a rlhf_trainers/gkd_trainer.py hands pictures to student and teacher alike.
  const bool sees = job.preference == Preference::kDpo || job.preference == Preference::kKto ||
                    (job.generates() && !job.has_critic()) || job.has_teacher() || by_text;
  if (a.language != nullptr && !sees) {
    refuse("/task",
           "Of models that see, the preferences of DPO and KTO are modelled, answers that they generate, distillation, "
           "and rewards of texts alone: TRL's RewardTrainer takes no pictures.");
  } else if (a.language != nullptr && job.images_per_sample > 0 && job.reference == Reference::kPrecomputed) {
    refuse("/reference_model/precompute", "TRL's trainers compute no log-probabilities of pictures in advance.");
  } else if (a.language != nullptr && job.audio_seconds > 0.0) {
    refuse("/audio_seconds", "TRL's trainers on preferences take no recordings. Leave \"audio_seconds\" out.");
  }
  if (a.head != (scores ? Head::kSequenceClassification : Head::kCausalLm)) {
    refuse("/task", scores ? "Rewards are modelled of classes with a score per sequence."
                           : "Preferences are modelled of causal language models.");
  }
  if (!scores && job.loss != Loss::kDefault) {
    refuse("/loss", "Fused losses of preferences are not modelled yet. Use \"default\".");
  }
  if (job.packing) refuse("/packing", "Samples of preferences are not packed.");
  if (job.generates()) {
    if (job.reference == Reference::kPrecomputed) {
      refuse("/reference_model/precompute", "Generated answers are new: no reference can have scored them before.");
    }
    check_rollout(job, issues);
    check_features(a, job, issues);
    if (job.offload.activations)
      refuse("/offload/activations", "Generated answers are modelled without offloaded activations.");
  }
  if (job.has_critic() && a.judge != nullptr) check_critic(a, job, issues);
  if (job.generates_pairs()) check_pairs(a, job, issues);
  if (job.has_teacher() && a.teacher != nullptr) check_teacher(a, job, issues);
  if (!has_reference(job.preference)) return;
  if (has_single_answers(job.preference)) check_single_answers(job, issues);
  if (job.reference == Reference::kAdapterOff && job.method != Method::kLora && job.method != Method::kQlora) {
    refuse("/reference_model/shared_with_adapter", "Without adapters a reference is a copy, or precomputed.");
  }
  const DataParallel& how = job.data_parallel;
  const bool fully = how.is_sharded() && how.sharding == Sharding::kFsdp2;
  if (fully && job.reference == Reference::kCopy && (job.offload.parameters || how.fsdp.reshard_to > 0)) {
    refuse("/reference_model", "A divided copy is modelled without offloading and smaller meshes.");
  }
}

/// What is answered roughly or not at all: an own framework's answer is wide enough to hold it.
void check_stand_ins(const TrainingJob& job, Issues& issues) {
  if (job.offload.activations && (job.tensor.is_used() || job.pipeline.is_used())) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/offload/activations",
        "Activations in host memory are modelled where each GPU holds the whole model.", "none");
  }
  if (job.offload.activations && job.has_adapter() && job.adapter.use_dora) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/offload/activations",
        "Activations in host memory are not modelled beside DoRA yet.", "none");
  }
  if (is_stood_for(job.framework)) return;
  if (job.selective_op) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/gradient_checkpointing/selective",
        "\"op\" is torchtitan's policy for its own models. Modelled are core_attn, and \"full\" in its place.",
        "core_attn");
  }
}

/// Whether records hold one of PEFT's adapters beside LoRA where GPUs divide the model (peft-… of records-multi.jsonl).
bool is_held_divided(const TrainingJob& job) {
  const Sharding how = job.data_parallel.sharding;
  if (job.tensor.is_used() || job.pipeline.is_used() || job.expert > 1 || job.method != Method::kLora) return false;
  switch (job.adapter.kind) {
    case AdapterKind::kOft:
      return true;
    case AdapterKind::kIa3:
    case AdapterKind::kLoKr:
    case AdapterKind::kVera:
      return how != Sharding::kFsdp1;
    case AdapterKind::kLoHa:
      return how != Sharding::kFsdp1 && how != Sharding::kZero3;
    default:
      return false;
  }
}

/// What PEFT 0.18 refuses of its adapters beside LoRA.
void check_adapter_kind(const TrainingJob& job, const std::vector<std::string_view>& given, Issues& issues) {
  const Adapter& adapter = job.adapter;
  const AdapterKind kind = adapter.kind;
  if (kind == AdapterKind::kLora) return;
  const auto refuse = [&](std::string_view path, std::string message) {
    add(issues, "INVALID_VALUE", Severity::kError, path, std::move(message));
  };
  if (job.framework.name == "litgpt")
    refuse("/adapter/kind", "LitGPT has LoRA of its own, and none of PEFT's adapters.");
  if (kind == AdapterKind::kLnTuning && adapter.target_modules.kind == ModuleChoice::Kind::kAllLinear) {
    refuse("/adapter/target_modules",
           "LN tuning trains copies of what it targets: name the norms, as "
           "[\"input_layernorm\", \"post_attention_layernorm\", \"norm\"].");
  }
  if (kind == AdapterKind::kAdaLora) {
    add(issues, "NOT_COUNTED", Severity::kNote, "/adapter/kind",
        "A loop that calls update_and_allocate keeps three more averages of each of AdaLoRA's weights; transformers' "
        "Trainer does not call it, and they are not counted.");
  }
  if (job.method == Method::kQlora && !takes_packed(kind)) {
    refuse("/method",
           "PEFT has no layers of this adapter for quantised weights: it fails with a shape error. Use "
           "\"lora\".");
  }
  if (adapter.use_dora || !adapter.target_parameters.empty()) {
    refuse(adapter.use_dora ? "/adapter/use_dora" : "/adapter/target_parameters",
           "Only LoRA has DoRA and adapters of parameters.");
  }
  const bool divides = job.data_parallel.is_sharded() || job.tensor.is_used() || job.pipeline.is_used();
  if (job.gpus() > 1 && divides && !is_held_divided(job)) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/adapter/kind",
        "Where GPUs divide the model this adapter is not modelled. LoRA is; OFT under ZeRO and FSDP, IA3, LoKr and "
        "VeRA "
        "under ZeRO and FSDP 2, LoHa under ZeRO-1, ZeRO-2 and FSDP 2, all beside weights that are not quantised.",
        "lora");
  }
  const ModuleChoice& targets = adapter.target_modules;
  if (kind == AdapterKind::kIa3 && targets.kind == ModuleChoice::Kind::kNames) {
    for (const std::string& name : adapter.feedforward_modules.names) {
      if (std::find(targets.names.begin(), targets.names.end(), name) != targets.names.end()) continue;
      refuse("/adapter/feedforward_modules", "PEFT wants feedforward_modules among target_modules, and \"" +
                                                 name.substr(0, 100) + "\" is not: it raises a ValueError.");
    }
  }
  // bnb.py Linear4bit.forward makes the input fp32 where no autocast is on, and returns fp32.
  const bool returns_fp32 = kind == AdapterKind::kIa3 || kind == AdapterKind::kVera;
  if (returns_fp32 && job.method == Method::kQlora && !job.recipe.autocast && is_half(job.recipe.weights) &&
      job.quantization.prepare_kbit != PrepareKbit::kAll) {
    refuse("/precision",
           "Without autocast PEFT's IA3 and VeRA on quantised weights return fp32, which the model's 16-bit "
           "weights do not take: it fails. Use \"bf16_amp\", or \"prepare_kbit\": true.");
  }
  if (kind == AdapterKind::kOft && (adapter.r != 0) == (adapter.block_size != 0)) {
    refuse("/adapter/oft_block_size",
           "PEFT takes one of r (the number of blocks) and oft_block_size (32 unless "
           "stated) and raises a ValueError otherwise: set the other one to 0.");
  }
  if (kind == AdapterKind::kBoft && (adapter.block_num != 0) == (adapter.block_size != 0)) {
    refuse("/adapter/boft_block_size",
           "PEFT takes one of boft_block_size (4 unless stated) and boft_block_num and "
           "raises a ValueError otherwise: set the other one to 0.");
  }
  if (kind == AdapterKind::kPrefixTuning && job.checkpointing != Checkpointing::kNone &&
      job.checkpointing != Checkpointing::kSelectiveCoreAttention) {
    refuse("/gradient_checkpointing",
           "PEFT 0.18 raises a ValueError: prefix tuning works with a cache, and gradient checkpointing does not. Use "
           "\"none\".");
  }
  // peft 0.18 tuners/*/config.py: fields of the configuration classes; LoRA's and AdaLoRA's have all of these.
  const bool ada = kind == AdapterKind::kAdaLora;
  const bool blocks = kind == AdapterKind::kOft || kind == AdapterKind::kBoft || kind == AdapterKind::kVera;
  const bool lycoris = kind == AdapterKind::kLoHa || kind == AdapterKind::kLoKr;
  const std::pair<std::string_view, bool> unknown[] = {
      {"bias", adapter.bias != TrainedBiases::kNone && !ada && !blocks},
      {"lora_dropout", adapter.lora_dropout > 0.0 && !ada && kind != AdapterKind::kVera},
      {"rank_pattern", !adapter.rank_pattern.empty() && !ada && !lycoris},
      {"layers_to_transform", !adapter.layers_to_transform.empty() && !ada && !blocks && !lycoris}};
  for (const auto& [field, is_one] : unknown) {
    if (!is_one) continue;
    refuse("/adapter/" + std::string{field},
           "PEFT's configuration of this adapter has no \"" + std::string{field} + "\": it raises a TypeError.");
  }
  if (adapter.learns_prompt() && has(given, "adapter.target_modules")) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/adapter/target_modules",
        "A learned prompt adapts no module: targets have no effect.");
  }
}

/// What accelerate's GradScaler refuses: torch 2.14 amp/grad_scaler.py _unscale_grads_, "Attempting to unscale FP16
/// gradients."
void check_scaler(const TrainingJob& job, Issues& issues) {
  const Dtype gradients = job.has_adapter() ? job.adapter.dtype : job.recipe.gradients;
  if (job.recipe.autocast != Dtype::kFp16 || gradients != Dtype::kFp16 || job.framework.name == "pytorch") return;
  add(issues, "INVALID_VALUE", Severity::kWarning, "/precision",
      "fp16=True scales the loss, and torch's GradScaler refuses gradients that are fp16 themselves (ValueError): what "
      "is trained must be loaded in fp32 (\"amp_fp16\").",
      "amp_fp16");
}

/// A task beside the class that another one needs.
void check_task(const Request& request, const std::vector<std::string_view>& given, Issues& issues) {
  const std::string_view name = request.class_name;
  if (name.empty() || !has(given, "task") || request.job.preference != Preference::kNone) return;
  const auto is = [name](std::string_view head) { return name.find(head) != std::string_view::npos; };
  const std::string_view task = request.task;
  const bool suits = task == "classification"                          ? is("SequenceClassification")
                     : task == "token_classification" || task == "prm" ? is("TokenClassification")
                     : task == "question_answering"                    ? is("QuestionAnswering")
                     : task == "sft" || task == "pretrain"
                         ? !is("SequenceClassification") && !is("TokenClassification") && !is("QuestionAnswering")
                         : true;
  if (suits) return;
  add(issues, "IGNORED_OPTION", Severity::kWarning, "/task",
      "\"architecture\" names the class that is trained, and with it what is learned: the task changes nothing.");
}

}  // namespace

void check_request(const Request& request, const std::vector<std::string_view>& given, Issues& issues) {
  const TrainingJob& job = request.job;

  const int sources = int{!request.model.empty()} + int{request.config.is_object()} + int{request.parameters > 0.0};
  if (sources == 0 && !has_error(issues)) {
    add(issues, "MISSING_MODEL", Severity::kError, "",
        "Say which model is trained: \"model\" (a catalog name), \"config\" (a config.json) or \"parameters\" (a "
        "count).");
  } else if (sources > 1) {
    add(issues, "INVALID_VALUE", Severity::kError, "",
        "Give one of \"model\", \"config\" and \"parameters\": they say the same thing in different ways.");
  }

  check_stand_ins(job, issues);
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (const auto name = first_under(given, "adapter."); !adapters && !name.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/adapter",
        "Adapter settings have no effect unless \"method\" is \"lora\" or \"qlora\".");
  }
  if (const auto name = first_under(given, "quantization."); job.method != Method::kQlora && !name.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/quantization",
        "Quantisation settings have no effect unless \"method\" is \"qlora\".");
  }
  if (job.method == Method::kFreeze && !job.freezes_by_name() && request.foreign.trained_layers == 0 &&
      !job.freeze_vision && !job.freeze_projector && !job.freeze_llm) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/freeze",
        "\"method\" is \"freeze\" but no module is named in \"freeze\" or \"trainable\": everything is trained.");
  }
  // peft 0.18 tuners/lora/layer.py ParamWrapper.__init__
  if (adapters && !job.adapter.target_parameters.empty() && (job.adapter.lora_dropout > 0.0 || job.adapter.use_dora)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/target_parameters",
        "PEFT puts neither dropout nor DoRA on adapters of parameters: it raises a ValueError. Set lora_dropout to 0 "
        "and "
        "use_dora to false.");
  }
  if (adapters) check_adapter_kind(job, given, issues);
  if (adapters && job.adapter.target_modules.empty() && job.adapter.target_parameters.empty()) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/target_modules",
        "Name at least one module to adapt, or \"all-linear\".");
  }
  if (has(given, "gradient_checkpointing.every") && has(given, "gradient_checkpointing.selective")) {
    add(issues, "INVALID_VALUE", Severity::kError, "/gradient_checkpointing",
        "Checkpoint either every k-th layer (\"every\") or parts of each (\"selective\"): give one of them.");
  }
  // LoraConfig.__post_init__
  const bool by_list = job.adapter.target_modules.kind == ModuleChoice::Kind::kNames ||
                       job.adapter.target_modules.kind == ModuleChoice::Kind::kAttention;
  if (adapters && !by_list && !job.adapter.layers_to_transform.empty()) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/layers_to_transform",
        "PEFT takes layers_to_transform only with a list of target_modules, not with a string.");
  }
  if (adapters && !job.adapter.layers_pattern.empty() && job.adapter.layers_to_transform.empty()) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/layers_pattern",
        "layers_pattern says whose numbers layers_to_transform means: state that too.");
  }
  if (adapters && !job.freeze.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/freeze",
        "With adapters the model is frozen anyhow: \"freeze\" has no effect; what is trained beside them is named in "
        "\"adapter.modules_to_save\", or, where it is trained in place, in \"trainable\".");
  }
  check_task(request, given, issues);
  const std::string_view framework = job.framework.name;
  if ((framework == "transformers" || framework == "pytorch" || framework == "accelerate") &&
      !job.framework.at_least(4, 0)) {
    add(issues, "INVALID_VALUE", Severity::kError, "/framework/version",
        "Releases of transformers are modelled from 4 on: older ones have none of these models' code.", "5.12");
  }
  if (framework == "trl") check_trl(request, given, issues);
  check_float8(job, issues);
  check_qat(job, issues);
  check_micro_batches(job, given, issues);
  if (request.foreign.layers_in_turn > 0 &&
      (job.method != Method::kFull || job.gpus() > 1 || job.optimizer == "badam")) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/lisa_layers",
        "LISA is modelled for full training on one GPU: its callback freezes the layers that it has not drawn.", "0");
  }
  if (job.optimizer == "badam" && (job.method != Method::kFull || job.freezes_by_name())) {
    add(issues, "UNSUPPORTED_VALUE", Severity::kError, "/optimizer",
        "BAdam is modelled for full training, of which it freezes what is not its turn.", "adamw_torch_fused");
  }
  if (job.gradient_accumulation_steps > 1 && job.optimizer_in_backward) {
    add(issues, "INVALID_VALUE", Severity::kError, "/optimizer_in_backward",
        "An optimizer that steps in backward cannot accumulate gradients: gradient_accumulation_steps must be 1.");
  }

  // Token counts that no GPU could hold, and whose squares would leave 64 bits.
  constexpr double kMostTokens = 4294967296.0;      // 2^32
  constexpr double kMostScores = 17592186044416.0;  // 2^44, B·S²
  const auto batch = static_cast<double>(job.micro_batch_size);
  const auto length = static_cast<double>(std::max(job.sequence_length, job.decoder_sequence_length));
  if (batch * length > kMostTokens || batch * length * length > kMostScores) {
    add(issues, "TOO_LARGE", Severity::kError, "/sequence_length",
        "micro_batch_size x sequence_length is beyond what can be computed: at most 2^32 tokens, and "
        "micro_batch_size x sequence_length^2 at most 2^44.");
  }
}

// Pictures, or windows of them, that attend one after another (families/qwen2_vl.cpp: vision_lengths): each is
// recorded.
void check_stretches(const Architecture& tower, const TrainingJob& job, Issues& issues) {
  constexpr Count kMostStretches = 8192;
  const Count window = tower.pictures.window;
  const auto along = [&](Count pixels) {
    return window > 0 ? (std::max(pixels, tower.image_size) + window - 1) / window : 1;
  };
  // Sides and counts have bounds of their own: the product fits.
  const Count pictures = job.micro_batch_size * answers_per_sample(job.preference) * job.images_per_sample;
  if (pictures * along(job.image_height) * along(job.image_width) <= kMostStretches) return;
  add(issues, "TOO_LARGE", Severity::kError, "/micro_batch_size",
      "The pictures of a micro batch attend one by one, or window by window: at most 8,192 are modelled. Use fewer or "
      "smaller ones.");
}

void check_magnitude(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (!a.parts.empty() && a.parts.front().pictures.merge > 1) check_stretches(a.parts.front(), job, issues);
  // A generous bound on every sum of bytes: parameters with all copies, everything that any layer could keep, logits.
  const auto real = [](Count count) { return static_cast<double>(std::max<Count>(count, 0)); };
  const double together = job.generates() ? real(job.generated_together()) : 1.0;
  const double tokens = together * real(job.micro_batch_size) *
                        real(std::max({job.sequence_length, job.decoder_sequence_length, Count{1}}));
  const double pixels =
      std::max(real(a.image_size) * real(a.image_size), real(job.image_height) * real(job.image_width));
  const double positions = std::max(tokens, real(job.micro_batch_size) * (a.image_size > 0 ? pixels : 0.0));
  const double length = positions / std::max(1.0, real(job.micro_batch_size));
  const double layers = real(a.num_layers) + real(a.num_decoder_layers) + 2.0;
  const double width = real(a.hidden_size) + real(a.intermediate_size) + real(a.query_size()) +
                       2.0 * real(a.kv_size()) + real(job.adapter.r) + 64.0;
  // A token's row in each of its experts; where every token gathers its experts' weights, those too.
  const double rows = real(a.experts.per_token) * (real(a.experts.width) + real(a.hidden_size));
  const double gathered = job.experts == ExpertsKernel::kBatchedMm ? rows * real(a.hidden_size) : rows;
  const double experts = 3.0 * real(a.hidden_size) * real(a.experts.width) * real(a.experts.count);
  const double scanned = real(a.ssm.chunk) * real(a.ssm.heads) * (real(a.ssm.state) + real(a.ssm.head_dim)) +
                         64.0 * real(a.ssm.width) * real(a.ssm.state);
  const double heads = std::max(real(a.num_heads), real(a.num_kv_heads)) + 1.0;
  const double vocabulary = real(a.vocab_size) + real(a.max_positions) + real(a.type_vocab_size) + real(a.num_labels);
  const double parameters = layers * (8.0 * width * width + experts) + 2.0 * vocabulary * width;
  const double bytes = 64.0 * parameters +
                       layers * positions * (256.0 * (width + gathered + scanned) + 32.0 * heads * length) +
                       32.0 * positions * vocabulary + 16.0 * real(a.max_positions) * real(a.max_positions);
  // Mamba's and RWKV's scans on torch alone are loops over tokens in Python.
  constexpr Count kMostSteps = 512;
  if (job.torch_scan && a.ssm.width > 0 && a.ssm.chunk == 0 && job.sequence_length > kMostSteps) {
    add(issues, "TOO_LARGE", Severity::kError, "/kernels",
        "Without the fused kernels " + a.model_type + " loops over tokens; that is modelled up to " +
            std::to_string(kMostSteps) + " of them. Use \"kernels\": \"fused\".",
        "fused");
  }
  constexpr double kMost = 4611686018427387904.0;  // 2^62
  if (!(bytes < kMost)) {
    add(issues, "TOO_LARGE", Severity::kError, "",
        "This model and batch are beyond what can be computed: byte counts would leave 64 bits. Look for a dimension "
        "with too many digits.");
  }
}

/// Prefix tuning: whose attention goes through the shared interface, with as many heads of keys as PEFT takes them for.
void check_prefix(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.prefix_length() == 0) return;
  constexpr std::string_view kKnown[] = {"llama",    "mistral",    "qwen2",   "qwen3", "gemma",    "gpt2", "opt",
                                         "gpt_neox", "starcoder2", "granite", "olmo2", "stablelm", "phi",  "phi3"};
  if (a.model_type == "gemma2" || a.model_type == "gemma3_text" || a.model_type == "gemma3") {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/adapter/kind",
        "PEFT 0.18 fails with an IndexError: of Gemma 2 and 3 it looks for a prefix as older caches had it.", "lora");
  } else if (std::find(std::begin(kKnown), std::end(kKnown), a.model_type) == std::end(kKnown)) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/adapter/kind",
        "Prefix tuning is not modelled of this model type yet.", "lora");
  }
  const bool apart = job.recipe.autocast && *job.recipe.autocast != job.recipe.weights;
  if (is_flash(job) && apart && job.method == Method::kLora) {
    add(issues, "INVALID_COMBINATION", Severity::kError, "/attention",
        "The prefix has the weights' dtype and queries have autocast's: keys become fp32, which FlashAttention "
        "refuses.",
        "sdpa");
  }
  if (job.evaluation.generates) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/evaluation/generate",
        "Generation behind a learned prefix is not modelled yet; leave \"evaluation.generate\" out.");
  }
}

namespace {

/// peft 0.18 tuners/tuners_utils.py check_target_module_exists: a number that no layer has matches nothing.
void check_chosen_layers(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const std::vector<Count>& chosen = job.adapter.layers_to_transform;
  Count most = std::max(a.num_layers, a.num_decoder_layers);
  for (const Architecture& part : a.parts) most = std::max({most, part.num_layers, part.num_decoder_layers});
  const bool beyond = std::any_of(chosen.begin(), chosen.end(), [most](Count layer) { return layer >= most; });
  if (!job.has_adapter() || !beyond) return;
  add(issues, "IGNORED_OPTION", Severity::kWarning, "/adapter/layers_to_transform",
      "The model's layers are numbered from 0 to " + std::to_string(most - 1) +
          ": PEFT passes over the other numbers.");
}

}  // namespace

void check_model(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.method == Method::kQlora) check_packed(a, job, issues);
  check_own_loop(a, job, issues);
  check_flash(a, job, issues);
  check_scaler(job, issues);
  // transformers 5.12 modeling_llama.py rotate_half: the halves of an odd head do not fit together again.
  if (a.rotary_dim % 2 != 0) {
    add(issues, "INVALID_VALUE", Severity::kError, "/config/head_dim",
        "Rotary positions turn pairs of dimensions: a head of " + std::to_string(a.rotary_dim) +
            " rotating dimensions fails with a shape error.");
  }
  check_experts(a, job, issues);
  check_qat_groups(a, job, issues);
  check_cut_cross_entropy(a, job, issues);
  check_states(a, job, issues);
  check_pictures(a, job, issues);
  check_denoiser(a, job, issues);
  check_parts(a, job, issues);
  check_class(a, job, issues);
  check_evaluation(a, job, issues);
  check_label_smoothing(a, job, issues);
  check_answer(job, issues);
  check_preference(a, job, issues);
  if (job.has_adapter() && job.adapter.learns_prompt() &&
      (a.head != Head::kCausalLm || a.language != nullptr || job.preference != Preference::kNone || job.packing)) {
    add(issues, "UNSUPPORTED_OPTION", Severity::kError, "/adapter/kind",
        "Learned prompts are modelled of causal language models alone, on samples of their own.", "lora");
  }
  // transformers 5.12 integrations/neftune.py: activate_neftune
  if (job.neftune_noise_alpha > 0.0 && !a.facts.input_embeddings) {
    add(issues, "INVALID_VALUE", Severity::kError, "/neftune_noise_alpha",
        "NEFTune asks the model for its input embeddings, and this class has none: NotImplementedError. Use 0.", "0");
  } else if (job.neftune_noise_alpha > 0.0 && !a.facts.hooks_embeddings && a.num_decoder_layers == 0) {
    add(issues, "INVALID_VALUE", Severity::kError, "/neftune_noise_alpha",
        "What embeds returns a tuple in this class, and NEFTune's hook, which asks for its size, fails. Use 0.", "0");
  }
  // peft 0.18 utils/other.py _prepare_prompt_learning_config: configs of Mamba and RWKV name no heads, others
  // `attention_heads` or `n_heads`.
  const bool unnamed = a.model_type == "xglm" || a.model_type == "mpt" || a.model_type == "dbrx" ||
                       (a.ssm.width > 0 && a.ssm.heads == 0 && a.num_heads == 1);
  if (job.has_adapter() && job.adapter.learns_prompt() && unnamed) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/kind",
        "PEFT finds no `num_attention_heads` in the config and raises a ValueError. Use \"lora\".", "lora");
  }
  check_prefix(a, job, issues);
  check_chosen_layers(a, job, issues);
  if (job.checkpointing == Checkpointing::kEvery && job.checkpoint_every > a.num_layers) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/gradient_checkpointing/every",
        "The model has " + std::to_string(a.num_layers) + " layers: only the first one is checkpointed.",
        std::to_string(a.num_layers));
  }
  if (job.adapter.r > a.hidden_size && (job.method == Method::kLora || job.method == Method::kQlora)) {
    add(issues, "LARGE_RANK", Severity::kWarning, "/adapter/r",
        "The rank is larger than the model is wide (" + std::to_string(a.hidden_size) +
            "): the adapters have more parameters than the weights that they stand for.");
  }
}

Refusal refusal_of_card(const TrainingJob& job) {
  constexpr int kAda = 89;
  if (job.float8 != Float8::kNone && job.compute_capability < kAda) {
    return {"Products in 8-bit floats need a card of CUDA capability 8.9 or above (torch._scaled_mm).", "/float8",
            "none", ""};
  }
  constexpr int kAmpere = 80;
  // flash-attention 2.8 flash_api.cpp mha_fwd: "FlashAttention only supports Ampere GPUs or newer"; transformers 5.12
  // modeling_flash_attention_utils.py FLASH_ATTENTION_COMPATIBILITY_MATRIX: the same of version 3.
  if (is_flash(job) && job.compute_capability < kAmpere) {
    return {"FlashAttention runs on cards of compute capability 8.0 (Ampere) and newer only.", "/attention", "sdpa",
            " Use \"attention\": \"sdpa\"."};
  }
  return {};
}

void check_kernels(const TrainingJob& job, Issues& issues) {
  constexpr int kAmpere = 80;
  if (const Refusal refusal = refusal_of_card(job); !refusal.why.empty()) {
    add(issues, "INVALID_VALUE", Severity::kError, refusal.path, std::string{refusal.why}.append(refusal.advice),
        std::string{refusal.instead});
  }
  // torch 2.6 cuda/__init__.py is_bf16_supported(including_emulation=True), which transformers asks: it does not
  // refuse.
  if (computing_dtype(job) == Dtype::kBf16 && job.compute_capability < kAmpere) {
    add(issues, "EMULATED_DTYPE", Severity::kWarning, "/precision",
        "This card has no bf16 arithmetic (compute capability below 8.0): torch emulates it, slowly. fp16 autocast "
        "(\"amp_fp16\") is what it was built for.",
        "amp_fp16");
  }
}

std::string refusal_of_length(const Architecture& architecture, Count sequence_length) {
  const Count positions = architecture.learned_positions();
  if (positions == 0 || sequence_length <= positions) return {};
  const std::string most = std::to_string(positions);
  return "The model's table of positions ends at " + most +
         ": longer sequences fail with an index error, whatever the memory. Use at most " + most + ".";
}

Count decoder_positions(const Architecture& architecture) {
  if (architecture.num_decoder_layers == 0 || architecture.parts.empty()) return 0;
  // Behind the stages of an encoder of pictures, before all else elsewhere.
  const bool behind = architecture.model_type == "vision-encoder-decoder";
  const Architecture& decoder = behind ? architecture.parts.back() : architecture.parts.front();
  return decoder.positions_by_token ? std::max<Count>(0, decoder.max_positions - decoder.position_offset) : 0;
}

void check_positions(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Count rows = decoder_positions(architecture);
  const Count length = job.decoder_sequence_length > 0 ? job.decoder_sequence_length : job.sequence_length;
  if (rows > 0 && length > rows) {
    const std::string most = std::to_string(rows);
    add(issues, "SEQUENCE_TOO_LONG", Severity::kWarning, "/decoder_sequence_length",
        "The decoder's table of positions ends at " + most + ": longer labels fail. Use at most " + most + ".", most);
  }
  // A learned prompt's tokens, and the keys of a prefix, come before those of the sample.
  const Count learned = job.has_adapter() && job.adapter.learns_prompt() ? job.adapter.num_virtual_tokens : 0;
  std::string why = refusal_of_length(architecture, job.sequence_length + learned);
  if (why.empty()) return;
  add(issues, "SEQUENCE_TOO_LONG", Severity::kWarning, "/sequence_length", std::move(why),
      std::to_string(architecture.learned_positions()));
}

}  // namespace tidemark
