#include "core/wire/ask.hpp"

#include <algorithm>

#include "core/job/check.hpp"
#include "core/options/options.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

// A full estimate takes milliseconds, more in deep models: larger maps are quick ones.
constexpr Count kMostExactCells = 256;
constexpr Count kMostExactLayers = 128 * kMostExactCells;

/// The request without the keys that only the verb reads.
Value without_keys(const Value& request, std::span<const VerbKey> keys) {
  Value rest = empty_object();
  if (!request.is_object()) return request;
  for (const Value::Member& member : request.members) {
    const bool own = std::any_of(keys.begin(), keys.end(), [&](const VerbKey& key) { return key.name == member.key; });
    if (!own) rest.members.push_back(member);
  }
  return rest;
}

FitHeader header_of(Answer& answer) {
  FitHeader header;
  header.engine = answer.engine;
  header.catalog = answer.catalog;
  header.model = answer.model;
  header.job = answer.job;
  header.issues = answer.issues;
  return header;
}

void refuse(Issues& issues, std::string_view key, std::string wanted) {
  issues.push_back({"INVALID_VALUE", Severity::kError, "/" + std::string{key},
                    "\"" + std::string{key} + "\" must be " + std::move(wanted) + ".", ""});
}

bool read_flag(const Value& request, std::string_view key, bool standard, Issues& issues) {
  const Value* value = request.find(key);
  if (value == nullptr || value->is_null()) return standard;
  if (!value->is_bool()) refuse(issues, key, "true or false");
  return value->boolean;
}

std::vector<Count> read_counts(const Value& request, std::string_view key, Count most, Issues& issues) {
  std::vector<Count> counts;
  const Value* value = request.find(key);
  if (value == nullptr || value->is_null()) return counts;
  const std::string wanted = "a list of at most 64 whole numbers from 1 to " + format_grouped(most);
  if (!value->is_array() || value->items.empty() || value->items.size() > 64) {
    refuse(issues, key, wanted);
    return counts;
  }
  for (const Value& item : value->items) {
    if (!item.is_integer() || item.integer < 1 || item.integer > most) {
      refuse(issues, key, wanted);
      return counts;
    }
    counts.push_back(item.integer);
  }
  return counts;
}

