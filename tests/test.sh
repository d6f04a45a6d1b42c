#!/usr/bin/env bash
# ./dev test [module]: a release build with tests and tutorials, then ctest. ./dev test ops: the
# table of ops (ops.sh). ./dev test exchange: weights to and from PyTorch (exchange.sh).
set -euo pipefail
case ${1:-} in ops | exchange) exec "tests/$1.sh" "${@:2}" ;; esac
. tests/lib.sh
need "${build_tools[@]}" "${engine_packages[@]}" catch2 gdb

module=${1:-}
case $module in
  "" | core | kernels | nn | data | parallel | tutorials | must_not_compile) ;;
  *)
    echo "./dev test: expected core, kernels, nn, data, parallel, tutorials, must_not_compile," \
      "ops or exchange, got '$module'" >&2
    exit 2
    ;;
esac
log=Testing/Temporary/LastTest.log
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON \
  -DBRAID_BUILD_BENCH="${BRAID_BUILD_BENCH:-OFF}" -DBUILD_SHARED_LIBS=OFF
case $module in
  "")
    build release
    # ./dev check --all runs the rest: every instruction set for every module, every group size,
    # twenty points for each gradient, both MPIs. The number of commits selects the sample.
    export BRAID_TEST_SEEDS=${BRAID_TEST_SEEDS:-3}
    turn=$(check_turn)
    sets=(sse)
    for isa in avx2 avx512; do
      ! grep -q -w "${isa/512/512f}" /proc/cpuinfo || sets+=("$isa")
    done
    best=${sets[-1]}
    # Core and kernels run with the best set and with another one, the other modules, core's
    # members and every kernel at all sizes with the best set.
    second=${sets[$((turn % (${#sets[@]} > 1 ? ${#sets[@]} - 1 : 1)))]}
    sets=$(printf '%s\n' sse avx2 avx512 | grep -vx "$best" | paste -sd'|')
    left_out="^(kernels\\.every|core\\.members|nn|data|parallel|exchange)\\.($sets)\$"
    sets=$(printf '%s\n' sse avx2 avx512 | grep -vx -e "$best" -e "$second" | paste -sd'|')
    left_out+="|^(core|kernels)\\.($sets)\$"
    # Groups of 3 devices, of 2 or 8, and of one other number.
    counts=(1 4 5 6 7) pair=(2 8)
    kept=(-e 3 -e "${pair[$((turn % 2))]}" -e "${counts[$((turn % 5))]}")
    left_out+="|^parallel\\.devices($(seq 1 8 | grep -vx "${kept[@]}" | paste -sd'|'))\$"
    # These wait for deadlines.
    kills=(mpi gloo) mpis=(openmpi mpich)
    left_out+="|^processes\\.kills\\.${kills[$((turn / 2 % 2))]}\$"
    export BRAID_TEST_MPI=${mpis[$((turn / 4 % 2))]}
    run_ctest release -E "$left_out"
    ;;
  tutorials) build release braid_tutorials && run_ctest release -L '^tutorials$' ;;
  must_not_compile)
    build release braid_must_not_compile
    run_ctest release -L '^must_not_compile$'
    ;;
  parallel)
    build release braid_tests_parallel braid_must_not_compile
    status=0
    # Includes these must_not_compile tests: a DataParallel in a DataParallel, or a copied one.
    run_ctest release -R '^(parallel\.|must_not_compile\.(control|data_parallel))' || status=$?
    sed -n 's/^.*SHOWS: \([0-9]* faults\)/\1/p' "build/release/$log" | sort -u
    # Communication between GPUs, schedules, and the same tests on 1 to 8 devices run in a separate
    # build with emulated devices.
    configure simt
    build simt braid_tests_nccl braid_tests_schedules braid_tests_parallel
    run_ctest simt -L '^(nccl|schedules)$' || status=1
    sed -n 's/^.*SHOWS: NCCL: /NCCL: /p; s/^.*SHOWS: \([0-9]* schedules\)/\1/p' "build/simt/$log"
    run_ctest simt -R '^parallel\.(simt_devices|simt3\.random$)' || status=1
    sed -n 's/^.*SHOWS: \([0-9]* faults\)/emulated: \1/p' "build/simt/$log" | sort -u
    tests/acceptance.sh build/release/tests/parallel/braid_tests_parallel cpu || status=1
    tests/acceptance.sh build/simt/tests/parallel/braid_tests_parallel emulated || status=1
    exit "$status"
    ;;
  *) build release "braid_tests_$module" && run_ctest release -L "^$module\$" ;;
esac
