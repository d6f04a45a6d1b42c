#!/usr/bin/env bash
# The CUDA backend on the CPU: kernels under the checker in four thread orders, streams in four
# orders, the suites of core, nn, data and parallel and the tutorials on three emulated devices,
# every op and kernel against the CPU with float64 as the arbiter, wrong kernels and wrong stream
# programs that must be reported, calls that fail, barriers removed. BRAID_CHECK_ALL=1 (./dev check
# --all simt) runs every combination; BRAID_CHECK_SEED chooses the sample, else the date does.
set -euo pipefail
. tests/lib.sh
seed=${BRAID_CHECK_SEED:-$(date +%Y%m%d)}
echo "NOTE: seed $seed (BRAID_CHECK_SEED=$seed repeats it)"
configure simt -DBRAID_WERROR=ON -DBRAID_SIMT_SEED="$seed" -DBRAID_SIMT_ALL_ORDERS="$([[ ${BRAID_CHECK_ALL:-0} == 1 ]] && echo ON || echo OFF)"
build simt
[[ ${1:-} != --build ]] || exit 0
start=$SECONDS
run_ctest simt -L '^simt$' | tee build/check/simt-tests.txt
sed -n 's/^.*\(SHOWS: \)/NOTE: /p' build/simt/Testing/Temporary/LastTest.log | sort -u
# The emulated devices have divided the table of ops among them: together they have run each of its
# cells.
sed -n 's/^.*SHOWS: ops on cuda:[0-9]: \([0-9]*\) of \([0-9]*\) cells.*/\1 \2/p' build/simt/Testing/Temporary/LastTest.log >build/check/simt-cells.txt
awk '{ ran += $1; defined = $2 } END { print "NOTE: ops on emulated devices: " ran " of " defined " cells"; exit !(NR && ran >= defined) }' build/check/simt-cells.txt
options=(--seed "$seed")
[[ ${BRAID_CHECK_ALL:-0} == 1 ]] && options+=(--all)
python3 tests/check/simt_removals.py build/simt "${options[@]}" | tee build/check/simt-removals.txt
sed -n "s/^SHOWS: /NOTE: /p" build/check/simt-removals.txt
echo "NOTE: $((SECONDS - start)) s after the build (bar 480 s)"
