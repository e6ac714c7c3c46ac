#pragma once

#include <string>

namespace tidemark {

/// catalog/models.json and catalog/gpus.json as they were when the program was built (cmake/embed.cmake).
std::string embedded_models();
std::string embedded_gpus();

}  // namespace tidemark
