#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/answer/answer.hpp"
#include "core/catalog/catalog.hpp"
#include "core/fit/fit.hpp"
#include "core/runtime/gpu.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// The engine behind its one seam: a request in, an answer out. Opens no files; the catalog is handed to it.
class Engine {
 public:
  /// The texts of catalog/models.json and catalog/gpus.json. Errors mean that it could not be read.
  Issues load_catalog(std::string_view models_json, std::string_view gpus_json);

  /// JSON in, JSON out (contract, schema 1). Never fails: trouble comes back as issues.
  std::string handle(std::string_view request) const;

  /// The same for a document that is parsed already, `indent` spaces per level.
  std::string handle(const Value& request, int indent = 0) const;

  /// The answer to an `estimate` request, before it becomes JSON.
  Answer answer(const Value& request) const;

  /// A request understood, before anything is computed.
  struct Question {
    Answer answer;                      ///< model, architecture, job, overrides, issues; no figures yet
    std::vector<CardChoice> cards;      ///< that the request names
    Gpu gpu;                            ///< the first of them, whose kernels run
    const ModelEntry* model = nullptr;  ///< of the catalog, when the request does not bring a config
    bool by_count = false;              ///< the model stands for any of that many parameters
    bool complete = false;              ///< there is no error so far

    /// Adds what was found to the answer's issues; false when there is an error among them.
    bool take(Issues& found);
  };
  Question read(const Value& request) const;

  const Catalog& catalog() const { return catalog_; }

 private:
  Question understand(const Value& request) const;
  std::string handle_parsed(const Value& request, const Issues& before, int indent) const;

  Catalog catalog_;
};

/// "0.1.0".
std::string_view engine_version();

}  // namespace tidemark
