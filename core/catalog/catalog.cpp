#include "core/catalog/catalog.hpp"

#include <algorithm>

#include "core/catalog/fields.hpp"
#include "core/units/letters.hpp"

namespace tidemark {
namespace {

/// The first figure of a list: of boards the default setting, of what torch sees the smallest.
Bytes mebibytes_at(const Value& object, std::string_view key) {
  const Value* list = object.find(key);
  if (list == nullptr || list->items.empty()) return 0;
  return static_cast<Bytes>(list->items.front().real * static_cast<double>(kMiB));
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
    if (const Value* options = list_in(row, "memory_options_gb"); options != nullptr) {
      for (const Value& gb : options->items) {
        gpu.memory_options.push_back(static_cast<Bytes>(gb.real * static_cast<double>(kGiB)));
      }
    }
    if (const Value* instances = row.find("instances"); instances != nullptr) {
      for (const Value::Member& one : instances->members) {
        gpu.instances.push_back({one.key, static_cast<int>(one.value.real)});
      }
    }
    if (!gpu.name.empty()) gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Issues Catalog::load(const Value& models, const Value& gpus) {
  Issues issues;
  models_.clear();
  date_.clear();

  if (const Value* rows = list_in(models, "models"); rows != nullptr) {
    models_.reserve(rows->items.size());
    for (const Value& row : rows->items) {
      ModelEntry model = read_model_entry(row);
      if (!model.id.empty() && model.config.is_object()) models_.push_back(std::move(model));
    }
    date_ = text_at(models, "date");
  }
  gpus_ = read_gpus(gpus);
  date_ = std::max(date_, text_at(gpus, "date"));

  names_ = ModelNames(models_);
  if (models_.empty() || gpus_.empty()) {
    issues.push_back({"INVALID_CATALOG", Severity::kError, "", "The catalog lists no models or no GPUs.", ""});
  }
  return issues;
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
