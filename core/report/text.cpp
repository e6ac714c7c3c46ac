#include "core/report/text.hpp"

#include <algorithm>

#include "core/job/recipe.hpp"
#include "core/report/layout.hpp"
#include "core/report/words.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";
constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";

/// Categories by colour, in their order; chosen to stay apart on dark and light grounds.
constexpr std::string_view kCategoryColours[kCategoryCount] = {"34", "35", "36", "33", "31", "32", "37", "90"};

class Writer {
 public:
  Writer(const TextStyle& style, std::string& out)
      : style_(style), out_(out), width_(std::max<std::size_t>(style.width, 40)) {}

  void line(std::string_view text = {}) {
    out_ += text;
    // No line ends in spaces, so that reports can be kept in files and compared.
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
  }

  std::string paint(std::string_view text, std::string_view code) const {
    if (!style_.colour || text.empty()) return std::string{text};
    return "\x1b[" + std::string{code} + "m" + std::string{text} + "\x1b[0m";
  }

  std::string amount(Bytes bytes) const {
    std::string text = readable(bytes);
    if (style_.bytes) text += " (" + format_grouped(bytes) + " B)";
    return text;
  }

  void heading(std::string_view text) {
    line();
    line(paint(text, kBold));
  }

  /// "  label         text", wrapped under the text.
  void field(std::string_view label, std::string_view text) {
    const std::size_t indent = 2 + kLabel;
    out_ += "  " + paint(pad_right(label, kLabel), kDim);
    line(wrap(text, width_, indent));
  }

  void range(std::string_view label, const Range& range, std::string_view meaning) {
    std::string text = format_gib(range.expected);
    if (range.low != range.high) {
      // Both ends in one unit: "(78.86 – 83.74 GiB)".
      std::string low = format_gib(range.low);
      low.resize(low.size() - 4);
      text += "  (" + low + " – " + format_gib(range.high) + ")";
    }
    if (style_.bytes) text += "  " + format_grouped(range.expected) + " B";
    const std::string padded = pad_right(text, 34) + "  ";
    if (2 + kLabel + columns_of(padded) + columns_of(meaning) <= width_) {
      text = padded;
    } else {
      meaning = {};
    }
    out_ += "  " + paint(pad_right(label, kLabel), kDim) + text;
    line(paint(meaning, kDim));
  }

  const TextStyle& style_;
  std::string& out_;
  std::size_t width_;
  static constexpr std::size_t kLabel = 14;
};

std::string_view colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return kGreen;
    case Verdict::kTight:
      return kYellow;
    case Verdict::kDoesNotFit:
      return kRed;
    case Verdict::kUnknown:
      return kDim;
  }
  return kDim;
}

std::string_view colour_of(Severity severity) {
  return severity == Severity::kError ? kRed : severity == Severity::kWarning ? kYellow : kDim;
}

void write_headline(Writer& w, const Answer& answer) {
  const Estimate& e = *answer.estimate;
  w.line(w.paint(answer.model, kBold));
  w.line("  " + wrap(method_in_words(answer.job) + " · " + batch_in_words(answer.architecture, answer.job) + " · " +
                         checkpointing_in_words(answer.job) + " · " + optimizer_in_words(answer.job),
                     w.width_, 2));
  w.line();
  std::string peak = w.paint(format_gib(e.allocated.expected), kBold);
  std::string low = format_gib(e.allocated.low);
  low.resize(low.size() - 4);
  peak += "  (" + low + " – " + format_gib(e.allocated.high) + ")  " + format_gb(e.allocated.expected);
  if (w.style_.bytes) peak += "  " + format_grouped(e.allocated.expected) + " B";
  w.out_ += "  " + w.paint(pad_right("peak", Writer::kLabel), kDim);
  w.line(peak);
  std::string where{phase_in_words(e.peak.phase)};
  if (!e.peak.at.empty()) where += ", at " + e.peak.at;
  if (!e.ranks.empty()) where += ", " + e.peak.rank;
  w.field("reached", where);
  w.range("reserved", e.reserved, "with the allocator's cache");
  w.range("on the card", e.device, "as nvidia-smi shows it");
  if (e.first_step_allocated > 0) {
    w.range("first step", {e.first_step_allocated, e.first_step_allocated, e.first_step_allocated},
            "before optimizer states exist");
  }
  const Host& host = e.host;
  if (host.expected > 0)
    w.range("host memory", {host.expected, host.expected, host.high}, "per node: paged and offloaded");
  if (host.load > 0)
    w.range("host at load", {host.load, host.load, host.load}, "per node: as processes read the model");
}

