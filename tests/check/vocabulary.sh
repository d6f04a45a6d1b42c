#!/usr/bin/env bash
# docs/guides/from_pytorch.md lists PyTorch's names and what Braid has for each. Its tables are
# generated from tests/check/vocabulary/, and every line of code in them is compiled: a line that is
# said to compile must, and one that is said not to must not. CI compiles every second time, and
# always compares the page.
#   BRAID_VOCABULARY_WRITE=1 ./dev check vocabulary    writes the page
#   BRAID_VOCABULARY_UPDATE=1 ./dev check vocabulary   also sets the statuses to what compiles now
set -euo pipefail
. tests/lib.sh
mode=all
turn=${BRAID_CHECK_TURN:-$(check_turn)}
((${BRAID_CHECK_ALL:-0})) || ! ((turn % 2)) || mode=page
[[ -z ${BRAID_VOCABULARY_WRITE:-} ]] || mode=write
[[ -z ${BRAID_VOCABULARY_UPDATE:-} ]] || mode=update
python3 tests/check/vocabulary.py "$mode"
