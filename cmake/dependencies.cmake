# Packages come from the system where it has them, else from a pinned source (needs a network).
include(FetchContent)

function(tidemark_dependency name version url hash)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    message(STATUS "${name} ${version} not installed: fetching it")
    FetchContent_Declare(${name} SYSTEM URL ${url} URL_HASH SHA256=${hash})
    FetchContent_MakeAvailable(${name})
  endif()
endfunction()

# Emscripten's toolchain looks into its own sysroot only, and the system's /usr/include must not come along with a
# library that is nothing but headers: the one folder of it is linked into the build.
function(tidemark_system_headers target folder header)
  find_path(${folder}_INCLUDE ${folder}/${header} PATHS /usr/include /usr/local/include /opt/homebrew/include
    NO_CMAKE_FIND_ROOT_PATH)
  if(${folder}_INCLUDE)
    set(include ${PROJECT_BINARY_DIR}/include/${folder})
    file(MAKE_DIRECTORY ${include})
    file(CREATE_LINK ${${folder}_INCLUDE}/${folder} ${include}/${folder} SYMBOLIC)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE ${include})
  endif()
endfunction()

if(EMSCRIPTEN)
  tidemark_system_headers(nlohmann_json::nlohmann_json nlohmann json.hpp)
endif()
if(NOT TARGET nlohmann_json::nlohmann_json)
  tidemark_dependency(nlohmann_json 3.10
    https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
    d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
endif()
if(TIDEMARK_CLI)
  tidemark_dependency(CLI11 2.1
    https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.5.0.tar.gz
    17e02b4cddc2fa348e5dbdbb582c59a3486fa2b2433e70a0c3bacb871334fd55)
endif()
