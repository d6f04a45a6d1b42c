#!/usr/bin/env bash
# ./dev test ops [--plain]: tests every op of the table (tests/core/op_cases*.cpp) on the CPU and on
# three emulated CUDA devices. Values and gradients are compared with PyTorch's float64 and with
# plain loops, in every dtype and layout; also numeric first and second gradients, and bad inputs.
# The last lines show how much ran. --plain leaves out the emulated devices. After the build it
# takes seconds on the CPU, and minutes on the emulated devices.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}" catch2

case ${1:-} in
  "" | --plain) ;;
  *)
    echo "./dev test ops: expected nothing or --plain, got '$1'" >&2
    exit 2
    ;;
esac

results=build/ops
rm -rf "$results"
mkdir -p "$results"

# run NAME BINARY [VARIABLE=VALUE...]: runs the cases of the table; the output goes to a file.
run() {
  local name=$1 binary=$2
  shift 2
  env "$@" "$binary" "[ops]~[agreement]" >"$results/$name.txt" 2>&1
}

configure release -DBRAID_BUILD_TESTS=ON
build release braid_tests_core
failed=""
run cpu build/release/tests/core/braid_tests_core BRAID_DEVICE=cpu || failed="cpu"
if [[ ${1:-} != --plain ]]; then
  configure simt
  build simt braid_tests_core
  running=()
  for device in 0 1 2; do
    orders=(forward reverse random:1)
    run "cuda$device" build/simt/tests/core/braid_tests_core BRAID_SIMT_DEVICES=3 \
      BRAID_DEVICE="cuda:$device" BRAID_SIMT_ORDER="${orders[$device]}" \
      BRAID_SIMT_STREAM_ORDER="${orders[$device]/forward/fifo}" &
    running+=("$!")
  done
  for device in 0 1 2; do
    wait "${running[$device]}" || failed+=" cuda$device"
  done
fi
if [[ -n $failed ]]; then
  for name in $failed; do cat "$results/$name.txt"; done
  echo "./dev test ops: failed on $failed" >&2
  exit 1
fi
python3 tests/ops_summary.py "$results"
[[ ${1:-} != --plain ]] || echo "the emulated CUDA devices were left out (--plain)"
