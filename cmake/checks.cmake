# Every job of CI is a target: cmake --build build --target check-truth runs exactly what CI runs.
#   check-unit check-catalog check-traces check-cli check-truth check-counts check-answers   from the tests' labels
#   check-determinism                                             g++ and clang++ answer with the same bytes
#   check-sanitize                                                the unit tests under asan and ubsan
#   check-format check-tidy                                       the sources themselves
#   site                                                          the page, the widget and the documentation in one folder, dist/site
#   check-site                                                    its links, and its calculators in a browser
#   check-generators                                              the widget in five generators of documentation (not in CI: it takes minutes)
#   check-states                                                  what the page hands out, for 510 states in three browsers (the same)
#   check-lighthouse                                              Lighthouse's audit of the hosted page, dist/site (the same)
if(TIDEMARK_TESTS AND NOT EMSCRIPTEN)
  foreach(label IN ITEMS unit catalog traces cli truth counts answers)
    add_custom_target(check-${label}
      COMMAND ${CMAKE_CTEST_COMMAND} --output-on-failure --no-tests=error -L "^${label}$"
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
      USES_TERMINAL VERBATIM)
  endforeach()
  add_dependencies(check-unit tidemark_unit_tests)
  add_dependencies(check-truth tidemark_truth)
  add_dependencies(check-counts tidemark_handle)
  if(TARGET tidemark)
    add_dependencies(check-cli tidemark)
  endif()

  add_custom_target(check-determinism
    COMMAND ${PROJECT_SOURCE_DIR}/tests/determinism/run.sh
    USES_TERMINAL VERBATIM)
  add_custom_target(check-sanitize
    COMMAND ${CMAKE_COMMAND} --preset asan-ubsan
    COMMAND ${CMAKE_COMMAND} --build --preset asan-ubsan --target tidemark_unit_tests
    COMMAND ${CMAKE_CTEST_COMMAND} --preset asan-ubsan -L "^unit$"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
endif()

if(NOT EMSCRIPTEN)
  # MkDocs comes from the Python package index, into build/site.
  add_custom_target(site
    COMMAND node web/site/build.mjs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
  add_custom_target(check-site
    COMMAND node tests/docs/site.mjs
    DEPENDS site
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
  add_custom_target(check-generators
    COMMAND node tests/docs/run.mjs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
  add_custom_target(check-states
    COMMAND node tests/browser/states.mjs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
  add_custom_target(check-lighthouse
    COMMAND node tests/lighthouse/run.mjs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
endif()

file(GLOB_RECURSE cpp_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/core/*.cpp ${PROJECT_SOURCE_DIR}/core/*.hpp
  ${PROJECT_SOURCE_DIR}/tests/*.cpp ${PROJECT_SOURCE_DIR}/tests/*.hpp
  ${PROJECT_SOURCE_DIR}/bench/*.cpp ${PROJECT_SOURCE_DIR}/wasm/*.cpp ${PROJECT_SOURCE_DIR}/wasm/*.hpp)
find_program(CLANG_FORMAT NAMES clang-format-14)
if(CLANG_FORMAT)
  add_custom_target(check-format COMMAND ${CLANG_FORMAT} --dry-run -Werror ${cpp_sources} VERBATIM)
endif()
# Needs the compile commands of clang: cmake --preset clang, or ./dev tidy. A quarter of an hour on two cores.
find_program(RUN_CLANG_TIDY NAMES run-clang-tidy-14)
if(RUN_CLANG_TIDY AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_custom_target(check-tidy
    COMMAND ${RUN_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR} "^${PROJECT_SOURCE_DIR}/core/.*[.]cpp$"
    DEPENDS tidemark_catalog
    USES_TERMINAL VERBATIM)
endif()
