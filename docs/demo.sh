#!/usr/bin/env bash
# ./dev demo: runs the data-parallel tutorial on 1, 2, 3 and 8 devices, then trains on digits with 2
# devices.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}"

options=()
[[ -f build/release/CMakeCache.txt ]] || options=(-DBRAID_BUILD_TESTS=OFF -DBRAID_BUILD_BENCH=OFF)
configure release -DBRAID_BUILD_DOCS=ON "${options[@]}"
build release braid_tutorial_data_parallel braid_tutorial_train_digits

tutorials=build/release/docs/tutorials
for devices in 1 2 3 8; do
  printf '\nBRAID_CPU_DEVICES=%s data_parallel\n' "$devices"
  BRAID_CPU_DEVICES=$devices "$tutorials/data_parallel"
done
printf '\nBRAID_CPU_DEVICES=2 train_digits\n'
[[ -n ${BRAID_DATA:-} ]] || echo "BRAID_DATA is not set and no data folder was found"
BRAID_CPU_DEVICES=2 "$tutorials/train_digits"
