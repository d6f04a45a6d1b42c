#!/usr/bin/env bash
# The code in the documentation compiles, and the tutorials print what they should.
set -euo pipefail
. tests/lib.sh
configure release -DBRAID_BUILD_TESTS=ON -DBRAID_BUILD_DOCS=ON -DBUILD_SHARED_LIBS=OFF
build release braid_tutorials
run_ctest release -L '^tutorials$' -LE '^slow$'  # the slow ones have run in ./dev test
docs/check_code.sh
# The check of the code would notice if it found none.
mkdir -p build/check/no_code
echo 'no code' >build/check/no_code/none.md
if docs/check_code.sh build/check/no_code >/dev/null; then
  echo "FAIL: docs/check_code.sh passes where there is no code"
  exit 1
fi
