#!/usr/bin/env bash
# ./dev test exchange: trains a CNN with BatchNorm, an LSTM and a Transformer for ten steps,
# starting from PyTorch's weights (tests/goldens/exchange, safetensors). Compares losses, parameters
# and outputs with PyTorch's, on every instruction set. If PyTorch is installed
# (bench/peers/setup.sh), PyTorch then loads the files that Braid wrote, and trains from Braid's
# weights. Takes seconds after the build.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}" catch2

if (($# > 0)); then
  echo "./dev test exchange: expected no arguments, got '$*'" >&2
  exit 2
fi
results=build/exchange
rm -rf "$results"
mkdir -p "$results"
configure release -DBRAID_BUILD_TESTS=ON
build release braid_tests_exchange

for isa in sse avx2 avx512; do
  status=0
  BRAID_ISA=$isa BRAID_DEVICE=cpu BRAID_EXCHANGE_OUT=$results \
    build/release/tests/exchange/braid_tests_exchange >"$results/$isa.txt" 2>&1 || status=$?
  case $status in
    0) sed -n "s/^SHOWS: exchange /$isa, /p" "$results/$isa.txt" ;;
    77) cat "$results/$isa.txt" ;;
    *)
      cat "$results/$isa.txt"
      echo "./dev test exchange: failed with $isa" >&2
      exit 1
      ;;
  esac
done

peers=${BRAID_PEERS:-build/peers-venv}
if [[ -r $peers/peers.env ]] && . "$peers/peers.env" &&
  "$peers/bin/python" -c 'import torch, safetensors' 2>/dev/null; then
  "$peers/bin/python" -W ignore tests/goldens/make_exchange.py --check "$results"
else
  echo "PyTorch with the safetensors package is not there (bench/peers/setup.sh makes it):" \
    "Braid's files were compared with its own, but not loaded by it"
fi
