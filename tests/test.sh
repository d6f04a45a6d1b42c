#!/usr/bin/env bash
# ./dev test [module]: a release build with tests and tutorials, then ctest.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}" catch2

module=${1:-}
case $module in
  "" | core | kernels | nn | data | parallel | tutorials | must_not_compile) ;;
  *)
    echo "./dev test: expected core, kernels, nn, data, parallel, tutorials or must_not_compile, got '$module'" >&2
    exit 2
    ;;
esac
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON -DBRAID_BUILD_BENCH="${BRAID_BUILD_BENCH:-OFF}" -DBUILD_SHARED_LIBS=OFF
case $module in
  "") build release && run_ctest release ;;
  tutorials) build release braid_tutorials && run_ctest release -L '^tutorials$' ;;
  must_not_compile) run_ctest release -L '^must_not_compile$' ;;
  *) build release "braid_tests_$module" && run_ctest release -L "^$module\$" ;;
esac
