#include "core/report/words.hpp"

#include <cmath>

#include "core/job/options.hpp"

namespace tidemark {
namespace {

/// The usual spelling of an enumerator in a request, from the option table.
std::string word_for(std::string_view option_name, int value) {
  const Option* option = find_option(option_name);
  if (option == nullptr) return {};
  for (const Choice& choice : option->choices) {
    if (choice.modelled && choice.alias_of.empty() && choice.value == value) return std::string{choice.name};
  }
  return {};
}

}  // namespace

std::string method_in_words(const TrainingJob& job) {
  if (job.method == Method::kFull) return "full fine-tuning";
  if (job.method == Method::kFreeze) return "fine-tuning with frozen modules";
  std::string text = job.method == Method::kQlora ? "QLoRA" : "LoRA";
  if (job.adapter.use_dora) text += " with DoRA";
  text += ", rank " + std::to_string(job.adapter.r) + " on ";
  if (job.adapter.all_linear) {
    text += "all linear layers";
  } else if (job.adapter.target_modules.size() > 8) {
    text += "attention";
  } else {
    for (std::size_t i = 0; i < job.adapter.target_modules.size(); ++i) {
      text += (i == 0 ? "" : ", ") + job.adapter.target_modules[i];
    }
  }
  if (job.method == Method::kQlora) {
    text += ", " + word_for("quantization.quant_type", static_cast<int>(job.quantization.quant_type)) + " weights";
    if (job.quantization.double_quant && job.quantization.bits == 4) text += " (double quantised)";
  }
  return text;
}

std::string batch_in_words(const TrainingJob& job) {
  std::string text =
      "batch " + format_grouped(job.micro_batch_size) + " × " + format_grouped(job.sequence_length) + " tokens";
  if (job.decoder_sequence_length > 0) text += " → " + format_grouped(job.decoder_sequence_length);
  if (job.gradient_accumulation_steps > 1) {
    text += ", " + format_grouped(job.gradient_accumulation_steps) + " micro-batches per step";
  }
  if (job.padding) text += ", padded";
  if (job.packing) text += ", packed";
  return text;
}

std::string checkpointing_in_words(const TrainingJob& job) {
  switch (job.checkpointing) {
    case Checkpointing::kNone:
      return "no checkpointing";
    case Checkpointing::kFull:
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
  std::string text = word_for("optimizer", static_cast<int>(job.optimizer));
  if (job.optimizer_in_backward) text += " in backward";
  return text;
}

std::string attention_in_words(const TrainingJob& job, std::string_view kernel) {
  std::string text = word_for("attention", static_cast<int>(job.attention));
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
      text += ", but the high end is " + readable(needed.high - fit.usable) + " too much";
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
