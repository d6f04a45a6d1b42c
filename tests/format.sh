#!/usr/bin/env bash
# ./dev format: formats the C++ sources. ./dev format --check only names those that are not.
set -euo pipefail
. tests/lib.sh
need clang-format-14

# Kept as it is: its comments are aligned by hand.
kept='^docs/tutorials/moving\.cpp$'
case ${1:-} in
  "") cpp_files | grep -Ev "$kept" | xargs -r -P "$jobs" -n 20 clang-format-14 -i --style=file ;;
  --check)
    # shellcheck disable=SC2016
    bad=$(cpp_files | grep -Ev "$kept" | xargs -r -P "$jobs" -n 1 bash -c 'clang-format-14 --dry-run -Werror --style=file "$0" 2>/dev/null || echo "$0"' | sort)
    [[ -z $bad ]] && exit 0
    echo "not as clang-format 14 writes them (./dev format does it):"
    echo "$bad"
    exit 1
    ;;
  *)
    echo "./dev format: expected nothing or --check, got '$1'" >&2
    exit 2
    ;;
esac
