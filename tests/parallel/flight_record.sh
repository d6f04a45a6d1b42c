#!/usr/bin/env bash
# tests/parallel/flight_record.sh BINARY FOLDER: braid_tests_parallel writes flight records into
# FOLDER; Python unpickles them, and PyTorch's analyzer reads them and names the ranks that differ.
# Skips (77) without Python; without PyTorch the files are only unpickled. BRAID_TORCH_PYTHON names
# a Python that has PyTorch.
set -uo pipefail
binary=$1 folder=$2
python=${BRAID_TORCH_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "SKIP(no python)" && exit 77; }
rm -rf "$folder"
mkdir -p "$folder"/{same,differs,missing}
BRAID_FLIGHT_DIR=$folder "$binary" '[.flight_record_files]' >"$folder/write.log" 2>&1 ||
  { cat "$folder/write.log" && exit 1; }
failed=0

# expect NAME TEXT...: the output of the analyzer for FOLDER/NAME has these texts.
expect() {
  local name=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$folder/$name.log" && continue
    echo "FAIL: $name: expected the line '$text' in the analyzer's output:"
    cat "$folder/$name.log"
    failed=1
  done
}
for file in "$folder"/*/flight_*; do
  "$python" -m pickle "$file" >/dev/null || { echo "FAIL: $file is no pickle" && failed=1; }
done
if ! "$python" -c 'import torch.distributed.flight_recorder.fr_trace' 2>/dev/null; then
  echo "NOTE: no PyTorch: its analyzer was not tried"
  exit "$failed"
fi
for name in same differs missing; do
  options=()
  [[ $name != missing ]] || options=(--allow-incomplete-ranks)
  "$python" -m torch.distributed.flight_recorder.fr_trace "$folder/$name" "${options[@]}" \
    >"$folder/$name.log" 2>&1 || { echo "FAIL: the analyzer fails on $name" && failed=1; }
done
if grep -qE 'error|mismatch|Not all|cannot decide|unrecognized' "$folder/same.log"; then
  echo "FAIL: the analyzer finds an error in records that agree:"
  cat "$folder/same.log"
  failed=1
fi
expect differs 'Collective sequence number: 5 has errors' 'group info: 0:world (mpi)' \
  "Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce'" \
  'bucket 1 at braid:0'
expect missing 'missed FR dumps from ranks ({2})'
# -j prints the calls of all ranks side by side; it needs the package tabulate
if "$python" -c 'import tabulate' 2>/dev/null; then
  "$python" -m torch.distributed.flight_recorder.fr_trace -j "$folder/differs" \
    >"$folder/print.log" 2>&1 || failed=1
  expect print 'send(s=0 d=1, input_sizes=[[3]], state=completed)' 'broadcast(input_sizes=[[64]]'
fi
exit "$failed"
