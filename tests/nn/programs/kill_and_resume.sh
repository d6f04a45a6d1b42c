#!/usr/bin/env bash
# kill_and_resume.sh KILLS PROGRAM [arguments]: runs a training program that takes --checkpoint and
# --resume, kills it at random times (SIGKILL, SIGINT, SIGTERM), and resumes it until it is done.
# Repeats this in rounds until at least KILLS signals were sent. In each round the last checkpoint
# must equal, byte for byte, that of a run without interruptions, the last line of output must be
# the same, and no checkpoint may be damaged.
set -uo pipefail
least=$1
shift
# In memory: killing a process does not undo its writes, so a disk would test nothing more.
base=${TMPDIR:-/tmp}
[[ -w /dev/shm ]] && base=/dev/shm
work=$(mktemp -d "$base/braid-kill-XXXXXX")
# not in a forked copy of this shell that is killed before it runs the program
trap '[[ $BASHPID == $$ ]] && rm -rf "$work"' EXIT
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"

# Prints the result of a run: its last line, and the number and checksums of the newest checkpoint.
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
# A run is killed after at most `window` ms. The window shrinks when a run finishes, and grows when
# it is killed.
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
