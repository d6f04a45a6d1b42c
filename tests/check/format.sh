#!/usr/bin/env bash
# Every C++ file is as clang-format 14 writes it; ../format.sh names those that are not. And docstrings are tables: a keyword starts a line.
set -euo pipefail
. tests/lib.sh
tests/format.sh --check
keywords='(Shapes|Types|Device|Gradient|Throws|Source|Limits|Memory|Items|Files)'
run_on=$(cpp_files | xargs grep -nE "^ *///.*[^ ] $keywords  +[^ ]" || true)
if [[ -n $run_on ]]; then
  echo "docstrings with a keyword inside a line:"
  echo "$run_on"
  exit 1
fi
