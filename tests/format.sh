#!/usr/bin/env bash
# ./dev format: formats the C++, CUDA and JavaScript sources. ./dev format --check names the files
# that are not formatted. It also names lines of more than 100 columns, in scripts, build files and
# pages too, because clang-format does not break long comments and strings.
set -euo pipefail
. tests/lib.sh
clang_format=$(clang_format_program)

# Not formatted: its comments are aligned by hand.
kept='^docs/tutorials/moving\.cpp$'
# Expected compiler messages, and a JSON row in a string.
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
    # The limit is 100 characters, not bytes.
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