void write_ranks(Writer& w, const Answer& answer) {
  const std::vector<RankFigures>& ranks = answer.estimate->ranks;
  if (ranks.empty()) return;
  w.heading("What each GPU needs");
  for (const RankFigures& rank : ranks) {
    std::string name = std::to_string(rank.first);
    if (rank.last > rank.first) name += "-" + std::to_string(rank.last);
    w.line("  " + pad_right("rank " + name, Writer::kLabel) + pad_left(w.amount(rank.allocated), 12) + "  layers " +
           rank.layers + ", " + std::string{phase_in_words(rank.phase)});
  }
}

void write_fits(Writer& w, const Answer& answer) {
  if (answer.fits.empty()) return;
  w.line();
  std::size_t name_width = 0;
  for (const Fit& fit : answer.fits) name_width = std::max(name_width, columns_of(fit.gpu));
  name_width = std::min(name_width, w.width_ / 3);
  for (const Fit& fit : answer.fits) {
    const std::size_t indent = 2 + name_width + 2 + 12 + 2;
    w.out_ += "  " + pad_right(shorten(fit.gpu, name_width, w.style_.unicode), name_width) + "  " +
              w.paint(pad_right(verdict_in_words(fit.verdict), 12), colour_of(fit.verdict)) + "  ";
    w.line(wrap(fit_in_words(fit, answer.estimate->allocated), w.width_, indent));
    if (!fit.reason.empty() && fit.usable > 0) {
      w.out_ += std::string(indent, ' ');
      w.line(w.paint(wrap(fit.reason, w.width_, indent), kDim));
    }
  }
}

/// Columns of the breakdown.
struct Columns {
  std::size_t name = 18;
  std::size_t amount = 0;
  std::size_t bar = 0;
};

void write_entry(Writer& w, const BreakdownEntry& entry, const Columns& columns, double share) {
  const std::string name = pad_right("  " + shorten(entry.name, columns.name - 4, w.style_.unicode), columns.name);
  const std::string figures = pad_left(w.amount(entry.bytes), columns.amount) + "  " + pad_left(percent(share), 7);
  if (!w.style_.explain) {
    w.line("  " + w.paint(name + figures, kDim));
    return;
  }
  w.line("  " + name + figures);
  constexpr std::size_t kIndent = 6;
  const auto detail = [&](std::string_view text) {
    if (text.empty()) return;
    w.out_ += std::string(kIndent, ' ');
    w.line(w.paint(wrap(text, w.width_, kIndent), kDim));
  };
  std::string formula = entry.formula;
  if (!entry.substituted.empty()) formula += (formula.empty() ? "" : " → ") + entry.substituted;
  detail(formula);
  std::string origin{name_of(entry.confidence)};
  if (!entry.source.empty()) origin += ": " + entry.source;
  detail(origin);
}

