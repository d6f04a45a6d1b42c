#!/usr/bin/env bash
# The suites that compute pass without oneDNN: GEMM and convolution on our own loops. Uses the build
# folder that check compilers leaves. The kernels run with every instruction set, what calls them
# with the first. Then the benchmarks' own tests: that what they time is right, and that they write
# what they promise; no time is compared.
set -euo pipefail
. tests/lib.sh
configure gcc -DCMAKE_BUILD_TYPE=Release -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF \
  -DBRAID_TEST_OPTIONS=-O1
build gcc
export BRAID_TEST_SEEDS=2  # the plain build takes twenty points for a gradient
run_ctest gcc -L '^(core|kernels|nn|parallel|exchange)$' \
  -E '^(core|nn|parallel|exchange)\.(avx2|avx512)$'
run_ctest gcc -L '^bench$'
