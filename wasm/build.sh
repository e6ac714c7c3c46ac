#!/bin/sh
# Builds the engine as WebAssembly into build/wasm/bin; with TIDEMARK_WASM_TESTS=1 the C++ unit tests as well.
# Needs Emscripten (apt install emscripten, or emsdk).
set -eu
cd "$(dirname "$0")/.."
# Debian's emcc looks for acorn there, and dies without it.
if [ -d /usr/share/nodejs ]; then export NODE_PATH="/usr/share/nodejs${NODE_PATH:+:$NODE_PATH}"; fi
emcmake cmake --preset wasm -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/wasm/compile.sh"
cmake --build --preset wasm --parallel "${TIDEMARK_JOBS:-2}"
if [ -n "${TIDEMARK_WASM_TESTS:-}" ]; then
  cmake --build --preset wasm --parallel "${TIDEMARK_JOBS:-2}" --target tidemark_unit_tests
fi
