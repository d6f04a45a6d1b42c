#!/usr/bin/env bash
# The suites that compute must pass without oneDNN, with Braid's own loops for GEMM and convolution.
# Uses the build folder of check compilers. The kernels run with every instruction set, the modules
# above them with the first. Then runs the benchmarks' own tests: their results must be right and
# their output complete; times are not checked.
set -euo pipefail
. tests/lib.sh
configure gcc -DCMAKE_BUILD_TYPE=Release -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF \
  -DBRAID_TEST_OPTIONS=-O1
build gcc
export BRAID_TEST_SEEDS=2  # the plain build uses twenty points for a gradient
run_ctest gcc -L '^(core|kernels|nn|parallel|exchange)$' \
  -E '^(core(\.members)?|nn|parallel|exchange)\.(avx2|avx512)$'
run_ctest gcc -L '^bench$'
