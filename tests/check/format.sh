#!/usr/bin/env bash
# Every C++ and CUDA file is formatted by the pinned clang-format, with at most 100 columns. In
# docstrings, which are tables, a keyword must start a line. No comment and no page has a word that
# docs/glossary.md replaces.
set -euo pipefail
. tests/lib.sh
tests/format.sh --check
python3 tests/check/format_glossary.py
keywords='(Shapes|Types|Device|Gradient|Throws|Source|Limits|Memory|Items|Files)'
run_on=$(sources | xargs grep -nE "^ *///.*[^ ] $keywords  +[^ ]" || true)
if [[ -n $run_on ]]; then
  echo "docstrings with a keyword inside a line:"
  echo "$run_on"
  exit 1
fi
