#include "core/report/markdown.hpp"

#include "core/job/recipe.hpp"
#include "core/options/options.hpp"
#include "core/report/words.hpp"

namespace tidemark {
namespace {

/// Text for a table cell: no pipes, no line breaks.
std::string cell(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '|') {
      safe += "\\|";
    } else if (c == '<') {
      safe += "&lt;";
    } else {
      safe += c == '\n' ? ' ' : c;
    }
  }
  return safe;
}

std::string code(std::string_view text) {
  if (text.empty()) return {};
  return "`" + std::string{text} + "`";
}

std::string both_units(Bytes bytes) {
  return format_gib(bytes) + " (" + format_grouped(bytes) + " B)";
}

void range_row(std::string& out, std::string_view label, const Range& range, std::string_view meaning) {
  out += "| " + std::string{label} + " | " + format_gib(range.low) + " | **" + format_gib(range.expected) + "** | " +
         format_gib(range.high) + " | " + format_gb(range.expected) + " | " + std::string{meaning} + " |\n";
}

void issues_list(std::string& out, const Issues& issues) {
  for (const Issue& issue : issues) {
    out += "- **" + std::string{severity_in_words(issue.severity)} + "** " + code(issue.code);
    if (!issue.path.empty()) out += " " + code(issue.path);
    out += ": " + issue.message + "\n";
  }
}

std::string default_of(const Option& option) {
  return option.standard == "null" ? "" : std::string{option.standard};
}

std::string bound(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) == value) return format_grouped(whole);
  const auto hundredths = static_cast<std::int64_t>(value * 100.0 + 0.5);
  return std::to_string(hundredths / 100) + "." + (hundredths % 100 < 10 ? "0" : "") + std::to_string(hundredths % 100);
}

}  // namespace

std::string render_markdown(const Answer& answer, bool explain) {
  std::string out;
  if (!answer.estimate) {
    issues_list(out, answer.issues);
    return out;
  }
  const Estimate& e = *answer.estimate;
  out += "## " + answer.model + ": " + format_gib(e.allocated.expected) + "\n\n";
  out += method_in_words(answer.job) + ", " + batch_in_words(answer.architecture, answer.job) + ", " +
         checkpointing_in_words(answer.job) + ", " + optimizer_in_words(answer.job) + ". The peak falls " +
         std::string{phase_in_words(e.peak.phase)};
  if (!e.peak.at.empty()) out += ", at " + code(e.peak.at);
  out += ".\n\n| | low | expected | high | | |\n|---|---:|---:|---:|---:|---|\n";
  range_row(out, "allocated", e.allocated, "`torch.cuda.max_memory_allocated`");
  range_row(out, "reserved", e.reserved, "`torch.cuda.max_memory_reserved`");
  range_row(out, "device", e.device, "`nvidia-smi`");
  if (!answer.fits.empty()) {
    out += "\n| GPU | verdict | |\n|---|---|---|\n";
    for (const Fit& fit : answer.fits) {
      std::string why = fit_in_words(fit, e.allocated);
      if (!fit.reason.empty() && fit.usable > 0) why += ". " + fit.reason;
      out += "| " + cell(fit.gpu) + " | **" + std::string{verdict_in_words(fit.verdict)} + "** | " + cell(why) + " |\n";
    }
  }
  if (!e.ranks.empty()) out += "\n| rank | layers | parameters | allocated | reserved |\n|---|---|---:|---:|---:|\n";
  for (const RankFigures& rank : e.ranks) {
    out += "| " + std::to_string(rank.first);
    if (rank.last > rank.first) out += "-" + std::to_string(rank.last);
    out += " | " + cell(rank.layers) + " | " + format_grouped(rank.parameters) + " | " + format_gib(rank.allocated) +
           " | " + format_gib(rank.reserved) + " |\n";
  }
  out += "\n### At the peak\n\n| category | size | share |\n|---|---:|---:|\n";
  const double total = e.allocated.expected > 0 ? static_cast<double>(e.allocated.expected) : 1.0;
  for (const BreakdownGroup& group : e.breakdown) {
    if (group.bytes == 0) continue;
    out += "| " + title_of(group.category) + " | " + both_units(group.bytes) + " | " +
           cell(percent(static_cast<double>(group.bytes) / total)) + " |\n";
  }
  out += "| **total** | **" + both_units(e.allocated.expected) + "** | |\n";
  if (explain) {
    out += "\n| entry | size | formula | numbers | confidence | source |\n|---|---:|---|---|---|---|\n";
    for (const BreakdownGroup& group : e.breakdown) {
      for (const BreakdownEntry& entry : group.entries) {
        out += "| " + cell(entry.name) + " | " + both_units(entry.bytes) + " | " + cell(entry.formula) + " | " +
               cell(entry.substituted) + " | " + std::string{name_of(entry.confidence)} + " | " + cell(entry.source) +
               " |\n";
      }
    }
  }
  if (!e.timeline.empty()) {
    out += "\n### Over the step\n\n| instant | allocated |\n|---|---:|\n";
    for (const Instant& instant : e.timeline)
      out += "| " + cell(instant.label) + " | " + format_gib(instant.total) + " |\n";
  }
  out += "\n- Parameters: " + parameters_in_words(e.parameters) + "\n- Precision: " + code(e.recipe.name) + ", " +
         in_words(e.recipe) + "\n- Attention: " + attention_in_words(answer.job, e.attention_kernel) + "\n";
  if (!answer.issues.empty()) {
    out += "\n### Notes\n\n";
    issues_list(out, answer.issues);
  }
  return out;
}

