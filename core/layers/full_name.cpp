#include "core/layers/full_name.hpp"

#include "core/layers/program.hpp"

namespace tidemark {

std::string full_name(const Architecture& architecture, std::string_view path) {
  // mcore-bridge f020e47 src/mcore_bridge/model/mm_gpt_model.py: a GPTModel is the language model, table and head too.
  const Program* language = architecture.language;
  const bool of_gpt_model =
      path.starts_with("embedding.") || path.starts_with("decoder.") || path.starts_with("output_layer");
  if (of_gpt_model && language != nullptr && language->implementation != nullptr) {
    return std::string{"language_model."}.append(path);
  }
  if (architecture.facts.full_name != nullptr) return architecture.facts.full_name(architecture, path);
  if (language != nullptr) return name_within_body(architecture, path, "language_model.");
  // The body alone is the model: its modules' names lack `base_model_prefix`.
  const std::string_view body = architecture.body_prefix;
  if (architecture.head == Head::kNone && path.starts_with(body)) path.remove_prefix(body.size());
  return std::string{path};
}

std::string name_within_body(const Architecture& architecture, std::string_view path, std::string_view language) {
  if (path.starts_with("lm_head")) return std::string{path};
  const std::string_view body = architecture.body_prefix;
  std::string name{architecture.head == Head::kNone ? std::string_view{} : body};
  if (path.starts_with(body)) {
    path.remove_prefix(body.size());
    name += language;
  }
  return name.append(path);
}

std::string name_beside_whole(const Architecture& architecture, std::string_view path) {
  const bool is_language = path.starts_with("lm_head") || path.starts_with(architecture.body_prefix);
  return std::string{is_language ? "language_model." : ""}.append(path);
}

std::string name_as_is(const Architecture&, std::string_view path) {
  return std::string{path};
}

std::string renamed(std::string_view path, std::string_view from, std::string_view to) {
  if (!path.starts_with(from)) return std::string{path};
  return std::string{to}.append(path.substr(from.size()));
}

}  // namespace tidemark
