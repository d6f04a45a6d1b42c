#!/usr/bin/env bash
# Every test of the plain build: each instruction set for each module, groups of 1 to 8 devices,
# twenty random points for each gradient. ./dev test takes a sample that changes from run to run.
set -euo pipefail
. tests/lib.sh
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON -DBUILD_SHARED_LIBS=OFF
build release
run_ctest release
