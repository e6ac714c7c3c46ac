# Packages come from the system where it has them, else from a pinned source (needs a network).
include(FetchContent)

function(tidemark_dependency name version url hash)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    message(STATUS "${name} ${version} not installed: fetching it")
    FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${hash})
    FetchContent_MakeAvailable(${name})
  endif()
endfunction()
