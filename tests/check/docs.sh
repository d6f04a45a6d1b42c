#!/usr/bin/env bash
# The code in the documentation compiles. (./dev test compares what the tutorials print.)
set -euo pipefail
. tests/lib.sh
docs/check_code.sh
# The check of the code must fail if it finds no code.
mkdir -p build/check/no_code
echo 'no code' >build/check/no_code/none.md
if docs/check_code.sh build/check/no_code >/dev/null; then
  echo "FAIL: docs/check_code.sh passes where there is no code"
  exit 1
fi
