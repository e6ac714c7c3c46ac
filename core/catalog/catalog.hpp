#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/model_entry.hpp"
#include "core/catalog/model_names.hpp"
#include "core/runtime/gpu.hpp"
#include "core/units/bytes.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// Models and GPUs, read from the catalog's two files.
class Catalog {
 public:
  /// Replaces the content by that of models.json and gpus.json. Trouble is told in the result; what could be read is
  /// kept.
  Issues load(const Value& models, const Value& gpus);

  const std::string& date() const { return date_; }
  const std::vector<ModelEntry>& models() const { return models_; }
  const std::vector<Gpu>& gpus() const { return gpus_; }

  /// The model that a name means as people type it; nothing where several or none could be meant.
  ModelMatch find_model(std::string_view typed) const { return names_.find(typed, models_); }
  /// Models that a name which find_model() does not know may mean, best first, at most `most`: of the family and the
  /// size that it names.
  std::vector<std::string> nearest_models(std::string_view typed, std::size_t most) const {
    return names_.nearest(typed, models_, most);
  }
  /// Entries with a name that contains `pattern`, letters' case ignored; all when it is empty.
  std::vector<const ModelEntry*> matching_models(std::string_view pattern) const;
  std::vector<const Gpu*> matching_gpus(std::string_view pattern) const;
  /// The dense Llama-like architecture of a well-known publisher whose count is nearest; null without a catalog.
  const ModelEntry* model_of_size(double parameters) const;

 private:
  std::string date_;
  std::vector<ModelEntry> models_;
  std::vector<Gpu> gpus_;
  ModelNames names_;
};

/// Reads gpus.json's list.
std::vector<Gpu> read_gpus(const Value& document);

}  // namespace tidemark
