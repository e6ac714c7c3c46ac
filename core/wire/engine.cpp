#include "core/wire/engine.hpp"

#include <algorithm>
#include <utility>

#include "core/fit/fit.hpp"
#include "core/job/check.hpp"
#include "core/job/recipe.hpp"
#include "core/model/read_config.hpp"
#include "core/runtime/cuda_context.hpp"
#include "core/step/estimate.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

/// The catalog entry that the request means, or null with an error among the issues.
const ModelEntry* choose_model(const Catalog& catalog, const Request& request, Issues& issues) {
  if (request.parameters > 0.0) {
    const ModelEntry* model = catalog.model_of_size(request.parameters);
    if (model == nullptr) {
      issues.push_back({"UNKNOWN_MODEL", Severity::kError, "/parameters", "No catalog is loaded to choose from.", ""});
      return nullptr;
    }
    const auto count = static_cast<double>(model->parameters());
    const double ratio = std::max(request.parameters / count, count / request.parameters);
    issues.push_back({"ASSUMED_ARCHITECTURE", ratio > 1.25 ? Severity::kWarning : Severity::kNote, "/parameters",
                      "Only a count is given: the answer is for " + model->id + ", which has " +
                          format_grouped(model->parameters()) +
                          " parameters. Name a model or paste its config.json for one that is yours.",
                      model->id});
    return model;
  }
  const ModelEntry* model = catalog.find_model(request.model);
  if (model == nullptr) {
    const std::vector<std::string> near = catalog.nearest_models(request.model, 3);
    std::string message = "The catalog has no model of the name \"" + request.model.substr(0, 100) + "\".";
    message += near.empty() ? " Paste its config.json instead."
                            : " Near it are " + joined(near) + "; or paste its config.json.";
    issues.push_back(
        {"UNKNOWN_MODEL", Severity::kError, "/model", std::move(message), near.empty() ? "" : near.front()});
  }
  return model;
}

/// Weights, gradients and states of a model of which only the size is known.
PartialAnswer partial_answer(const ModelEntry& model, const Recipe& recipe) {
  PartialAnswer partial;
  partial.model = model.id;
  partial.parameters = model.parameters();
  Bytes weight = size_of(recipe.weights);
  if (recipe.master_weights) weight += size_of(*recipe.master_weights);
  partial.weights = partial.parameters * weight;
  partial.gradients = partial.parameters * size_of(recipe.gradients);
  partial.optimizer_states = partial.parameters * 2 * size_of(recipe.optimizer_states);
  partial.note =
      "Parameters times bytes of the recipe, with every parameter trained and two moments per parameter as AdamW keeps "
      "them. Activations, logits and workspaces are missing: this is not the memory that the job needs.";
  return partial;
}

/// The card behind a name or an amount of memory; nothing with an error among the issues.
std::optional<Card> choose_card(const Catalog& catalog, const GpuQuery& query, int& compute_capability,
                                Issues& issues) {
  Card card;
  Gpu unknown;
  if (query.name.empty() || query.memory_gib > 0.0) {
    card.visible = static_cast<Bytes>(query.memory_gib * static_cast<double>(kGiB));
    card.name = query.name.empty() ? format_gib(card.visible) : query.name;
    if (const Gpu* known = query.name.empty() ? nullptr : find_gpu(catalog.gpus(), query.name); known != nullptr) {
      unknown = *known;
    } else {
      unknown.compute_capability = 80;
    }
    compute_capability = unknown.compute_capability;
    card.context = cuda_context(unknown).expected;
    card.estimated =
        "The memory that you state is taken as what torch sees of the card; its CUDA context is estimated.";
    return card;
  }
  const Gpu* gpu = find_gpu(catalog.gpus(), query.name);
  if (gpu == nullptr) {
    const std::string near = nearest_gpu(catalog.gpus(), query.name);
    std::string message = "The catalog has no card of the name \"" + query.name + "\".";
    if (!near.empty()) message += " Near it is " + near + ".";
    issues.push_back(
        {"UNKNOWN_GPU", Severity::kError, "/gpu", message + " Or state its memory: {\"memory_gib\": 24}.", near});
    return std::nullopt;
  }
  compute_capability = gpu->compute_capability;
  card.name = gpu->name;
  card.visible = gpu->usable_bytes();
  card.context = cuda_context(*gpu).expected;
  if (gpu->vendor != "NVIDIA") {
    card.estimated = "Kernels and overheads are those of NVIDIA cards.";
  } else if (gpu->usable_is_estimated()) {
    card.estimated = "What torch sees of this card was not measured; it is estimated from its size.";
  }
  return card;
}

}  // namespace

