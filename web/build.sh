#!/bin/sh
# Builds the page, dist/index.html: the engine, then everything in one file.
set -eu
cd "$(dirname "$0")/.."
wasm/build.sh
[ -d web/node_modules ] || npm ci --prefix web --ignore-scripts --no-audit --no-fund
node web/build.mjs