void write_breakdown(Writer& w, const Answer& answer) {
  const Estimate& e = *answer.estimate;
  if (e.breakdown.empty()) return;
  w.heading("At the peak");
  const auto total = static_cast<double>(std::max<Bytes>(e.allocated.expected, 1));
  const auto share_of = [&](Bytes bytes) { return static_cast<double>(bytes) / total; };
  // The report names what matters, a hundredth of the whole or more; --explain opens every line.
  const auto shown = [&](const BreakdownGroup& group, const BreakdownEntry& entry) {
    return w.style_.explain || (group.entries.size() > 1 && share_of(entry.bytes) >= 0.01);
  };
  Columns columns;
  columns.amount = columns_of(w.amount(e.allocated.expected));
  for (const BreakdownGroup& group : e.breakdown) {
    columns.amount = std::max(columns.amount, columns_of(w.amount(group.bytes)));
    for (const BreakdownEntry& entry : group.entries) {
      if (shown(group, entry)) columns.name = std::max(columns.name, columns_of(entry.name) + 4);
    }
  }
  columns.name = std::min(columns.name, w.width_ * 2 / 5);
  const std::size_t used = 2 + columns.name + columns.amount + 2 + 7 + 2;
  columns.bar = w.width_ > used + 6 ? std::min<std::size_t>(w.width_ - used, 40) : 0;

  for (const BreakdownGroup& group : e.breakdown) {
    if (group.bytes == 0) continue;
    const double share = share_of(group.bytes);
    w.line("  " + pad_right(title_of(group.category), columns.name) + pad_left(w.amount(group.bytes), columns.amount) +
           "  " + pad_left(percent(share), 7) + "  " +
           w.paint(bar(share, columns.bar, w.style_.unicode), kCategoryColours[static_cast<int>(group.category)]));
    std::size_t left_out = 0;
    Bytes rest = 0;
    for (const BreakdownEntry& entry : group.entries) {
      if (shown(group, entry)) {
        write_entry(w, entry, columns, share_of(entry.bytes));
      } else {
        ++left_out;
        rest += entry.bytes;
      }
    }
    if (left_out > 0 && left_out < group.entries.size()) {
      const std::string name = "  " + std::to_string(left_out) + (left_out == 1 ? " smaller item" : " smaller items");
      w.line("  " + w.paint(pad_right(name, columns.name) + pad_left(w.amount(rest), columns.amount) + "  " +
                                pad_left(percent(share_of(rest)), 7),
                            kDim));
    }
  }
  w.line("  " +
         w.paint(pad_right("total", columns.name) + pad_left(w.amount(e.allocated.expected), columns.amount), kBold));
}

/// Of a long timeline the moments that a reader needs: the beginning, of each phase the highest, and its end where
/// the level has changed by then.
std::vector<Instant> condensed(const std::vector<Instant>& timeline) {
  constexpr std::size_t kMost = 16;
  if (timeline.size() <= kMost) return timeline;
  Bytes highest_of_all = 0;
  for (const Instant& instant : timeline) highest_of_all = std::max(highest_of_all, instant.total);
  const auto differs = [&](Bytes a, Bytes b) { return (a > b ? a - b : b - a) > highest_of_all / 50; };
  std::vector<Instant> chosen = {timeline.front()};
  for (std::size_t first = 0; first < timeline.size();) {
    std::size_t end = first;
    std::size_t highest = first;
    while (end < timeline.size() && timeline[end].phase == timeline[first].phase) {
      if (timeline[end].total > timeline[highest].total) highest = end;
      ++end;
    }
    if (highest != 0) chosen.push_back(timeline[highest]);
    if (end - 1 != highest && differs(timeline[end - 1].total, timeline[highest].total)) {
      // Where a phase is highest as it begins, both may be named after the end of one module.
      std::string& label = chosen.back().label;
      constexpr std::string_view kEnd = " (end)";
      if (label == timeline[end - 1].label && label.ends_with(kEnd)) {
        label.replace(label.size() - kEnd.size(), kEnd.size(), " (highest)");
      }
      chosen.push_back(timeline[end - 1]);
    }
    first = end;
  }
  return chosen;
}

