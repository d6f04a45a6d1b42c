#!/usr/bin/env bash
# tests/processes/slurm.sh RANKS PROGRAM COMPARE ENGINES: runs two programs by srun, on a cluster of
# two nodes that it makes of this machine: over MPI, with each of Open MPI and MPICH that is
# installed, and over Gloo. RANKS (rank_program.cpp) checks the collectives of 4 ranks, and is ended
# by the death of one. PROGRAM is the tutorial: on 2 and 4 ranks the parameters must be those of one
# process within 1e-6, and with --deterministic, also on 3 ranks, the same bits. COMPARE A B prints
# the largest difference of two safetensors files.
#
# Each node is a network namespace with its own host name, joined by a veth pair, in which a slurmd
# runs. Needs root, and Debian's slurmd, slurmctld, slurm-client and munge, whose services it does
# not use: configuration, key and logs are in a temporary folder. No check runs it, because it
# installs a cluster manager. By hand, after ./dev test parallel:
#   apt-get install --no-install-recommends slurmd slurmctld slurm-client munge iproute2
#   cd build/cpu && ../../tests/processes/slurm.sh tests/processes/braid_rank_program \
#     docs/tutorials/braid_tutorial_distributed_short tests/processes/braid_tests_difference engines
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/lib.sh"
(($# == 4)) || { sed -n '2,16p' "$0" && exit 2; }
rank_program=$(readlink -f "$1") program=$(readlink -f "$2") compare=$(readlink -f "$3")
engines=$(readlink -f "$4")
skip() {
  echo "SKIP(slurm): $*"
  exit 77
}
for tool in slurmd slurmctld srun munged ip nsenter unshare; do
  command -v "$tool" >/dev/null || skip "no $tool"
done
((EUID == 0)) || skip "needs root, for network namespaces"

work=$(mktemp -d)
chmod 755 "$work" # munged checks the folders above its socket
name=braid-slurm-$$ net=10.78.$((RANDOM % 250)). made=() munged=''
clean() {
  local space pid
  for space in "${made[@]}"; do
    for pid in $(ip netns pids "$space"); do kill -KILL "$pid" 2>/dev/null; done
  done
  for space in "${made[@]}"; do ip netns del "$space"; done
  [[ -z $munged ]] || kill "$munged" 2>/dev/null
  sleep 0.2
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
die() {
  echo "FAIL: $*"
  tail -n 20 "$work"/*.log
  exit 1
}

for host in 1 2; do
  ip netns add "$name-$host" 2>"$work/netns.log" ||
    skip "no network namespaces: $(head -n 1 "$work/netns.log")"
  made+=("$name-$host")
done
ip link add eth0 netns "$name-1" type veth peer name eth0 netns "$name-2" || exit 1
for host in 1 2; do
  ip -n "$name-$host" addr add "$net$host/24" dev eth0
  ip -n "$name-$host" link set eth0 up
  ip -n "$name-$host" link set lo up
done
printf '%s\n' '127.0.0.1 localhost' "${net}1 node1" "${net}2 node2" >"$work/hosts"

# enter HOST COMMAND...: becomes the command on that node.
enter() {
  local host=$1
  shift
  exec nsenter --net="/run/netns/$name-$host" unshare --uts --mount bash -c \
    'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"' \
    enter "node$host" "$work/hosts" "$@"
}

user=$(id -un)
mkdir "$work"/{state,cgroup,{spool,tmp}-node{1,2}}
cat >"$work/slurm.conf" <<CONF
ClusterName=braid
SlurmctldHost=node1(${net}1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
KillWait=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
TmpFS=$work/tmp-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdParameters=config_overrides
NodeName=node1 NodeAddr=${net}1 CPUs=2 State=UNKNOWN
NodeName=node2 NodeAddr=${net}2 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=10 State=UP
CONF
# slurmd opens one of the plugins for cgroups; nothing above uses it, so it finds none.
printf '%s\n' CgroupPlugin=cgroup/v1 "CgroupMountpoint=$work/cgroup" >"$work/cgroup.conf"
export SLURM_CONF=$work/slurm.conf

(umask 077 && head -c 1024 /dev/urandom >"$work/munge.key")
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
  --pid-file="$work/munge.pid" --log-file="$work/munged.log" --seed-file="$work/munge.seed" \
  >"$work/munged.out.log" 2>&1 &
munged=$!
disown
for ((i = 0; i < 100; ++i)); do [[ -S $work/munge.socket ]] && break || sleep 0.1; done
(enter 1 slurmctld -D) >"$work/slurmctld.log" 2>&1 &
disown # bash says nothing when they are killed
for host in 1 2; do (enter $host slurmd -D) >"$work/slurmd$host.log" 2>&1 & disown; done
for ((i = 0; i < 60; ++i)); do
  [[ $( (enter 1 sinfo -h -t idle -o %D) 2>/dev/null) == 2 ]] && break
  sleep 0.5
done
((i < 60)) || die "the nodes are not idle within 30 s"
echo "$(srun --version): $( (enter 1 sinfo -h -N -o '%N %T' | xargs) )"

export BRAID_THREADS=1 BRAID_DEVICE=cpu BRAID_MODULE_PATH=$engines
mkdir "$work/run"
cd "$work/run" || exit 1

# ranks MODE N COMMAND...: srun of N ranks on the two nodes.
token=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
ranks() {
  local size=$2 options
  case $1 in
    openmpi) options=(--mpi=pmix) ;;
    mpich) options=(--mpi=pmi2) ;;
    gloo) options=(--mpi=none) ;;
  esac
  shift 2
  # Gloo and the store listen on the network that joins the nodes: only with a token.
  (
    [[ ${options[*]} != --mpi=none ]] || export BRAID_INTERFACE=eth0 BRAID_TOKEN=$token
    enter 1 timeout 120 srun --unbuffered --kill-on-bad-exit=1 --nodes=2 --ntasks="$size" \
      "${options[@]}" "$@"
  )
}

modes=()
[[ ! -e $engines/braid_mpi_openmpi.so ]] || modes+=(openmpi)
[[ ! -e $engines/braid_mpi_mpich.so ]] || modes+=(mpich)
[[ ! -e $engines/braid_gloo.so ]] || modes+=(gloo)
((${#modes[@]} > 0)) || skip "no engine in $engines"
# pids PROGRAM: its processes on both nodes.
pids() {
  local space pid
  for space in "${made[@]}"; do
    for pid in $(ip netns pids "$space"); do
      [[ $(readlink "/proc/$pid/exe") != "$1" ]] || echo "$pid"
    done
  done
}
ended() { [[ -z $(pids "$rank_program")$(pids "$program") ]]; }

for mode in "${modes[@]}"; do
  ranks "$mode" 4 "$rank_program" collectives 60 >"$work/ranks.log" 2>&1 ||
    die "collectives of 4 ranks over $mode: status $?"
  (($(grep -c '^rank [0-3] of 4, [01] of 2 on this host: ok over' "$work/ranks.log") == 4)) ||
    die "collectives of 4 ranks over $mode: expected 4 lines"
  echo "$mode: collectives: $(sort "$work/ranks.log" | tail -n 1)"
  ranks "$mode" 4 "$rank_program" loop 3 >"$work/ranks.log" 2>&1 &
  job=$!
  wait_for 30 grep -q running "$work/ranks.log" || die "$mode: the loop does not start"
  mapfile -t list < <(pids "$rank_program")
  begin=$(date +%s%N)
  kill -KILL "${list[RANDOM % ${#list[@]}]}"
  wait "$job" && die "$mode: a rank was killed, and the job ended with 0"
  echo "$mode: a rank of ${#list[@]} is killed: over after" \
    "$((($(date +%s%N) - begin) / 1000000)) ms: $(grep -m 1 'error: rank' "$work/ranks.log")"
  wait_for 10 ended || die "$mode: orphans: $(pids "$rank_program" | xargs)"
done

failed=0
# Beyond one machine the store wants a token.
if [[ " ${modes[*]} " == *" gloo "* ]]; then
  (unset BRAID_TOKEN && enter 1 timeout 60 srun --mpi=none -N2 -n2 "$rank_program" alone 5) \
    >"$work/ranks.log" 2>&1 && die "no token: no error"
  text='expected a token of at least 32 characters (BRAID_TOKEN, the same on all ranks)'
  grep -F "$text" "$work/ranks.log" | sort >"$work/token.log"
  (($(wc -l <"$work/token.log") == 2)) || die "no token: expected two errors"
  echo "gloo: $(head -n 1 "$work/token.log")"
fi

for option in '' --deterministic; do
  arguments=(${option:+"$option"})
  "$program" "${arguments[@]}" >"$work/alone.log" 2>&1 || die "the tutorial alone"
  mv model.safetensors alone
  sizes=(2 4)
  # Three ranks do not divide the last batch: without the option, items are repeated.
  [[ -z $option ]] || sizes+=(3)
  most=1e-6
  [[ -z $option ]] || most=0
  for mode in "${modes[@]}"; do
    for size in "${sizes[@]}"; do
      begin=$(date +%s%N)
      ranks "$mode" "$size" "$program" "${arguments[@]}" >"$work/ranks.log" 2>&1 ||
        die "$size ranks over $mode: status $?"
      took=$((($(date +%s%N) - begin) / 1000000))
      difference=$("$compare" alone model.safetensors) || die "$size ranks over $mode: no model"
      echo "srun, $size ranks on 2 nodes over $mode ${option:-}: difference $difference" \
        "(at most $most), $took ms"
      awk -v d="$difference" -v most="$most" 'BEGIN { exit !(d <= most) }' || failed=1
      rm model.safetensors
    done
  done
done
((failed == 0)) || die "the parameters differ"
wait_for 10 ended || die "orphans: $(pids "$program" | xargs)"
