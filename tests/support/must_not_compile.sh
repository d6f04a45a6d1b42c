#!/usr/bin/env bash
# must_not_compile.sh FILE COMPILER [FLAGS...]: passes if FILE fails to compile with a message that
# matches the regular expression of its first line, "// expect: <regex>". control.cpp must compile.
# This shows that the other cases fail for the expected reason.
set -u
file=$1
shift
output=$("$@" -fsyntax-only "$file" 2>&1)
status=$?
if [[ $(basename "$file") == control.cpp ]]; then
  if ((status != 0)); then
    echo "FAIL: control.cpp must compile, but:"
    echo "$output"
    exit 1
  fi
  exit 0
fi
first=$(head -n 1 "$file")
expected=${first#// expect: }
if [[ $expected == "$first" || -z $expected ]]; then
  echo "FAIL: the first line of $file must be '// expect: <regex of the compiler message>'"
  exit 1
fi
if ((status == 0)); then
  echo "FAIL: $file compiles, but must not (expected: $expected)"
  exit 1
fi
if ! grep -Eq -- "$expected" <<<"$output"; then
  echo "FAIL: $file does not compile, but the message does not match: $expected"
  echo "$output"
  exit 1
fi
