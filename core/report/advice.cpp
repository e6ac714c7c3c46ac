#include "core/report/advice.hpp"

#include "core/report/words.hpp"

namespace tidemark {
namespace {

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return Tone::kGood;
    case Verdict::kTight:
      return Tone::kWarning;
    case Verdict::kDoesNotFit:
      return Tone::kBad;
    case Verdict::kUnknown:
      return Tone::kDim;
  }
  return Tone::kPlain;
}

TextPiece verdict_piece(Verdict verdict) {
  return {std::string{verdict_in_words(verdict)}, tone_of(verdict)};
}

std::string job_in_words(const FitHeader& header) {
  const TrainingJob& job = header.job;
  return method_in_words(job) + " · " + batch_in_words(header.architecture, job) + " · " + checkpointing_in_words(job) +
         " · " + optimizer_in_words(job);
}

/// "speed: faster; numbers: the same up to rounding (source).".
std::string cost_in_words(const Cost& cost) {
  std::string text = "speed: " + std::string{cost.speed} + "; numbers: " + std::string{cost.exactness};
  if (cost.quality != "none") text += "; quality: " + std::string{cost.quality};
  return text + " (" + std::string{cost.source} + ").";
}

/// "adapter.r = 8, method = lora".
std::string settings_in_words(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    if (!text.empty()) text += ", ";
    text += setting.option + " = ";
    if (setting.value.is_string()) text += setting.value.string;
    if (setting.value.is_integer()) text += std::to_string(setting.value.integer);
    if (setting.value.is_bool()) text += setting.value.boolean ? "true" : "false";
  }
  return text;
}

/// "1", "4 cards, FSDP 2"
std::string cards_in_words(const MoreCards& fewest) {
  return fewest.cards > 1 ? fewest.step.title : fewest.cards == 1 ? "1" : "";
}

std::string card_in_words(const CardFit& row) {
  return row.fit.gpu + ": " + fit_in_words(row.fit, row.allocated);
}

std::string title_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kMicroBatch:
      return "micro-batch";
    case Quantity::kSequence:
      return "sequence";
    case Quantity::kRank:
      return "rank";
  }
  return {};
}

void add_combination(Document& out, const Advice& advice) {
  const Combination& c = *advice.combination;
  out.heading("What makes it fit");
  if (!c.found) {
    out.paragraph("Nothing that we know: with all of the following, " + format_gib(c.figures.allocated.expected) +
                      " are needed, of " + format_gib(advice.fit.usable) + ".",
                  Tone::kBad);
  }
  Block& table = out.table({{"harm", true}, {"change", false}, {"in the request", false}});
  for (const Step& step : c.steps) {
    table.rows.push_back(
        {{std::to_string(step.cost.weight)}, {step.title, Tone::kStrong}, {settings_in_words(step.settings)}});
  }
  if (!c.found) {
    out.paragraph(advice.smallest_changed
                      ? "The smallest card that such a job fits is the " + card_in_words(*advice.smallest_changed) + "."
                      : "No card of the catalog holds even such a job.");
    return;
  }
  const Fit fit = check_fit(c.figures, advice.card);
  out.paragraph("Together: " + format_gib(c.figures.allocated.expected) + ", " +
                format_gib(advice.now.allocated.expected - c.figures.allocated.expected) + " less; " +
                fit_in_words(fit, c.figures.allocated) + ".");
  out.paragraph(c.proven ? "No combination of less harm fits." : "Not everything was tried: less harm may do.",
                Tone::kDim);
  for (const Step& step : c.steps) out.paragraph(step.title + ": " + cost_in_words(step.cost), Tone::kDim);
}

/// "2 × NVIDIA A100 SXM 80GB (FSDP 2)".
void add_ways(Document& out, const Advice& advice) {
  std::string text;
  for (const Way& way : advice.ways) {
    text += (text.empty() ? "Smallest ways to run it: " : "; or ") + format_grouped(way.cards) + " × " + way.gpu +
            ", " + way.how;
  }
  if (!text.empty()) out.paragraph(text + ".", Tone::kStrong);
}

