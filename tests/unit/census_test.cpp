// Parameter counts: what the block programs declare is what the catalog counted from the published models.
#include <string>

#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// The catalog counts ViT without its classifier, whose size the job decides.
Count head_parameters(const Architecture& a) {
  return a.model_type == "vit" ? a.hidden_size * a.num_labels + a.num_labels : 0;
}

// Flan-T5's and mT5's files hold a head of its own; transformers 5.12 ties it whatever the configuration says
// (models/t5/modeling_t5.py: T5ForConditionalGeneration._tied_weights_keys).
std::int64_t tied_anyway(const Value& entry, const Architecture& a) {
  const Value* config = entry.find("config");
  const Value* tied = config == nullptr ? nullptr : config->find("tie_word_embeddings");
  const bool has_own = tied != nullptr && tied->is_bool() && !tied->boolean;
  return (a.model_type == "t5" || a.model_type == "mt5") && has_own ? a.vocab_size * a.hidden_size : 0;
}

TEST_CASE("every modelled entry of the catalog has its published number of parameters") {
  const std::string models = catalog_text("models.json");
  Issues trouble;
  const Value catalog = parse_json(models, "", trouble);
  REQUIRE(trouble.empty());
  const Value* entries = catalog.is_array() ? &catalog : catalog.find("models");
  REQUIRE(entries != nullptr);
  int counted = 0;
  for (const Value& entry : entries->items) {
    const std::string id = entry.find("id")->string;
    CAPTURE(id);
    const Value request = parse_json(R"({"schema": 1, "sequence_length": 16, "model": ")" + id + "\"}", "", trouble);
    const Answer answer = engine().answer(request);
    const Value* parameters = entry.find("parameters");
    const Value* computed = parameters == nullptr ? nullptr : parameters->find("computed");
    if (!answer.estimate || computed == nullptr || !computed->is_integer()) continue;
    if (answer.estimate->parameters.total == 0) continue;  // no block program
    ++counted;
    CHECK(answer.estimate->parameters.total ==
          computed->integer + head_parameters(answer.architecture) - tied_anyway(entry, answer.architecture));
  }
  CHECK(counted >= 160);
}

}  // namespace
}  // namespace tidemark
