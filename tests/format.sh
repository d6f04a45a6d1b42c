#!/usr/bin/env bash
# ./dev format: formats the C++, CUDA and JavaScript sources. ./dev format --check names those that
# are not formatted, and lines of more than 100 columns, in scripts, build files and pages too;
# clang-format leaves them in comments and strings.
set -euo pipefail
. tests/lib.sh
clang_format=$(clang_format_program)

# Kept as it is: its comments are aligned by hand.
kept='^docs/tutorials/moving\.cpp$'
# Messages that a compiler must give, a row of a string's own.
long_allowed='^docs/tutorials/moving\.cpp:|'
long_allowed+='// expect:|R"|"format":1'

formatted() { sources && files '*.js'; }

case ${1:-} in
  "")
    formatted | grep -Ev "$kept" | xargs -r -P "$jobs" -n 40 "$clang_format" -i --style=file
    ;;
  --check)
    bad=$(formatted | grep -Ev "$kept" |
      xargs -r -P "$jobs" -n 40 "$clang_format" --dry-run --style=file 2>&1 |
      sed -n 's/^\([^:]*\):.*-Wclang-format-violations.*/\1/p' | sort -u)
    # In characters, not bytes.
    long=$({ sources && scripts && pages; } |
      LC_ALL=C.UTF-8 xargs grep -nHE '^.{101}' | grep -vE "$long_allowed" || true)
    [[ -n $bad || -n $long ]] || exit 0
    [[ -z $bad ]] || printf 'not formatted (./dev format does it):\n%s\n' "$bad"
    [[ -z $long ]] || printf 'more than 100 columns:\n%s\n' "$long"
    exit 1
    ;;
  *)
    echo "./dev format: expected nothing or --check, got '$1'" >&2
    exit 2
    ;;
esac
