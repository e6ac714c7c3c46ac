#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"
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

/// Reads one line.
ModelEntry read_model_entry(const Value& line);

}  // namespace tidemark
