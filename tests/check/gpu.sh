#!/usr/bin/env bash
# Runs ./dev gpu, the script for a machine with a GPU, in full as a dry run: on emulated devices and
# with tiny sizes, so that its errors cost no GPU time. Uses PyTorch on the CPU if build/peers-venv
# has it, and also a fake PyTorch. Measures nothing. Uses the build of the check simt.
set -euo pipefail
. tests/lib.sh
mkdir -p build/check/gpu
diff <(sed -n '/^rows=(/,/)/p' bench/gpu/gpu.sh | tr -s ' ()' '\n' | sed '1d;/^$/d') \
  <(PYTHONDONTWRITEBYTECODE=1 python3 bench/gpu/table.py --list) ||
  die "bench/gpu/gpu.sh and table.py list different rows"
PYTHONDONTWRITEBYTECODE=1 python3 bench/gpu/test_table.py
./dev gpu --dry-run --only build --out build/check/gpu/build --seconds 3000
start=$SECONDS
./dev gpu --dry-run --only "$(./dev gpu --list | paste -sd,)" --out build/check/gpu/out \
  --seconds 400
lines=build/check/gpu/out/lines.txt
tar -tzf build/check/gpu/out/logs.tgz | grep build.log >/dev/null ||
  die "the archive has no log of the build"
sed -n 's/^the peer is \([^;]*\);.*/NOTE: beside \1/p' "$lines"
for name in $(./dev gpu --list); do
  grep -E "^(DRY|SKIP\(.*\))  $name[. ]" "$lines" >/dev/null || die "no line of $name"
done
if ! grep 'a fake PyTorch' "$lines" >/dev/null && ! python3 -c 'import torch' 2>/dev/null; then
  BRAID_PYTHON=python3 ./dev gpu --dry-run --only table --out build/check/gpu/fake --seconds 400
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
  [[ $(./dev gpu --out build/check/gpu/none) == "SKIP(no GPU)"* ]] ||
    die "without a GPU ./dev gpu has to say SKIP(no GPU)"
fi
echo "NOTE: $(grep -c '^DRY' "$lines") lines, $((SECONDS - start)) s after the build (bar 90 s)"
