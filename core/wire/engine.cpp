#include "core/wire/engine.hpp"

#include <algorithm>
#include <utility>

#include "core/fit/cards.hpp"
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

/// Bytes of optimizer state per trained parameter, blocks' scales left out.
Bytes state_bytes(Optimizer optimizer, Bytes own) {
  switch (optimizer) {
    case Optimizer::kAdamwTorch:
    case Optimizer::kAdamwTorchFused:
    case Optimizer::kAdamwHf:
    case Optimizer::kGaloreAdamw:  // their low rank depends on the matrices, which are not known here
    case Optimizer::kApolloAdamw:
      return 2 * own;
    case Optimizer::kAdamw32bit:
    case Optimizer::kPagedAdamw32bit:
      return 8;
    case Optimizer::kAdamw8bit:
    case Optimizer::kPagedAdamw8bit:
    case Optimizer::kAdamwTorchao8bit:
      return 2;
    case Optimizer::kLion32bit:
    case Optimizer::kPagedLion32bit:
      return 4;
    case Optimizer::kLion8bit:
    case Optimizer::kPagedLion8bit:
    case Optimizer::kAdamwTorchao4bit:
      return 1;
    case Optimizer::kAdafactor:
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kSgdMomentum:
    case Optimizer::kAdamMini:
    case Optimizer::kMuon:
    case Optimizer::kAdagrad:
    case Optimizer::kRmsprop:
      return own;
  }
  return 2 * own;
}

/// Weights, gradients and states of a model of which only the size is known.
PartialAnswer partial_answer(const ModelEntry& model, const TrainingJob& job) {
  const Recipe& recipe = job.recipe;
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  PartialAnswer partial;
  partial.model = model.id;
  partial.parameters = model.parameters();
  partial.weights = partial.parameters * size_of(recipe.weights);
  partial.note = "Parameters times bytes of the recipe";
  if (job.method == Method::kQlora) {
    partial.weights = partial.parameters * job.quantization.bits / 8;
    partial.note = "Parameters times bits, as if every parameter were quantised";
  } else if (recipe.master_weights) {
    partial.weights += partial.parameters * size_of(*recipe.master_weights);
  }
  if (adapters) {
    partial.note += "; the adapters with their gradients and states";
  } else {
    partial.gradients = partial.parameters * size_of(recipe.gradients);
    partial.optimizer_states = partial.parameters * state_bytes(job.optimizer, size_of(recipe.optimizer_states));
    partial.note += ", as if every parameter were trained";
  }
  partial.note += adapters ? ", activations, logits and workspaces are missing"
                           : "; activations, logits and workspaces are missing";
  partial.note += ": this is not the memory that the job needs.";
  return partial;
}

/// What nvidia-smi shows beyond the allocator's memory: the context of the card, and what the user states.
void add_context(Estimate& estimate, const CudaContext& context, const Overrides& overrides) {
  const auto from_gib = [](double gib) { return static_cast<Bytes>(gib * static_cast<double>(kGiB)); };
  const Bytes misc = from_gib(overrides.misc_overhead_gib.value_or(0.0));
  const auto own = [&](Bytes bytes) {
    return misc + (overrides.cuda_context_gib ? from_gib(*overrides.cuda_context_gib) : bytes);
  };
  estimate.device = {estimate.reserved.low + own(context.low), estimate.reserved.expected + own(context.expected),
                     estimate.reserved.high + own(context.high)};
}

