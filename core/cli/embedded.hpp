#pragma once

#include <string>

namespace tidemark {

/// catalog/models.json and catalog/gpus.json as they were when the program was built (cmake/embed.cmake).
std::string embedded_models();
std::string embedded_gpus();
/// The text of core/answer/answer.schema.json.
std::string embedded_answer_schema();
/// The text of core/bindings/python/tidemark/trace.py.
std::string embedded_trace_script();

}  // namespace tidemark
