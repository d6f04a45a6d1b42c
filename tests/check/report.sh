#!/usr/bin/env bash
# The report's page in a browser: runs tests/parallel/report_page.sh with an installed Chromium.
set -euo pipefail
. tests/lib.sh
need chromium
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON -DBUILD_SHARED_LIBS=OFF
build release braid_tests_parallel
export BRAID_CPU_DEVICES=4 BRAID_DEVICE=cpu BRAID_REQUIRE_CHROMIUM=1
tests/parallel/report_page.sh build/release/tests/parallel/braid_tests_parallel build/check/report
