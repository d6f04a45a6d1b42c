#!/usr/bin/env bash
# run.sh NAME DEVICES PROGRAM: runs a tutorial with BRAID_CPU_DEVICES=DEVICES and compares what it prints with NAME.DEVICES.expected or
# NAME.expected, where there is one. Lines that start with a tab come from concurrent replicas: their order within a group does not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
name=$1
devices=$2
program=$3

sort_groups() {
  awk 'function flush(   i, j, t) {
         for (i = 2; i <= n; ++i) { t = group[i]; for (j = i - 1; j >= 1 && group[j] > t; --j) group[j + 1] = group[j]; group[j + 1] = t }
         for (i = 1; i <= n; ++i) print group[i]
         n = 0
       }
       /^\t/ { group[++n] = $0; next }
       { flush(); print }
       END { flush() }'
}

for variable in BRAID_THREADS BRAID_DEVICE BRAID_ISA; do unset "$variable"; done
output=$(BRAID_CPU_DEVICES=$devices "$program") || {
  status=$?
  printf '%s\n' "$output"
  echo "FAIL: $name on $devices devices ended with status $status"
  exit 1
}
expected=$name.$devices.expected
[[ -f $expected ]] || expected=$name.expected
if [[ ! -f $expected ]]; then
  printf '%s\n' "$output"
  exit 0
fi
if ! diff <(sort_groups <"$expected") <(printf '%s\n' "$output" | sort_groups); then
  echo "FAIL: $name on $devices devices prints something else than $expected (< expected, > printed)"
  exit 1
fi