void add_more_cards(Document& out, const Advice& advice) {
  if (advice.more_cards.empty()) return;
  out.heading("Or more of these cards");
  Block& table = out.table({{"cards", true}, {"peak on each", true}, {"how", false}, {"in the request", false}});
  for (const MoreCards& more : advice.more_cards) {
    table.rows.push_back({{format_grouped(more.cards), Tone::kStrong},
                          {format_gib(more.figures.allocated.expected)},
                          {more.step.title},
                          {settings_in_words(more.step.settings)}});
  }
}

void add_suggestions(Document& out, const Advice& advice) {
  if (advice.suggestions.empty() && !advice.expandable) return;
  out.heading("One change at a time, least harm first");
  Block& table = out.table({{"harm", true}, {"peak", true}, {"saved", true}, {"", false}, {"change", false}});
  for (const Suggestion& s : advice.suggestions) {
    table.rows.push_back({{std::to_string(s.step.cost.weight)},
                          {format_gib(s.figures.allocated.expected)},
                          {format_gib(s.saved)},
                          verdict_piece(s.fit.verdict),
                          {s.step.title + ": " + settings_in_words(s.step.settings)}});
  }
  if (advice.expandable) {
    const Figures& figures = advice.expandable->figures;
    out.paragraph("Expandable segments (" + settings_in_words(advice.expandable->step.settings) +
                  ") move no allocated byte, but reserve " +
                  format_gib(advice.now.reserved.expected - figures.reserved.expected) +
                  " less: " + format_gib(figures.reserved.expected) + ".");
  }
}

void add_frontiers(Document& out, const AdviceReport& report) {
  if (report.frontiers.empty()) return;
  out.heading(report.changed ? "How far it goes with these changes" : "How far it goes");
  Block& table =
      out.table({{"", false}, {"now", true}, {"largest that fits", true}, {"peak there", true}, {"one more", true}});
  for (const Frontier& f : report.frontiers) {
    if (!f.applies) continue;
    table.rows.push_back({{title_of(f.quantity)},
                          {format_grouped(f.current)},
                          {f.largest == 0 ? "none" : (f.open ? "≥ " : "") + format_grouped(f.largest), Tone::kStrong},
                          {f.largest == 0 ? "" : format_gib(f.allocated.expected)},
                          {f.ends   ? "the model ends there"
                           : f.open ? ""
                                    : format_gib(f.next.expected)}});
  }
}

void add_tiers(Document& out, const AdviceReport& report) {
  if (report.tiers.empty()) return;
  out.heading(report.changed ? "Largest micro-batch by size of card, with these changes"
                             : "Largest micro-batch by size of card");
  Block& table = out.table({{"card", true}, {"micro-batch", true}, {"fixed table", true}});
  for (const Tier& tier : report.tiers) {
    table.rows.push_back({{std::to_string(tier.marketed_gb) + " GB"},
                          {tier.batch.largest == 0 ? "none" : format_grouped(tier.batch.largest), Tone::kStrong},
                          {std::to_string(tier.preset), Tone::kDim}});
  }
  out.paragraph("The fixed table is backprop's, which knows nothing of the job.", Tone::kDim);
}

void add_modes(Document& out, const AdviceReport& report) {
  if (!report.modes) return;
  const ModeTable& table = *report.modes;
  out.heading("MemScale's modes, recomputed");
  out.paragraph("Without any of their techniques the job needs " + format_gib(table.unoptimised.allocated.expected) +
                ", " + percent(table.ratio) + " of the card; the guide then says " +
                std::string{name_of(table.recommended)} + ", which " +
                (table.recommended_fits ? "brings it in." : "does not bring it in."));
  Block& rows = out.table({{"mode", false}, {"peak", true}, {"", false}, {"techniques", false}});
  for (const ModeOutcome& outcome : table.modes) {
    rows.rows.push_back(
        {{std::string{name_of(outcome.mode)}, outcome.mode == table.recommended ? Tone::kStrong : Tone::kPlain},
         {format_gib(outcome.figures.allocated.expected)},
         verdict_piece(outcome.fit.verdict),
         {outcome.techniques, Tone::kDim}});
  }
}

}  // namespace

