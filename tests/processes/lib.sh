# What the scripts of this folder share; they source it.

# Open MPI runs as root, and more ranks than cores, which it does not bind.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1

# need_engine mpi|gloo|torchrun: sets `mpirun` or `torchrun`; the script is skipped where that, or
# the engine in BRAID_MODULE_PATH, is missing.
need_engine() {
  local module=braid_gloo.so package=libgloo-dev
  case $1 in
    mpi)
      mpirun=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
      module=braid_mpi_openmpi.so package='libopenmpi-dev and openmpi-bin'
      [[ -n $mpirun ]] || module=mpirun
      [[ -z ${MPIRUN:-} ]] || return 0  # of another MPI
      ;;
    torchrun)
      torchrun=("${BRAID_TORCH_PYTHON:-python3}" -W ignore -m torch.distributed.run --no-python)
      if ! "${torchrun[0]}" -c 'import torch.distributed.run' 2>/dev/null; then
        echo "SKIP(no torchrun: PyTorch is not installed)"
        exit 77
      fi
      ;;
  esac
  [[ $module == mpirun || (-n ${BRAID_MODULE_PATH:-} && ! -e $BRAID_MODULE_PATH/$module) ]] ||
    return 0
  echo "SKIP(no $module, which needs $package)"
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
