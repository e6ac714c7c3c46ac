# Packages come from the system where it has them, else from a pinned source (needs a network).
include(FetchContent)

function(tidemark_dependency name version url hash)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    message(STATUS "${name} ${version} not installed: fetching it")
    FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${hash} SYSTEM)
    FetchContent_MakeAvailable(${name})
  endif()
endfunction()

tidemark_dependency(nlohmann_json 3.10
  https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
  d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
if(TIDEMARK_CLI)
  tidemark_dependency(CLI11 2.1
    https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.5.0.tar.gz
    17e02b4cddc2fa348e5dbdbb582c59a3486fa2b2433e70a0c3bacb871334fd55)
endif()
