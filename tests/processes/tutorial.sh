#!/usr/bin/env bash
# tests/processes/tutorial.sh PROGRAM COMPARE mpi|gloo|torchrun RANKS...: runs the tutorial alone
# and on RANKS ranks; the parameters must be the same within 1e-6, and with --deterministic the same
# bits; and so with checkpoints, where the run is the end of one of another number of ranks.
# COMPARE A B prints the largest difference of two safetensors files.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/lib.sh"
program=$(readlink -f "$1") compare=$(readlink -f "$2") mode=$3
shift 3
need_engine "$mode"
export BRAID_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# ranks N ARGUMENTS...: runs the tutorial on N ranks.
ranks() {
  local size=$1 rank status=0 port=$((20000 + RANDOM % 10000)) all=()
  shift
  if [[ $mode == mpi ]]; then
    "$mpirun" -np "$size" "$program" "$@"
    return
  elif [[ $mode == torchrun ]] && ((size % 2 == 1)); then
    "${torchrun[@]}" --nnodes=1 --nproc-per-node="$size" "$program" "$@"
    return
  elif [[ $mode == torchrun ]]; then  # two launches, as on two machines
    local two=(--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port
      --nproc-per-node=$((size / 2)))
    "${torchrun[@]}" "${two[@]}" "$program" "$@" &
    all=($!)
    "${torchrun[@]}" "${two[@]}" "$program" "$@" || status=$?
    wait "${all[0]}" || status=$?
    return $status
  fi
  for ((rank = 0; rank < size; ++rank)); do
    RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$size MASTER_ADDR=127.0.0.1 \
      MASTER_PORT=$port "$program" "$@" &
    all+=($!)
  done
  for rank in "${all[@]}"; do wait "$rank" || status=$?; done
  return $status
}
failed=0
for option in '' --deterministic; do
  arguments=(${option:+"$option"})
  "$program" "${arguments[@]}" || exit 1
  mv model.safetensors alone
  sizes=("$@")
  # Three ranks do not divide the last batch: without the option, items are repeated.
  [[ -z $option ]] || sizes+=(3)
  [[ -z $option ]] || sizes+=(resume)
  for size in "${sizes[@]}"; do
    if [[ $size == resume ]]; then  # the first epoch alone, the second on the ranks
      arguments+=(--checkpoint runs) size=$1
      "$program" "${arguments[@]}" || exit 1
      newest=(runs/step-*)
      ((${#newest[@]} == 2)) || { echo "FAIL: ${#newest[@]} checkpoints of two epochs" && exit 1; }
      rm -r "${newest[1]}" model.safetensors
    fi
    ranks "$size" "${arguments[@]}" || { echo "FAIL: $size ranks over $mode: status $?" && exit 1; }
    difference=$("$compare" alone model.safetensors) || exit 1
    most=1e-6
    [[ -z $option ]] || most=0
    echo "$size ranks over $mode ${arguments[*]}: difference $difference (at most $most)"
    awk -v d="$difference" -v most="$most" 'BEGIN { exit !(d <= most) }' || failed=1
    rm model.safetensors
  done
done
((failed == 0)) || echo "FAIL: the parameters differ"
exit $failed
