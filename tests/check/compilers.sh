#!/usr/bin/env bash
# Compiles every source with warnings as errors: with the default compiler without oneDNN (all
# targets; check generic runs its tests), and with g++ 11 and the packaged oneDNN, then with oneDNN
# 3 from PyPI (the library, without precompiled headers). Clang 14 is covered by the checks asan
# (all targets) and tsan. Also checks that BRAID_NATIVE applies to all sources except the kernels of
# each instruction set.
set -euo pipefail
. tests/lib.sh

echo "== the default compiler"
configure gcc -DCMAKE_BUILD_TYPE=Release -DBRAID_WERROR=ON -DBRAID_ONEDNN=OFF \
  -DBRAID_TEST_OPTIONS=-O1
build gcc
echo "== g++-11"
forget=(-UBraidOneDNN_* -UCMAKE_PREFIX_PATH)
configure gcc11 -DCMAKE_CXX_COMPILER=g++-11 -DCMAKE_BUILD_TYPE=Debug -DBRAID_WERROR=ON \
  -DBRAID_PRECOMPILE=OFF -DBRAID_GENERIC=ON "${library_only[@]}" -DBUILD_SHARED_LIBS=ON \
  "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs" "${forget[@]}"
build gcc11 braid

echo "== oneDNN 3"
onednn3=$root/build/onednn3
if [[ ! -f $onednn3/ready ]]; then
  wheels "$onednn3" onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
  cp -r "$onednn3"/*.data/data/* "$onednn3"
  touch "$onednn3/ready"
fi
# The same build folder: only the sources that call oneDNN are recompiled.
configure gcc11 "${forget[@]}" -DCMAKE_PREFIX_PATH="$onednn3" -DBRAID_ONEDNN=ON |
  tee build/check/onednn3.txt
grep -q 'oneDNN 3\.' build/check/onednn3.txt || die "oneDNN 3 was not the one that was found"
build gcc11 braid

echo "== BRAID_NATIVE"
configure native -DCMAKE_BUILD_TYPE=Release -DBRAID_NATIVE=ON "${library_only[@]}"
commands=$(ninja -C build/native -t commands braid)
sets=$(grep -E '/braid_kernels_(sse|avx2|avx512|generic)\.dir/.* -c ' <<<"$commands")
if grep -- -march=native <<<"$sets"; then
  die "these are compiled for this processor, not for their instruction set"
fi
# Not `grep -q` after a pipe: it exits early, and with pipefail the broken pipe fails the line.
grep -q -- '-march=native .*/braid_core\.dir/' <<<"$commands" ||
  die "the other sources are not compiled for this processor"
