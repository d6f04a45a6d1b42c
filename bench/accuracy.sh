#!/usr/bin/env bash
# ./dev bench accuracy [--json FILE]: trains the unchanged programs of docs/tutorials on real data,
# and prints for each the value that it reaches and its bar (the required value): the accuracy on
# digits of the network of train.cpp (median of three seeds) and of the small capsule network, the
# perplexity of the word model, the bits per character of the GPT, the steps for which DQN balances
# the pole (the least of three seeds), how many of DCGAN's digits a classifier reads, and the
# accuracy of ResNet-18 on a folder of PNG files.
# PyTorch's values were measured with the same nets, data and settings. Takes at most 40 minutes on
# two threads. Fails if a bar is missed.
set -euo pipefail
. tests/lib.sh

json=""
case ${1:-} in
  "") ;;
  --json) json=${2:?./dev bench accuracy: --json wants a file} ;;
  *)
    echo "./dev bench accuracy: expected nothing or --json FILE, got '$1'" >&2
    exit 2
    ;;
esac
for file in mnist-images-idx3-ubyte{,.gz} wikitext2-{test,valid}.txt tinyshakespeare.txt; do
  [[ -n ${BRAID_DATA:-} && -e $BRAID_DATA/$file ]] && continue
  [[ $file == mnist*ubyte && -e ${BRAID_DATA:-}/$file.gz ]] && continue
  [[ $file == *.gz && -e ${BRAID_DATA:-}/${file%.gz} ]] && continue
  echo "./dev bench accuracy: expected BRAID_DATA to name a folder with the MNIST digits," \
    "WikiText-2's test and valid parts and tinyshakespeare.txt: no $file" >&2
  exit 1
done

configure release -DBRAID_BUILD_DOCS=ON
build release braid_tutorial_{train,capsnet,word_lm,gpt,dqn,dcgan,resnet} >&2
export BRAID_DEVICE=cpu BRAID_THREADS=${BRAID_THREADS:-2}
logs=build/accuracy
mkdir -p "$logs"

rows=() missed=0
# figure NAME PROGRAM PATTERN [ARGUMENTS]: runs the program and prints the last number that the
# pattern matches in its output.
figure() {
  local name=$1 program=$2 pattern=$3
  shift 3
  if ! "build/release/docs/tutorials/$program" --quiet "$@" >"$logs/$name.txt" 2>&1; then
    # A program with its own bar exits with 1 below it. Without a matching figure it has failed.
    grep -qE "$pattern" "$logs/$name.txt" || { cat "$logs/$name.txt" >&2 && exit 1; }
  fi
  sed -nE "s/^.*$pattern.*\$/\1/p" "$logs/$name.txt" | tail -n 1
}
# row NAME FIGURE RELATION BAR PEER SECONDS
row() {
  local verdict=met met=true
  awk "BEGIN { exit !($2 $3 $4) }" || { verdict=MISSED met=false && missed=1; }
  printf '%-44s %9s   bar %s %-6s %-6s   PyTorch %-6s %4d s\n' \
    "$1" "$2" "$3" "$4" "$verdict" "$5" "$6"
  local figures="\"value\": $2, \"bar\": $4, \"relation\": \"$3\""
  rows+=("{\"name\": \"$1\", $figures, \"met\": $met, \"seconds\": $6}")
}

start=$SECONDS
for seed in 0 1 2; do
  figure "train-$seed" train '^accuracy (0\.[0-9]+|1)' --epochs 3 --seed "$seed"
done | sort -n >"$logs/train.txt"
row "train.cpp, digits, median of $(tr '\n' ' ' <"$logs/train.txt")" \
  "$(sed -n 2p "$logs/train.txt")" ">=" 0.965 0.971 $((SECONDS - start))
