#!/usr/bin/env bash
# ./dev check: what CI runs. ./dev check --all runs everything, including in full the checks that CI
# samples. ./dev check [--all] NAME...: the named checks. Prints one line for each: PASS, FAIL or
# SKIP(reason), with seconds. Logs: build/check/<name>.log, and with --all
# build/check/all/<name>.log. CONTRIBUTING.md has the table of checks and tiers.
#
# --all continues where it stopped, in another checkout too. tests/check/all.txt records each check
# that has passed, with its figures. The check runs again only after a file changes that it depends
# on, or with --again. When all checks have passed, the record names the commit. Commit the record.
# A check is tests/check/<name>.sh: exit status 0 passes, 77 skips (its last line is the reason),
# and any other status fails. Lines that start with "NOTE: " are shown.
set -uo pipefail
. tests/lib.sh

# The order lets checks share builds: simt, cuda and ptx have objects in common with the plain
# build, generic uses the build folder of compilers, and gpu that of simt.
every_run=(format layering docs vocabulary api consumers simt asan tsan cuda ptx)
only_all=(tests compilers generic report gpu coverage)
all=("${every_run[@]}" "${only_all[@]}")
# CI alternates between these: each needs a separate build of the library.
sanitizers=(asan tsan)

again=0 names=()
export BRAID_CHECK_ALL=0
# Selects CI's samples, so that consecutive runs differ.
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
need "${build_tools[@]}" "${engine_packages[@]}" catch2 clang-14 python3-pip
need libclang-rt-14-dev  # clang's sanitizers are a separate package, which clang-14 only recommends
if ((BRAID_CHECK_ALL)); then need g++-11 gcovr libbenchmark-dev; fi

((BRAID_CHECK_ALL)) ||
  echo "sample $BRAID_CHECK_TURN (BRAID_CHECK_TURN=$BRAID_CHECK_TURN repeats it)"

commit=$(git rev-parse HEAD 2>/dev/null || echo none)
record=tests/check/all.txt
# with uncommitted changes there is no commit to record
[[ -z $(git status --porcelain -- ":!$record" 2>/dev/null) ]] || commit=none
logs=build/check
((!BRAID_CHECK_ALL)) || logs=build/check/all
mkdir -p "$logs"

