#!/usr/bin/env bash
# run.sh NAME KIND DEVICES PROGRAM [ARGUMENTS]: runs a tutorial on DEVICES devices of a kind (cpu,
# or simt: emulated CUDA devices) and compares its output with the first existing file of
# NAME.KIND.expected, NAME.DEVICES.expected and NAME.expected. Lines that start with a tab come from
# concurrent replicas, so their order within a group is ignored.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
name=$1
kind=$2
devices=$3
program=$4
shift 4

sort_groups() {
  awk 'function flush(   i, j, t) {
         for (i = 2; i <= n; ++i) {
           t = group[i]
           for (j = i - 1; j >= 1 && group[j] > t; --j) group[j + 1] = group[j]
           group[j + 1] = t
         }
         for (i = 1; i <= n; ++i) print group[i]
         n = 0
       }
       /^\t/ { group[++n] = $0; next }
       { flush(); print }
       END { flush() }'
}

unset BRAID_THREADS BRAID_ISA BRAID_CPU_DEVICES BRAID_SIMT_DEVICES BRAID_CUDA_DEVICES_PER_GPU
case $kind in
  cpu) export BRAID_CPU_DEVICES=$devices BRAID_DEVICE=cpu ;;
  simt)
    unset BRAID_DEVICE
    export BRAID_SIMT_DEVICES=$devices
    ;;
esac
output=$("$program" "$@") || {
  status=$?
  printf '%s\n' "$output"
  echo "FAIL: $name on $devices $kind devices ended with status $status"
  exit 1
}
for expected in "$name.$kind.expected" "$name.$devices.expected" "$name.expected"; do
  [[ -f $expected ]] && break
done
if [[ ! -f $expected ]]; then
  printf '%s\n' "$output"
  exit 0
fi
if ! diff <(sort_groups <"$expected") <(printf '%s\n' "$output" | sort_groups); then
  echo "FAIL: $name on $devices $kind devices prints something else than $expected" \
    "(< expected, > printed)"
  exit 1
fi
