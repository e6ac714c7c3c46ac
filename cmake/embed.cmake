# Writes a C++ file that holds the catalog's texts: cmake -DOUT=… -DMODELS=… -DGPUS=… -P embed.cmake
# A literal may not be of any length, so each line of a file becomes one piece; neighbours are joined by the compiler.
function(pieces file result)
  file(READ ${file} text)
  string(REPLACE "\n" ")json\"\n  \"\\n\" R\"json(" text "${text}")
  set(${result} "R\"json(${text})json\"" PARENT_SCOPE)
endfunction()

pieces(${MODELS} models)
pieces(${GPUS} gpus)
file(WRITE ${OUT}.new "// Made by cmake/embed.cmake.
#include \"core/cli/embedded_catalog.hpp\"

namespace tidemark {

std::string_view embedded_models() {
  static const char text[] = ${models};
  return {text, sizeof text - 1};
}

std::string_view embedded_gpus() {
  static const char text[] = ${gpus};
  return {text, sizeof text - 1};
}

}  // namespace tidemark
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