void write_timeline(Writer& w, const Answer& answer) {
  const std::vector<Instant> timeline = condensed(answer.estimate->timeline);
  if (timeline.empty()) return;
  w.heading("Over the step");
  Bytes highest = 1;
  std::size_t label_width = 0;
  for (const Instant& instant : timeline) {
    highest = std::max(highest, instant.total);
    label_width = std::max(label_width, columns_of(instant.label));
  }
  label_width = std::min(label_width, w.width_ * 2 / 5);
  const std::size_t amount_width = columns_of(readable(highest));
  const std::size_t used = 2 + label_width + 2 + amount_width + 2;
  const std::size_t bar_width = w.width_ > used + 6 ? std::min<std::size_t>(w.width_ - used, 40) : 0;
  for (const Instant& instant : timeline) {
    const double scale = 1.0 / static_cast<double>(highest);
    std::string bars;
    if (w.style_.colour) {
      // One bar in the colours of its categories; the ends are rounded on the running sum so that lengths add up.
      Bytes sum = 0;
      std::size_t drawn = 0;
      for (int category = 0; category < kCategoryCount; ++category) {
        sum += instant.bytes[category];
        const auto end =
            static_cast<std::size_t>(static_cast<double>(sum) * scale * static_cast<double>(bar_width) + 0.5);
        if (end <= drawn) continue;
        bars += w.paint(bar(1.0, end - drawn, w.style_.unicode), kCategoryColours[category]);
        drawn = end;
      }
    } else {
      bars = bar(static_cast<double>(instant.total) * scale, bar_width, w.style_.unicode);
    }
    w.line("  " + pad_right(shorten(instant.label, label_width, w.style_.unicode), label_width) + "  " +
           pad_left(readable(instant.total), amount_width) + "  " + bars);
  }
}

void write_facts(Writer& w, const Answer& answer) {
  const Estimate& e = *answer.estimate;
  w.heading("The job as read");
  w.field("parameters", parameters_in_words(e.parameters));
  w.field("precision", e.recipe.name + ": " + in_words(e.recipe));
  w.field("attention", attention_in_words(answer.job, e.attention_kernel));
  w.field("optimizer", optimizer_in_words(answer.job) +
                           (answer.job.max_grad_norm > 0.0 ? ", gradients clipped" : ", gradients not clipped"));
  const Framework& framework = answer.job.framework;
  const std::string by = framework.name == "transformers" ? "" : framework.name + " on ";
  w.field("framework", by + "transformers " + std::to_string(framework.major) + "." + std::to_string(framework.minor));
}

void write_issues(Writer& w, const Issues& issues) {
  for (const Issue& issue : issues) {
    const std::string_view severity = severity_in_words(issue.severity);
    std::string head = std::string{severity} + " " + issue.code;
    w.out_ += w.paint(head, colour_of(issue.severity));
    if (!issue.path.empty()) head += " " + issue.path;
    if (!issue.path.empty()) w.out_ += " " + issue.path;
    w.line();
    w.out_ += "  ";
    w.line(wrap(issue.message, w.width_, 2));
    if (!issue.suggestion.empty() && issue.message.find(issue.suggestion) == std::string::npos) {
      w.line("  Try: " + issue.suggestion);
    }
  }
}

void write_partial(Writer& w, const PartialAnswer& partial, const Recipe& recipe) {
  w.line();
  w.line(partial.model + ": what its " + format_grouped(partial.parameters) + " parameters take alone");
  w.field("weights", w.amount(partial.weights));
  w.field("gradients", w.amount(partial.gradients));
  w.field("optimizer", w.amount(partial.optimizer_states));
  w.field("precision", recipe.name + ": " + in_words(recipe));
  w.line("  " + wrap(partial.note, w.width_, 2));
}

std::string finished(std::string text, const TextStyle& style) {
  return style.unicode ? text : to_ascii(text);
}

}  // namespace

std::string render_text(const Answer& answer, const TextStyle& style) {
  std::string out;
  Writer w(style, out);
  if (!answer.estimate) {
    write_issues(w, answer.issues);
    if (answer.partial) write_partial(w, *answer.partial, answer.job.recipe);
    return finished(std::move(out), style);
  }
  write_headline(w, answer);
  write_ranks(w, answer);
  write_fits(w, answer);
  write_breakdown(w, answer);
  write_timeline(w, answer);
  write_facts(w, answer);
  if (!answer.issues.empty()) {
    w.line();
    write_issues(w, answer.issues);
  }
  return finished(std::move(out), style);
}

std::string render_issues(const Issues& issues, const TextStyle& style) {
  std::string out;
  Writer w(style, out);
  write_issues(w, issues);
  return finished(std::move(out), style);
}

}  // namespace tidemark
