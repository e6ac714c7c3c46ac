#include "core/wire/catalog.hpp"

#include <algorithm>

#include "core/model/read_config.hpp"
#include "core/step/simulation.hpp"
#include "core/units/nearest.hpp"
#include "core/units/sorted.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

std::string text_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_string() ? value->string : std::string{};
}

std::int64_t integer_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_number() ? static_cast<std::int64_t>(value->real) : 0;
}

std::vector<std::string> texts_at(const Value& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const Value* value = object.find(key); value != nullptr) {
    for (const Value& item : value->items) {
      if (item.is_string()) texts.push_back(item.string);
    }
  }
  return texts;
}

ModelEntry read_model(const Value& row) {
  ModelEntry model;
  model.id = text_at(row, "id");
  model.aliases = texts_at(row, "aliases");
  model.same_arch_ids = texts_at(row, "same_arch_ids");
  model.family = text_at(row, "family");
  model.kind = text_at(row, "kind");
  if (const Value* config = row.find("config"); config != nullptr) model.config = *config;
  if (const Value* parameters = row.find("parameters"); parameters != nullptr) {
    model.computed = integer_at(*parameters, "computed");
    if (const Value* published = parameters->find("published"); published != nullptr) {
      // Several sources may state a count: prefer the one that counts what is trained (no difference to explain).
      for (const Value& source : published->items) {
        const bool exact = integer_at(source, "delta") == 0;
        if (model.published == 0 || exact) model.published = integer_at(source, "count");
        if (exact) break;
      }
    }
  }
  return model;
}

Bytes mebibytes_at(const Value& object, std::string_view key) {
  const Value* list = object.find(key);
  Bytes smallest = 0;
  if (list == nullptr) return 0;
  for (const Value& item : list->items) {
    const Bytes bytes = static_cast<Bytes>(item.real * static_cast<double>(kMiB));
    if (smallest == 0 || bytes < smallest) smallest = bytes;
  }
  return smallest;
}

const Value* list_in(const Value& document, std::string_view key) {
  const Value* list = document.find(key);
  return list != nullptr && list->is_array() ? list : nullptr;
}

// Publishers whose Llama-type models serve as the measure of "a model of that size", the first preferred.
constexpr std::string_view kReferencePublishers[] = {"meta-llama/", "TinyLlama/", "HuggingFaceTB/", "huggyllama/"};

