#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/answer/answer.hpp"
#include "core/catalog/catalog.hpp"
#include "core/job/batch_size.hpp"
#include "core/job/request.hpp"
#include "core/runtime/gpu.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// A request as read, and what was wrong with it.
struct Asked {
  Request request;
  Issues issues;
};

/// A request understood, before anything is computed.
struct Understood {
  Answer answer;                      ///< model, architecture, job, overrides, issues; no figures yet
  std::vector<CardChoice> cards;      ///< that the request names
  Gpu gpu;                            ///< the first of them, whose kernels run
  const ModelEntry* model = nullptr;  ///< of the catalog, when the request does not bring a config
  bool by_count = false;              ///< the model stands for any of that many parameters
  bool complete = false;              ///< there is no error so far
  Batching batching;                  ///< what it makes of the sizes that it states

  /// Adds what was found to the answer's issues; false when there is an error among them.
  bool take(Issues& found);
};

/// Answers what is asked of one job, without JSON: names are looked up in a catalog, defaults filled in, estimates
/// made.
class Estimator {
 public:
  explicit Estimator(std::string_view version) : version_(version) {}

  /// catalog/models.json and catalog/gpus.json as documents.
  Issues load_catalog(const Value& models, const Value& gpus) { return catalog_.load(models, gpus); }
  const Catalog& catalog() const { return catalog_; }
  const std::string& version() const { return version_; }

  Understood understand(const Asked& asked) const;
  Answer answer(const Asked& asked) const;

 private:
  Understood resolve(const Asked& asked) const;

  std::string version_;
  Catalog catalog_;
};

}  // namespace tidemark
