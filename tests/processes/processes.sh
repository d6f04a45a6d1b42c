#!/usr/bin/env bash
# processes.sh PROGRAM ENGINES [KILLS]: ranks that are processes, with each engine and launcher that
# is installed: collectives, errors that all ranks report, and KILLS (2) ranks each that are killed
# or stopped. Prints a line for each check; exits with 77 if there is no engine. With
# BRAID_TEST_MPI=openmpi|mpich, of the MPIs only that one, if it is installed (./dev test).
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib.sh"
program=$1 engines=$2 kills=${3:-2}
work=$(mktemp -d)
tag=rank-of-$$-$RANDOM # an argument by which the processes of this script are found
trap 'end_all; rm -rf "$work"' EXIT
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT BRAID_PORT PMIX_RANK
export BRAID_MODULE_PATH=$engines

pids() { pgrep -f -- " $tag\$" || true; }
# The ranks, without the launcher, whose arguments contain the tag too.
ranks() {
  local pid
  for pid in $(pids); do
    [[ $(readlink "/proc/$pid/exe") != "$(readlink -f "$program")" ]] || echo "$pid"
  done
}
end_all() {
  local pid
  for pid in $(pids); do kill -KILL "$pid" 2>/dev/null || true; done
}
die() {
  echo "FAIL: $*"
  cat "$work"/log* 2>/dev/null || true
  exit 1
}

# start LAUNCHER N MODE SECONDS: starts a job; its output goes to $work/log*, its status to
# $work/status. Of ranks that are started here, the status is 0 if all are.
start() {
  local launcher=$1 n=$2 mode=$3 seconds=$4
  rm -f "$work"/log* "$work/status"
  case $launcher in
    openmpi | mpich | abi)
      local -n command=$launcher  # the array of this name
      ("${command[@]}" -np "$n" "$program" "$mode" "$seconds" "$tag" >"$work/log" 2>&1 &&
        echo 0 >"$work/status" || echo $? >"$work/status") &
      ;;
    variables)
      local port=$((20000 + RANDOM % 10000)) rank
      (
        exec 2>/dev/null  # bash's own lines about killed ranks
        for ((rank = 0; rank < n; ++rank)); do
          RANK=$rank WORLD_SIZE=$n BRAID_PORT=$port \
            "$program" "$mode" "$seconds" "$tag" >"$work/log$rank" 2>&1 &
          list[rank]=$!
        done
        status=0
        for ((rank = 0; rank < n; ++rank)); do wait "${list[rank]}" || status=$?; done
        echo $status >"$work/status"
      ) &
      ;;
  esac
  job=$!
}

# run LAUNCHER N MODE SECONDS: the same, to its end; sets `status`.
run() {
  start "$@"
  wait "$job" 2>/dev/null || true
  status=$(cat "$work/status")
}

# count_lines TEXT: the lines of the job's output that contain the text (or one of its lines).
count_lines() { cat "$work"/log* 2>/dev/null | grep -cF -- "$1" || true; }

is_running() { [[ $(count_lines running) != 0 ]]; }
has_ended() { [[ -s $work/status ]]; }
is_empty() { [[ -z $(ranks) ]]; }

# collectives LAUNCHER N
collectives() {
  run "$1" "$2" collectives 60
  [[ $status == 0 && $(count_lines ': ok over') == "$2" ]] || die "$1: collectives with $2 ranks"
  echo "$1: collectives with $2 ranks${BRAID_LINK:+, as over a network}"
}

# reports LAUNCHER MODE TEXT RANKS: the job fails, and that many ranks report the text.
reports() {
  run "$1" 4 "$2" 5
  # mpirun may end the last ranks before they print
  local got
  got=$(count_lines "$3")
  [[ $status != 0 ]] || die "$1: $2 ended with 0"
  if [[ $1 == variables ]]; then ((got == $4)); else ((got >= 1)); fi ||
    die "$1: $2: '$3' $got times"
  echo "$1: $2: ${3%%$'\n'*}"
}

