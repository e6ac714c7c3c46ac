# Half of what the compiler reads is the same few headers of the standard library: they are read once for a target, with the
# further headers that the caller names.
# The build for the sanitizers is without, so that a file which forgets to include one of them is found.
option(TIDEMARK_PCH "Precompile the standard library's headers" ON)
function(tidemark_precompile target)
  if(NOT TIDEMARK_PCH)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstdint> <functional> <initializer_list> <map> <memory> <optional> <span> <string>
    <string_view> <utility> <vector> ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Without the time in it, a compiler cache can tell that two are the same.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
