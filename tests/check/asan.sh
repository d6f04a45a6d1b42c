#!/usr/bin/env bash
# AddressSanitizer (with leak detection) and UndefinedBehaviorSanitizer; any finding ends the
# process. CI alternates between two parts: core, and the kernels with one instruction set, the data
# module and the parsers: each parser of a file format, and the store of ranks, gets 20,000 inputs.
# Both have a quarter of the table of ops and of the longest loops, and call 50,000 ops with random
# arguments. --all: the whole suite, the kernels with AVX2 and AVX-512, 200,000 inputs, 1,000,000
# calls.
set -euo pipefail
. tests/lib.sh
mkdir -p build/check
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}
fuzzer=OFF
main='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
if clang++-14 -x c++ -fsanitize=fuzzer - -o build/check/fuzzer <<<"$main" >/dev/null 2>&1; then
  fuzzer=ON
fi
# clang++ compiles this in a third of g++'s time. Its runtime needs llvm-symbolizer or addr2line
# (binutils) to print line numbers. In --all, warnings are errors in all targets, so clang's
# warnings are checked here.
options=(-DCMAKE_CXX_COMPILER=clang++-14 -DBRAID_WERROR=ON -DBRAID_BUILD_FUZZ=$fuzzer)
formats=(safetensors idx image npy manifest store)
if ((everything)); then
  # If this processor cannot run an instruction set, its kernels are linked but not instrumented,
  # because instrumentation takes four times as long.
  sets='avx2;avx512' inputs=200000 calls=1000000
  ! grep -q '^flags' /proc/cpuinfo || grep -q -w avx512f /proc/cpuinfo || sets=avx2
  configure asan "${options[@]}" -DBRAID_BUILD_BENCH=ON -DBRAID_GENERIC=OFF \
    "-DBRAID_TEST_ISAS=$sets"
  build asan
else
  inputs=20000 calls=50000
  configure asan "${options[@]}" -DBRAID_BUILD_DOCS=OFF -DBRAID_GENERIC=ON \
    -DBRAID_TEST_ISAS=generic
  # CI alternates between core, and the kernels with the data module and the parsers.
  if ((turn / 2 % 2)); then suites=(core) formats=(); else suites=(kernels data); fi
  targets=("${suites[@]/#/braid_tests_}")
  [[ $fuzzer == OFF ]] || targets+=(braid_fuzz_calls "${formats[@]/#/braid_fuzz_}")
  build asan "${targets[@]}"
fi
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1
ASAN_OPTIONS+=:detect_stack_use_after_return=1:allow_addr2line=1:malloc_context_size=12
export UBSAN_OPTIONS=print_stacktrace=1
export BRAID_TEST_SEEDS=2  # the plain build uses twenty points for a gradient
if ((everything)); then
  # The kernels run with both sets, the modules above them with one, and groups have 1, 2, 3 and 8
  # devices. The tests of what must not compile also match clang's messages.
  run_ctest asan -LE '^(slow|bench)$' \
    -E '^((core(\.members)?|nn|data|parallel)\.avx512|parallel\.devices[4567])$'
else
  export BRAID_TEST_PART=$((turn / 4 % 4))/4
  echo "NOTE: part $BRAID_TEST_PART of the table of ops and of the longest loops"
  run_ctest asan -R "^($(IFS='|' && echo "${suites[*]}"))(\\.members)?\\.generic\$"
  echo "NOTE: suites ${suites[*]}"
fi

if [[ $fuzzer == OFF ]]; then
  echo "NOTE: no fuzzing: clang++-14 has no libFuzzer here"
  exit 0
fi
# fuzz FORMAT: build/check/fuzz/FORMAT holds valid files to start from. Inputs that fail are left
# next to it. The limits are two seconds and 64 MiB per input.
seed=1
((everything)) || seed=$turn
fuzz() {
  local format=$1 folder=build/check/fuzz/$1 dictionary=()
  [[ ! -f tests/fuzz/$1.dict ]] || dictionary=("-dict=tests/fuzz/$1.dict")
  "build/asan/tests/fuzz/braid_fuzz_$format" -seed="$seed" -runs="$inputs" -max_len=4096 \
    -timeout=2 -rss_limit_mb=512 -malloc_limit_mb=64 "-artifact_prefix=$folder-" \
    "${dictionary[@]}" "$folder" 2>&1 | tail -n 40
}
# Each input makes ten calls; an input only seeds the random arguments. The limit is two seconds per
# input. The program itself refuses more than 64 MiB of memory, like a machine with no more.
# BRAID_FUZZ_SHOW=1 build/asan/tests/fuzz/braid_fuzz_calls FILE prints the calls of an input.
fuzz_calls() {
  build/asan/tests/fuzz/braid_fuzz_calls -seed="$seed" -runs=$((calls / 10)) -max_len=16 \
    -len_control=0 -timeout=2 -rss_limit_mb=2048 -artifact_prefix=build/check/fuzz/calls- 2>&1 |
    tail -n 60
}
rm -rf build/check/fuzz
mkdir -p build/check/fuzz "${formats[@]/#/build/check/fuzz/}"
fuzz_calls
echo "NOTE: made $calls calls with random arguments"
((${#formats[@]} > 0)) || exit 0
cp tests/core/python.safetensors build/check/fuzz/safetensors
printf '\0\0\x08\x01\0\0\0\x03abc' >build/check/fuzz/idx/plain
gzip -9 -n -c build/check/fuzz/idx/plain >build/check/fuzz/idx/compressed
cp tests/goldens/images/* build/check/fuzz/image
cp tests/goldens/numpy/{f4.npy,fortran.npy,stored.npz,deflated.npz} build/check/fuzz/npy
{
  printf '{"format":1,"braid":"0.1.0","step":7,'
  printf '"files":[{"name":"model.safetensors","bytes":5,"crc32c":6}]}'
} >build/check/fuzz/manifest/good
# An odd first byte: after a greeting. set a 1, get a, add a 2, compare_set a 3 b, append a c.
{
  printf '\1\377\17\0\0\0\1\1\0\0\0a\1\0\0\0001\0\0\0\0\16\0\0\0\2\1\0\0\0a\0\0\0\0\0\0\0\0'
  printf '\26\0\0\0\3\1\0\0\0a\10\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0'
  printf '\20\0\0\0\4\1\0\0\0a\1\0\0\0003\1\0\0\0b\17\0\0\0\5\1\0\0\0a\1\0\0\0c\0\0\0\0'
} >build/check/fuzz/store/requests
printf '\0\377BRAIDKV1\1\0\0\0\3\0\0\0%064d' 0 >build/check/fuzz/store/greeting
printf '\2\377\1\0\0\0\4\0\0\0' >build/check/fuzz/store/rank
together "fuzz safetensors" "fuzz idx"
together "fuzz manifest" "fuzz npy"
together "fuzz store" "fuzz image"
echo "NOTE: fuzzed safetensors, idx, images, manifests, npy and the store's protocol," \
  "$inputs inputs each"
