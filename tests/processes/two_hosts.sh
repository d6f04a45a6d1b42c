#!/usr/bin/env bash
# tests/processes/two_hosts.sh [--rate RATE] mpi COMMAND...: runs COMMAND as two ranks of Open MPI,
# each in a network namespace of its own, with its own host name, as on two machines.
# tests/processes/two_hosts.sh [--rate RATE] each COMMAND...: runs COMMAND in both, with RANK,
# WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as torchrun does.
#
# The two namespaces are joined by a veth pair. RATE (as tc writes it: 1gbit) limits each direction.
# The latency is that of the kernel: netem, which could add some, is not in every kernel. Needs
# root; skips (77) where namespaces are not permitted. In COMMAND, BRAID_INTERFACE is the address.
set -uo pipefail
rate=''
[[ ${1:-} == --rate ]] && rate=$2 && shift 2
mode=${1:-}
shift || true
[[ $mode == mpi || $mode == each ]] && (($# > 0)) || { sed -n '2,11p' "$0" && exit 2; }

name=braid-$$
net=10.77.$((RANDOM % 250)).
work=$(mktemp -d)
made=()
clean() {
  local space pid
  for space in "${made[@]}"; do
    # what a failed run has left there
    for pid in $(ip netns pids "$space"); do kill -9 "$pid" 2>/dev/null; done
    ip netns del "$space"
  done
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
for host in 1 2; do
  if ! ip netns add "$name-$host" 2>"$work/log"; then
    echo "SKIP(no network namespaces: $(head -n 1 "$work/log"))"
    exit 77
  fi
  made+=("$name-$host")
done
set -e
ip link add "v$$-1" netns "$name-1" type veth peer name "v$$-2" netns "$name-2"
for host in 1 2; do
  ip -n "$name-$host" addr add "$net$host/24" dev "v$$-$host"
  ip -n "$name-$host" link set "v$$-$host" up
  ip -n "$name-$host" link set lo up
  # a burst of at least one packet of the largest size that the kernel gives the device
  [[ -z $rate ]] || tc -n "$name-$host" qdisc add dev "v$$-$host" root tbf rate "$rate" \
    burst 128kb latency 50ms
done
set +e

# enter HOST COMMAND...: runs the command there. The same as a script is what mpirun calls in place
# of ssh.
cat >"$work/enter" <<SCRIPT
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
host=\${1##*.}
shift
export BRAID_INTERFACE=$net\$host
exec nsenter --net=/run/netns/$name-\$host unshare --uts \\
  bash -c 'hostname node-'\$host'; eval "\$*"' enter "\$@"
SCRIPT
chmod +x "$work/enter"

if [[ $mode == mpi ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  mpirun=$(command -v mpirun.openmpi || command -v mpirun)
  printf -v command '%q ' "$mpirun" --mca plm_rsh_agent "$work/enter" \
    --mca orte_keep_fqdn_hostnames 1 --mca btl tcp,self \
    --mca btl_tcp_if_include "${net}0/24" --mca oob_tcp_if_include "${net}0/24" \
    --host "${net}1:1,${net}2:1" --bind-to none -np 2 "$@"
  "$work/enter" "${net}1" "$command"
  exit
fi
printf -v command '%q ' "$@"
export WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR="${net}1"
export MASTER_PORT=${MASTER_PORT:-29500}
RANK=1 "$work/enter" "${net}2" "$command" &
RANK=0 "$work/enter" "${net}1" "$command"
status=$?
wait $! || status=$?
exit $status
