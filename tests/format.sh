#!/usr/bin/env bash
# ./dev format: formats the C++ and CUDA sources. ./dev format --check names the files that are not
# formatted. It also names lines of more than 100 columns, in scripts and build files too, because
# clang-format does not break long comments and strings.
set -euo pipefail
. tests/lib.sh
clang_format=$(clang_format_program)

# Not formatted: its comments are aligned by hand.
kept='^docs/tutorials/moving\.cpp$'
# Browser pages in raw strings, expected compiler messages, and a JSON row in a string.
long_allowed='^(docs/tutorials/moving\.cpp|parallel/report/page_[a-z]*\.cpp):|'
long_allowed+='// expect:|R"|"format":1'

case ${1:-} in
  "")
    sources | grep -Ev "$kept" | xargs -r -P "$jobs" -n 40 "$clang_format" -i --style=file
    ;;
  --check)
    bad=$(sources | grep -Ev "$kept" |
      xargs -r -P "$jobs" -n 40 "$clang_format" --dry-run --style=file 2>&1 |
      sed -n 's/^\([^:]*\):.*-Wclang-format-violations.*/\1/p' | sort -u)
    # The limit is 100 characters, not bytes.
    long=$({ sources && scripts; } |
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