# hurt LAUNCHER SIGNAL SECONDS: a random rank of 4 gets the signal while all compute. The job ends
# within the deadline of a collective and 5 s, fails, and leaves no process.
hurt() {
  local launcher=$1 signal=$2 seconds=$3 list victim begin took
  start "$launcher" 4 loop "$seconds"
  wait_for 30 is_running || die "$launcher: the loop does not start"
  mapfile -t list < <(ranks)
  victim=${list[RANDOM % ${#list[@]}]}
  sleep "0.0$((RANDOM % 100))"
  begin=$(date +%s%N)
  kill "-$signal" "$victim"
  if [[ $launcher == variables && $signal == STOP ]]; then
    # No launcher ends the stopped rank: it ends when it goes on.
    wait_for $((seconds + 5)) eval '[[ $(ranks) == '"$victim"' ]]' ||
      die "$launcher: $signal: the others have not ended"
    took=$((($(date +%s%N) - begin) / 1000000))
    kill -CONT "$victim"
  fi
  wait_for $((seconds + 5)) has_ended || die "$launcher: $signal: the job has not ended"
  [[ -n ${took:-} ]] || took=$((($(date +%s%N) - begin) / 1000000))
  [[ $(cat "$work/status") != 0 ]] || die "$launcher: $signal: the job ended with 0"
  wait_for 2 is_empty || die "$launcher: $signal: orphans $(ranks)"
  echo "$launcher: $signal: over after $took ms: $(cat "$work"/log* | grep -m 1 '^error' || true)"
}

# stops LAUNCHER: a rank stops after its last collective. Over MPI the job ends within the deadline
# and 5 s, and fails; over Gloo the others need not wait for that rank, and rank 0 names it.
stops() {
  local text='rank 1 has not ended as the others, nor reported for 2 s' begin
  [[ $1 != variables ]] || text='rank 0 ends, and with it the store, but rank 1 has not left'
  begin=$(date +%s%N)
  start "$1" 3 stops 2
  if [[ $1 == variables ]]; then
    wait_for 7 eval '(($(count_lines "'"$text"'") == 1))' || die "$1: stops: rank 0 says nothing"
    kill -CONT "$(ranks)"
  fi
  wait_for 7 has_ended || die "$1: stops: the job has not ended"
  (($(count_lines "$text") >= 1)) || die "$1: stops: expected '$text'"
  [[ $1 == variables || $(cat "$work/status") != 0 ]] || die "$1: stops: the job ended with 0"
  wait_for 2 is_empty || die "$1: stops: orphans $(ranks)"
  echo "$1: a rank stops at the end: over after $((($(date +%s%N) - begin) / 1000000)) ms: $text"
}

# absent LAUNCHER MODE TEXT: rank 1 of 3 stops while the ranks meet. The job ends within the
# deadline and 5 s, and fails.
absent() {
  local begin
  begin=$(date +%s%N)
  start "$1" 3 "$2" 2
  wait_for 7 has_ended || die "$1: $2: the job has not ended"
  [[ $(cat "$work/status") != 0 ]] || die "$1: $2: the job ended with 0"
  (($(count_lines "$3") >= 1)) || die "$1: $2: expected '$3'"
  wait_for 2 is_empty || die "$1: $2: orphans $(ranks)"
  echo "$1: rank 1 $2, and stops: over after $((($(date +%s%N) - begin) / 1000000)) ms: $3"
}

# bad TEXT VARIABLE=VALUE...: one process with these variables fails with the text within 5 s.
bad() {
  local text=$1
  shift
  if env "$@" timeout 5 "$program" alone 1 "$tag" >"$work/log" 2>&1; then die "$*: no error"; fi
  (($(count_lines "$text") == 1)) || die "$*: expected '$text'"
  echo "bad input: $(cat "$work/log")"
}

# A program, and the library where it is a shared one, work without any engine.
for file in "$program" "$(dirname "$engines")/libbraid.so"; do
  [[ ! -e $file ]] || ! ldd "$file" | grep -E 'lib(mpi|mpich|gloo|nccl)|braid_[a-z_]*\.so' ||
    die "$file is linked to an engine"
done
env BRAID_MODULE_PATH=/nowhere "$program" alone >"$work/log"
(($(count_lines 'rank 0 of 1') == 1)) || die "a program without a launcher"
bad 'RANK: expected a rank below WORLD_SIZE = 2, got 2' RANK=2 WORLD_SIZE=2
bad 'RANK: expected a rank below WORLD_SIZE = 4, got 7' RANK=7 WORLD_SIZE=4
bad "RANK: expected a number from 0 to 65535, got '-1'" RANK=-1 WORLD_SIZE=4
bad "RANK: expected a number from 0 to 65535, got 'abc'" RANK=abc WORLD_SIZE=4
bad "WORLD_SIZE: expected a number from 1 to 65536, got '0'" RANK=0 WORLD_SIZE=0
bad "RANK: expected a number, or that it is not set, got ''" RANK= WORLD_SIZE=
bad 'WORLD_SIZE: expected it to be set, as RANK is, got none' RANK=1
bad 'PMIX_RANK: expected the number of ranks in SLURM_STEP_NUM_TASKS too, got none' PMIX_RANK=0
bad 'Process: engine gloo: expected the variables of a launcher (RANK and WORLD_SIZE, or those' \
  BRAID_ENGINE=gloo
# Neither MPI nor Gloo is installed.
bad "engine gloo: expected braid_gloo.so in one of /nowhere, got none; it is built where Debian's \
libgloo-dev" BRAID_MODULE_PATH=/nowhere RANK=0 WORLD_SIZE=2
bad 'engine mpi_openmpi: expected braid_mpi_openmpi.so in one of /nowhere' \
  BRAID_MODULE_PATH=/nowhere OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
bad 'engine mpi_mpich: expected braid_mpi_mpich.so in one of /nowhere' \
  BRAID_MODULE_PATH=/nowhere PMI_RANK=0 PMI_SIZE=2
# The module is there, and cannot be opened: here it is no library.
mkdir "$work/broken"
echo >"$work/broken/braid_gloo.so"
bad "braid_gloo.so cannot be opened: $work/broken/braid_gloo.so: file too short; Debian's libgloo0 \
or its like has its library" BRAID_MODULE_PATH="$work/broken" RANK=0 WORLD_SIZE=2

launchers=()
openmpi=() mpich=()
for name in mpirun.openmpi mpirun; do
  if [[ $("$name" --version 2>&1) == *'Open MPI'* ]]; then
    openmpi=("$name")
    break
  fi
done
for name in mpiexec.mpich mpiexec; do
  if [[ $("$name" --version 2>&1) == *HYDRA* ]]; then
    mpich=("$name")
    break
  fi
done
[[ ! -e $engines/braid_mpi_openmpi.so || ${#openmpi[@]} == 0 ]] || launchers+=(openmpi)
[[ ! -e $engines/braid_mpi_mpich.so || ${#mpich[@]} == 0 ]] || launchers+=(mpich)
# An MPI with the ABI of MPI 5 has a mpicc_abi, and its launcher beside.
abi=$(command -v mpicc_abi || true)
if [[ -n $abi && -e $engines/braid_mpi_abi.so ]]; then
  mkdir "$work/abi"
  cp "$engines/braid_mpi_abi.so" "$work/abi"
  abi=(env BRAID_MODULE_PATH="$work/abi" "$(dirname "$abi")/mpiexec")
  launchers+=(abi)
fi
[[ ! -e $engines/braid_gloo.so ]] || launchers+=(variables)
if ((${#launchers[@]} == 0)); then
  echo "SKIP(no engine between processes: neither libopenmpi-dev with openmpi-bin, nor" \
    "libmpich-dev with mpich, nor libgloo-dev)"
  exit 77
fi

chosen=("${launchers[@]}")
if [[ -n ${BRAID_TEST_MPI:-} && " ${launchers[*]} " == *" $BRAID_TEST_MPI "* ]]; then
  chosen=("$BRAID_TEST_MPI")
  for launcher in "${launchers[@]}"; do
    [[ $launcher == openmpi || $launcher == mpich ]] || chosen+=("$launcher")
  done
fi
for launcher in "${chosen[@]}"; do
  collectives "$launcher" 2
  collectives "$launcher" 4
  [[ $launcher == variables ]] || BRAID_LINK=network collectives "$launcher" 4
  reports "$launcher" mismatch \
    'all_reduce, call 2: rank 1 has float64 [3], ranks 0, 2, 3 have float32 [3]' 4
  reports "$launcher" order 'call 2: rank 1 calls broadcast, ranks 0, 2, 3 call all_reduce' 4
  reports "$launcher" parameters \
    "got no further parameter on rank 1 and parameter '1.bias' [2]" 4
  reports "$launcher" dtypes \
    "got parameter '0.weight' [4, 3], float64 on rank 1 and parameter '0.weight' [4, 3], float32" 4
  if [[ $launcher == variables ]]; then
    reports "$launcher" shorter 'recv from rank 0: expected a message of 8 bytes, got 16' 4
    reports "$launcher" longer 'recv from rank 0: expected a message of 32 bytes, got 16' 4
    reports "$launcher" other 'recv from rank 0: expected a message of int32, got float32' 4
    run "$launcher" 3 again 10
    [[ $status == 0 && $(count_lines 'was there') == 6 ]] || die "$launcher: two jobs on one port"
    echo "$launcher: two jobs on one port, one after the other"
  fi
  # mpiexec kills the other ranks at once: then it is the first one's text
  text='rank 1 has left without entering all_reduce(12 bytes), call 2'
  [[ $launcher != mpich && $launcher != abi ]] || text+=$'\nno more data'
  reports "$launcher" leave "$text" 3
  stops "$launcher"
  if [[ $launcher == openmpi || $launcher == mpich ]]; then
    absent "$launcher" enters 'MPI_Init has not ended within 2 s'
    absent "$launcher" meets 'the ranks have not met over MPI within 2 s'
  fi
  for ((i = 0; i < kills; ++i)); do
    hurt "$launcher" KILL 3
    hurt "$launcher" STOP 3
  done
done

if [[ " ${launchers[*]} " == *' variables '* ]]; then
  # together TEXT N RANK/SIZE...: these ranks are started on one port. All fail within 5 s, and N of
  # them report the text. `port` is the store's.
  together() {
    local text=$1 n=$2 rank list=()
    shift 2
    rm -f "$work"/log*
    for rank in "$@"; do
      RANK=${rank%/*} WORLD_SIZE=${rank#*/} MASTER_PORT=$((port - 1)) \
        timeout 5 "$program" alone 1 "$tag" >"$work/log${#list[@]}" 2>&1 &
      list+=($!)
      sleep 0.1  # two that listen on a port at the same moment may both fail
    done
    for rank in "${list[@]}"; do
      wait "$rank" && die "ranks $*: no error"
      (($? == 1)) || die "ranks $*: not over within 5 s"
    done
    (($(count_lines "$text") == n)) || die "ranks $*: expected '$text' $n times"
    echo "ranks $*: $text"
  }
  port=$((30000 + RANDOM % 10000))
  together "expected 4 ranks (WORLD_SIZE), got 2 within 1 s: ranks 2, 3 have not arrived; rank 0 \
listens on 127.0.0.1, for ranks on its own host only" 2 0/4 1/4
  together 'refused: two processes are rank 1' 1 0/3 1/3 1/3
  together "port $port of 127.0.0.1 is in use by another process; set BRAID_PORT to a free port" 1 \
    0/3 0/3
  together 'refused: rank 1 expects a world of 4, rank 0 one of 3' 1 0/3 1/4
  # The port is taken by another program.
  for mode in silent talks; do
    rm -f "$work/port"
    "$program" $mode 20 "$tag" >"$work/port" &
    taken=$!
    wait_for 5 test -s "$work/port" || die "$mode: no port"
    port=$(cat "$work/port")
    together "store: rank 0 cannot listen: port $port of 127.0.0.1 is in use by another process" 1 \
      0/2
    text='it does not answer'
    [[ $mode == silent ]] || text='another program listens there'
    together "rank 1: the store of rank 0 at 127.0.0.1 port $port: $text" 1 1/2
    kill "$taken"
    wait "$taken" 2>/dev/null || true
  done

  # Hosts that treat the ranks' address or port in their own way, as network namespaces.
  # host NAME VARIABLE=VALUE... -- COMMAND...: rank 1 waits there for rank 0, and both meet.
  host() {
    local name=$1 variables=() rank
    shift
    for (( ; $# > 0; )); do [[ $1 == -- ]] && break; variables+=("$1"); shift; done
    shift
    rm -f "$work"/log*
    # shellcheck disable=SC2016
    env "${variables[@]}" WORLD_SIZE=2 BRAID_TIMEOUT=8 unshare --map-root-user --net bash -ec '
      program=$1 tag=$2 work=$3
      ip link set lo up
      eval "$4"
      RANK=1 "$program" alone 8 "$tag" >"$work/log1" 2>&1 &
      sleep 0.5
      RANK=0 "$program" alone 8 "$tag" >"$work/log0" 2>&1 || true
      wait' host "$program" "$tag" "$work" "$*" || die "$name"
    for rank in 0 1; do (($(count_lines "rank $rank of 2") == 1)) || die "$name"; done
    echo "$name: the ranks have met"
  }
  if unshare --map-root-user --net ip link set lo up 2>"$work/log"; then
    # The system takes ports for outgoing connections from a range. Rank 1 gets the very port that
    # it asks for rank 0, and is connected to itself.
    host 'the store is at a port for outgoing connections' BRAID_PORT=40002 -- \
      'echo 40000 40003 >/proc/sys/net/ipv4/ip_local_port_range'
    host "the name of rank 0's host is 127.0.1.1 there" MASTER_ADDR=127.0.1.1 \
      BRAID_INTERFACE=10.9.8.7 BRAID_TOKEN=0123456789abcdef0123456789abcdef -- \
      'ip addr add 10.9.8.7/32 dev lo'
  else
    echo "NOTE: no network namespaces: $(head -n 1 "$work/log")"
  fi

  # NCCL without GPUs: both ranks name them.
  for rank in 0 1; do
    CUDA_VISIBLE_DEVICES= BRAID_SIMT_DEVICES=0 BRAID_ENGINE=nccl RANK=$rank WORLD_SIZE=2 \
      BRAID_PORT=$((port + 1)) timeout 20 "$program" alone 10 "$tag" >"$work/log$rank" 2>&1 &
  done
  wait
  text='engine nccl: expected a GPU on each rank, got cpu:0 on ranks 0, 1'
  (($(cat "$work"/log[01] | grep -cF "$text") == 2)) || die "NCCL without GPUs: '$text'"
  echo "NCCL without GPUs: $text"
fi

# An engine of the other vendor, both ways: the error names the launcher's and the engine's.
# other HAS LACKS VENDOR-OF-HAS VENDOR-OF-LACKS VARIABLE LAUNCHER...
other() {
  local has=$1 lacks=$2 of_has=$3 of_lacks=$4 variable=$5 text
  shift 5
  rm -rf "$work"/log* "$work/other"
  mkdir "$work/other"
  cp "$engines/braid_$has.so" "$work/other"
  text="the launcher is that of $of_lacks ($variable is set), expected braid_$lacks.so, got only \
the engine of $of_has, braid_$has.so"
  BRAID_MODULE_PATH=$work/other timeout 20 "$@" -np 2 "$program" alone 5 "$tag" >"$work/log" 2>&1 &&
    die "an engine of the other vendor: no error"
  (($(count_lines "$text") > 0)) || die "an engine of the other vendor: expected '$text'"
  echo "an engine of the other vendor: $(grep -m 1 '^error' "$work/log")"
}
if [[ " ${launchers[*]} " == *' openmpi mpich '* ]]; then
  other mpi_openmpi mpi_mpich 'Open MPI' MPICH PMI_SIZE "${mpich[@]}"
  other mpi_mpich mpi_openmpi MPICH 'Open MPI' OMPI_COMM_WORLD_SIZE "${openmpi[@]}"
fi
if [[ " ${launchers[*]} " == *' openmpi '*' abi '* ]]; then  # that one is MPICH's so far
  BRAID_MODULE_PATH=$work/abi timeout 20 "${openmpi[@]}" -np 2 "$program" alone 5 "$tag" \
    >"$work/log" 2>&1 && die "the ABI of the other vendor: no error"
  text='the launcher is that of Open MPI (OMPI_COMM_WORLD_SIZE is set), got braid_mpi_abi.so with '
  (($(count_lines "${text}MPICH") > 0)) || die "the ABI of the other vendor: expected '$text'"
  echo "the ABI of the other vendor: $(grep -m 1 '^error' "$work/log")"
fi
wait_for 2 is_empty || die "orphans $(ranks)"
