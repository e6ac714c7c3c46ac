#!/usr/bin/env bash
# The Python package as its users get it: the source distribution, the wheel that pip makes of it, an empty environment.
#   tests/bindings/run.sh [COMMAND]     COMMAND: the command whose answers the module's must be (build/bin/tidemark)
# Needs Python 3.9 or later with venv, a compiler, and a package index for scikit-build-core and nanobind. Minutes: the
# engine is compiled again, as position-independent code. TIDEMARK_PYTHON names another interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
command=$(realpath "${1:-build/bin/tidemark}")
place=$root/build/python
python=${TIDEMARK_PYTHON:-python3}

rm -rf "$place/dist" "$place/venv" "$place/empty"
mkdir -p "$place/empty"
core/bindings/python/make_sdist.py "$place/dist"
"$python" -m venv "$place/builder"
"$place/builder/bin/pip" --quiet --disable-pip-version-check install 'scikit-build-core>=0.10' 'nanobind>=2'
# Unpacked at one place, so that what was compiled for the last wheel serves this one.
mkdir -p "$place/tree"

tar -xzf "$place"/dist/tidemark-*.tar.gz -C "$place/tree" --strip-components 1
"$place/builder/bin/pip" --quiet --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir "$place/dist" "$place/tree"
"$python" -m venv "$place/venv"
"$place/venv/bin/pip" --quiet --disable-pip-version-check install --no-index --no-deps "$place"/dist/tidemark-*.whl
cd "$place/empty"
exec "$place/venv/bin/python" -I -B "$root/tests/bindings/python_test.py" "$command"
