#!/usr/bin/env bash
# tests/processes/kills.sh KILLS mpi|gloo PROGRAM [arguments]: runs a training program on four
# ranks, sends SIGKILL or SIGSTOP to one of them at a random time, and checks that the job ends
# within its deadline and 5 s, not with 0, and that no process is left. Then the run goes on with 4,
# 3, 2 or 1 ranks, until it completes; its last checkpoint must equal that of an undisturbed run of
# one rank, byte for byte. Repeats this until KILLS signals were sent. SEED repeats a test.
#
# mpi: mpirun starts the ranks, and also ends those that are left. gloo: nobody does; every rank
# must end alone, and a stopped one when it continues.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/lib.sh"
least=$1 mode=$2
shift 2
export TIMEOUT=${TIMEOUT:-3}
grace=5
base=${TMPDIR:-/tmp}
[[ -w /dev/shm ]] && base=/dev/shm
work=$(mktemp -d "$base/braid-kills-XXXXXX")
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"
# marks the processes of this test, so that those that are left are found
export BRAID_KILLS_ID=$work
need_engine "$mode"
export BRAID_THREADS=1

# Prints the processes of PROGRAM: each number with its rank. mpirun has none.
ranks() {
  local file rank
  while read -r file; do
    rank=$(tr '\0' '\n' 2>/dev/null <"$file" |
      sed -nE 's/^(RANK|OMPI_COMM_WORLD_RANK|PMI_RANK)=//p' | head -n 1)
    file=${file#/proc/}
    [[ -z $rank ]] || echo "${file%/environ} $rank"
  done < <(grep -lzs "^BRAID_KILLS_ID=$work" /proc/[0-9]*/environ)
}
# Not a zombie: that one has ended, and waits for its parent.
alive() { [[ -r /proc/$1/stat ]] && ! grep -q ') [ZX]' "/proc/$1/stat" 2>/dev/null; }

finish() {
  local pid
  while read -r pid _; do kill -KILL "$pid" 2>/dev/null; done < <(ranks)
  rm -rf "$work"
}
trap '[[ $BASHPID == $$ ]] && finish' EXIT

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
fail() {
  echo "FAIL: kill $kills of SEED=$seed: $1"
  tail -n 40 "$work"/output*
  exit 1
}

# start RANKS COMMAND...: starts the job in the background; its numbers are in `job`.
job=()
start() {
  local size=$1 rank
  shift
  rm -f "$work"/output*
  job=()
  if [[ $mode == mpi ]]; then
    "$mpirun" -np "$size" "$@" >"$work/output" 2>&1 </dev/null &
    job=($!)
    return
  fi
  local port=$((20000 + RANDOM % 10000))
  for ((rank = 0; rank < size; ++rank)); do
    RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$size MASTER_ADDR=127.0.0.1 \
      MASTER_PORT=$port "$@" >"$work/output$rank" 2>&1 </dev/null &
    job+=($!)
  done
}
# wait_until MS: waits until the job has ended, at most to that time. Sets `status` to the first
# status that is not 0.
status=0
wait_until() {
  local pid one
  for pid in "${job[@]}"; do
    while alive "$pid"; do
      (($(milliseconds) < $1)) || return 1
      sleep 0.05
    done
  done
  status=0
  for pid in "${job[@]}"; do
    { wait "$pid"; } 2>/dev/null
    one=$?
    ((one == 0 || status != 0)) || status=$one
  done
}
# Prints the number and the checksums of the newest checkpoint.
result() {
  local newest
  newest=$(ls -d "$1"/step-????????* | grep -v '\.tmp$' | tail -n 1)
  (cd "$newest" && basename "$newest" && sha256sum *.safetensors)
}

kills=0 round=0 worst=0 hung=0 crashed=0 continued=()
for size in 1 4; do
  began=$(milliseconds)
  start "$size" "$@" --checkpoint "$work/whole$size"
  wait_until $((began + 300000)) || fail "the undisturbed run of $size ranks does not end"
  ((status == 0)) || fail "the undisturbed run of $size ranks ends with status $status"
  took=$(($(milliseconds) - began))
done
expected=$(result "$work/whole1")
[[ $(result "$work/whole4") == "$expected" ]] || fail "four ranks end with other bits than one"

window=$took
while ((kills < least)); do
  folder=$work/run$((++round)) size=4
  while true; do
    start "$size" "$@" --checkpoint "$folder" --resume
    there=()
    while ((${#there[@]} == 0)) && alive "${job[0]}"; do mapfile -t there < <(ranks); done
    pause $((RANDOM % (window + 1)))
    mapfile -t there < <(ranks)
    victim='' hit=0
    if ((${#there[@]} > 0)); then
      victim=${there[RANDOM % ${#there[@]}]}
      signal=KILL
      # nobody waits for a stopped rank that is alone
      ((RANDOM % 2 == 0 || size == 1)) || signal=STOP
      kill -s "$signal" "${victim% *}" 2>/dev/null && hit=1
    fi
    sent=$(milliseconds)
    deadline=$((sent + 1000 * (TIMEOUT + grace)))
    if ((!hit)); then  # it was done
      wait_until $((sent + 120000)) || fail "the job does not end"
    elif [[ $mode == gloo ]]; then
      # the others end by themselves; then the stopped one may continue, and has to end, too
      others=()
      for pid in "${job[@]}"; do [[ $pid == "${victim% *}" ]] || others+=("$pid"); done
      all=("${job[@]}")
      job=("${others[@]}")
      wait_until "$deadline" ||
        fail "SIG$signal of rank ${victim#* }: a rank is there after the deadline"
      kill -CONT "${victim% *}" 2>/dev/null
      others_status=$status
      job=("${victim% *}")
      wait_until $(($(milliseconds) + 1000 * (TIMEOUT + grace))) ||
        fail "rank ${victim#* } does not end after SIGCONT"
      ((others_status == 0)) || status=$others_status
      job=("${all[@]}")
    elif ! wait_until "$deadline"; then
      # A rank that is stopped when the run is complete, and MPI_Finalize has passed on all ranks:
      # the others have ended, and only mpirun waits for it. It ends when it continues. Stopped
      # before that, it is missed by the others, which end with an error within the deadline.
      mapfile -t left < <(ranks)
      if ((${#left[@]} == 0)); then
        # All ranks have ended; mpirun itself does not, after it has said that the job is aborted.
        # Open MPI 4.1.4 with PMIx 4.2.2 sometimes waits for ever for a thread of its own, in
        # PMIx_server_finalize.
        hung=$((hung + 1))
        kill -KILL "${job[0]}"
        wait_until $(($(milliseconds) + 1000)) || fail "mpirun does not end"
      elif [[ ${left[*]} == "$victim" ]] && grep -qs '^finished' "$work/output"; then
        kill -CONT "${victim% *}"
        wait_until $(($(milliseconds) + 1000 * (TIMEOUT + grace))) ||
          fail "rank ${victim#* } does not end after SIGCONT"
      else
        fail "SIG$signal of rank ${victim#* }: ranks are there after the deadline: ${left[*]}"
      fi
      sent=$(milliseconds)  # not a time of the ranks
    fi
    took=$(($(milliseconds) - sent))
    mapfile -t left < <(ranks)
    ((${#left[@]} == 0)) || fail "processes are left: ${left[*]}"
    grep -qs 'a damaged checkpoint' "$work"/output* && fail "a damaged checkpoint"
    if ((status == 0)); then
      # done, although a rank may have been hit after its last collective
      grep -qs '^finished' "$work"/output* || fail "status 0, but rank 0 has not finished"
      window=$((window * 2 / 3 + 1))
      break
    fi
    ((hit)) || fail "status $status, but no rank was killed"
    # 128 + SIGSEGV, of mpirun: it reports a rank that crashes otherwise
    [[ $mode == mpi ]] && ((status == 139)) && crashed=$((crashed + 1))
    kills=$((kills + 1)) window=$((window + window / 8 + 1))
    ((took <= worst)) || worst=$took
    size=$((RANDOM % 4 + 1))
    continued[size]=$((${continued[size]:-0} + 1))
  done
  [[ $(result "$folder") == "$expected" ]] || fail "it ends otherwise: $(result "$folder")"
  rm -r "$folder"
done
echo "$round runs over $mode, $kills kills, ended at most $worst ms later (allowed:" \
  "$((1000 * (TIMEOUT + grace)))); continued with 1, 2, 3, 4 ranks" \
  "${continued[1]:-0}, ${continued[2]:-0}, ${continued[3]:-0}, ${continued[4]:-0} times:" \
  "the same bits"
((hung == 0)) || echo "NOTE: mpirun itself hung $hung times after all its ranks had ended"
((crashed == 0)) || echo "NOTE: mpirun itself crashed $crashed times, after a rank was killed"
