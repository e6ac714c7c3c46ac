#!/usr/bin/env bash
# What the action does: fetches the release, checks its sum, and checks the files with it.
#   TIDEMARK_FILES, _GPU, _ARGUMENTS, _VERSION, _RELEASES, _SHA256, _SARIF: the action's inputs
# Exit status: that of `tidemark check`; 1 when a job does not fit.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
archive=tidemark-linux-$(uname -m).tar.gz
release=$TIDEMARK_RELEASES/$TIDEMARK_VERSION

fetch() { curl --fail --silent --show-error --location --retry 3 --output "$place/$1" "$release/$1"; }

fetch "$archive"
sum=${TIDEMARK_SHA256:-}
if [ -z "$sum" ]; then
  fetch SHA256SUMS
  sum=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1 }' "$place/SHA256SUMS")
fi
echo "$sum  $place/$archive" | sha256sum --check --quiet || {
  echo "::error::$archive is not the file that was released: its SHA-256 differs."
  exit 2
}
tar -xzf "$place/$archive" -C "$place"
tidemark=$(find "$place" -name tidemark -type f -perm -u+x | head -n 1)

shopt -s globstar nullglob
files=()
while IFS= read -r pattern; do
  # shellcheck disable=SC2206  # a pattern, which bash opens
  [ -n "$pattern" ] && files+=($pattern)
done <<<"$TIDEMARK_FILES"
[ ${#files[@]} -gt 0 ] || {
  echo "::error::No file matches the action's input \"files\"."
  exit 2
}
# shellcheck disable=SC2206  # flags, as they would be typed
flags=(${TIDEMARK_ARGUMENTS:-})
[ -z "${TIDEMARK_GPU:-}" ] || flags+=(--gpu "$TIDEMARK_GPU")

[ -z "${TIDEMARK_SARIF:-}" ] || "$tidemark" check "${files[@]}" "${flags[@]}" --sarif >"$TIDEMARK_SARIF" || true
"$tidemark" check "${files[@]}" "${flags[@]}"
