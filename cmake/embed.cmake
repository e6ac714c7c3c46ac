# Writes a C++ file that holds the texts of the catalog, of the answers' schema and of the script that traces models:
#   cmake -DOUT=… -DMODELS=… -DGPUS=… -DANSWERS=… -DTRACE=… -P embed.cmake
# A literal may have 65536 characters, so each line of a file is one of its own.
function(pieces file result)
  file(READ ${file} text)
  string(REPLACE "\n" ")json\" \"\\n\",\n    R\"json(" text "${text}")
  set(${result} "R\"json(${text})json\"" PARENT_SCOPE)
endfunction()

# The function of that name returns the file's text.
function(embed name file result)
  pieces(${file} text)
  set(${result} "std::string ${name}() {
  static const char* const kLines[] = {
    ${text}};
  std::string text;
  for (const char* line : kLines) text += line;
  return text;
}" PARENT_SCOPE)
endfunction()

embed(embedded_models ${MODELS} models)
embed(embedded_gpus ${GPUS} gpus)
embed(embedded_answer_schema ${ANSWERS} answers)
embed(embedded_trace_script ${TRACE} trace)
file(WRITE ${OUT}.new "// Made by cmake/embed.cmake.
#include \"core/cli/embedded.hpp\"

namespace tidemark {

${models}

${gpus}

${answers}

${trace}

}  // namespace tidemark
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
