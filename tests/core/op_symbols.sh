#!/usr/bin/env bash
# op_symbols.sh NM PROGRAM OBJECTS...: lists the functions that the objects of core/ops and
# nn/losses define in namespaces braid, braid::detail and braid::nn and in class Tensor, with the
# types of their parameters. PROGRAM (braid_tests_core) compares the list with the table of ops: an
# op that is compiled cannot be forgotten there. An op that is only inline in a header is not seen:
# another overload, or the function in detail that it calls, must be in a source.
set -u
nm=$1
program=$2
shift 2
objects=()
for object in "$@"; do
  [[ $object == */ops/* || $object == */losses/* ]] && objects+=("$object")
done
if ((${#objects[@]} == 0)); then
  echo "FAIL: expected objects of core/ops and nn/losses, got none"
  exit 1
fi
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
"$nm" -C --defined-only "${objects[@]}" |
  sed -nE 's/^[0-9a-f]+ T braid::(nn::|detail::|Tensor::)?([a-z][a-z_0-9]*(\[\])?\(.*\)).*$/\2/p' |
  sort -u >"$list"
BRAID_OP_SYMBOLS=$list "$program" "[op-symbols]"
