#pragma once

#include <string>
#include <string_view>

#include "core/answer/answer.hpp"
#include "core/units/category.hpp"

namespace tidemark {

// The phrases that the text and Markdown renderings share.

/// "full fine-tuning", "DPO, LoRA, rank 16, all linear layers".
std::string method_in_words(const TrainingJob& job);
/// "batch 4 × 2 048 tokens, 8 micro-batches per step", "batch 256 × 224 × 224 pixels".
std::string batch_in_words(const Architecture& architecture, const TrainingJob& job);
/// "no checkpointing", "every layer checkpointed".
std::string checkpointing_in_words(const TrainingJob& job);
/// The optimizer's usual name in a request.
std::string optimizer_in_words(const TrainingJob& job);
/// "sdpa (flash kernel)".
std::string attention_in_words(const TrainingJob& job, std::string_view kernel);
/// "optimizer states" for optimizer_states.
std::string title_of(Category category);
/// "fits", "fits, but only just", "does not fit", "unknown".
std::string_view verdict_in_words(Verdict verdict);
/// "6 738 415 616, all trained" or "… of which 39 976 960 (0.59 %) are trained".
std::string parameters_in_words(const ParameterCounts& counts);
/// "13.20 GiB", and below a tenth of one "16.3 MiB", "0.5 KiB".
std::string readable(Bytes bytes);
/// One figure with its share of a whole: "31 %", "0.6 %", "< 0.1 %".
std::string percent(double share);
/// "in backward", "in the optimizer step".
std::string_view phase_in_words(Phase phase);
/// "error", "warning", "note".
std::string_view severity_in_words(Severity severity);
/// Why the card gets its verdict: "41.2 GiB of 78.6 GiB usable (52 %), 37.4 GiB to spare".
std::string fit_in_words(const Fit& fit, const Range& needed);

}  // namespace tidemark
