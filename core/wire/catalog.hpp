#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/architecture.hpp"
#include "core/runtime/gpu.hpp"
#include "core/units/bytes.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// One line of catalog/models.json.
struct ModelEntry {
  std::string id;                          ///< "meta-llama/Llama-2-7b-hf"
  std::vector<std::string> aliases;        ///< "llama-2-7b"
  std::vector<std::string> same_arch_ids;  ///< other repositories of the same shape
  std::string family;                      ///< "Llama 2"
  std::string kind;                        ///< text, vlm, encoder, encoder-decoder, vision
  Value config;                            ///< config.json vocabulary
  Count computed = 0;   ///< parameters, counted from the architecture; 0 when that is not implemented
  Count published = 0;  ///< parameters, as a cited source states them; 0 when none does

  /// The count to show: of what is trained where that can be computed (a published one may count buffers or copies).
  Count parameters() const { return computed > 0 ? computed : published; }
  /// config.json's `model_type`, or an empty view.
  std::string_view model_type() const;
};

/// Models and GPUs, read from the catalog's two files.
class Catalog {
 public:
  /// Replaces the content. Trouble with the text is told in the result; what could be read is kept.
  Issues load(std::string_view models_json, std::string_view gpus_json);

  const std::string& date() const { return date_; }
  const std::vector<ModelEntry>& models() const { return models_; }
  const std::vector<Gpu>& gpus() const { return gpus_; }

  /// By id, alias or same_arch_id, in this order, without regard to case; null when there is none.
  const ModelEntry* find_model(std::string_view name) const;
  /// The names nearest to a misspelt one, best first, at most `most`.
  std::vector<std::string> nearest_models(std::string_view name, std::size_t most) const;
  /// Entries with a name that contains `pattern`, letters' case ignored; all when it is empty.
  std::vector<const ModelEntry*> matching_models(std::string_view pattern) const;
  std::vector<const Gpu*> matching_gpus(std::string_view pattern) const;
  /// The dense Llama-like architecture of a well-known publisher whose count is nearest; null without a catalog.
  const ModelEntry* model_of_size(double parameters) const;

 private:
  struct Name {
    std::string folded;     // lower case
    std::size_t model = 0;  // index into models_
    int rank = 0;           // 0 id, 1 alias, 2 same_arch_id
  };

  std::string date_;
  std::vector<ModelEntry> models_;
  std::vector<Gpu> gpus_;
  std::vector<Name> names_;  // sorted by folded, then rank
};

/// Whether the engine has a block program for it.
bool is_modelled(const ModelEntry& model);

/// Reads gpus.json's list.
std::vector<Gpu> read_gpus(const Value& document);

/// Letters of ASCII in lower case.
std::string lower_case(std::string_view text);

}  // namespace tidemark
