#!/usr/bin/env bash
# The whole suite under AddressSanitizer (with leak detection) and UndefinedBehaviorSanitizer; any
# finding ends the process. Then, where clang has libFuzzer, the parsers of files from a fixed seed:
# 200,000 inputs each, two seconds and 64 MiB an input at most.
set -euo pipefail
. tests/lib.sh
mkdir -p build/check
fuzzer=OFF
if echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++-14 -x c++ -fsanitize=fuzzer - -o build/check/fuzzer >/dev/null 2>&1; then
  fuzzer=ON
fi
# A set of kernels that this processor cannot run is linked but not instrumented, which takes four
# times as long.
sets='avx2;avx512'
! grep -q '^flags' /proc/cpuinfo || grep -q -w avx512f /proc/cpuinfo || sets=avx2
# clang++ compiles this in a third of g++'s time, and its runtime needs llvm-symbolizer or addr2line
# (binutils) to name lines. Warnings are errors, in all targets: this is where clang sees them.
configure asan -DCMAKE_CXX_COMPILER=clang++-14 -DBRAID_WERROR=ON -DBRAID_BUILD_BENCH=ON -DBRAID_BUILD_FUZZ=$fuzzer "-DBRAID_TEST_ISAS=$sets"
build asan
[[ ${1:-} != --build ]] || exit 0
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1:detect_stack_use_after_return=1:allow_addr2line=1:malloc_context_size=12
export UBSAN_OPTIONS=print_stacktrace=1
export BRAID_TEST_SEEDS=2  # the plain build takes twenty points for a gradient
# The kernels themselves with both sets, what calls them with one; groups of 1, 2, 3 and 8 devices.
# Of what must not compile clang's messages are matched too.
run_ctest asan -LE '^(slow|bench)$' -E '^((core|nn|data|parallel)\.avx512|parallel\.devices[4567])$'

if [[ $fuzzer == OFF ]]; then
  echo "NOTE: no fuzzing: clang++-14 has no libFuzzer here"
  exit 0
fi
# fuzz FORMAT: build/check/fuzz/FORMAT holds valid files to start from; what was found is left
# beside it.
fuzz() {
  local format=$1 folder=build/check/fuzz/$1 dictionary=()
  [[ ! -f tests/fuzz/$1.dict ]] || dictionary=("-dict=tests/fuzz/$1.dict")
  "build/asan/tests/fuzz/braid_fuzz_$format" -seed=1 -runs=200000 -max_len=4096 -timeout=2 -rss_limit_mb=512 -malloc_limit_mb=64 \
    "-artifact_prefix=$folder-" "${dictionary[@]}" "$folder" 2>&1 | tail -n 40
}
rm -rf build/check/fuzz
mkdir -p build/check/fuzz/{idx,manifest,npy,safetensors}
cp tests/core/python.safetensors build/check/fuzz/safetensors
printf '\0\0\x08\x01\0\0\0\x03abc' >build/check/fuzz/idx/plain
gzip -9 -n -c build/check/fuzz/idx/plain >build/check/fuzz/idx/compressed
cp tests/goldens/numpy/{f4.npy,fortran.npy,stored.npz,deflated.npz} build/check/fuzz/npy
printf '{"format":1,"braid":"0.1.0","step":7,"files":[{"name":"model.safetensors","bytes":5,"crc32c":6}]}' >build/check/fuzz/manifest/good
together "fuzz safetensors" "fuzz idx"
together "fuzz manifest" "fuzz npy"
echo "NOTE: fuzzed safetensors, idx, manifests and npy with 200000 inputs each"
