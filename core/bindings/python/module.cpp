// The C functions as Python sees them: text in, text out. What the answers mean is tidemark/__init__.py's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "core/bindings/c/tidemark.h"

namespace {

/// Questions may take seconds: other threads of Python run meanwhile.
template <char* (*function)(const char*)>
std::string ask(const std::string& request) {
  char* text = nullptr;
  {
    nanobind::gil_scoped_release released;
    text = function(request.c_str());
  }
  if (text == nullptr) throw std::bad_alloc();
  std::string answer{text};
  tidemark_free(text);
  return answer;
}

}  // namespace

NB_MODULE(_native, module) {
  module.def("handle", &ask<tidemark_handle>, nanobind::arg("request"), "A request as JSON; its answer as JSON.");
  module.def("read_files", &ask<tidemark_import>, nanobind::arg("files"), "Files of other tools; what they say.");
  module.attr("version") = tidemark_version();
}
