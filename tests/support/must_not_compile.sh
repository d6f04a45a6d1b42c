#!/usr/bin/env bash
# must_not_compile.sh FILE COMPILER [FLAGS...]: passes if FILE fails to compile with a message that
# matches the regular expression of its first line, "// expect: <regex>". control.cpp must compile.
# This shows that the other cases fail for the expected reason.
#
# The next lines may be:
#   // lines: N    the whole output of g++ 12 has at most N lines
#   // page: PAGE  PAGE shows the file without these comments, as net.cpp, and the whole output
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
file=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
comment='^// (expect|lines|page): '
grep -vE "$comment" "$file" >"$work/net.cpp"
output=$(cd "$work" && LC_ALL=C "$@" -fsyntax-only net.cpp 2>&1)
status=$?
fail() {
  echo "FAIL: $*"
  echo "$output"
  exit 1
}
if [[ $(basename "$file") == control.cpp ]]; then
  ((status == 0)) || fail "control.cpp must compile, but:"
  exit 0
fi
first=$(head -n 1 "$file")
expected=${first#// expect: }
if [[ $expected == "$first" || -z $expected ]]; then
  fail "the first line of $file must be '// expect: <regex of the compiler message>'"
fi
((status != 0)) || fail "$file compiles, but must not (expected: $expected)"
grep -Eq -- "$expected" <<<"$output" ||
  fail "$file does not compile, but the message does not match: $expected"

lines=$(sed -nE '2,3s|^// lines: ||p' "$file")
page=$(sed -nE '2,3s|^// page: ||p' "$file")
[[ -n $lines$page ]] || exit 0
[[ $(echo '__GNUC__ __clang__' | "$1" -E -P -x c++ -) == '12 __clang__' ]] || exit 0
# With the precompiled header g++ does not print where net.cpp includes it.
include=$(grep -n -m 1 '#include <braid/braid.hpp>' "$work/net.cpp" | cut -d: -f1)
output=$(sed "s|$root/||g" <<<"$output" | awk -v line="${include:-1}" '
  /^(In file included)? +from .*umbrella\/braid\/braid.hpp:[0-9]+:$/ {
    sub(/:$/, ",")
    $0 = $0 "\n                 from net.cpp:" line ":"
  }
  { print }')
count=$(wc -l <<<"$output")
((count <= ${lines:-$count})) || fail "$file: expected at most $lines lines, got $count"
[[ -n $page ]] || exit 0
# Positions in Braid's headers change often: the page has them without numbers.
block=$(
  printf '```c++\n'
  cat "$work/net.cpp"
  printf '```\n\n```text\n'
  sed -E 's/\.hpp:[0-9:]*[0-9]/.hpp/; s/^ *[0-9]+ \|/      |/' <<<"$output"
  printf '```\n'
)
if [[ $'\n'$(<"$root/$page")$'\n' != *$'\n'"$block"$'\n'* ]]; then
  output=$block
  fail "$page must contain:"
fi
