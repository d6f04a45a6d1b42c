#!/usr/bin/env bash
# ThreadSanitizer, clang's, with warnings as errors, without oneDNN (its OpenMP threads are not
# instrumented). CI: what has threads, in turn: parallel on two counts of devices with the loader,
# or core but for the table of ops, whose cells are too small for a second thread. --all: every
# suite, then parallel with oneDNN and one suppression that names only libdnnl.
set -euo pipefail
. tests/lib.sh
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}

# An address space layout more random than the sanitizer's runtime expects stops it; setarch -R
# turns that off where it is allowed.
run=()
setarch -R true 2>/dev/null && run=(setarch -R)

# die_after_fork=0: what a forked child of a program with threads may do is tested too.
tests_in_memory
export TSAN_OPTIONS=second_deadlock_stack=1:die_after_fork=0
configure tsan -DCMAKE_CXX_COMPILER=clang++-14 -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF
run_tests() {
  "${run[@]}" ctest --test-dir build/tsan --output-on-failure --no-tests=error "$@"
}
core() { BRAID_DEVICE=cpu "${run[@]}" build/tsan/tests/core/braid_tests_core '~[.]~[ops]'; }
if ((!everything)); then
  if ((turn / 2 % 2)); then
    counts=(2 3 8)
    first=${counts[$((turn % 3))]} second=${counts[$(((turn + 1) % 3))]}
    echo "NOTE: data, and parallel on $first and $second devices"
    build tsan braid_tests_data braid_tests_parallel
    run_tests -R "^(data\.generic|parallel\.devices($first|$second))\$"
  else
    echo "NOTE: core"
    build tsan braid_tests_core
    core
  fi
  exit 0
fi

build tsan
# Groups of 1, 2, 3 and 8 devices: those between have no other threads.
core_and_parallel() { core && run_tests -L '^parallel$' -E '^parallel\.devices[4567]$'; }
the_others() { run_tests -LE '^(slow|must_not_compile|core|parallel)$'; }
together core_and_parallel the_others  # half of the time each

# The same build folder again: only the sources that call oneDNN are compiled again.
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
