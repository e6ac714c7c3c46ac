# One interface target carries the compile flags of all our code.
add_library(tidemark_flags INTERFACE)
target_compile_options(tidemark_flags INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${TIDEMARK_WERROR}>:-Werror> -Wshadow -Wno-missing-field-initializers
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping and boundless copies in std::string's own operator+ at -O3 (GCC bugs 105651, 105329).
  target_compile_options(tidemark_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
if(TIDEMARK_SANITIZE)
  target_compile_options(tidemark_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    -D_GLIBCXX_ASSERTIONS)
  # The engine has no run-time types (below): who made its objects cannot be told, and clang takes them for foreign ones.
  target_compile_options(tidemark_flags INTERFACE -fno-sanitize=vptr)
  # g++ sees std::regex (in Catch2) read what is not set once the sanitizers are in: https://gcc.gnu.org/PR105562
  target_compile_options(tidemark_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tidemark_flags INTERFACE -fsanitize=address,undefined)
endif()
if(TIDEMARK_FUZZ)
  # What libFuzzer learns from: without it "no interesting inputs were found".
  target_compile_options(tidemark_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(tidemark_flags INTERFACE ${PROJECT_SOURCE_DIR})

# The engine neither throws nor asks for types at run time.
add_library(tidemark_engine_flags INTERFACE)
target_link_libraries(tidemark_engine_flags INTERFACE tidemark_flags)
target_compile_options(tidemark_engine_flags INTERFACE -fno-exceptions -fno-rtti)

# WebAssembly: what every browser has had since 2021, one thread, and nobody who unloads the module.
if(EMSCRIPTEN)
  target_compile_options(tidemark_flags INTERFACE
    -mbulk-memory -msign-ext -mnontrapping-fptoint -fno-threadsafe-statics -fno-c++-static-destructors)
endif()