start=$SECONDS
value=$(figure capsnet capsnet '^accuracy (0\.[0-9]+|1)' --epochs 3)
row "capsnet.cpp, digits" "$value" ">=" 0.965 0.972 $((SECONDS - start))
start=$SECONDS
value=$(figure word_lm word_lm 'unseen words: ([0-9.]+) after epoch 4')
counted=$(sed -nE 's/^.*: ([0-9.]+) by counting.*/\1/p' "$logs/word_lm.txt")
row "word_lm.cpp, perplexity (counting words: $counted)" "$value" "<=" 195 182 $((SECONDS - start))
start=$SECONDS
value=$(figure gpt gpt '^([0-9.]+) bits per character')
row "gpt.cpp, bits per character" "$value" "<" 2.6 - $((SECONDS - start))
start=$SECONDS
for form in plain autocast recompute; do  # 200 steps each
  option=()
  [[ $form == plain ]] || option=(--$form)
  began=$EPOCHREALTIME
  bits=$(figure "gpt-$form" gpt '^([0-9.]+) bits per character' --characters 228000 --epochs 1 \
    --layers 8 --length 1 "${option[@]}")
  peak=$(sed -nE 's/^.* trained in ([0-9]+) MiB$/\1/p' "$logs/gpt-$form.txt")
  seconds=$(awk "BEGIN { print $EPOCHREALTIME - $began }")
  echo "$form $bits $peak $seconds"
done >"$logs/gpt-forms.txt"
ratio() { awk -v form="$1" -v k="$2" '{ v[$1] = $k } END { printf "%.3f", v[form] / v["plain"] }' \
  "$logs/gpt-forms.txt"; }
difference=$(awk "BEGIN { d = $(ratio autocast 2) - 1; printf \"%.3f\", d < 0 ? -d : d }")
row "gpt.cpp, 200 steps, bfloat16 off float32 by" "$difference" "<=" 0.01 - $((SECONDS - start))
row "gpt.cpp, 200 steps, recompute: memory ratio" "$(ratio recompute 3)" "<=" 0.5 - 0
row "gpt.cpp, 200 steps, recompute: time ratio" "$(ratio recompute 4)" "<=" 1.4 - 0
start=$SECONDS
for seed in 0 1 2; do
  figure "dqn-$seed" dqn '^mean of 100 new episodes: ([0-9.]+)' --seed "$seed"
done | sort -n >"$logs/dqn.txt"
row "dqn.cpp, steps, the least of $(tr '\n' ' ' <"$logs/dqn.txt")" \
  "$(sed -n 1p "$logs/dqn.txt")" ">=" 195 - $((SECONDS - start))
start=$SECONDS
value=$(figure dcgan dcgan '^of 1000 drawn digits it is sure of ([0-9.]+)')
row "dcgan.cpp, drawn digits that are read, percent" "$value" ">=" 80 - $((SECONDS - start))
noise=$(sed -nE 's/^.*unseen digits, and of ([0-9.]+) % of noise$/\1/p' "$logs/dcgan.txt")
row "dcgan.cpp, noise that is read, percent" "$noise" "<=" 5 - 0
counts=$(sed -nE 's/^.*; 0 to 9: (.*)$/\1/p' "$logs/dcgan.txt" | tr ' ' '\n' | sort -n)
row "dcgan.cpp, of 1,000: the rarest digit" "$(head -n 1 <<<"$counts")" ">=" 30 - 0
row "dcgan.cpp, of 1,000: the most frequent digit" "$(tail -n 1 <<<"$counts")" "<=" 250 - 0
start=$SECONDS
value=$(figure resnet resnet '^accuracy (0\.[0-9]+|1)' --drawn "$logs/digits")
row "resnet.cpp, digits as a folder of PNG files" "$value" ">=" 0.97 - $((SECONDS - start))
echo "$SECONDS s in all, $BRAID_THREADS threads"
if [[ -n $json ]]; then
  (
    IFS=,
    printf '[%s]\n' "${rows[*]}" >"$json"
  )
fi
exit $missed
