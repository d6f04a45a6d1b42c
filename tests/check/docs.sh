#!/usr/bin/env bash
# The code in the documentation and in the docstrings of public headers compiles, and the numbers in
# names of tests are explained. (./dev test compares what the tutorials print.) With --all the guide
# to add an op is followed in a copy of the tree.
set -euo pipefail
. tests/lib.sh
docs/check_code.sh
docs/check_numbers.sh
# The check of the code must fail if it finds no code.
mkdir -p build/check/no_code
echo 'no code' >build/check/no_code/none.md
if docs/check_code.sh build/check/no_code >/dev/null; then
  echo "FAIL: docs/check_code.sh passes where there is no code"
  exit 1
fi
if ((${BRAID_CHECK_ALL:-0})); then
  tests/add_an_op.sh
  if python3 tests/check/docs_guide.py build/check/no_code/none.md build/check/no_code 2>/dev/null
  then
    echo "FAIL: tests/check/docs_guide.py passes where there is no code"
    exit 1
  fi
fi