Document document_of(const FitReport& report) {
  Document out;
  out.issues = report.header.issues;
  if (!report.answered) return out;
  out.title(report.header.model);
  out.paragraph(job_in_words(report.header));
  out.paragraph("peak " + format_gib(report.allocated.expected) + "  (" + format_gib(report.allocated.low) + " – " +
                format_gib(report.allocated.high) + ")");
  const bool ruled = report.rule_of_thumb > 0.0;
  out.heading("Cards");
  std::vector<Block::Column> columns = {{"", false},    {"verdict", false}, {"usable", true},
                                        {"used", true}, {"to spare", true}, {"takes", false}};
  if (ruled) columns.push_back({"≤ " + percent(report.rule_of_thumb), false});
  Block& table = out.table(std::move(columns));
  for (const CardFit& row : report.cards) {
    std::vector<TextPiece> cells = {{row.fit.gpu},
                                    verdict_piece(row.fit.verdict),
                                    {format_gib(row.fit.usable)},
                                    {row.fit.usable > 0 ? percent(row.fit.utilization) : ""},
                                    {format_gib(row.fit.headroom)},
                                    {cards_in_words(row.fewest)}};
    if (ruled) cells.push_back({row.within_share ? "yes" : "no"});
    table.rows.push_back(std::move(cells));
  }
  if (report.cards.empty() || report.cards.front().fit.verdict != Verdict::kFits) {
    out.paragraph("None of them fits the job; `tidemark advise` says what would.");
  }
  return out;
}

Document document_of(const AdviceReport& report) {
  Document out;
  out.issues = report.header.issues;
  if (!report.answered) return out;
  const Advice& advice = report.advice;
  out.title(report.header.model + " on " + advice.card.name);
  out.paragraph(job_in_words(report.header));
  out.paragraph(
      std::string{verdict_in_words(advice.fit.verdict)} + ": " + fit_in_words(advice.fit, advice.now.allocated),
      tone_of(advice.fit.verdict));
  if (!advice.fit.reason.empty() && advice.fit.usable > 0) out.paragraph(advice.fit.reason, Tone::kDim);
  if (advice.fit.verdict != Verdict::kFits) {
    out.paragraph(advice.smallest_as_is
                      ? "Unchanged, the smallest card for it is the " + card_in_words(*advice.smallest_as_is) + "."
                      : "Unchanged, it fits no card of the catalog.");
  }
  add_ways(out, advice);
  if (advice.combination) add_combination(out, advice);
  add_more_cards(out, advice);
  add_suggestions(out, advice);
  add_frontiers(out, report);
  add_tiers(out, report);
  add_modes(out, report);
  return out;
}

Document document_of(const MapReport& report) {
  Document out;
  out.issues = report.header.issues;
  if (!report.answered) return out;
  out.title(report.header.model + " on " + report.card.name);
  out.paragraph(job_in_words(report.header));
  const std::string card = report.card.visible > 0
                               ? ", of " + format_gib(report.card.visible) + " usable; * tight, - does not fit"
                               : std::string{};
  out.paragraph("peak in GiB" + card + (report.map.exact ? "" : "; quick figures, a few thousandths low"));
  out.heading(report.map.cards.empty() ? "Micro-batch by sequence length" : "Number of cards by sequence length");
  std::vector<Block::Column> columns = {{"", true}};
  for (Count sequence : report.map.sequences) columns.push_back({format_grouped(sequence), true});
  Block& table = out.table(std::move(columns));
  for (std::size_t b = 0; b < report.map.rows().size(); ++b) {
    std::vector<TextPiece> row = {{format_grouped(report.map.rows()[b]), Tone::kDim}};
    for (std::size_t s = 0; s < report.map.sequences.size(); ++s) {
      const Verdict verdict = report.map.verdicts[b * report.map.sequences.size() + s];
      std::string text = "?";
      if (report.map.at(b, s).known) {
        text = format_gib(report.map.at(b, s).allocated.expected, 1);
        text.resize(text.size() - 4);
        text += verdict == Verdict::kTight ? "*" : verdict == Verdict::kDoesNotFit ? "-" : " ";
      }
      row.push_back({std::move(text), tone_of(verdict)});
    }
    table.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tidemark