int publisher_rank(std::string_view id) {
  int rank = 0;
  for (std::string_view publisher : kReferencePublishers) {
    if (id.substr(0, publisher.size()) == publisher) return rank;
    ++rank;
  }
  return -1;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view ModelEntry::model_type() const {
  const Value* type = config.find("model_type");
  return type != nullptr ? std::string_view{type->string} : std::string_view{};
}

std::vector<Gpu> read_gpus(const Value& document) {
  std::vector<Gpu> gpus;
  const Value* rows = list_in(document, "gpus");
  if (rows == nullptr) return gpus;
  for (const Value& row : rows->items) {
    Gpu gpu;
    gpu.name = text_at(row, "name");
    gpu.aliases = texts_at(row, "aliases");
    gpu.vendor = text_at(row, "vendor");
    gpu.architecture = text_at(row, "architecture");
    gpu.year = static_cast<int>(integer_at(row, "year"));
    gpu.compute_capability = static_cast<int>(integer_at(row, "compute_capability"));
    if (const Value* unified = row.find("unified"); unified != nullptr) gpu.unified = unified->boolean;
    if (const Value* memory = row.find("memory_gb"); memory != nullptr && memory->is_number()) {
      gpu.marketed_bytes = static_cast<Bytes>(memory->real * static_cast<double>(kGiB));
    }
    if (const Value* usable = row.find("usable"); usable != nullptr) {
      gpu.nvidia_smi_bytes = mebibytes_at(*usable, "nvidia_smi_mib");
      gpu.torch_visible_bytes = mebibytes_at(*usable, "torch_visible_mib");
    }
    if (!gpu.name.empty()) gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Issues Catalog::load(std::string_view models_json, std::string_view gpus_json) {
  Issues issues;
  models_.clear();
  gpus_.clear();
  names_.clear();
  date_.clear();

  const Value models = parse_json(models_json, "/models", issues);
  if (const Value* rows = list_in(models, "models"); rows != nullptr) {
    models_.reserve(rows->items.size());
    for (const Value& row : rows->items) {
      ModelEntry model = read_model(row);
      if (!model.id.empty() && model.config.is_object()) models_.push_back(std::move(model));
    }
    date_ = text_at(models, "date");
  }
  const Value gpus = parse_json(gpus_json, "/gpus", issues);
  gpus_ = read_gpus(gpus);
  date_ = std::max(date_, text_at(gpus, "date"));

  for (std::size_t i = 0; i < models_.size(); ++i) {
    names_.push_back({lower_case(models_[i].id), i, 0});
    for (const std::string& alias : models_[i].aliases) names_.push_back({lower_case(alias), i, 1});
    for (const std::string& id : models_[i].same_arch_ids) names_.push_back({lower_case(id), i, 2});
  }
  sort_list(names_, [](const Name& a, const Name& b) {
    const int order = a.folded.compare(b.folded);
    return order != 0 ? order < 0 : a.rank < b.rank;
  });
  if (!has_error(issues) && (models_.empty() || gpus_.empty())) {
    issues.push_back({"INVALID_CATALOG", Severity::kError, "", "The catalog lists no models or no GPUs.", ""});
  }
  return issues;
}

const ModelEntry* Catalog::find_model(std::string_view name) const {
  const std::string wanted = lower_case(name);
  const auto found = std::lower_bound(names_.begin(), names_.end(), wanted,
                                      [](const Name& entry, const std::string& key) { return entry.folded < key; });
  return found != names_.end() && found->folded == wanted ? &models_[found->model] : nullptr;
}

std::vector<std::string> Catalog::nearest_models(std::string_view name, std::size_t most) const {
  // What follows the publisher decides: "llama/Llama-2-7b" should find meta-llama's.
  std::vector<std::string_view> candidates;
  std::vector<std::size_t> owners;
  const auto offer = [&](std::string_view text, std::size_t owner) {
    candidates.push_back(text);
    owners.push_back(owner);
  };
  for (std::size_t i = 0; i < models_.size(); ++i) {
    for (const std::string& alias : models_[i].aliases) offer(alias, i);
    offer(models_[i].id, i);
    const std::size_t slash = models_[i].id.find('/');
    if (slash != std::string::npos) offer(std::string_view{models_[i].id}.substr(slash + 1), i);
  }
  std::vector<std::string> found;
  std::string_view wanted = name;
  for (int pass = 0; pass < 2 && found.size() < most; ++pass) {
    while (found.size() < most) {
      const std::string near = nearest(wanted, candidates);
      if (near.empty()) break;
      std::size_t owner = models_.size();
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i] == near) {
          owner = owners[i];
          break;
        }
      }
      found.push_back(models_[owner].id);
      // Each model is offered once.
      for (std::size_t i = candidates.size(); i-- > 0;) {
        if (owners[i] != owner) continue;
        candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(i));
        owners.erase(owners.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    const std::size_t slash = wanted.find('/');
    if (slash == std::string_view::npos) break;
    wanted = wanted.substr(slash + 1);
  }
  return found;
}

std::vector<const ModelEntry*> Catalog::matching_models(std::string_view pattern) const {
  const std::string wanted = lower_case(pattern);
  const auto matches = [&](std::string_view name) { return lower_case(name).find(wanted) != std::string::npos; };
  std::vector<const ModelEntry*> found;
  for (const ModelEntry& model : models_) {
    bool match = matches(model.id) || matches(model.family);
    for (const std::string& alias : model.aliases) match = match || matches(alias);
    for (const std::string& id : model.same_arch_ids) match = match || (!wanted.empty() && matches(id));
    if (match) found.push_back(&model);
  }
  return found;
}

std::vector<const Gpu*> Catalog::matching_gpus(std::string_view pattern) const {
  const std::string wanted = lower_case(pattern);
  const std::string key = gpu_key(pattern);
  const auto matches = [&](std::string_view name) {
    return lower_case(name).find(wanted) != std::string::npos ||
           (!key.empty() && gpu_key(name).find(key) != std::string::npos);
  };
  std::vector<const Gpu*> found;
  for (const Gpu& gpu : gpus_) {
    bool match = matches(gpu.name) || matches(gpu.vendor) || matches(gpu.architecture);
    for (const std::string& alias : gpu.aliases) match = match || matches(alias);
    if (match) found.push_back(&gpu);
  }
  return found;
}

bool is_modelled(const ModelEntry& model) {
  return !has_error(read_config(model.config).issues);
}

const ModelEntry* Catalog::model_of_size(double parameters) const {
  const ModelEntry* best = nullptr;
  double best_distance = 0.0;
  int best_rank = 0;
  for (const ModelEntry& model : models_) {
    if (model.kind != "text" || model.model_type() != "llama" || model.parameters() <= 0) continue;
    const int rank = publisher_rank(model.id);
    if (rank < 0) continue;
    const auto count = static_cast<double>(model.parameters());
    const double distance = std::max(parameters / count, count / parameters);
    // Llama 1 and 2 differ by nothing or by a buffer: within a thousandth the better known one counts.
    if (best == nullptr || distance < 0.999 * best_distance || (distance < 1.001 * best_distance && rank < best_rank)) {
      best = &model;
      best_distance = distance;
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace tidemark
