#!/usr/bin/env bash
# kill_and_resume.sh ROUNDS PROGRAM [arguments]: a training program that takes --checkpoint and
# --resume is killed at random times (SIGKILL, SIGINT, SIGTERM in turn) and resumed until it is
# done. Its last checkpoint must be, byte for byte, that of a run that nobody disturbed.
set -uo pipefail
rounds=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/braid-kill-XXXXXX")
trap 'rm -rf "$work"' EXIT
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"

# The bytes of the newest checkpoint, its number too.
digest() {
  local newest
  newest=$(ls -d "$1"/step-????????* | grep -v '\.tmp$' | tail -n 1)
  (cd "$newest" && basename "$newest" && sha256sum *.safetensors) | sha256sum
}

began=$(date +%s%N)
"$@" --checkpoint "$work/whole" >"$work/output" 2>&1 || { cat "$work/output"; exit 1; }
took=$((($(date +%s%N) - began) / 1000000))
expected=$(digest "$work/whole")
failed=0 kills=0 stops=0 done_early=0
for ((round = 0; round < rounds; ++round)); do
  folder=$work/run$round
  while true; do
    "$@" --checkpoint "$folder" --resume >"$work/output" 2>&1 &
    pid=$!
    signals=(KILL INT TERM)
    signal=${signals[$((RANDOM % 3))]}
    ms=$((RANDOM % (took * 2 / 3 + 1)))
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    if kill -s "$signal" "$pid" 2>/dev/null; then kills=$((kills + 1)); fi
    wait "$pid" 2>/dev/null
    status=$?
    case $status in
      0) break ;;
      137) ;;
      130 | 143) grep -q '^stopped' "$work/output" && stops=$((stops + 1)) ;;
      *)
        echo "FAIL: status $status after SIG$signal:" && cat "$work/output"
        exit 1
        ;;
    esac
    if compgen -G "$folder/step-*" >/dev/null && (($(ls "$folder" | grep -c '\.tmp$') > 1)); then
      echo "FAIL: more than one unfinished folder: $(ls "$folder")"
      failed=1
    fi
  done
  if [[ $(digest "$folder") != "$expected" ]]; then
    echo "FAIL: round $round ends with other bits: $(ls "$folder")"
    failed=1
  fi
done
echo "$rounds rounds of $took ms, $kills signals, $stops of them answered with a checkpoint: $( ((failed)) && echo DIFFERENT || echo the same bits)"
exit $failed
