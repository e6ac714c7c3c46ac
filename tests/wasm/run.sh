#!/bin/sh
# The engine as WebAssembly, under Node: its JS interface, the same answers as native (where build/ holds tidemark_handle)
# and the types; with TIDEMARK_WASM_TESTS=1 also the C++ unit tests compiled as WebAssembly.
#   run.sh [build folder of the native engine] [of the wasm engine]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
native=${1:-$root/build}
wasm=${2:-$root/build/wasm}
cd "$root"

if [ $# -lt 2 ]; then wasm/build.sh; fi

[ ! -x "$native/bin/tidemark_handle" ] || export TIDEMARK_HANDLE="$native/bin/tidemark_handle"
export TIDEMARK_ENGINE="$wasm/bin"
[ -d web/node_modules ] || npm ci --prefix web --ignore-scripts --no-audit --no-fund  # types.test.mjs asks tsc
node --test tests/wasm/*.test.mjs

if [ -n "${TIDEMARK_WASM_TESTS:-}" ]; then
  node "$wasm/bin/tidemark_unit_tests.js" --reporter console | tee "$wasm/unit-tests.log" || true
  # "All tests passed (12 assertions in 3 test cases)", or "test cases: 3 | 2 passed | 1 failed"
  node -e '
    const text = require("fs").readFileSync(process.argv[1], "utf8").replace(/\x1b\[[0-9;]*m/g, "");
    const all = text.match(/All tests passed \(.* in (\d+) test cases?\)/);
    const some = text.match(/test cases:\s*(\d+) \|(?:\s*(\d+) passed \|)?\s*(\d+) failed/);
    const [passed, failed] = all ? [+all[1], 0] : some ? [+(some[2] ?? 0), +some[3]] : [0, 1];
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed > 0 ? 1 : 0);
  ' "$wasm/unit-tests.log"
fi
