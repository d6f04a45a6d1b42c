#!/usr/bin/env bash
# ./dev check [name...]: runs the named checks, or all. One line each: PASS, FAIL or SKIP(reason),
# with seconds. Logs: build/check/<name>.log. --all: checks that sample (simt) run every combination
# instead.
# A check is tests/check/<name>.sh: exit 0 passes, 77 skips (its last line is the reason), anything
# else fails. "NOTE: " lines are shown.
set -uo pipefail
. tests/lib.sh

# The order shares builds: consumers fills ccache with what simt and cuda have in common with it,
# compilers leaves build/gcc for generic, simt its build for gpu.
all=(api consumers format layering docs report compilers generic simt gpu asan tsan cuda)
# These have builds of their own (--build makes no more than that): they go on beside the checks
# before them, in the time of the processors that those leave.
built_ahead=(simt asan tsan cuda)
if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${all[@]}"
  exit 0
fi
if [[ ${1:-} == --all ]]; then
  export BRAID_CHECK_ALL=1
  shift
fi
names=("$@")
((${#names[@]} > 0)) || names=("${all[@]}")
for name in "${names[@]}"; do
  if [[ ! " ${all[*]} " == *" $name "* ]]; then
    echo "./dev check: there is no check '$name'; there are: ${all[*]}" >&2
    exit 2
  fi
done
need "${build_tools[@]}" catch2 libbenchmark-dev clang-14 g++-11 python3-pip
# clang's sanitizers and libFuzzer: where it is a package of its own, clang-14 only recommends it
need libclang-rt-14-dev

mkdir -p build/check
ahead=''
build_ahead() {
  local name
  for name in "${names[@]}"; do
    [[ " ${built_ahead[*]} " == *" $name "* ]] || continue
    # the check itself builds again, and fails
    nice -n 19 bash "tests/check/$name.sh" --build >"build/check/$name-build.log" 2>&1 </dev/null || true
    touch "build/check/$name.built"
  done
}
rm -f build/check/*.built

passed=0 failed=0 skipped=0
for name in "${names[@]}"; do
  log=build/check/$name.log
  # api counts seconds of a processor, which a busy neighbour makes longer; consumers would compile
  # the same files at the same time.
  if [[ -z $ahead && $name != api && $name != consumers ]] && ((${#names[@]} > 1)); then
    set -m  # a process group of its own, to be ended with this script
    build_ahead &
    ahead=$!
    set +m
    trap 'kill -- "-$ahead" 2>/dev/null' EXIT
  fi
  if [[ -n $ahead && " ${built_ahead[*]} " == *" $name "* ]]; then
    while [[ ! -e build/check/$name.built ]] && kill -0 "$ahead" 2>/dev/null; do sleep 1; done
  fi
  start=$SECONDS
  status=0
  bash "tests/check/$name.sh" >"$log" 2>&1 </dev/null || status=$?
  seconds=$((SECONDS - start))
  case $status in
    0) verdict=PASS passed=$((passed + 1)) ;;
    77) verdict="SKIP($(tail -n 1 "$log"))" skipped=$((skipped + 1)) ;;
    *) verdict=FAIL failed=$((failed + 1)) ;;
  esac
  printf '%-10s %s  %d s\n' "$name" "$verdict" "$seconds"
  sed -n 's/^NOTE: /           /p' "$log"
  if [[ $verdict == FAIL ]]; then
    tail -n 60 "$log" | sed 's/^/    /'
    echo "    (all of it: $log)"
  fi
done
echo "checks: $passed passed, $failed failed, $skipped skipped"
((failed == 0))
