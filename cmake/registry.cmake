# tidemark_registry(STRUCT S FUNCTION f HEADER h FOLDER d EXCEPT names...): makes `std::span<const S* const> f()`, the rows of
# every file of a folder in the order of the files' names, so that adding a file adds its rows. <d>/<name>.cpp defines
# `const SRows <name>_rows`; the files named after EXCEPT hold no rows. All in NAMESPACE, else in tidemark. Adds the source
# to registry_sources.
function(tidemark_registry)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "STRUCT;FUNCTION;HEADER;FOLDER;NAMESPACE" "EXCEPT")
  file(GLOB files CONFIGURE_DEPENDS ${arg_FOLDER}/*.cpp)
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE tidemark)
  endif()
  set(declarations "")
  set(additions "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(NOT name IN_LIST arg_EXCEPT)
      string(APPEND declarations "extern const ${arg_STRUCT}Rows ${name}_rows;\n")
      string(APPEND additions "    &${name}_rows,\n")
    endif()
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${arg_FUNCTION}.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/registry.cpp.in ${source} @ONLY)
  set(registry_sources ${registry_sources} ${source} PARENT_SCOPE)
endfunction()
