#!/usr/bin/env bash
# tests/acceptance.sh [binary [cpu | emulated]]: runs the acceptance tests of DataParallel on 8
# logical CPU devices, or on 8 emulated CUDA devices with a binary of the SIMT build. It prints one
# line for each number of the list, T01 to T36 and C1 to C9: pass, FAIL, or n/a with the reason. If
# a part of a test is n/a, it prints another line for that part. ./dev test parallel runs it on both
# kinds of devices.
set -euo pipefail
binary=${1:-build/release/tests/parallel/braid_tests_parallel}
kind=${2:-cpu}
unset BRAID_CPU_DEVICES BRAID_CUDA_DEVICES_PER_GPU BRAID_DEVICE BRAID_SIMT_DEVICES
case $kind in
  cpu)
    export BRAID_CPU_DEVICES=8 BRAID_DEVICE=cpu
    echo "Acceptance tests on 8 logical CPU devices:"
    ;;
  emulated)
    export BRAID_SIMT_DEVICES=8 BRAID_SIMT_ORDER=${BRAID_SIMT_ORDER:-random:1}
    export BRAID_SIMT_STREAM_ORDER=${BRAID_SIMT_STREAM_ORDER:-random:1}
    echo "Acceptance tests on 8 emulated CUDA devices:"
    ;;
  *)
    echo "tests/acceptance.sh: expected cpu or emulated, got '$kind'" >&2
    exit 2
    ;;
esac
results=$(mktemp) output=$(mktemp)
trap 'rm -f "$results" "$output"' EXIT
# Contains "pass" or "FAIL" and the name of each test. The test of the list prints the numbers that
# have no test.
BRAID_TEST_RESULTS=$results "$binary" '[acceptance]' >"$output" 2>&1 || true

declare -A count=([pass]=0 [FAIL]=0 [n/a]=0)
show() {  # NUMBER VERDICT TEXT
  count[$2]=$((count[$2] + 1))
  printf '%-3s %-5s %s\n' "$@"
}
for number in T{01..36} C{1..9}; do
  if line=$(grep -m 1 " $number: " "$results"); then
    show "$number" "${line%% *}" "${line#*: }"
  elif line=$(grep -m 1 "^$number n/a: " "$output"); then
    show "$number" n/a "${line#*: }"
  else
    show "$number" FAIL "no test has run"
  fi
  if line=$(grep -m 1 "^$number part n/a: " "$output"); then show "$number" n/a "${line#*: }"; fi
done
echo "acceptance: ${count[pass]} passed, ${count[FAIL]} failed, ${count[n/a]} n/a"
if ! grep -q '^pass acceptance: the list' "$results"; then
  echo "acceptance: FAIL: the test of the list itself"
  exit 1
fi
((count[FAIL] == 0))
