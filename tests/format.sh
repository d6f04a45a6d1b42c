#!/usr/bin/env bash
# ./dev format: formats the C++ sources. ./dev format --check only looks.
set -euo pipefail
. tests/lib.sh
need clang-format-14

# Kept as it is: its comments are aligned by hand.
kept='^docs/tutorials/moving\.cpp$'
mode=(-i)
if [[ ${1:-} == --check ]]; then
  mode=(--dry-run -Werror)
elif (($# > 0)); then
  echo "./dev format: expected nothing or --check, got '$1'" >&2
  exit 2
fi
cpp_files | grep -Ev "$kept" | xargs -r -P "$jobs" -n 20 clang-format-14 "${mode[@]}" --style=file
