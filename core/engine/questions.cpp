#include "core/engine/questions.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/fit/cards.hpp"
#include "core/fit/fit.hpp"
#include "core/job/check.hpp"
#include "core/layers/program.hpp"
#include "core/step/simulation.hpp"
#include "core/step/surface.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

// A full estimate takes milliseconds, more in deep models: larger maps are quick ones.
constexpr Count kMostExactCells = 256;
constexpr Count kMostExactLayers = 128 * kMostExactCells;

FitHeader header_of(const Answer& answer, const Asked& asked) {
  FitHeader header;
  header.engine = answer.engine;
  header.catalog = answer.catalog;
  header.model = answer.model;
  header.architecture = answer.architecture;
  header.job = answer.job;
  header.issues = answer.issues;
  header.stated_as = asked.request.stated_as;
  return header;
}

void add(const Issues& more, Issues& issues) {
  issues.insert(issues.end(), more.begin(), more.end());
}

/// The catalog's cards as choices: NVIDIA's own memory only, where what we know of kernels holds.
std::vector<CardChoice> catalog_choices(const Estimator& estimator, bool all) {
  std::vector<CardChoice> choices;
  for (const Gpu& gpu : estimator.catalog().gpus()) {
    if (all || (gpu.vendor == "NVIDIA" && !gpu.unified)) choices.push_back(choice_of(gpu));
  }
  return choices;
}

void only_the_first(const Answer& answer, Issues& issues) {
  if (answer.fits.size() < 2) return;
  issues.push_back({"ONE_CARD", Severity::kWarning, "/gpus",
                    "Several cards are named; the answer is about the first, " + answer.fits.front().gpu + ".", ""});
}

/// Columns beyond the model's positions have a figure and no verdict; once for all of them.
void warn_of_positions(const Answer& answer, const std::vector<Count>& sequences, Issues& issues) {
  const Count longest = *std::max_element(sequences.begin(), sequences.end());
  std::string why = refusal_of_length(answer.architecture, longest);
  // The request's own length has been told of already.
  if (why.empty() || !refusal_of_length(answer.architecture, answer.job.sequence_length).empty()) return;
  issues.push_back({"SEQUENCE_TOO_LONG", Severity::kWarning, "/sequences", std::move(why),
                    std::to_string(answer.architecture.learned_positions())});
}

Batching batching_of(const Asked& asked) {
  return {asked.request.job, asked.request.foreign};
}

// A recording, or an answer that is generated, does not go into any length.
bool refuses_length(const Answer& answer, Count length) {
  TrainingJob there = answer.job;
  there.sequence_length = length;
  Issues issues;
  check_attention(answer.architecture, there, issues);
  check_model(answer.architecture, there, issues);
  return has_error(issues);
}

// What a job takes of the card beside itself.
Bytes beside(const Overrides& overrides) {
  return static_cast<Bytes>(overrides.misc_overhead_gib.value_or(0.0) * static_cast<double>(kGiB));
}

// A change promises what an estimate of the request with it says.
void read_anew(const Estimator& estimator, const Rewrite& rewrite, const Overrides& overrides, Peaks& peaks) {
  if (!rewrite) return;
  Afresh afresh;
  afresh.takes = [&](const std::vector<Setting>& settings) { return estimator.understand(rewrite(settings)).complete; };
  afresh.figures = [&](const std::vector<Setting>& settings, const TrainingJob& job) -> Figures {
    Understood question = estimator.understand(rewrite(settings));
    if (!question.complete) return {};
    Answer& answer = question.answer;
    // On the card that is asked about.
    answer.job.compute_capability = job.compute_capability;
    answer.job.rollout.reserved = job.rollout.reserved;
    check_kernels(answer.job, answer.issues);
    if (has_error(answer.issues)) return {};
    const Architecture& own = peaks.architecture();
    const bool alike = answer.architecture.program == own.program && answer.architecture.head == own.head;
    Figures figures = alike ? peaks.full(answer.job) : Peaks(answer.architecture).full(answer.job);
    figures.beside = beside(answer.overrides) - beside(overrides);
    return figures;
  };
  peaks.read_anew_by(std::move(afresh));
}

// The job with the steps of a combination.
Answer with_steps(const Estimator& estimator, const Rewrite& rewrite, const Combination& combination, Answer answer) {
  answer.job = combination.job;
  if (!rewrite) return answer;
  Understood changed = estimator.understand(rewrite(settings_of(combination.steps)));
  return changed.complete ? std::move(changed.answer) : answer;
}

// What an answer lacks of what was asked, and why.
void leave_out(std::string_view path, std::string why, Issues& issues) {
  issues.push_back({"LEFT_OUT", Severity::kNote, std::string{path}, std::move(why), ""});
}

