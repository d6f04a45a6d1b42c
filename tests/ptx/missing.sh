#!/usr/bin/env bash
# missing.sh OUTPUT NM OBJECT…: writes a source that defines the kernels' functions that the objects
# call and whose files are not in the sample. A call of one throws ptx::NotSampled.
set -euo pipefail
output=$1 nm=$2
shift 2
defined=$("$nm" --defined-only -j "$@" | grep '^_ZN' | sort -u)
{
  echo '#include "ptx/sample.hpp"'
  number=0
  "$nm" -u -j "$@" | grep '^_ZN5braid4cuda' | sort -u | comm -23 - <(echo "$defined") |
    while read -r symbol; do
      number=$((number + 1))
      echo "extern \"C\" void missing_$number() __asm__(\"$symbol\");"
      echo "void missing_$number() { throw ptx::NotSampled(); }"
    done
} >"$output"
