#!/usr/bin/env bash
# A program that embeds Braid builds and runs: with find_package on an installed shared and an
# installed static library, and with add_subdirectory on a static one. Each prints the weights that
# its training must find, and nothing of ours leaks into it.
set -euo pipefail
. tests/lib.sh
work=$root/build/check/consumers
rm -rf "$work"
mkdir -p "$work"
off=(-DBRAID_GENERIC=ON -DCMAKE_INSTALL_MESSAGE=NEVER -DBRAID_BUILD_TESTS=OFF -DBRAID_BUILD_DOCS=OFF -DBRAID_BUILD_BENCH=OFF)

# The weights, to the precision that they are printed with.
check_output() {
  echo "$1 prints: $2"
  [[ $2 == 'tensor([[ 1.0000, -2.0000,  0.5000]], requires_grad=true)' ]] || { echo "FAIL: $1: expected tensor([[ 1.0000, -2.0000,  0.5000]], requires_grad=true)" && exit 1; }
}
consume() {
  local name=$1
  shift
  echo "== $name"
  # as deep as the other build folders: objects that they have in common are compiled once
  local folder=$root/build/consumer-$name
  rm -rf "$folder"
  cmake -S tests/consumer -B "$folder" -G Ninja "$@"
  cmake --build "$folder" --parallel "$jobs"
  check_output "$name" "$("$folder/consumer")"
  diff docs/tutorials/custom_op.expected <("$folder/custom_op") || { echo "FAIL: $name: custom_op prints something else" && exit 1; }
}

# Objects are the same for both kinds (position-independent in any case), so one folder builds both
# in turn.
for kind in shared static; do
  [[ $kind == shared ]] && shared=ON || shared=OFF
  configure install -DCMAKE_BUILD_TYPE=Release "${off[@]}" -DBUILD_SHARED_LIBS="$shared" -DCMAKE_INSTALL_PREFIX="$work/prefix-$kind"
  build install braid
  cmake --install build/install --component braid
  # Once built and installed, the package may not need the sources nor the folder it was built in.
  grep -rlF -e "$root/core" -e "$root/build/install" "$work/prefix-$kind" --include='*.cmake' --include='*.pc' && echo "FAIL: the package names the build's own folders" && exit 1
  consume "find_package-$kind" -DCMAKE_PREFIX_PATH="$work/prefix-$kind"
done
if grep -riE 'dnnl|opencl|zlib' "$work/prefix-shared/lib"*/cmake/braid; then
  echo "FAIL: the package of the shared library mentions a private dependency"
  exit 1
fi
# Braid as a subfolder has no precompiled headers: the objects that check compilers makes with g++
# 11.
consume add_subdirectory-static -DBRAID_SOURCE="$root" -DBRAID_GENERIC=ON -DBRAID_WERROR=ON -DCMAKE_CXX_COMPILER=g++-11 -DCMAKE_BUILD_TYPE=Debug

if command -v pkg-config >/dev/null; then
  echo "== pkg-config"
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix-shared" -name braid.pc)")
  # shellcheck disable=SC2046
  g++ -std=c++20 tests/consumer/main.cpp -o "$work/pkg-config" $(pkg-config --cflags --libs braid) -Wl,-rpath,"$(pkg-config --variable=libdir braid)"
  check_output pkg-config "$("$work/pkg-config")"
fi
