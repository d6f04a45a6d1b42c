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
((failed == 0))