std::string render_reference() {
  std::string out =
      "# Reference: every option\n\n"
      "Written by `tidemark describe --markdown` from `core/options`; do not edit it by hand.\n\n"
      "A request is a JSON object. `adapter.r` stands for `{\"adapter\": {\"r\": 16}}`. Everything has a default; "
      "`null` "
      "means the default. On the command line each option is a flag of the same name with dashes "
      "(`--adapter-r 16`), lists are separated by commas, and the shorter spellings below work as well.\n";
  for (const OptionGroup& group : option_groups()) {
    out += "\n## " + std::string{group.title} + "\n";
    for (const Option& option : options()) {
      if (option.group != group.name) continue;
      out += "\n### `" + std::string{option.name} + "`\n\n" + std::string{option.help} + "\n\n";
      out += "- Type: " + std::string{name_of(option.type)};
      if (option.minimum != option.maximum) out += ", " + bound(option.minimum) + " to " + bound(option.maximum);
      if (!option.unit.empty()) out += " (" + std::string{option.unit} + ")";
      const std::string standard = default_of(option);
      out += standard.empty() ? "; no default\n" : "; default " + code(standard) + "\n";
      out += "- Flags:";
      for (const std::string& flag : flags_of(option)) out += " " + code(flag);
      out += "\n";
      if (!option.also.empty()) {
        out += "- Other tools' keys for it, understood as well:";
        for (std::string_view key : words_of(option.also)) out += " " + code(key);
        out += "\n";
      }
      if (!option.missing.empty())
        out += "- Only the default is accepted so far. " + std::string{option.missing} + "\n";
      if (option.choices.empty()) continue;
      out += "\n| value | |\n|---|---|\n";
      for (const Choice& choice : option.choices) {
        if (!choice.alias_of.empty()) continue;
        std::string help{choice.help};
        for (const Choice& other : option.choices) {
          if (other.alias_of == choice.name) help += "; also " + code(other.name);
        }
        if (!choice.modelled) help += help.empty() ? "not modelled yet" : " (not modelled yet)";
        out += "| " + code(choice.name) + " | " + cell(help) + " |\n";
      }
    }
  }
  return out;
}

}  // namespace tidemark
