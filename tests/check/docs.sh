#!/usr/bin/env bash
# The code in the documentation and in the docstrings of public headers compiles, and the numbers in
# names of tests are explained. (./dev test compares what the tutorials print.) With --all the guide
# to add an op is followed in a copy of the tree.
set -euo pipefail
. tests/lib.sh
docs/check_code.sh
docs/check_numbers.sh
# Each error on the page is compared by one test of must_not_compile, so there are no others.
page=docs/guides/usual_mistakes.md
on_page=$(grep -c '^```text$' "$page" || true)
compared=$(grep -lxF "// page: $page" tests/must_not_compile/*.cpp | wc -l)
if ((on_page != 10 || compared != 10)); then
  echo "FAIL: expected 10 errors on $page, and 10 files in tests/must_not_compile that compare" \
    "them, got $on_page and $compared"
  exit 1
fi
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
