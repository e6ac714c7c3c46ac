#!/usr/bin/env bash
# The same request gives the same bytes whichever compiler built the engine: g++ (preset release) and clang++-14
# (preset clang) answer the golden requests, the requests of every oracle record and every published measurement, and
# requests drawn at random from all models and options; each request is a test case.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
jobs=${TIDEMARK_JOBS:-$(nproc 2>/dev/null || echo 2)}

cmake --preset clang >/dev/null
for preset in release clang; do
  cmake --build --preset "$preset" -j "$jobs" --target tidemark_handle
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp tests/golden/requests.jsonl "$dir/requests"
python3 - tests/oracle/records*.jsonl tests/measured/requests.jsonl >>"$dir/requests" <<'PY'
import json
import sys

for path in sys.argv[1:]:
    for line in open(path, encoding="utf-8"):
        print(json.dumps(json.loads(line)["request"]))
PY
echo '{"verb": "describe"}' | build/bin/tidemark_handle catalog | python3 tests/determinism/draw.py 800 >>"$dir/requests"

answers_of() {
  local build=$1
  "$build/bin/tidemark_handle" catalog <"$dir/requests" >"$dir/$build.answers"
  # What is printed of an answer, as text and Markdown, is the same, too.
  "$build/bin/tidemark_handle" catalog --printed <tests/golden/requests.jsonl >"$dir/$build.printed"
}
answers_of build-clang &
answers_of build
wait $!

compare() {
  python3 - "$@" <<'PY'
import sys

requests, *others = sys.argv[1:]
passed = failed = 0
requests = open(requests, encoding="utf-8").read().splitlines()
for ours, theirs in zip(others[::2], others[1::2]):
    a, b = (open(p, encoding="utf-8").read().splitlines() for p in (ours, theirs))
    if len(a) != len(b) or not a or len(a) > len(requests):
        print(f"FAILED: {len(a)} and {len(b)} answers to {len(requests)} requests")
        failed += 1
    for request, x, y in zip(requests, a, b):
        if x == y:
            passed += 1
        else:
            failed += 1
            at = next((i for i, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
            print(f"FAILED: {request[:300]}\n  g++:   {x[max(0, at - 60):at + 60]}\n  clang: {y[max(0, at - 60):at + 60]}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed == 0)
PY
}
compare "$dir/requests" "$dir/build.answers" "$dir/build-clang.answers" "$dir/build.printed" "$dir/build-clang.printed"
