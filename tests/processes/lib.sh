# What the scripts of this folder share; they source it.

# Open MPI runs as root, and more ranks than cores, which it does not bind.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1

# need_mpirun MODE: sets `mpirun`; in mode mpi the script is skipped where there is none.
need_mpirun() {
  mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
  [[ $1 != mpi || -n $mpirun ]] && return
  echo "SKIP(no mpirun)"
  exit 77
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}
