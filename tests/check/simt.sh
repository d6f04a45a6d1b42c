#!/usr/bin/env bash
# Tests the CUDA backend on the CPU: kernels with the race checker, streams, the suites of core, nn,
# data and parallel on emulated devices, every op and kernel compared with the CPU by means of
# float64, wrong kernels and wrong stream programs that must be reported, failing calls, removed
# barriers and waits. CI takes a sample: one order of threads and streams for each suite, a quarter
# of the table of ops and of the longest loops, groups of three devices and of one other count, two
# removals. --all: every order, every cell, every count, every removal. BRAID_CHECK_TURN selects the
# sample.
set -euo pipefail
. tests/lib.sh
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}
configure simt -DBRAID_WERROR=ON -DBRAID_SIMT_SEED="$turn" \
  -DBRAID_SIMT_ALL_ORDERS="$( ((everything)) && echo ON || echo OFF)"
build simt
start=$SECONDS
orders=(forward reverse random random2)
if ((everything)); then
  run_ctest simt -L '^simt$' | tee build/check/simt-tests.txt
else
  order=${orders[$((turn % 4))]} count=$((1 + turn % 7))
  ((count < 3)) || count=$((count + 1))
  # Each part runs in each order at some turn.
  export BRAID_TEST_PART=$((turn / 4 % 4))/4
  echo "NOTE: order $order, part $BRAID_TEST_PART of the table of ops, of the schedules and of" \
    "the longest loops, groups of 3 and $count devices"
  others=$(printf '%s\n' "${orders[@]}" | grep -vx "$order" | paste -sd'|')
  counts=$(seq 1 8 | grep -vx "$count" | paste -sd'|')
  # The three devices differ only in their index, so these suites run on one of them.
  device=$((turn / 3 % 3))  # its order of threads is the sum's: all nine pairs come
  alike=$(seq 0 2 | grep -vx "$device" | paste -sd'|')
  # Every second run, one of the three long runs of the kernels; in the others, the logical devices
  # of one GPU.
  long=(cuda_kernels\\.every\\.cuda0 cuda_kernels\\.nocache cuda_kernels\\.cublas '.*\.logical[23]')
  chosen=3
  ((turn % 2)) || chosen=$((turn / 6 % 3))  # the order of `every` is turn % 3
  not_now=$(printf '%s\n' "${long[@]}" | grep -vxF "${long[$chosen]}" | paste -sd'|')
  left_out="^($not_now)\$|\\.($others)\$|simt_devices($counts)\$"
  left_out+="|^(core|nn|data)\\.cuda($alike)\$"
  # Of the longest tutorials, one half.
  tutorials=(capsnet 'dcgan|train_digits')
  left_out+="|^tutorial\\.(${tutorials[$((turn / 2 % 2))]})\\."
  run_ctest simt -L '^simt$' -E "$left_out|^tutorial\\..*simt[128]\$" |
    tee build/check/simt-tests.txt
fi
log=build/simt/Testing/Temporary/LastTest.log
sed -n 's/^.*\(SHOWS: \)/NOTE: /p' "$log" | sort -u
if ((everything)); then
  # The devices share the table of ops: together they have run each of its cells.
  sed -n 's/^.*SHOWS: ops on cuda:[0-9]: \([0-9]*\) of \([0-9]*\) cells.*/\1 \2/p' "$log" |
    awk '{ ran += $1; defined = $2 }
         END { print "NOTE: ops on emulated devices: " ran " of " defined " cells"
               exit !(NR && ran >= defined) }'
fi
removals=(--seed "$turn" --sample 2)
((!everything)) || removals=(--all)
python3 tests/check/simt_removals.py build/simt "${removals[@]}" | tee build/check/simt-removals.txt
sed -n "s/^SHOWS: /NOTE: /p" build/check/simt-removals.txt
echo "NOTE: $((SECONDS - start)) s after the build"