// How far each quantity goes, where the request takes it that far.
std::vector<Frontier> frontiers_of(const Estimator& estimator, const Rewrite& rewrite, Peaks& peaks,
                                   const Answer& answer, const std::vector<Setting>& changes, const Card& card,
                                   Issues& issues) {
  std::vector<Frontier> list;
  for (const Quantity quantity : {Quantity::kMicroBatch, Quantity::kSequence, Quantity::kRank}) {
    const Frontier found = frontier(peaks, answer.job, quantity, card);
    if (rewrite && found.largest > 0) {
      std::vector<Setting> settings = changes;
      settings.push_back(set_count(option_of(quantity), found.largest));
      const Understood there = estimator.understand(rewrite(settings));
      const std::string what = "How far " + std::string{option_of(quantity)} + " goes is not told: ";
      if (!there.complete) {
        const Issue* const why = first_error(there.answer.issues);
        const std::string most = std::to_string(found.largest) + " would fit, and is refused. ";
        leave_out("/frontiers", what + most + (why != nullptr ? why->message : ""), issues);
        continue;
      }
      // An adapter whose rank another option states keeps it.
      if (peaks.full(there.answer.job).allocated.expected != found.allocated.expected) {
        leave_out("/frontiers", what + "another option of the request decides it.", issues);
        continue;
      }
    }
    list.push_back(found);
  }
  return list;
}

}  // namespace

FitReport ask(const Estimator& estimator, const FitQuestion& question) {
  Answer answer = estimator.answer(question.job);
  FitReport report;
  report.header = header_of(answer, question.job);
  Issues& issues = report.header.issues;
  add(question.trouble, issues);
  report.rule_of_thumb = question.rule_of_thumb;
  if (has_error(issues) || !answer.estimate) return report;

  std::vector<CardChoice> choices;
  report.whole_catalog = question.all_cards || answer.fits.empty();
  if (report.whole_catalog) choices = catalog_choices(estimator, true);
  for (const CardChoice& choice : answer.cards) {
    const bool listed = std::any_of(choices.begin(), choices.end(),
                                    [&](const CardChoice& c) { return c.card.name == choice.card.name; });
    if (!listed) choices.push_back(choice);
  }
  // Cards of the catalog carry their own context; the user's overheads come off each.
  for (CardChoice& choice : choices) {
    if (choice.card.context == 0) continue;
    const std::string why = choice.card.estimated;
    choice.card = left_of(choice.card, answer.overrides);
    choice.card.estimated = why;
  }
  Peaks peaks(answer.architecture);
  read_anew(estimator, question.rewrite, answer.overrides, peaks);
  report.cards = rank_cards(peaks, answer.job, choices, {}, report.rule_of_thumb > 0.0 ? report.rule_of_thumb : 1.0);
  if (question.fewest) count_cards(peaks, answer.job, choices, report.cards);
  report.allocated = answer.estimate->allocated;
  report.answered = true;
  return report;
}

AdviceReport ask(const Estimator& estimator, const AdviceQuestion& question) {
  Answer answer = estimator.answer(question.job);
  AdviceReport report;
  report.header = header_of(answer, question.job);
  Issues& issues = report.header.issues;
  add(question.trouble, issues);
  if (answer.fits.empty() && !has_error(issues)) {
    issues.push_back({"MISSING_GPU", Severity::kError, "/gpu",
                      "Advice is about a card: name one, or state its memory: {\"vram_gb\": 24}.", ""});
  }
  if (has_error(issues) || !answer.estimate) return report;
  only_the_first(answer, issues);

  Peaks peaks(answer.architecture);
  read_anew(estimator, question.rewrite, answer.overrides, peaks);
  const Card& card = answer.cards.front().card;
  report.advice = advise(peaks, answer.job, card, catalog_choices(estimator, false), answer.overrides);
  const Advice& advice = report.advice;
  report.changed = advice.combination && advice.combination->found;
  const Answer subject = report.changed ? with_steps(estimator, question.rewrite, *advice.combination, answer) : answer;
  Peaks changed(subject.architecture);
  if (question.frontiers) {
    const std::vector<Setting> changes =
        report.changed ? settings_of(advice.combination->steps) : std::vector<Setting>{};
    report.frontiers = frontiers_of(estimator, question.rewrite, changed, subject, changes, card, issues);
  }
  // Where samples are joined, or are several rows, more rows are no larger micro-batch.
  if (question.tiers && batching_of(question.job).is_as_stated())
    report.tiers = tiers(changed, subject.job, estimator.catalog().gpus());
  if (question.modes) report.modes = modes(peaks, answer.job, card);
  if (report.modes && !report.modes->unoptimised.known) {
    leave_out("/modes", "MemScale's modes start from a job that the request does not take.", issues);
    report.modes.reset();
  }
  report.answered = true;
  return report;
}

