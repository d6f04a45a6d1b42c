#!/usr/bin/env bash
# nvcc builds the CUDA backend with warnings as errors, and the binary works on a machine without a
# GPU: its CPU tests pass, it loads without any CUDA library, and it reports why there is no CUDA
# device. CI compiles the kernels that commits since the last --all changed (without a record: those
# of the last three days) and an eighth of the others, for one architecture, and compares the
# declarations of cuBLAS and NCCL. A change of headers or of the build compiles all kernels. --all:
# everything, with the resources that each kernel uses.
# BRAID_REQUIRE_CUDA=1 makes a missing toolkit a failure.
set -euo pipefail
. tests/lib.sh
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}
nvcc=$(find_nvcc)
if [[ -z $nvcc ]]; then
  [[ ${BRAID_REQUIRE_CUDA:-0} != 1 ]] || die "nvcc was not found, and BRAID_REQUIRE_CUDA=1"
  echo "no nvcc"
  exit 77
fi
"$nvcc" --version | tail -n 2
set_cuda_options "$nvcc"

if ((!everything)); then
  configure cuda "${options[@]}" -DBRAID_CUDA_ARCHITECTURES=90-real -DBRAID_BUILD_BENCH=OFF \
    -DBRAID_BUILD_DOCS=OFF
  # from the build, because CMake writes some of the sources (cuda/sources.cmake)
  folder=kernels/CMakeFiles/braid_cuda_kernels.dir
  mapfile -t kernels < <(ninja -C build/cuda -t targets all |
    sed -nE "s|^$folder/(cuda/[a-z0-9_]+\.cu)\.o: .*|\1|p" | sort)
  ((${#kernels[@]})) || die "expected kernels in build/cuda, got none"
  objects=(braid_cuda_runtime)
  shared='cuda/([a-z_./]*\.(hpp|cuh|in)|sources\.cmake)|simt/[a-z_]*\.hpp|cmake/'
  for i in "${!kernels[@]}"; do
    if changed "^kernels/($shared)" ||
      changed "^kernels/${kernels[$i]}\$" || ((i % 8 == turn % 8)); then
      objects+=("$folder/${kernels[$i]}.o")
    fi
  done
  memory=core/CMakeFiles/braid_core.dir/memory
  ninja -C build/cuda "${objects[@]}" $memory/{caching_allocator,host_pool}.cpp.o
  # core/memory/thread_local.hpp: with a variable of the model initial-exec, no running program can
  # load a library that contains the CUDA runtime.
  for name in caching_allocator host_pool; do
    if readelf -rW "build/cuda/$memory/$name.cpp.o" | grep -E 'GOTTPOFF|TPOFF64'; then
      die "$name.cpp has a thread-local variable of the model initial-exec"
    fi
  done
  echo "NOTE: nvcc compiled $((${#objects[@]} - 1)) of ${#kernels[@]} files"
else
  # Everything that nvcc compiles, and two suites that call every part of the library. The sources
  # of the other suites are the same as in the plain build.
  configure cuda "${options[@]}" "-DBRAID_CUDA_ARCHITECTURES=80-real;90" -DBRAID_BUILD_BENCH=ON \
    -DBRAID_BUILD_DOCS=ON
  start=$SECONDS
  build cuda braid braid_bench bench_transfer braid_tutorials \
    braid_tests_{nn,nn_train,parallel,cuda,cuda_kernels,ladder,simt_conformance,tutorials}
  echo "NOTE: built in $((SECONDS - start)) s"
  for program in build/cuda/tests/nn/braid_tests_nn build/cuda/docs/tutorials/data_parallel; do
    libraries=$(ldd "$program")
    if grep -iE 'cuda|cublas|nccl|nvidia' <<<"$libraries"; then
      die "$program needs a CUDA library to load"
    fi
  done
  echo "ldd: no CUDA library"
  python3 -c 'import ctypes; ctypes.CDLL("build/cuda/bench/gpu/libbraid_bench.so")'
  echo "a running program can load the library with the CUDA runtime"
fi

# opened NAME PROGRAM...: runs a program that compares declarations and opens the library. Its last
# line says whether the library was found.
opened() {
  local name=$1 status=0
  shift
  "$@" >"build/check/$name-signatures.txt" || status=$?
  cat "build/check/$name-signatures.txt"
  ((status == 0 || status == 77)) || exit 1
  echo "NOTE: $name: $(tail -n 1 "build/check/$name-signatures.txt")"
}
# Compares our declarations of cuBLAS with the toolkit's, and opens the library if it is there.
strict=(-std=c++20 -Wall -Wextra -Werror)
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
if [[ -f $toolkit/include/cublas_v2.h ]]; then
  "${CXX:-g++}" "${strict[@]}" -DBRAID_CUDA_ON=1 -Ikernels -Icore/include -I"$toolkit/include" \
    tests/check/cublas_signatures.cpp kernels/cuda/cublas_library.cpp -ldl \
    -o build/check/cublas_signatures
  opened cublas build/check/cublas_signatures
else
  echo "NOTE: no cublas_v2.h in $toolkit/include: its declarations were not compared"
fi
# The same for NCCL. It may be in separate packages (BRAID_NCCL=<folder with include and lib>) or in
# PyTorch's, where ./dev gpu also looks.
python=${BRAID_PYTHON:-python3} peers=${BRAID_PEERS:-build/peers-venv}
[[ -z ${BRAID_PYTHON:-} && -x $peers/bin/python ]] && python=$peers/bin/python
packages=$("$python" -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null || true)
for nccl in ${BRAID_NCCL:-} ${packages:+"$packages/nccl"} "$toolkit" /usr; do
  [[ -f $nccl/include/nccl.h ]] && break
done
if [[ -f $nccl/include/nccl.h ]]; then
  "${CXX:-g++}" "${strict[@]}" -Iparallel -Icore/include -isystem "$nccl/include" \
    -isystem "$toolkit/include" tests/check/nccl_signatures.cpp \
    parallel/communicator/nccl/table.cpp core/tensor/linked_library.cpp -ldl \
    -o build/check/nccl_signatures
  paths=$nccl/lib:$nccl/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  opened nccl env "LD_LIBRARY_PATH=$paths" build/check/nccl_signatures
else
  echo "NOTE: no nccl.h in BRAID_NCCL, Python's packages, $toolkit/include or /usr/include:" \
    "its declarations were not compared"
fi
((everything)) || exit 0

# Compares the resources that the kernels use, and checks for spills: docs/notes/cuda_resources.md.
status=0
bash tests/check/cuda_resources.sh >build/check/cuda-resources.txt 2>&1 || status=$?
cat build/check/cuda-resources.txt
if ((status == 77)) && [[ ${BRAID_REQUIRE_CUDA:-0} != 1 ]]; then
  echo "NOTE: the kernels' resources were not compared: $(tail -n 1 build/check/cuda-resources.txt)"
elif ((status != 0)); then
  exit 1
fi
# Runs what works with or without a GPU: tests that need a GPU skip themselves.
BRAID_DEVICE=cpu:0 run_ctest cuda \
  -L '^(nn|parallel|cuda|cuda_kernels|ladder|simt_conformance|tutorials)$' -LE '^slow$'
build/cuda/tests/cuda/braid_tests_cuda '[availability]' | tee build/check/cuda-availability.txt
sed -n 's/^SHOWS: /NOTE: /p' build/check/cuda-availability.txt
