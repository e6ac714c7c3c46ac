#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/model_entry.hpp"
#include "core/catalog/model_name.hpp"

namespace tidemark {

/// The model that a typed name means, and by which rule.
struct ModelMatch {
  const ModelEntry* model = nullptr;  ///< null where no or several models could be meant
  /// What was left out of the typed name, in words; empty where the catalog lists the name as it is.
  std::string rule;
};

/// The names of the catalog's models, for look-ups by what people type.
class ModelNames {
 public:
  ModelNames() = default;
  explicit ModelNames(const std::vector<ModelEntry>& models);

  /// First by the name as it is (id, alias, repository of the same shape), then without address, folder and revision,
  /// then by what it says of family, version, size and variant.
  ModelMatch find(std::string_view typed, const std::vector<ModelEntry>& models) const;

  /// Ids of models that share family and size with the name, best first; where it names no family that we know, those
  /// spelt nearest.
  std::vector<std::string> nearest(std::string_view typed, const std::vector<ModelEntry>& models,
                                   std::size_t most) const;

 private:
  /// How surely a name belongs to its model.
  enum class Rank { kId, kAlias, kSameShape };

  struct Spelling {
    std::string folded;     // lower case
    std::size_t model = 0;  // index into the catalog's models
    Rank rank = Rank::kId;
  };

  struct Reading {
    std::string key;        // of the name: ModelName::key()
    ModelName name;         // read in the usual way
    std::size_t model = 0;  // index into the catalog's models
    Rank rank = Rank::kId;
    bool copied = false;  // the model is unsloth's copy of another
  };

  void add(std::string_view text, std::size_t model, Rank rank);
  const Spelling* spelt(std::string_view folded) const;
  const Reading* meant(const ModelName& name, bool of_unsloth, const std::vector<ModelEntry>& models) const;
  const Reading* completed(const ModelName& name) const;
  const Reading* read_any(std::string_view repository, const std::vector<ModelEntry>& models, ModelName& read) const;
  std::string corrected(const std::string& word) const;
  int likeness(const ModelName& typed, const Reading& reading) const;

  std::vector<Spelling> spellings_;  // sorted by folded, then rank
  std::vector<Reading> readings_;    // sorted by key, then rank
  std::vector<std::string> words_;   // of all readings that are ids or aliases, sorted, each once
};

}  // namespace tidemark
