#!/usr/bin/env bash
# Compiles every ```cpp block of README.md and docs/ (-fsyntax-only). A block with #include is
# compiled as a separate file. Any other block is put into a function after "#include
# <braid/braid.hpp>" and "using namespace braid;". Code that does not compile alone is marked
# ```c++.
set -uo pipefail
. tests/lib.sh
work=build/check/docs
rm -rf "$work"
mkdir -p "$work"
includes=()
for module in core kernels nn data parallel; do includes+=("-I$root/$module/include"); done
includes+=("-I$root/core/umbrella")
# Parsed once for all blocks. -w suppresses the warning "#pragma once in main file".
mkdir -p "$work/braid"
g++ -std=c++20 -w "${includes[@]}" -x c++-header core/umbrella/braid/braid.hpp \
  -o "$work/braid/braid.hpp.gch"
includes=("-I$work" "${includes[@]}")

# Searches all of the documentation, or the given files and folders.
(($# > 0)) || set -- README.md docs
find "$@" -name '*.md' | while read -r file; do
  awk -v stem="$work/$(tr '/' '_' <<<"${file%.md}")" -v file="$file" '
    /^```cpp[ \t]*$/ {
      ++n
      out = sprintf("%s.%02d.txt", stem, n)
      printf "// %s:%d\n", file, NR > out
      next
    }
    /^```/ { out = "" }
    out != "" { print > out }' "$file"
done
count=0 failed=0
for block in "$work"/*.txt; do
  [[ -f $block ]] || continue
  source=${block%.txt}.cpp
  if grep -q '#include' "$block"; then
    cp "$block" "$source"
  else
    {
      head -n 1 "$block" &&
        printf '#include <braid/braid.hpp>\nusing namespace braid;\nvoid example() {\n' &&
        tail -n +2 "$block" && printf '}\n'
    } >"$source"
  fi
  count=$((count + 1))
  if ! g++ -std=c++20 -fsyntax-only "${includes[@]}" "$source"; then
    echo "FAIL: the code at $(head -n 1 "$block" | cut -c4-) does not compile"
    failed=$((failed + 1))
  fi
done
echo "NOTE: $count blocks of code in the documentation, $failed do not compile"
if ((count == 0)); then
  echo "FAIL: expected blocks of code in $*, found none: the check would pass on anything"
  exit 1
fi
((failed == 0))
