#!/usr/bin/env bash
# ./dev bench [name] [arguments]: builds the benchmarks and runs bench_<name> with the arguments.
# Without a name it lists the benchmarks.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}" libbenchmark-dev

name=${1:-}
[[ $# -gt 0 ]] && shift
[[ $name == accuracy ]] && exec bench/accuracy.sh "$@"
build=release
[[ $name == simt || $name == ladder ]] && build=simt  # the emulation of CUDA is a separate build
arguments=()
# --devices cuda:0: uses a GPU if there is one, else the emulation
if [[ $name == transfer && " $* " =~ [\ =,]cuda ]]; then
  build=simt
  nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
  if [[ -n $nvcc ]] && nvidia-smi -L 2>/dev/null | grep '^GPU' >/dev/null; then
    build=cuda-release
    arguments=(-DCMAKE_BUILD_TYPE=Release -DBRAID_CUDA=ON "-DCMAKE_CUDA_COMPILER=$nvcc")
  fi
fi
configure $build -DBRAID_BUILD_BENCH=ON -DBUILD_SHARED_LIBS=OFF "${arguments[@]}"
if [[ -z $name ]]; then
  echo "./dev bench <name>, where name is one of:"
  {
    printf 'bench_accuracy\nbench_simt\nbench_ladder\n'
    cmake --build build/release --target help | sed -n 's/^\(bench_[a-z0-9]*\): phony$/\1/p'
  } | sed 's/^bench_/  /'
  exit 0
fi
if [[ ! $name =~ ^[a-z0-9_]+$ ]] ||
  ! cmake --build build/$build --target help | grep "^bench_$name: " >/dev/null; then
  echo "./dev bench: there is no benchmark '$name' (./dev bench lists them)" >&2
  exit 2
fi
build $build "bench_$name" >&2
# These compare with PyTorch. Without PyTorch they still run, and report that the peer is missing.
case " $name $* " in
  *" --no-peers "* | *" --help "*) ;;
  " ddp "* | " loader "* | " ops "* | " split "* | " start "* | " train "* | " transfer "*)
    bench/peers/setup.sh --quiet >&2 || echo "./dev bench $name: goes on without PyTorch" >&2
    ;;
esac
exec "build/$build/bench/bench_$name" "$@"
