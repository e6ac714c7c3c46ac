# Writes a C++ file that holds the catalog's texts: cmake -DOUT=… -DMODELS=… -DGPUS=… -P embed.cmake
# A literal may have 65536 characters, so each line of a file is one of its own.
function(pieces file result)
  file(READ ${file} text)
  string(REPLACE "\n" ")json\" \"\\n\",\n    R\"json(" text "${text}")
  set(${result} "R\"json(${text})json\"" PARENT_SCOPE)
endfunction()

pieces(${MODELS} models)
pieces(${GPUS} gpus)
file(WRITE ${OUT}.new "// Made by cmake/embed.cmake.
#include \"core/cli/embedded_catalog.hpp\"

namespace tidemark {

std::string embedded_models() {
  static const char* const kLines[] = {
    ${models}};
  std::string text;
  for (const char* line : kLines) text += line;
  return text;
}

std::string embedded_gpus() {
  static const char* const kLines[] = {
    ${gpus}};
  std::string text;
  for (const char* line : kLines) text += line;
  return text;
}

}  // namespace tidemark
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
