#!/usr/bin/env bash
# tests/acceptance.sh [binary]: runs the acceptance tests of DataParallel and prints one line for each number of the list, T01 to T36 and C1 to C9: pass, FAIL,
# or n/a with the reason. ./dev test parallel ends with it.
set -euo pipefail
binary=${1:-build/release/tests/parallel/braid_tests_parallel}
report=$(mktemp)
trap 'rm -f "$report"' EXIT

# Nobody's output lands in the report; a failing run is shown by its lines below.
export BRAID_CPU_DEVICES=8 BRAID_DEVICE=cpu
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
    number = line
    sub(/ .*/, "", number)
    result[number] = "n/a   " substr(line, length(number) + 7)
  }
  function show(number) {
    if (!(number in result)) result[number] = "FAIL  no test has run"
    ++count[substr(result[number], 1, 4)]
    printf "%-3s %s\n", number, result[number]
  }
  END {
    for (i = 1; i <= 36; ++i) show(sprintf("T%02d", i))
    for (i = 1; i <= 9; ++i) show("C" i)
    printf "acceptance: %d passed, %d failed, %d n/a\n", count["pass"], count["FAIL"], count["n/a "]
    if (!list) print "acceptance: FAIL: the test of the list itself"
    exit (count["FAIL"] > 0 || !list)
  }' "$report"