MapReport ask(const Estimator& estimator, const MapQuestion& question) {
  Answer answer = estimator.answer(question.job);
  MapReport report;
  report.header = header_of(answer, question.job);
  Issues& issues = report.header.issues;
  add(question.trouble, issues);
  const TrainingJob& stated = question.job.request.job;
  const std::vector<Count> batches = question.batches.empty() ? usual_batches(stated) : question.batches;
  const std::vector<Count> sequences = question.sequences.empty() ? usual_sequences(stated) : question.sequences;
  const std::size_t rows = question.cards.empty() ? batches.size() : question.cards.size();
  const auto cells = static_cast<Count>(rows * sequences.size());
  const bool small = cells <= kMostExactCells && cells * answer.architecture.num_layers <= kMostExactLayers;
  const bool exact = question.exact.value_or(small);
  if (exact && !small) {
    issues.push_back({"TOO_LARGE", Severity::kError, "/exact",
                      "Exact figures take milliseconds each, more in deep models: at most " +
                          format_grouped(kMostExactCells) + " cells are computed so, and at most " +
                          format_grouped(kMostExactLayers) +
                          " layers in all of them. Ask for fewer cells, or quick ones.",
                      "false"});
  }
  if (!question.cards.empty() && !question.batches.empty()) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/cards",
                      "A map's rows are numbers of cards or micro-batch sizes: state one of them.", ""});
  }
  if (has_error(issues) || !answer.estimate) return report;
  only_the_first(answer, issues);
  warn_of_positions(answer, sequences, issues);

  Peaks peaks(answer.architecture);
  if (!answer.fits.empty()) report.card = answer.cards.front().card;
  if (answer.fits.empty()) report.card.name = "no card";
  const Batching batching = batching_of(question.job);
  Resize resize;
  if (!batching.is_as_stated()) {
    const bool of_cards = !question.cards.empty();
    resize = [&, of_cards](BatchSize cell) {
      if (of_cards) cell.batch = stated.micro_batch_size;
      return batching.of(cell);
    };
  }
  report.map = question.cards.empty()
                   ? fit_map(peaks, answer.job, batches, sequences, report.card, exact, resize)
                   : fit_map_of_cards(peaks, answer.job, question.cards, sequences, report.card, exact, resize);
  report.answered = true;
  return report;
}

std::vector<double> peak_cells(const Understood& job, const std::vector<double>& batches,
                               const std::vector<double>& sequences) {
  std::vector<double> cells(batches.size() * sequences.size(), std::numeric_limits<double>::quiet_NaN());
  const Answer& answer = job.answer;
  if (!job.complete || !is_supported(answer.architecture)) return cells;

  struct Place {
    std::size_t cell = 0;
    BatchSize size;
  };
  std::vector<Place> places;
  std::vector<Count> rows, columns;
  const auto is_size = [](double size, double below) { return size >= 1.0 && size < below; };
  const bool as_stated = job.batching.is_as_stated();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double batch = batches[i / sequences.size()], sequence = sequences[i % sequences.size()];
    if (!is_size(batch, 1e9) || !is_size(sequence, 1e12)) continue;
    const BatchSize said{static_cast<Count>(batch), static_cast<Count>(sequence)};
    places.push_back({i, as_stated ? said : job.batching.of(said)});
    if (rows.empty() || rows.back() != places.back().size.batch) rows.push_back(places.back().size.batch);
    if (i < sequences.size() || !as_stated) columns.push_back(places.back().size.sequence);
  }
  rows = ascending(std::move(rows));
  columns = ascending(std::move(columns));
  const auto refused = [&](Count length) { return refuses_length(answer, length); };
  columns.erase(std::remove_if(columns.begin(), columns.end(), refused), columns.end());
  const Surface surface = peak_surface(answer.architecture, answer.job, rows, columns);
  for (const Place& place : places) {
    const auto column = std::lower_bound(columns.begin(), columns.end(), place.size.sequence);
    if (column == columns.end() || *column != place.size.sequence) continue;
    const auto row = std::lower_bound(rows.begin(), rows.end(), place.size.batch) - rows.begin();
    const auto at = static_cast<std::size_t>(row) * columns.size() + static_cast<std::size_t>(column - columns.begin());
    if (surface.peaks[at] >= 0) cells[place.cell] = static_cast<double>(surface.peaks[at]);
  }
  return cells;
}

}  // namespace tidemark
