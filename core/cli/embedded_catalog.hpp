#pragma once

#include <string_view>

namespace tidemark {

/// catalog/models.json and catalog/gpus.json as they were when the program was built (cmake/embed.cmake).
std::string_view embedded_models();
std::string_view embedded_gpus();

}  // namespace tidemark
