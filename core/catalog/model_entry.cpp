#include "core/catalog/model_entry.hpp"

#include "core/catalog/fields.hpp"

namespace tidemark {

ModelEntry read_model_entry(const Value& line) {
  ModelEntry model;
  model.id = text_at(line, "id");
  model.aliases = texts_at(line, "aliases");
  model.same_arch_ids = texts_at(line, "same_arch_ids");
  model.family = text_at(line, "family");
  model.kind = text_at(line, "kind");
  if (const Value* config = line.find("config"); config != nullptr) model.config = *config;
  if (const Value* parameters = line.find("parameters"); parameters != nullptr) {
    model.computed = integer_at(*parameters, "computed");
    if (const Value* published = parameters->find("published"); published != nullptr) {
      // Several sources may state a count: prefer the one that counts what is trained (no difference to explain).
      for (const Value& source : published->items) {
        const Count delta = integer_at(source, "delta");
        const bool exact = delta == 0;
        // A page's copy of the catalog leaves out the count that the difference gives.
        const Count count = source.find("count") != nullptr ? integer_at(source, "count") : model.computed + delta;
        if (model.published == 0 || exact) model.published = count;
        if (exact) break;
      }
    }
  }
  return model;
}

std::string_view ModelEntry::model_type() const {
  const Value* type = config.find("model_type");
  return type != nullptr ? std::string_view{type->string} : std::string_view{};
}

}  // namespace tidemark
