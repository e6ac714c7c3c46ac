# One interface target carries the compile flags of all our code.
add_library(tidemark_flags INTERFACE)
target_compile_options(tidemark_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wno-missing-field-initializers
  -ffp-contract=off)
target_include_directories(tidemark_flags INTERFACE ${PROJECT_SOURCE_DIR})

# The engine neither throws nor asks for types at run time.
add_library(tidemark_engine_flags INTERFACE)
target_link_libraries(tidemark_engine_flags INTERFACE tidemark_flags)
target_compile_options(tidemark_engine_flags INTERFACE -fno-exceptions -fno-rtti)
