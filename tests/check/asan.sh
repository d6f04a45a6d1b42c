#!/usr/bin/env bash
# The whole suite under AddressSanitizer (with leak detection) and UndefinedBehaviorSanitizer; any finding ends the process.
set -euo pipefail
. tests/lib.sh
configure asan
build asan
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
run_ctest asan -LE '^(slow|must_not_compile)$'
