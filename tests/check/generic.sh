#!/usr/bin/env bash
# The suite passes without oneDNN: GEMM on our own loops. Uses the build folder that check compilers leaves. The slow ones have run in ./dev test.
set -euo pipefail
. tests/lib.sh
configure gcc -DCMAKE_BUILD_TYPE=Release -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF -DBRAID_TEST_OPTIONS=-O1
build gcc
run_ctest gcc -LE '^(slow|must_not_compile)$'
