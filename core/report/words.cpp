#include "core/report/words.hpp"

#include <algorithm>
#include <cmath>

#include "core/options/options.hpp"

namespace tidemark {
namespace {

constexpr std::size_t kLongList = 8;  // names of a list that are written out

std::string targets_in_words(const ModuleChoice& targets) {
  switch (targets.kind) {
    case ModuleChoice::Kind::kAllLinear:
      return "all linear layers";
    case ModuleChoice::Kind::kAttention:
      return "attention";
    case ModuleChoice::Kind::kExpression:
      return "what " + targets.expression.substr(0, kLongList * 8) + " fits";
    case ModuleChoice::Kind::kByPeft:
      return "PEFT's modules";
    case ModuleChoice::Kind::kNames:
      break;
  }
  std::string text;
  const std::size_t shown = std::min(targets.names.size(), kLongList);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + targets.names[i];
  if (shown < targets.names.size()) text += " and " + std::to_string(targets.names.size() - shown) + " more";
  return text;
}

// By Preference.
constexpr std::string_view kPreferences[] = {"",        "DPO, ",          "KTO, ",  "ORPO, ",      "CPO, ",
                                             "SimPO, ", "reward model, ", "GRPO, ", "RLOO, ",      "distillation, ",
                                             "BCO, ",   "PPO, ",          "TPO, ",  "online DPO, "};
static_assert(std::size(kPreferences) == static_cast<std::size_t>(Preference::kOnlineDpo) + 1);

std::string what_is_trained(const TrainingJob& job) {
  if (job.method == Method::kFull) return "full fine-tuning";
  if (job.method == Method::kFreeze) return "fine-tuning with frozen modules";
  std::string text = job.method == Method::kQlora ? "QLoRA" : "LoRA";
  if (job.adapter.use_dora) text += " with DoRA";
  text += ", rank " + std::to_string(job.adapter.r) + " on ";
  text += targets_in_words(job.adapter.target_modules);
  if (job.method == Method::kQlora) {
    const Quantization& q = job.quantization;
    text += ", " + (q.is_bitsandbytes() ? "" : std::to_string(q.bits) + "-bit ") +
            std::string{choice_word("quantization.quant_type", static_cast<int>(q.quant_type))} + " weights";
    if (q.double_quant && q.bits == 4) text += " (double quantised)";
  }
  return text;
}

// Seconds to a tenth, as people state them.
std::string seconds_in_words(double seconds) {
  const auto tenths = static_cast<Count>(std::llround(seconds * 10.0));
  std::string text = format_grouped(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " s of sound";
}

// A sample: of a model that sees alone its pixels, of others their tokens and what comes with them.
std::string sample_in_words(const Architecture& a, const TrainingJob& job) {
  const bool sees_alone = a.image_size > 0 && a.language == nullptr;
  const Count height = job.image_height > 0 ? job.image_height : a.image_size;
  // A page of Donut's is no square (donut.cpp).
  const bool has_stages = a.model_type == "vision-encoder-decoder" && a.parts.size() > 1;
  const Count own = has_stages ? a.parts.front().image_size : a.image_size;
  const Count width = job.image_height > 0 ? job.image_width : own;
  std::string pixels = format_grouped(height) + " × " + format_grouped(width) + " pixels";
  if (sees_alone && a.pictures.video_frames > 0) {
    pixels = format_grouped(a.pictures.video_frames) + " frames of " + pixels;
  }
  const bool reads = a.vocab_size > 0 || a.denoiser.latents > 0;
  if (sees_alone && !reads) return pixels;
  std::string text = format_grouped(job.sequence_length) + " tokens";
  if (job.sequence_length == 0 || !a.conv_dims.empty()) text.clear();
  if (sees_alone) text = pixels + (text.empty() ? "" : ", " + text);
  if (job.audio_seconds > 0.0) text = seconds_in_words(job.audio_seconds) + (text.empty() ? "" : ", " + text);
  const bool hears_spectrogram = a.conv_dims.size() == 2 && a.conv_kernels.empty();  // of so many bins and frames
  if (hears_spectrogram) text = format_grouped(a.conv_dims[1]) + " frames of sound";
  if (text.empty()) text = "a sample";
  if (job.decoder_sequence_length > 0) text += " → " + format_grouped(job.decoder_sequence_length);
  if (job.images_per_sample > 0) {
    text += ", " + format_grouped(job.images_per_sample) + (job.images_per_sample == 1 ? " picture" : " pictures");
  }
  return text;
}

}  // namespace

std::string method_in_words(const TrainingJob& job) {
  std::string text{kPreferences[static_cast<std::size_t>(job.preference)]};
  return text += what_is_trained(job);
}

// By Sharding.
constexpr std::string_view kShardings[] = {"DDP", "FSDP 2", "FSDP 1", "ZeRO-1", "ZeRO-2", "ZeRO-3"};

std::string batch_in_words(const Architecture& architecture, const TrainingJob& job) {
  std::string text = "batch " + format_grouped(job.micro_batch_size) + " × " + sample_in_words(architecture, job);
  if (job.gradient_accumulation_steps > 1) {
    text += ", " + format_grouped(job.gradient_accumulation_steps) + " micro-batches per step";
  }
  if (job.padding) text += ", padded";
  if (job.packing) text += ", packed";
  if (job.data_parallel.is_used())
    text += ", on each of " + format_grouped(job.data_parallel.degree) + " GPUs (" +
            std::string{kShardings[static_cast<std::size_t>(job.data_parallel.sharding)]} + ")";
  const auto divided = [&text](Count degree, std::string_view by) {
    if (degree > 1) text += ", " + format_grouped(degree) + " GPUs " + std::string{by};
  };
  divided(job.tensor.degree, "tensor parallel");
  divided(job.pipeline.stages, job.pipeline.is_device_map() ? "one after another (device_map)" : "in a pipeline");
  if (job.pipeline.is_used() && !job.pipeline.is_device_map())
    text += " of " + format_grouped(job.pipeline.micro_batches) + " micro-batches";
  return text;
}

std::string checkpointing_in_words(const TrainingJob& job) {
  switch (job.checkpointing) {
    case Checkpointing::kNone:
      return "no checkpointing";
    case Checkpointing::kFull:
      if (job.selective_op) return "every layer checkpointed, every other matrix product kept";
      return job.use_reentrant ? "every layer checkpointed (re-entrant)" : "every layer checkpointed";
    case Checkpointing::kEvery:
      return "one layer in " + std::to_string(job.checkpoint_every) + " checkpointed";
    case Checkpointing::kSelectiveCoreAttention:
      return "core attention recomputed";
    case Checkpointing::kOffload:
      return "every layer checkpointed, inputs in host memory";
  }
  return {};
}

std::string optimizer_in_words(const TrainingJob& job) {
  std::string text{job.optimizer};
  if (job.optimizer_in_backward) text += " in backward";
  return text;
}

std::string attention_in_words(const TrainingJob& job, std::string_view kernel) {
  std::string text{choice_word("attention", static_cast<int>(job.attention))};
  if (!kernel.empty() && kernel != text) text += " (" + std::string{kernel} + " kernel)";
  return text;
}

std::string title_of(Category category) {
  if (category == Category::kLogitsLoss) return "logits and loss";
  std::string text{name_of(category)};
  for (char& c : text) {
    if (c == '_') c = ' ';
  }
  return text;
}

std::string_view verdict_in_words(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kTight:
      return "tight";
    case Verdict::kDoesNotFit:
      return "does not fit";
    case Verdict::kUnknown:
      return "unknown";
  }
  return {};
}

std::string readable(Bytes bytes) {
  const Bytes size = bytes < 0 ? -bytes : bytes;
  if (size >= kGiB / 10 || size == 0) return format_gib(bytes);
  const Bytes unit = size >= kMiB / 10 ? kMiB : kKiB;
  const Bytes tenths = (size * 10 + unit / 2) / unit;
  return std::string{bytes < 0 ? "-" : ""} + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         (unit == kMiB ? " MiB" : " KiB");
}

std::string percent(double share) {
  const double value = share * 100.0;
  if (value > 0.0 && value < 0.05) return "< 0.1 %";
  const auto tenths = static_cast<std::int64_t>(std::floor(value * 10.0 + 0.5));
  if (value >= 9.95) return std::to_string((tenths + 5) / 10) + " %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string parameters_in_words(const ParameterCounts& counts) {
  std::string text = format_grouped(counts.total);
  if (counts.trainable == counts.total) {
    text += ", all trained";
  } else if (counts.total > 0) {
    text += ", of which " + format_grouped(counts.trainable) + " (" +
            percent(static_cast<double>(counts.trainable) / static_cast<double>(counts.total)) + ") are trained";
    if (counts.adapted_modules > 0) {
      text += ", in adapters on " + format_grouped(counts.adapted_modules) + " modules";
    }
    if (counts.saved_modules > 0) {
      text += " and " + format_grouped(counts.saved_modules) + (counts.saved_modules == 1 ? " module" : " modules") +
              " in full";
    }
  }
  return text;
}

std::string_view phase_in_words(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "while loading";
    case Phase::kForward:
      return "in forward";
    case Phase::kLoss:
      return "in the loss";
    case Phase::kBackward:
      return "in backward";
    case Phase::kReduce:
      return "in gradient reduction";
    case Phase::kOptimizer:
      return "in the optimizer step";
    case Phase::kZeroGrad:
      return "in zero_grad";
    case Phase::kEvaluation:
      return "in evaluation";
    case Phase::kGeneration:
      return "while answers are generated";
    case Phase::kScoring:
      return "while answers are scored";
  }
  return {};
}

std::string_view severity_in_words(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return {};
}

std::string fit_in_words(const Fit& fit, const Range& needed) {
  if (fit.usable <= 0) return fit.reason;
  std::string text =
      format_gib(needed.expected) + " of " + format_gib(fit.usable) + " usable (" + percent(fit.utilization) + ")";
  switch (fit.verdict) {
    case Verdict::kFits:
      text += ", " + readable(fit.headroom) + " to spare";
      break;
    case Verdict::kTight:
      text += fit.headroom >= 0 ? ", but the high end is " + readable(needed.high - fit.usable) + " too much"
                                : ", " + readable(-fit.headroom) + " too much, but the low end would fit";
      break;
    case Verdict::kDoesNotFit:
      text += ", " + readable(-fit.headroom) + " too much";
      break;
    case Verdict::kUnknown:
      break;
  }
  return text;
}

}  // namespace tidemark
