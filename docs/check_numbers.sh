#!/usr/bin/env bash
# A number in the name of a test ("T17: …", "1.1: …", "distributed: D2, D3 …") is one of a list.
# Each such number must have a row in docs/notes/acceptance.md, and each row without a test must say
# n/a.
set -uo pipefail
. tests/lib.sh
page=docs/notes/acceptance.md
name='^(ACCEPTANCE|TEST_CASE)\(\s*"\K([A-Z]?[0-9]+(\.[0-9]+)*)(?=:)'
# shellcheck disable=SC2046
used=$(grep -hoPz "(?m)$name" $(files 'tests/*.cpp' 'tests/*.cu') | tr '\0' '\n' | sort -u)
# shellcheck disable=SC2046
used+=$'\n'$(grep -hoP '^TEST_CASE\("distributed: \K(D[0-9]+, )*D[0-9]+(?= )' \
  $(files 'tests/*.cpp') | tr -d , | tr ' ' '\n' | sort -u)
used=$(sort -u <<<"$used")
listed=$(grep -oP '^\| \K[A-Z]?[0-9]+(\.[0-9]+)*(?= \|)' "$page" | sort -u)
not_available=$(grep -oP '^\| \K[A-Z]?[0-9]+(\.[0-9]+)*(?= \|.*\| n/a: )' "$page" | sort -u)
failed=0
for number in $(comm -23 <(echo "$used") <(echo "$listed")); do
  echo "FAIL: a test is named $number, but $page has no row for it"
  failed=1
done
for number in $(comm -13 <(printf '%s\n' "$used" "$not_available" | sort -u) <(echo "$listed")); do
  echo "FAIL: $page lists $number, but no test has this number"
  failed=1
done
if [[ -z $used ]]; then
  echo "FAIL: expected numbers in names of tests, found none: the check would pass on anything"
  failed=1
fi
echo "NOTE: $(wc -w <<<"$used") numbers in names of tests"
((failed == 0))
