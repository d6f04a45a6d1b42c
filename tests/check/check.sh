#!/usr/bin/env bash
# ./dev check: what CI runs. ./dev check --all: everything, the checks that CI samples as a whole.
# ./dev check [--all] NAME...: the named ones. One line each: PASS, FAIL or SKIP(reason), with
# seconds; logs: build/check/<name>.log, of --all build/check/all/<name>.log. CONTRIBUTING.md has
# the table of checks and tiers.
#
# --all goes on where it stopped: a check that has passed does not run again until a file changes
# that it may see (--again: it does). When all have passed, tests/check/all.txt records the commit
# and the figures; commit it.
# A check is tests/check/<name>.sh: exit 0 passes, 77 skips (its last line is the reason), anything
# else fails. "NOTE: " lines are shown.
set -uo pipefail
. tests/lib.sh

# The order shares builds: simt, cuda and ptx have objects in common with the plain build, generic
# uses the build folder of compilers, gpu that of simt.
every_run=(format layering docs api consumers simt asan tsan cuda ptx)
only_all=(tests compilers generic report gpu coverage)
all=("${every_run[@]}" "${only_all[@]}")
# CI runs one of these, in turn: each compiles the library for itself.
sanitizers=(asan tsan)

again=0 names=()
export BRAID_CHECK_ALL=0
# What CI samples, it samples by this number, so that runs in a row differ.
export BRAID_CHECK_TURN=${BRAID_CHECK_TURN:-$(check_turn)}
while (($# > 0)); do
  case $1 in
    --list) printf '%s\n' "${all[@]}" && exit 0 ;;
    --all) BRAID_CHECK_ALL=1 ;;
    --again) again=1 ;;
    *)
      if [[ $1 == -* || " ${all[*]} " != *" $1 "* ]]; then
        echo "./dev check: there is no check '$1'; there are: ${all[*]}" >&2
        exit 2
      fi
      names+=("$1")
      ;;
  esac
  shift
done
complete=0
if ((${#names[@]} == 0)); then
  if ((BRAID_CHECK_ALL)); then
    names=("${all[@]}") complete=1
  else
    other=${sanitizers[$(((BRAID_CHECK_TURN + 1) % 2))]}
    for name in "${every_run[@]}"; do [[ $name == "$other" ]] || names+=("$name"); done
  fi
fi
need "${build_tools[@]}" catch2 clang-14 python3-pip
need libclang-rt-14-dev  # clang's sanitizers: a package of its own, which clang-14 only recommends
if ((BRAID_CHECK_ALL)); then need g++-11 gcovr libbenchmark-dev; fi

((BRAID_CHECK_ALL)) ||
  echo "sample $BRAID_CHECK_TURN (BRAID_CHECK_TURN=$BRAID_CHECK_TURN repeats it)"

commit=$(git rev-parse HEAD 2>/dev/null || echo none)
# changed files: nothing to go on from
[[ -z $(git status --porcelain 2>/dev/null) ]] || commit=none
# those of --all stay: its figures come from them at the end, which may be days later
logs=build/check
((!BRAID_CHECK_ALL)) || logs=build/check/all
mkdir -p "$logs"
state=build/check/all.state  # "<tree> <name> <seconds>": what has passed whole
touch "$state"
# The committed files that a check may see, as one number: all but what the other checks are made of
# (tests/check/<name>.sh, <name>_….py), and texts, where it takes no code from them.
tree_of() {
  local unseen='tests/check/all\.txt' others
  if [[ $1 != format ]]; then
    others=$(printf '%s\n' "${all[@]}" check faults | grep -vx "$1" | paste -sd'|')
    unseen+="|tests/check/($others)[._].*"
    [[ $1 == gpu ]] || unseen+='|bench/gpu/.*\.(sh|py)'
    case $1 in layering | docs | consumers) ;; *) unseen+='|.*\.md' ;; esac
  fi
  git ls-tree -r HEAD | grep -vE "	($unseen)\$" | sha256sum | cut -c 1-40
}

passed=0 failed=0 skipped=0
declare -A took=()
for name in "${names[@]}"; do
  log=$logs/$name.log
  # asked before the check runs: a commit made meanwhile has not been checked
  tree='' seconds=''
  ((!BRAID_CHECK_ALL)) || [[ $commit == none ]] || tree=$(tree_of "$name")
  [[ -z $tree ]] || ((again)) || seconds=$(sed -n "s/^$tree $name //p" "$state" | tail -n 1)
  if [[ -n $seconds ]]; then
    printf '%-10s PASS  %d s, before\n' "$name" "$seconds"
    took[$name]=$seconds passed=$((passed + 1))
    continue
  fi
  start=$SECONDS
  status=0
  bash "tests/check/$name.sh" >"$log" 2>&1 </dev/null || status=$?
  seconds=$((SECONDS - start))
  took[$name]=$seconds
  case $status in
    0) verdict=PASS passed=$((passed + 1)) ;;
    77) verdict="SKIP($(tail -n 1 "$log"))" skipped=$((skipped + 1)) ;;
    *) verdict=FAIL failed=$((failed + 1)) ;;
  esac
  if [[ -n $tree ]] && ((status == 0 || status == 77)); then
    echo "$tree $name $seconds" >>"$state"
  fi
  printf '%-10s %s  %d s\n' "$name" "$verdict" "$seconds"
  sed -n 's/^NOTE: /           /p' "$log"
  if [[ $verdict == FAIL ]]; then
    tail -n 60 "$log" | sed 's/^/    /'
    echo "    (all of it: $log)"
  fi
done
echo "checks: $passed passed, $failed failed, $skipped skipped"

record=tests/check/all.txt
if ((complete && failed == 0)) && [[ $commit != none ]]; then
  {
    echo "# The commit at which ./dev check --all last passed whole, its seconds and its figures."
    echo "commit $commit"
    echo "date $(date -u +%Y-%m-%d)"
    echo "processor $(processor)"
    for name in "${all[@]}"; do
      echo "$name ${took[$name]} s"
      sed -n 's/^NOTE: /  /p' "$logs/$name.log"
    done
  } >"$record"
  echo "$record is written: commit it"
elif ((!complete)); then
  if [[ -f $record ]]; then
    last=$(sed -n 's/^commit //p' "$record")
    since=$(git rev-list --count "$last..HEAD" 2>/dev/null || echo "an unknown number of")
    echo "./dev check --all last passed on $(sed -n 's/^date //p' "$record"), $since commits ago"
  else
    echo "./dev check --all has not passed yet: there is no $record"
  fi
fi
((failed == 0))