/// The catalog's cards as choices: NVIDIA's own memory only, where what we know of kernels holds.
std::vector<CardChoice> catalog_choices(const Engine& engine, bool all) {
  std::vector<CardChoice> choices;
  for (const Gpu& gpu : engine.catalog().gpus()) {
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

/// Whether one option stands directly below another: "gradient_checkpointing.every" and "gradient_checkpointing".
bool is_part_of(std::string_view option, std::string_view parent) {
  return option.size() > parent.size() && option[parent.size()] == '.' && option.substr(0, parent.size()) == parent &&
         option.find('.', parent.size() + 1) == std::string_view::npos;
}

/// Where the parts of an option start from a clean state, those that are not set must go: RFC 7396 says so with nulls.
void clear_other_parts(Value& object, std::string_view parent) {
  const Option* whole = find_option(parent);
  if (whole == nullptr || whole->open == nullptr) return;
  for (const Option& part : options()) {
    if (!is_part_of(part.name, parent)) continue;
    const std::string_view key = part.name.substr(parent.size() + 1);
    if (object.find(key) == nullptr) set(object, key, Value{});
  }
}

}  // namespace

FitReport ask_fit(const Engine& engine, const Value& request) {
  Value rest = without_keys(request, find_verb("fit")->keys);
  Answer answer = engine.answer(rest);
  FitReport report;
  report.header = header_of(answer);
  Issues& issues = report.header.issues;
  const bool all = read_flag(request, "all_gpus", false, issues);
  if (const Value* rule = request.find("rule_of_thumb"); rule != nullptr && !rule->is_null()) {
    if (!rule->is_number() || !(rule->real > 0.0 && rule->real <= 1.0)) {
      refuse(issues, "rule_of_thumb", "a share of the card, more than 0 and at most 1");
    }
    report.rule_of_thumb = rule->real;
  }
  if (has_error(issues) || !answer.estimate) return report;

  std::vector<CardChoice> choices;
  report.whole_catalog = all || answer.fits.empty();
  if (report.whole_catalog) choices = catalog_choices(engine, true);
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
  report.cards = rank_cards(peaks, answer.job, choices, {}, report.rule_of_thumb > 0.0 ? report.rule_of_thumb : 1.0);
  report.allocated = answer.estimate->allocated;
  report.answered = true;
  return report;
}

AdviceReport ask_advice(const Engine& engine, const Value& request) {
  const Value rest = without_keys(request, find_verb("advise")->keys);
  Answer answer = engine.answer(rest);
  AdviceReport report;
  report.header = header_of(answer);
  Issues& issues = report.header.issues;
  const bool frontiers = read_flag(request, "frontiers", true, issues);
  const bool tier_table = read_flag(request, "tiers", true, issues);
  const bool mode_table = read_flag(request, "modes", true, issues);
  if (answer.fits.empty() && !has_error(issues)) {
    issues.push_back({"MISSING_GPU", Severity::kError, "/gpu",
                      "Advice is about a card: name one, or state its memory: {\"vram_gb\": 24}.", ""});
  }
  if (has_error(issues) || !answer.estimate) return report;
  only_the_first(answer, issues);

  Peaks peaks(answer.architecture);
  const Card& card = answer.cards.front().card;
  report.advice = advise(peaks, answer.job, card, catalog_choices(engine, false), answer.overrides);
  const Advice& advice = report.advice;
  report.changed = advice.combination && advice.combination->found;
  const TrainingJob& subject = report.changed ? advice.combination->job : answer.job;
  if (frontiers) {
    for (const Quantity quantity : {Quantity::kMicroBatch, Quantity::kSequence, Quantity::kRank}) {
      report.frontiers.push_back(frontier(peaks, subject, quantity, card));
    }
  }
  if (tier_table) report.tiers = tiers(peaks, subject, engine.catalog().gpus());
  if (mode_table) report.modes = modes(peaks, answer.job, card);
  report.answered = true;
  return report;
}

MapReport ask_map(const Engine& engine, const Value& request) {
  const Value rest = without_keys(request, find_verb("map")->keys);
  Answer answer = engine.answer(rest);
  MapReport report;
  report.header = header_of(answer);
  Issues& issues = report.header.issues;
  std::vector<Count> batches = read_counts(request, "batches", 1000000, issues);
  std::vector<Count> sequences = read_counts(request, "sequences", 100000000, issues);
  if (batches.empty()) batches = usual_batches(answer.job);
  if (sequences.empty()) sequences = usual_sequences(answer.job);
  const auto cells = static_cast<Count>(batches.size() * sequences.size());
  const bool small = cells <= kMostExactCells && cells * answer.architecture.num_layers <= kMostExactLayers;
  const bool exact = read_flag(request, "exact", small, issues);
  if (exact && !small) {
    issues.push_back({"TOO_LARGE", Severity::kError, "/exact",
                      "Exact figures take milliseconds each, more in deep models: at most " +
                          format_grouped(kMostExactCells) + " cells are computed so, and at most " +
                          format_grouped(kMostExactLayers) +
                          " layers in all of them. Ask for fewer cells, or quick ones.",
                      "false"});
  }
  if (has_error(issues) || !answer.estimate) return report;
  only_the_first(answer, issues);
  warn_of_positions(answer, sequences, issues);

  Peaks peaks(answer.architecture);
  if (!answer.fits.empty()) report.card = answer.cards.front().card;
  if (answer.fits.empty()) report.card.name = "no card";
  report.map = fit_map(peaks, answer.job, batches, sequences, report.card, exact);
  report.answered = true;
  return report;
}

Value merge_patch(const std::vector<Setting>& settings) {
  Value patch = empty_object();
  for (const Setting& setting : merged(settings)) {
    Value* object = &patch;
    std::string_view name = setting.option;
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
      const std::string_view key = name.substr(0, dot);
      Value* child = nullptr;
      for (Value::Member& member : object->members) {
        if (member.key == key) child = &member.value;
      }
      if (child == nullptr) {
        set(*object, key, empty_object());
        child = &object->members.back().value;
      }
      object = child;
      name.remove_prefix(dot + 1);
    }
    set(*object, name, setting.value);
  }
  for (Value::Member& member : patch.members) {
    if (member.value.is_object()) clear_other_parts(member.value, member.key);
  }
  return patch;
}

}  // namespace tidemark
