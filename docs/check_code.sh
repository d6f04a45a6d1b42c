#!/usr/bin/env bash
# Compiles every ```cpp block of README.md and docs/ (-fsyntax-only). A block with #include is
# compiled as a separate file. Any other block is put into a function after "#include
# <braid/braid.hpp>" and "using namespace braid;". Code that does not compile alone is marked
# ```c++.
#
# Then compiles the examples in the docstrings of the public headers, all in one file: after an
# empty line (///), lines that begin with /// and five spaces or more. Each example is put into a
# function, or into a namespace if it defines a function or a struct. `…` stands for anything.
# docs/docstring_context.hpp declares what they use. Tables have three spaces.
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
headers=()
if (($# == 0)); then
  set -- README.md docs
  mapfile -t headers < <(find {core,kernels,nn,data,parallel}/include -name '*.hpp' \
    -not -path '*/internal/*' | sort)
fi
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
if ((${#headers[@]} > 0)); then
  source=$work/docstrings.cpp
  awk '
    function flush() {
      while (n > 0 && code[n] == "") --n
      if (n == 0) return
      ++count
      defines = code[1] ~ /^(struct|class|template)/ && code[n] ~ /^}/
      defines = defines || code[1] ~ /^[A-Za-z_:<>]+ [a-z_]+\(.*\) (try )?[{]$/
      printf "namespace example_%d {\nusing given::device;\n", count
      if (!defines) print "void example() {"
      printf "#line %d \"%s\"\n", first, FILENAME
      for (i = 1; i <= n; ++i) print code[i]
      print defines ? "}" : "}}"
      n = 0
    }
    BEGIN { print "#include \"docs/docstring_context.hpp\"" }
    FNR == 1 { empty = 0 }
    {
      line = $0
      sub(/^ +/, "", line)
    }
    line ~ /^\/\/\/     / && (n > 0 || (empty && line ~ /^\/\/\/     [^ ]/)) {
      if (n == 0) first = FNR
      line = substr(line, 9)
      gsub(/…/, "", line)
      code[++n] = line
      next
    }
    line == "///" && n > 0 { code[++n] = ""; next }
    { flush(); empty = line == "///" }
    END { print "// " count " examples" }' "${headers[@]}" >"$source"
  examples=$(sed -n 's|^// \([0-9]*\) examples$|\1|p' "$source")
  broken=0
  if ! g++ -std=c++20 -fsyntax-only -Wno-unused-result -I. "${includes[@]}" "$source"; then
    echo "FAIL: an example in a docstring does not compile, see above"
    broken=1
  fi
  if ((${examples:-0} < 50)); then
    echo "FAIL: expected at least 50 examples in docstrings, found ${examples:-none}"
    broken=1
  fi
  echo "NOTE: $examples examples in docstrings"
  failed=$((failed + broken))
fi
if ((count == 0)); then
  echo "FAIL: expected blocks of code in $*, found none: the check would pass on anything"
  exit 1
fi
((failed == 0))
