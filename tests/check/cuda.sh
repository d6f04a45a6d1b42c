#!/usr/bin/env bash
# nvcc builds the CUDA backend with warnings as errors, and the one binary works on a machine without a GPU: its CPU tests pass, no CUDA library is
# needed to load it, and it says why there is no CUDA device. BRAID_REQUIRE_CUDA=1 makes a missing toolkit a failure.
set -euo pipefail
. tests/lib.sh
nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
if [[ -z $nvcc ]]; then
  [[ ${BRAID_REQUIRE_CUDA:-0} == 1 ]] && echo "nvcc was not found, and BRAID_REQUIRE_CUDA=1" && exit 1
  echo "no nvcc"
  exit 77
fi
"$nvcc" --version | tail -n 2
configure cuda -DCMAKE_BUILD_TYPE=Release -DBRAID_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DBRAID_WERROR=ON -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic -DBRAID_BUILD_BENCH=OFF \
  -DBRAID_CUDA_ARCHITECTURES=90 -DBRAID_CUDA_COMPRESS=OFF "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -DNDEBUG" "-DBRAID_TEST_OPTIONS=-O0;-U_FORTIFY_SOURCE"
# The library and all else that nvcc compiles. The suites of core, nn, data and parallel are the same objects as in the plain build; that this library's CPU side
# works, the tutorials show: they train, split and move on cpu devices. Host code quickly (-O0 is nvcc's word for that, kernels are optimised
# all the same: their report says so): nothing is timed.
start=$SECONDS
build cuda braid braid_bench braid_tests_{cuda,cuda_kernels,simt_conformance,tutorials} braid_tutorials
echo "NOTE: built in $((SECONDS - start)) s (bar 240 s)"
# The sources ask for nothing of an architecture, so sm_80's machine code is that of the same text: four files a day are compiled as a user's build does it, and
# three of the teaching kernels, which run in the SIMT build. BRAID_CHECK_ALL=1 compiles them all.
seed=${BRAID_CHECK_SEED:-$(date +%Y%m%d)}
mapfile -t kernels < <(ls kernels/cuda/*.cu | grep -v stand_in)  # the emulation's alone
files=("${kernels[@]}" bench/ladder/*/*.cu)
if [[ ${BRAID_CHECK_ALL:-0} == 1 ]]; then
  build cuda braid_tests_ladder
else
  sample() { python3 -c 'import random, sys; print(*random.Random(int(sys.argv[1])).sample(sys.argv[3:], int(sys.argv[2])), sep="\n")' "$seed" "$@"; }
  mapfile -t files < <(sample 4 "${kernels[@]}" && sample 3 bench/ladder/*/*.cu)
fi
both=$(sed -n 's/^set(BRAID_CUDA_ARCHITECTURES "\([^"]*\)".*/\1/p' core/cmake/BraidOptions.cmake)
[[ $both == "80-real;90" ]] || { echo "FAIL: expected machine code of sm_80 and sm_90 and PTX of 90 by default, got $both" && exit 1; }
rm -rf build/check/cuda-both
mkdir -p build/check/cuda-both
for file in "${files[@]}"; do
  object=kernels/CMakeFiles/braid_cuda_kernels.dir/cuda/$(basename "$file").o
  [[ $file == bench/* ]] && object=tests/ladder/CMakeFiles/braid_tests_ladder_device.dir/__/__/$file.o
  command=$(ninja -C build/cuda -t commands "$object" | tail -n 1)
  command=${command/ --generate-code=/ --generate-code=arch=compute_80,code=[sm_80] --generate-code=}
  command=${command%% -MD *}" -x cu -c $root/$file -o $root/build/check/cuda-both/$(basename "$file").o"
  (cd build/cuda && eval "$command")
done
echo "NOTE: compiled for sm_80 too: $(basename -a "${files[@]}" | tr '\n' ' ')(seed $seed)"

for program in build/cuda/tests/cuda/braid_tests_cuda build/cuda/docs/tutorials/data_parallel; do
  libraries=$(ldd "$program")
  if grep -iE 'cuda|cublas|nccl|nvidia' <<<"$libraries"; then
    echo "FAIL: $program needs a CUDA library to load"
    exit 1
  fi
done
echo "ldd: no CUDA library"
# Our declarations of cuBLAS are the toolkit's; and the library opens, where there is one.
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
if [[ -f $toolkit/include/cublas_v2.h ]]; then
  "${CXX:-g++}" -std=c++20 -Wall -Wextra -Werror -DBRAID_CUDA_ON=1 -Ikernels -Icore/include -I"$toolkit/include" tests/check/cublas_signatures.cpp \
    kernels/cuda/cublas_library.cpp -ldl -o build/check/cublas_signatures
  build/check/cublas_signatures || [[ $? == 77 ]]
else
  echo "NOTE: no cublas_v2.h in $toolkit/include: its declarations were not compared"
fi
# What the kernels take of a GPU, and no spills: docs/notes/cuda_resources.md.
status=0
bash tests/check/cuda_resources.sh >build/check/cuda-resources.txt 2>&1 || status=$?
cat build/check/cuda-resources.txt
if ((status == 77)) && [[ ${BRAID_REQUIRE_CUDA:-0} != 1 ]]; then
  echo "NOTE: the kernels' resources were not compared: $(tail -n 1 build/check/cuda-resources.txt)"
elif ((status != 0)); then
  exit 1
fi
# What runs with or without a GPU: everything but the tests that need one (they skip themselves).
BRAID_DEVICE=cpu:0 run_ctest cuda -L '^(cuda|cuda_kernels|simt_conformance|tutorials)$' -LE '^slow$'
build/cuda/tests/cuda/braid_tests_cuda '[availability]' | tee build/check/cuda-availability.txt
sed -n 's/^SHOWS: /NOTE: /p' build/check/cuda-availability.txt
