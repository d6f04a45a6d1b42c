#!/usr/bin/env bash
# Follows docs/guides/add_an_op.md word by word in a copy of the tree: builds the suites of core and
# kernels there and runs the cases of the new ops and kernels, except those of the goldens, which
# need PyTorch. The CUDA files and the random calls are only compiled (-fsyntax-only; CUDA against
# the emulation). ./dev check docs calls it.
set -euo pipefail
. tests/lib.sh
copy=build/check/add_an_op
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z -- CMakeLists.txt core kernels nn data parallel tests docs/tutorials |
  tar -cf - --null --ignore-failed-read -T - | tar -xf - -C "$copy"
sources=$(python3 tests/check/docs_guide.py docs/guides/add_an_op.md "$copy")
cd "$copy"
failed=0
options=(-std=c++20 -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-parentheses -fsyntax-only)
for module in core kernels nn data parallel; do options+=("-I$module/include"); done
options+=(-Icore/umbrella -iquote core -iquote kernels -iquote tests -Itests)
for source in $sources; do
  if [[ ! -f $source ]]; then
    echo "FAIL: docs/guides/add_an_op.md names $source, which it does not make"
    failed=1
    continue
  fi
  case $source in
    tests/fuzz/*) more=() ;;
    *.cu) more=(-x c++ -DBRAID_CUDA_SIMT=1) ;;
    *) continue ;;  # built below
  esac
  if ! "${CXX:-g++}" "${options[@]}" "${more[@]}" "$source"; then
    echo "FAIL: $source does not compile after what docs/guides/add_an_op.md says"
    failed=1
  fi
done

# Objects of the copy are found in ccache again while neither the sources nor the guide change.
root=$PWD
configure add_an_op -DCMAKE_BUILD_TYPE=Release -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic \
  -DBRAID_TEST_OPTIONS=-O0 -DBRAID_WERROR=ON -DBRAID_BUILD_DOCS=OFF -DBRAID_BUILD_BENCH=OFF
if ! build add_an_op braid_tests_core braid_tests_kernels >build/add_an_op.log 2>&1; then
  grep -aE -A 5 'error|FAILED|undefined' build/add_an_op.log | head -40
  die "the tree does not build after what docs/guides/add_an_op.md says"
fi
tests_in_memory
status=0
BRAID_DEVICE=cpu ctest --test-dir build/add_an_op -R '^core\.op_symbols$' --output-on-failure \
  --no-tests=error >build/op_symbols.log 2>&1 || status=1
BRAID_DEVICE=cpu build/add_an_op/tests/core/braid_tests_core "[ops]~[pytorch]" \
  >build/ops.log 2>&1 || status=1
BRAID_DEVICE=cpu build/add_an_op/tests/kernels/braid_tests_kernels "[activation],[every]" \
  >build/kernels.log 2>&1 || status=1
if ((status)); then
  tail -n 25 build/op_symbols.log build/ops.log build/kernels.log
  die "tests fail after what docs/guides/add_an_op.md says"
fi
echo "NOTE: the guide's additions pass the tests, with $(wc -w <<<"$sources") sources"
exit "$failed"
