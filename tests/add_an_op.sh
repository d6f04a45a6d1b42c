#!/usr/bin/env bash
# Follows docs/guides/add_an_op.md word by word in a copy of the tree, and compiles the sources that
# the guide names (-fsyntax-only; the CUDA file against the emulation). ./dev check docs calls it.
set -euo pipefail
. tests/lib.sh
copy=build/check/add_an_op
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z -- core kernels nn data parallel tests |
  tar -cf - --null --ignore-failed-read -T - | tar -xf - -C "$copy"
sources=$(python3 tests/check/docs_guide.py docs/guides/add_an_op.md "$copy")
options=(-std=c++20 -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-parentheses -fsyntax-only)
for module in core kernels nn data parallel; do options+=("-I$module/include"); done
options+=(-Icore/umbrella -iquote core -iquote kernels -iquote tests -Itests)
failed=0
cd "$copy"
for source in $sources; do
  more=()
  case $source in
    kernels/cpu/simd/*) more=(-DBRAID_ISA=generic) ;;
    *.cu) more=(-x c++ -DBRAID_CUDA_SIMT=1) ;;
  esac
  if ! "${CXX:-g++}" "${options[@]}" "${more[@]}" "$source"; then
    echo "FAIL: $source does not compile after what docs/guides/add_an_op.md says"
    failed=1
  fi
done
echo "NOTE: the guide's function compiles in $(wc -w <<<"$sources") sources"
exit "$failed"