# Lists the committed files, one per line. C++, CUDA, scripts and build files are hashed without
# comments: of scripts and build files without each line that begins with "# ", so no string or
# here-document may depend on such a line. In must_not_compile comments are included: they contain
# the expected messages.
committed_files() {
  local list=build/check/files-$commit
  local cxx='\.(cpp|hpp|cu|cuh)$' script='\.(sh|py|cmake)$|CMakeLists\.txt$|^(dev|\.ci/run)$'
  if [[ ! -s $list ]]; then
    git ls-tree -r HEAD |
      code="$cxx|$script" awk '$4 !~ ENVIRON["code"] || $4 ~ /must_not_compile/' >"$list.new"
    # shellcheck disable=SC2016
    git ls-files | grep -E "$cxx|$script" | grep -v /must_not_compile/ |
      xargs -P "$jobs" -n 50 bash -c '
        for file; do
          case $file in
            *.cpp | *.hpp | *.cu | *.cuh) code=(g++ -x c++ -std=c++20 -fpreprocessed -dD -E -P) ;;
            *) code=(grep -vE "^[[:space:]]*#( |\$)") ;;
          esac
          # 1: an error of the preprocessor, which goes on, or a script of comments alone
          hash=$(set -o pipefail && "${code[@]}" "$file" 2>/dev/null | sha256sum)
          (($? <= 1)) || hash=$(sha256sum <"$file")
          printf "code %s\t%s\n" "${hash%% *}" "$file"
        done' _ | sort -k 3 >>"$list.new"
    mv "$list.new" "$list"
  fi
  cat "$list"
}
# Returns a hash of the files that a check may depend on. It leaves out this script, the record, the
# files of other checks (tests/check/<name>.*, <name>_* and <name>/, tests/ptx, scripts of
# bench/gpu), and Markdown if the check takes no code from it. The tests of simt read comments:
# marks in tests/simt, labels in bench/ladder, and the lines that simt_removals.txt quotes.
tree_of() {
  local unseen='tests/check/all\.txt' others
  case $1 in format | layering | docs)  # these read comments and texts
    git ls-tree -r HEAD | grep -v "	$unseen\$" | sha256sum | cut -c 1-40
    return ;;
  esac
  others=$(printf '%s\n' "${all[@]}" check faults | grep -vx "$1" | paste -sd'|')
  unseen+="|tests/check/($others)[._/].*"
  [[ $1 == ptx ]] || unseen+='|tests/ptx/.*'
  [[ $1 == gpu ]] || unseen+='|bench/gpu/.*\.(sh|py)'
  [[ $1 == consumers || $1 == vocabulary ]] || unseen+='|.*\.md'
  {
    committed_files | grep -vE "	($unseen)\$"
    [[ $1 != simt ]] || git ls-tree -r HEAD -- tests/simt bench/ladder \
      $(sed -n 's/^\([^#][^ ]*\) | .*/\1/p' tests/check/simt_removals.txt | sort -u)
  } | sha256sum | cut -c 1-40
}
# passed_before NAME TREE: prints how many seconds the check took when it passed on that tree, or
# nothing.
passed_before() { sed -n "s/^$1 \([0-9]*\) s, .*, tree $2\$/\1/p" "$record" 2>/dev/null; }
# write_record [NAME TREE SECONDS]: writes the record with a new block for that check. If all checks
# have now passed, it also records the commit and its date.
write_record() {
  local name missing='' new
  new=$logs/record
  {
    echo "# What ./dev check --all has passed: each check with its seconds, the commit, the files"
    echo "# that it saw (tree) and its figures. commit: where all of them last passed."
    sed -n '/^\(commit\|date\) /p' "$record" 2>/dev/null
    for name in "${all[@]}"; do
      if [[ $name == "${1:-}" ]]; then
        echo "$name $3 s, $(date -u +%Y-%m-%d), $(processor), commit ${commit:0:12}, tree $2"
        sed -n 's/^NOTE: /  /p' "$logs/$name.log"
      else
        sed -n "/^$name /,/^[a-z]/{/^$name /p;/^  /p}" "$record" 2>/dev/null
      fi
    done
  } >"$new"
  mv "$new" "$record"
  for name in "${all[@]}"; do
    [[ -n $(passed_before "$name" "$(tree_of "$name")") ]] || missing+=" $name"
  done
  [[ -z $missing ]] || return 0
  sed -i -e '/^\(commit\|date\) /d' -e "2a commit $commit\ndate $(date -u +%Y-%m-%d)" "$record"
}

passed=0 failed=0 skipped=0
for name in "${names[@]}"; do
  log=$logs/$name.log
  # computed before the check runs: a commit made meanwhile is not checked
  tree='' seconds=''
  ((!BRAID_CHECK_ALL)) || [[ $commit == none ]] || tree=$(tree_of "$name")
  [[ -z $tree ]] || ((again)) || seconds=$(passed_before "$name" "$tree")
  if [[ -n $seconds ]]; then
    printf '%-10s PASS  %d s, before\n' "$name" "$seconds"
    passed=$((passed + 1))
    continue
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
  if [[ -n $tree ]] && ((status == 0 || status == 77)); then
    write_record "$name" "$tree" "$seconds"
  fi
  printf '%-10s %s  %d s\n' "$name" "$verdict" "$seconds"
  sed -n 's/^NOTE: /           /p' "$log"
  if [[ $verdict == FAIL ]]; then
    tail -n 60 "$log" | sed 's/^/    /'
    echo "    (all of it: $log)"
  fi
done
echo "checks: $passed passed, $failed failed, $skipped skipped"

if ((!complete)) || ((failed)); then
  last=$(sed -n 's/^commit //p' "$record" 2>/dev/null)
  if [[ -n $last ]]; then
    since=$(git rev-list --count "$last..HEAD" 2>/dev/null || echo "an unknown number of")
    echo "./dev check --all last passed on $(sed -n 's/^date //p' "$record"), $since commits ago"
  else
    echo "./dev check --all has not passed whole yet: $record has what has"
  fi
elif [[ $commit != none ]]; then
  echo "$record is written: commit it"
fi
((failed == 0))
