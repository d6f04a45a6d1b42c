#!/usr/bin/env bash
# ThreadSanitizer, clang's, with warnings as errors: the whole suite without oneDNN, but for the
# table of ops, whose cells are too small for a second thread;
# then the tests of parallel with oneDNN, and one suppression that names only libdnnl.
set -euo pipefail
. tests/lib.sh

# An address space layout more random than the sanitizer's runtime expects stops it; setarch -R
# turns that off where it is allowed.
run=()
setarch -R true 2>/dev/null && run=(setarch -R)

# die_after_fork=0: what a forked child of a program with threads may do is tested too.
tests_in_memory
export TSAN_OPTIONS=second_deadlock_stack=1:die_after_fork=0
configure tsan -DCMAKE_CXX_COMPILER=clang++-14 -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF
build tsan
[[ ${1:-} != --build ]] || exit 0
# Groups of 1, 2, 3 and 8 devices: those between have no other threads.
run_tests() { "${run[@]}" ctest --test-dir build/tsan --output-on-failure --no-tests=error -E '^parallel\.devices[4567]$' "$@"; }
core_and_parallel() { BRAID_DEVICE=cpu "${run[@]}" build/tsan/tests/core/braid_tests_core '~[.]~[ops]' && run_tests -L '^parallel$'; }
the_others() { run_tests -LE '^(slow|must_not_compile|core|parallel)$'; }
together core_and_parallel the_others  # half of the time each

# The same build folder again: only the sources that call oneDNN are compiled anew.
configure tsan -DBRAID_ONEDNN=AUTO | tee build/check/tsan-onednn.txt
if ! grep -q 'oneDNN [0-9]' build/check/tsan-onednn.txt; then
  echo "oneDNN was not found: the second half cannot run"
  exit 1
fi
build tsan braid_tests_parallel
export TSAN_OPTIONS="$TSAN_OPTIONS:suppressions=$root/tests/check/tsan.supp"
few_devices() { run_tests -L '^parallel$' -R '\.(generic|devices[12])$'; }
the_rest() { run_tests -L '^parallel$' -E '\.(generic|devices[124567])$'; }
together few_devices the_rest