/// The card behind a name or an amount of memory, `gpu` being the catalog's entry or what stands for it; nothing with
/// an error among the issues.
std::optional<Card> choose_card(const Catalog& catalog, const GpuQuery& query, Gpu& gpu, Issues& issues) {
  Card card;
  const Gpu* known = query.name.empty() ? nullptr : find_gpu(catalog.gpus(), query.name);
  if (query.memory_gib > 0.0) {
    if (known != nullptr) gpu = *known;
    card.visible = static_cast<Bytes>(query.memory_gib * static_cast<double>(kGiB));
    card.name = query.name.empty() ? format_gib(card.visible) : query.name;
    card.context = cuda_context(gpu).expected;
    card.estimated = "The memory that you state is taken as what torch sees; the CUDA context is estimated.";
    return card;
  }
  if (query.name.empty() && query.vram_gb > 0.0) return card_of_size(query.vram_gb).card;
  if (known == nullptr) {
    const std::string near = nearest_gpu(catalog.gpus(), query.name);
    std::string message = "The catalog has no card of the name \"" + query.name + "\".";
    if (!near.empty()) message += " Near it is " + near + ".";
    message += " Or state its memory: {\"memory_gib\": 24}.";
    issues.push_back({"UNKNOWN_GPU", Severity::kError, "/gpu", std::move(message), near});
    return std::nullopt;
  }
  gpu = *known;
  return choice_of(gpu).card;
}

}  // namespace

std::string_view engine_version() {
  return TIDEMARK_VERSION;
}

Issues Engine::load_catalog(std::string_view models_json, std::string_view gpus_json) {
  return catalog_.load(models_json, gpus_json);
}

Answer Engine::answer(const Value& document) const {
  Question question = read(document);
  Answer& answer = question.answer;
  if (!question.complete) return std::move(answer);
  Estimate result = estimate(answer.architecture, answer.job);
  if (!question.take(result.issues)) return std::move(answer);
  result.issues.clear();
  if (question.by_count) result.architecture = answer.model;
  add_context(result, cuda_context(question.gpu), answer.overrides);
  for (const Card& card : question.cards) {
    answer.fits.push_back(check_fit(result.allocated, card, answer.overrides));
  }
  answer.estimate = std::move(result);
  return std::move(answer);
}

bool Engine::Question::take(Issues& found) {
  for (Issue& issue : found) {
    if (model != nullptr && issue.path.rfind("/config", 0) == 0) issue.path = "/model";
    if (issue.code == "UNSUPPORTED_ARCHITECTURE" && model != nullptr && model->parameters() > 0) {
      answer.partial = partial_answer(*model, answer.job);
    }
    answer.issues.push_back(std::move(issue));
  }
  return !has_error(answer.issues);
}

Engine::Question Engine::read(const Value& document) const {
  Question question;
  Answer& answer = question.answer;
  answer.engine = engine_version();
  answer.catalog = catalog_.date();
  Issues& issues = answer.issues;
  Request request = read_request(document, issues);
  answer.job = request.job;
  answer.overrides = request.overrides;

  // Everything that is wrong is told at once: a bad name does not hide behind a bad batch size.
  Gpu& first = question.gpu;  // the first card decides which kernels run; without one, an A100's do
  first.compute_capability = request.job.compute_capability;
  for (const GpuQuery& query : request.gpus) {
    Gpu gpu = first;
    if (auto card = choose_card(catalog_, query, gpu, issues)) {
      if (question.cards.empty()) first = std::move(gpu);
      question.cards.push_back(std::move(*card));
    }
  }
  if (first.compute_capability > 0) answer.job.compute_capability = first.compute_capability;

  ConfigResult config;
  if (request.config.is_object()) {
    config = read_config(request.config, request.class_name);
  } else if (!request.model.empty() || request.parameters > 0.0) {
    const ModelEntry* model = choose_model(catalog_, request, issues);
    if (model == nullptr) return question;
    question.model = model;
    question.by_count = request.parameters > 0.0;
    answer.model = model->id;
    config = read_config(model->config, request.class_name);
    config.architecture.catalog_id = model->id;
    config.architecture.published_parameters = model->published;
  } else {
    return question;
  }
  const bool readable = question.take(config.issues);
  answer.architecture = std::move(config.architecture);
  if (answer.model.empty()) answer.model = answer.architecture.class_name;
  if (!readable) return question;
  check_magnitude(answer.architecture, answer.job, issues);
  check_positions(answer.architecture, answer.job, issues);
  question.complete = !has_error(issues);
  return question;
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
