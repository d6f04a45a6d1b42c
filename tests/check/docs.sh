#!/usr/bin/env bash
# The code in the documentation compiles, and the tutorials print what they should.
set -euo pipefail
. tests/lib.sh
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON -DBUILD_SHARED_LIBS=OFF
build release braid_tutorials
run_ctest release -L '^tutorials$'
docs/check_code.sh
