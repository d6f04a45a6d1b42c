#!/usr/bin/env bash
# gpt2.sh PROGRAM FOLDER: the tutorial gpt2 trains a small model, saves it and loads it again. What
# it then writes must be the same. What cannot be right is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$1 folder=$2
mkdir -p "$folder"
fail() {
  echo "FAIL: $*"
  exit 1
}
tiny() { "$program" --config tiny --quiet "$@"; }

bpe=(--vocab tests/goldens/bpe/vocab.json --merges tests/goldens/bpe/merges.txt)
page=docs/tutorials/gpt2.cpp
greedy=(--prompt "return " --temperature 0 --length 90) # more than its 64 positions
for vocabulary in "" bpe; do
  with=()
  [[ -n $vocabulary ]] && with=("${bpe[@]}")
  model=$folder/model$vocabulary.safetensors
  rm -f "$model"
  trained=$(tiny "${with[@]}" --train "$page" --lr 1e-2 --batch 8 --save "$model" "${greedy[@]}")
  loaded=$(tiny "${with[@]}" --weights "$model" "${greedy[@]}")
  [[ ${trained#*return } == "${loaded#*return }" && $loaded == *"return "* ]] ||
    fail "expected the text of the trained model, $trained, got $loaded"
done

# The loss does not depend on the parts of a batch.
loss() {
  tiny --train "$page" --batch 8 --context 32 "$@" | sed -n 's/^loss \([0-9.]*\) .*/\1/p'
}
whole=$(loss) parts=$(loss --accumulate 3) again=$(loss --recompute)
if [[ -z $whole || $whole != "$again" ]] ||
  ! awk "BEGIN { exit !(($whole - $parts) ^ 2 < 1e-6) }"; then
  fail "expected the loss $whole, got $parts in parts and $again with checkpoints"
fi

# Tokens of 16 bits; the same seed gives the same text.
for _ in $(seq 100); do printf 'a\0b\0'; done >"$folder/two.bin"
tiny --train "$folder/two.bin" --context 16 >/dev/null
one=$(tiny --tokens "97, 98 99" --length 5 --seed 3 --temperature 1 --top_k 9)
[[ $one == "$(tiny --tokens "97 98 99" --length 5 --seed 3 --temperature 1 --top_k 9)" ]] ||
  fail "expected the same tokens with the same seed, got others than $one"
[[ $one != "$(tiny --tokens "97 98 99" --length 5 --seed 4 --temperature 1 --top_k 9)" ]] ||
  fail "expected other tokens with another seed, got $one"

refused() { # TEXT ARGUMENTS
  local text=$1 got status=0
  shift
  got=$(tiny "$@" 2>&1) || status=$?
  [[ $status == 1 && $got == *"$text"* ]] || fail "expected '$text' and status 1, got $got, $status"
}
model=$folder/model.safetensors
refused "expected --vocab and --merges, got one of them" --vocab "${bpe[1]}"
refused "expected tokens from 0 to 256, got 257" --tokens "1 257"
refused "expected tokens from 0 to 256, got 1x" --tokens "1x"
refused "expected --vocab and --merges of 257 tokens, got 331" --weights "$model" "${bpe[@]}" \
  --prompt a
printf abc >"$folder/odd.bin"
refused "odd.bin: expected 16-bit numbers, got 3 bytes" --train "$folder/odd.bin"
printf 'a\1' >"$folder/large.bin"
refused "large.bin: expected tokens from 0 to 256, got 353" --train "$folder/large.bin"
refused "none.txt" --train "$folder/none.txt"
refused "with 2 layers, got unexpected " --weights tests/goldens/gpt2/run.safetensors "${bpe[@]}"
got=$("$program" --weights "$model" --tokens 1 2>&1) && fail "expected an error, got $got"
[[ $got == *"got wte.weight [257, 32] instead of [257, 768]"*"no h.11.mlp.c_proj.bias [768]" ]] ||
  fail "expected all names that are wrong, got $got"
