#!/usr/bin/env bash
# bench/ddp/worker.sh: Braid's side of bench_ddp: two ranks of BRAID_DDP_WORKER, with one core each.
# bench_ddp starts it as a peer (bench/peers/README.md).
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 BRAID_THREADS=1
exec "$(command -v mpirun.openmpi || command -v mpirun)" --bind-to none --oversubscribe -np 2 \
  "$BRAID_DDP_WORKER" serve
