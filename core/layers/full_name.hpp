#pragma once

#include <string>
#include <string_view>

#include "core/model/architecture.hpp"

namespace tidemark {

/// The full name of what a program names by its path in the class with a head: "model.layers" is "layers" in the
/// body alone. Families with names of their own say so in their row (ClassFacts::full_name).
std::string full_name(const Architecture& architecture, std::string_view path);

// Rules of more than one family. Of a model that sees, the language model's program names its own modules
// ("model.norm") and the head.

/// All else lies beside the language model in the body, whose part it is by the name `language`.
std::string name_within_body(const Architecture& architecture, std::string_view path, std::string_view language);
/// All else lies beside a whole language model, head and all.
std::string name_beside_whole(const Architecture& architecture, std::string_view path);
/// The program's paths are the names.
std::string name_as_is(const Architecture& architecture, std::string_view path);
/// `path` with its beginning replaced, where it begins so.
std::string renamed(std::string_view path, std::string_view from, std::string_view to);

}  // namespace tidemark
