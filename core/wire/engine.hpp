#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/answer/answer.hpp"
#include "core/catalog/catalog.hpp"
#include "core/engine/estimator.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// "0.1.0".
std::string_view engine_version();

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

  /// The same request understood, before anything is computed.
  using Question = Understood;
  Question read(const Value& request) const;

  const Estimator& estimator() const { return estimator_; }
  const Catalog& catalog() const { return estimator_.catalog(); }

 private:
  std::string handle_parsed(const Value& request, const Issues& before, int indent) const;

  Estimator estimator_{engine_version()};
};

}  // namespace tidemark