std::string_view engine_version() {
  return TIDEMARK_VERSION;
}

Issues Engine::load_catalog(std::string_view models_json, std::string_view gpus_json) {
  return catalog_.load(models_json, gpus_json);
}

Answer Engine::answer(const Value& document) const {
  Answer answer;
  answer.engine = engine_version();
  answer.catalog = catalog_.date();
  Issues& issues = answer.issues;
  Request request = read_request(document, issues);
  answer.job = request.job;
  answer.overrides = request.overrides;

  // Everything that is wrong is told at once: a bad name does not hide behind a bad batch size.
  std::vector<Card> cards;
  for (const GpuQuery& query : request.gpus) {
    int compute_capability = 0;
    if (auto card = choose_card(catalog_, query, compute_capability, issues)) {
      // The first card decides which kernels run.
      if (cards.empty() && compute_capability > 0) request.job.compute_capability = compute_capability;
      cards.push_back(std::move(*card));
    }
  }
  answer.job = request.job;

  const ModelEntry* model = nullptr;
  ConfigResult read;
  if (request.config.is_object()) {
    read = read_config(request.config, request.class_name);
  } else if (!request.model.empty() || request.parameters > 0.0) {
    model = choose_model(catalog_, request, issues);
    if (model == nullptr) return answer;
    answer.model = model->id;
    read = read_config(model->config, request.class_name);
    read.architecture.catalog_id = model->id;
    read.architecture.published_parameters = model->published;
  } else {
    return answer;
  }
  for (Issue& issue : read.issues) {
    const bool unsupported = issue.code == "UNSUPPORTED_ARCHITECTURE";
    if (model != nullptr && issue.path.rfind("/config", 0) == 0) issue.path = "/model";
    if (model != nullptr && unsupported && model->parameters() > 0 && !answer.partial) {
      answer.partial = partial_answer(*model, request.job.recipe);
    }
    issues.push_back(std::move(issue));
  }
  answer.architecture = std::move(read.architecture);
  if (answer.model.empty()) answer.model = answer.architecture.class_name;
  if (has_error(issues)) return answer;
  check_magnitude(answer.architecture, request.job, issues);
  if (has_error(issues)) return answer;

  Estimate result = estimate(answer.architecture, request.job);
  if (request.parameters > 0.0) result.architecture = answer.model;
  const bool failed = has_error(result.issues);
  issues.insert(issues.end(), result.issues.begin(), result.issues.end());
  if (failed) return answer;
  for (const Card& card : cards) answer.fits.push_back(check_fit(result.allocated, card, request.overrides));
  answer.estimate = std::move(result);
  return answer;
}

std::string Engine::handle(std::string_view text) const {
  Issues issues;
  const Value request = parse_json(text, "", issues);
  if (has_error(issues)) return write_json(write_errors(issues));
  // Warnings of the parser (a key twice) belong to the answer.
  return handle_parsed(request, issues, 0);
}

std::string Engine::handle(const Value& request, int indent) const {
  return handle_parsed(request, {}, indent);
}

std::string Engine::handle_parsed(const Value& request, const Issues& before, int indent) const {
  std::string_view name = "estimate";
  if (const Value* value = request.find("verb"); value != nullptr && !value->is_null()) name = value->string;
  const Verb* chosen = nullptr;
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) {
    if (verb.run != nullptr) names.push_back(verb.name);
    if (verb.name == name) chosen = &verb;
  }
  if (chosen == nullptr || chosen->run == nullptr) {
    std::string message =
        "\"" + std::string{name.substr(0, 60)} + "\" is not something that this engine does yet; it does ";
    for (std::size_t i = 0; i < names.size(); ++i) message += (i == 0 ? "" : ", ") + std::string{names[i]};
    return write_json(
        write_errors({{"UNSUPPORTED_VERB", Severity::kError, "/verb", message + ".", nearest(name, names)}}), indent);
  }
  Value reply = chosen->run(*this, request);
  if (!before.empty()) {
    Value list = write_issues(before);
    for (Value::Member& member : reply.members) {
      if (member.key != "issues") continue;
      for (Value& issue : list.items) member.value.items.push_back(std::move(issue));
    }
  }
  return write_json(reply, indent);
}

}  // namespace tidemark
