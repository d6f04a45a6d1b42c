#!/usr/bin/env bash
# kill_and_resume.sh KILLS PROGRAM [arguments]: a training program that takes --checkpoint and
# --resume is killed at random times (SIGKILL, SIGINT, SIGTERM) and resumed until it is done, in as
# many rounds as KILLS signals take. Its last checkpoint must be, byte for byte, that of a run that
# nobody disturbed, its last line the same, and no checkpoint damaged.
set -uo pipefail
least=$1
shift
# In memory: a process that is killed takes no write back, so a disk would show nothing more.
base=${TMPDIR:-/tmp}
[[ -w /dev/shm ]] && base=/dev/shm
work=$(mktemp -d "$base/braid-kill-XXXXXX")
# not in a copy of this shell that is killed before it has become the program
trap '[[ $BASHPID == $$ ]] && rm -rf "$work"' EXIT
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"

# What a run ends with: its last line, and the number and the bytes of the newest checkpoint.
result() {
  local newest
  newest=$(ls -d "$1"/step-????????* | grep -v '\.tmp$' | tail -n 1)
  tail -n 1 "$work/output"
  (cd "$newest" && basename "$newest" && sha256sum *.safetensors)
}
fail() {
  echo "FAIL: round $round: $1:" && cat "$work/output"
  exit 1
}

began=$(date +%s%N) round=0
"$@" --checkpoint "$work/whole" >"$work/output" 2>&1 || fail "the undisturbed run"
took=$((($(date +%s%N) - began) / 1000000))
expected=$(result "$work/whole")
# A run lives up to `window` ms: less where runs end undisturbed, more where they are killed.
window=$((took * 2 / 3)) kills=0 stops=0 signals=(KILL INT TERM)
while ((kills < least)); do
  folder=$work/run$((++round))
  while true; do
    "$@" --checkpoint "$folder" --resume >"$work/output" 2>&1 &
    pid=$!
    signal=${signals[$((RANDOM % 3))]}
    ms=$((RANDOM % (window + 1)))
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -s "$signal" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    status=$?
    grep -q damaged "$work/output" && fail "a damaged checkpoint"
    case $status in
      0) window=$((window * 2 / 3)) && break ;;
      137) ;;
      130 | 143) grep -q '^stopped' "$work/output" && stops=$((stops + 1)) ;;
      *) fail "status $status after SIG$signal" ;;
    esac
    kills=$((kills + 1)) window=$((window + window / 8 + 1))
    if compgen -G "$folder/step-*" >/dev/null && (($(ls "$folder" | grep -c '\.tmp$') > 1)); then
      fail "more than one unfinished folder: $(ls "$folder")"
    fi
  done
  [[ $(result "$folder") == "$expected" ]] || fail "it ends otherwise: $(ls "$folder")"
  rm -r "$folder"
done
echo "$round rounds of $took ms, $kills kills, $stops answered with a checkpoint: the same bits"
