#!/usr/bin/env bash
# A module may include only certain others: kernels, nn and data include core; parallel includes
# core and nn. For each forbidden pair an include must fail to compile with the module's own flags;
# for each allowed pair it must compile. Then the sources are searched for ways around this.
set -uo pipefail
. tests/lib.sh

declare -A allowed=([core]="" [kernels]="core" [nn]="core" [data]="core" [parallel]="core nn")
modules=(core kernels nn data parallel)
work=build/check/layering
mkdir -p "$work"
configure layering -DCMAKE_BUILD_TYPE=Debug -DBRAID_PRECOMPILE=OFF "${library_only[@]}" || exit 1
failed=0
fail() {
  echo "FAIL: $*"
  failed=1
}

# plant MODULE HEADER COMMAND: compiles a source that includes the header, with the command of one
# of the module's sources.
plant() {
  local module=$1 header=$2 command=$3 file=$work/plant.cpp
  printf '#include <%s>\nint main() {}\n' "$header" >"$file"
  # ninja's command, without its outputs, and with our file instead of the module's.
  command=$(sed -E -e 's/ -o [^ ]+//; s/ -M[DFTP]+ ?[^ ]*\.o(\.d)?//g; s/ -MD//g' \
    -e "s| -c [^ ]+| -fsyntax-only $root/$file|" <<<"$command")
  (cd build/layering && eval "$command") >"$work/output.txt" 2>&1
}

for module in "${modules[@]}"; do
  commands=$(ninja -C build/layering -t commands "braid_$module" |
    grep -E " -c [^ ]+\.cpp" | grep "/braid_$module.dir/")
  isa=$(ninja -C build/layering -t commands braid |
    awk "/\/braid_${module}_(sse|generic).dir\// && !found { print; found = 1 }")
  command=$(head -n 1 <<<"$commands")
  [[ -n $command ]] || { fail "no compile command of braid_$module" && continue; }
  for other in "${modules[@]}"; do
    header=$(cd "$other/include" && find . -name '*.hpp' | sed 's|^\./||' | sort | sed -n 1p)
    [[ -n $header ]] || { echo "$module: $other has no public header to plant" && continue; }
    for line in "$command" ${isa:+"$isa"}; do
      if [[ $module == "$other" || " ${allowed[$module]} " == *" $other "* ]]; then
        if ! plant "$module" "$header" "$line"; then
          fail "$module may include <$header>, but it does not compile:"
          cat "$work/output.txt"
        fi
      elif plant "$module" "$header" "$line"; then
        fail "$module must not include <$header>, but it compiles"
      elif ! grep -q "$header.*\(No such file\|file not found\)" "$work/output.txt"; then
        fail "$module with <$header> fails for another reason:" && cat "$work/output.txt"
      else
        echo "$module: <$header> does not compile"
      fi
    done
  done
  ! plant "$module" braid/braid.hpp "$command" ||
    fail "$module must not include <braid/braid.hpp>, but it compiles"
done

# search WHY PATTERN GREP-ARGUMENTS...: fails if anything matches.
search() {
  local why=$1 pattern=$2 found
  shift 2
  found=$(grep -rnE --exclude-dir=umbrella --include='*.'{hpp,cpp,cu,cuh} -- "$pattern" "$@") &&
    fail "$why:"$'\n'"$found"
}
for module in "${modules[@]}"; do
  for other in "${modules[@]}"; do
    [[ $module == "$other" || " ${allowed[$module]} " == *" $other "* ]] && continue
    search "$module must not include $other" "#[ ]*include[ ]*[<\"]braid/$other/" "$module"
  done
  others=$(printf '%s\n' "${modules[@]}" | grep -vx "$module" | paste -sd'|')
  search "$module reaches into another module" "#[ ]*include[ ]*\"[^\"]*\.\./($others)/" "$module"
done
outside=(core nn data parallel kernels/include)
search "oneDNN belongs to kernels/cpu" '#[ ]*include[ ]*[<"](oneapi/|dnnl)' "${outside[@]}"
search "intrinsics belong to kernels" '#[ ]*include[ ]*[<"][a-z]*intrin\.h' "${outside[@]}"

# kernels/cuda is built against the toolkit and against the emulation. What differs is in the
# emulation's portable headers, or in sources that CMake chooses.
search "kernels/cuda asks whether it is emulated" 'SIMT_EMULATED|BRAID_CUDA_SIMT' kernels/cuda
found=$(grep -rn '#include "simt/[a-z]*/' kernels/cuda | grep -v '_fake\.c[pu]') &&
  fail "kernels/cuda includes what only the emulation has:"$'\n'"$found"

# Headers outside of internal/ are public: <braid/braid.hpp> includes each of them, except those
# that only name the new place of a header, and none of them includes or names the kernels'
# arguments.
roots=("${modules[@]/%//include}")
include=("${roots[@]/#/-I}" -Icore/umbrella -Ibuild/layering/core/include)
reached=$(g++ -std=c++20 -x c++ -MM "${include[@]}" - <<<'#include <braid/braid.hpp>' |
  tr -s ' \\' '\n')
arguments=$(grep -rhoE '^(struct|enum class) \w+(Args|Item|Kind)\b' \
  core/include/braid/core/internal/kernel_args | awk '{ print $NF }' | sort -u | paste -sd'|')
[[ $arguments == *AdamArgs*OptimItem*RnnKind* ]] || fail "the kernels' arguments were not found"
while read -r header; do
  grep -qxF "$header" <<<"$reached" || grep -q '^#error "braid: .* is now ' "$header" ||
    fail "$header is public, but <braid/braid.hpp> does not include it; else: internal/"
  ! grep -q 'internal/\(kernel_args/\|kernel_table\|kernels\.def\)' "$header" ||
    fail "$header is public, but includes kernel arguments"
  ! grep -nE "\<(KernelTable|$arguments)\>" "$header" ||
    fail "$header is public, but names kernel arguments"
done < <(find "${roots[@]}" -name '*.hpp' -not -path '*/internal/*' | sort)
# The names of autograd's graph and of the kernels' arguments are not those of a program.
echo 'using namespace braid; struct Node {}; struct Edge {}; struct Loop {}; struct Block {};
      void use(Node, Edge, Loop, Block) {}' | cat <(echo '#include <braid/braid.hpp>') - |
  g++ -std=c++20 -x c++ -fsyntax-only "${include[@]}" - ||
  fail "using namespace braid brings Node, Edge, Loop or Block"
((failed == 0))
