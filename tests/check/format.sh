#!/usr/bin/env bash
# Every C++ and CUDA file is as the pinned clang-format writes it, with 100 columns at most. And
# docstrings are tables: a keyword starts a line.
set -euo pipefail
. tests/lib.sh
tests/format.sh --check
keywords='(Shapes|Types|Device|Gradient|Throws|Source|Limits|Memory|Items|Files)'
run_on=$(sources | xargs grep -nE "^ *///.*[^ ] $keywords  +[^ ]" || true)
if [[ -n $run_on ]]; then
  echo "docstrings with a keyword inside a line:"
  echo "$run_on"
  exit 1
fi
