#!/usr/bin/env bash
# tests/acceptance.sh [binary [cpu | emulated]]: runs the acceptance tests of DataParallel on 8
# logical CPU devices, or on 8 emulated ones with a binary of the SIMT build. It prints one line for
# each number of the list, T01 to T36 and C1 to C9: pass, FAIL, or n/a with the reason; and a
# further one for a part that is n/a. ./dev test parallel runs it on both.
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
    export BRAID_SIMT_DEVICES=8 BRAID_SIMT_ORDER=${BRAID_SIMT_ORDER:-random:1} BRAID_SIMT_STREAM_ORDER=${BRAID_SIMT_STREAM_ORDER:-random:1}
    echo "Acceptance tests on 8 emulated CUDA devices:"
    ;;
  *)
    echo "tests/acceptance.sh: expected cpu or emulated, got '$kind'" >&2
    exit 2
    ;;
esac
report=$(mktemp)
trap 'rm -f "$report"' EXIT

# Nobody's output lands in the report; a failing run is shown by its lines below.
"$binary" '[acceptance]' --reporter xml --out "$report" >/dev/null 2>&1 || true
awk '
  /<TestCase / { title = $0; sub(/.*<TestCase name="/, "", title); sub(/".*/, "", title); number = title; sub(/:.*/, "", number) }
  /<OverallResult / && title != "" {
    ok = /success="true"/
    if (number == "acceptance") list = ok
    else result[number] = (ok ? "pass  " : "FAIL  ") substr(title, length(number) + 3)
    title = ""
  }
  match($0, /[TC][0-9]+ n\/a: [^<]*/) {  # what "acceptance: the list" has printed
    line = substr($0, RSTART, RLENGTH)
    missing = line
    sub(/ .*/, "", missing)
    result[missing] = "n/a   " substr(line, length(missing) + 7)
  }
  match($0, /[TC][0-9]+ part n\/a: [^<]*/) {  # beside the result of the test itself
    line = substr($0, RSTART, RLENGTH)
    missing = line
    sub(/ .*/, "", missing)
    part[missing] = "n/a   " substr(line, length(missing) + 12)
  }
  function show(number) {
    if (!(number in result)) result[number] = "FAIL  no test has run"
    ++count[substr(result[number], 1, 4)]
    printf "%-3s %s\n", number, result[number]
    if (!(number in part)) return
    ++count[substr(part[number], 1, 4)]
    printf "%-3s %s\n", number, part[number]
  }
  END {
    for (i = 1; i <= 36; ++i) show(sprintf("T%02d", i))
    for (i = 1; i <= 9; ++i) show("C" i)
    printf "acceptance: %d passed, %d failed, %d n/a\n", count["pass"], count["FAIL"], count["n/a "]
    if (!list) print "acceptance: FAIL: the test of the list itself"
    exit (count["FAIL"] > 0 || !list)
  }' "$report"
