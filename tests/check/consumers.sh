#!/usr/bin/env bash
# A program that embeds Braid builds and runs: with find_package on an installed shared library, and
# in every second run of CI (those that run tsan) with add_subdirectory on a static one. --all: also
# with find_package on a static library and with pkg-config, and the subfolder with g++ 11. Each
# program prints the weights that its training must find, and the package exposes no private
# dependency. pkg-config's answers must be right wherever Braid was installed. The installed
# tutorials build: in CI embed, with --all each of them.
set -euo pipefail
. tests/lib.sh
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}
work=$root/build/check/consumers
rm -rf "$work"
mkdir -p "$work"
# Configured like the plain build, so that ccache has the objects: they are always
# position-independent.
install=(-DCMAKE_BUILD_TYPE=Release -DBRAID_WERROR="${BRAID_WERROR:-ON}"
  -DCMAKE_INSTALL_MESSAGE=NEVER "${library_only[@]}")

# The weights, with the precision that they are printed in.
expected='tensor([[ 1.0000, -2.0000,  0.5000]], requires_grad=true)'
check_output() {
  echo "$1 prints: $2"
  [[ $2 == "$expected" ]] || die "$1: expected $expected"
}
# check_ranks NAME PROGRAM MODULES: the program is linked to no engine; two ranks of it, started in
# each way whose module is in that folder, open the module from where it was built or installed.
check_ranks() {
  local name=$1 program=$2 modules=$3 log=$work/ranks.txt rank launcher
  local sum='tensor([2.]) over' port=$((20000 + RANDOM % 10000))
  ! ldd "$program" | grep -E 'lib(mpi|mpich|gloo|nccl)|braid_[a-z_]*\.so' ||
    die "$name: the program is linked to an engine"
  if [[ -e $modules/braid_gloo.so ]]; then
    export WORLD_SIZE=2 BRAID_PORT=$port BRAID_TIMEOUT=60
    for rank in 0 1; do RANK=$rank "$program" ranks >"$log$rank" 2>&1 & done
    wait
    unset WORLD_SIZE BRAID_PORT BRAID_TIMEOUT
    diff <(printf "rank %d: $sum gloo\n" 0 1) <(cat "$log"[01]) || die "$name: two ranks over Gloo"
    echo "$name: two ranks over Gloo"
  fi
  for launcher in 'openmpi mpirun.openmpi --allow-run-as-root --oversubscribe -np' \
    'mpich mpiexec.mpich -n'; do
    read -r -a launcher <<<"$launcher"
    [[ -e $modules/braid_mpi_${launcher[0]}.so ]] && command -v "${launcher[1]}" >/dev/null ||
      continue
    timeout 60 "${launcher[@]:1}" 2 "$program" ranks >"$log" 2>&1 || true
    diff <(printf "rank %d: $sum mpi\n" 0 1) <(sort "$log") ||
      die "$name: two ranks: ${launcher[*]}"
    echo "$name: two ranks over ${launcher[0]}"
  done
}
# read_digits NAME FOLDER: the application of docs/tutorials/embed, built there, reads ten digits.
# The first one trains the network that all use.
read_digits() {
  if [[ ! -e /usr/include/stb/stb_image.h ]]; then
    echo "SKIP(no stb): $1: reading digits"
    return
  fi
  if [[ ! -d $work/digits ]]; then
    mkdir "$work/digits"
    (cd "$work/digits" && "$2/train_reader")
  fi
  docs/tutorials/embed/test.sh "$2/read_digit" "$work/digits" || die "$1: the digits are not read"
  echo "$1: ten digits are read"
}
consume() {
  local name=$1
  shift
  echo "== $name"
  local folder=$root/build/consumer-$name  # as deep as other build folders, for ccache
  rm -rf "$folder"
  cmake -S tests/consumer -B "$folder" -G Ninja "$@"
  cmake --build "$folder" --parallel "$jobs"
  check_output "$name" "$("$folder/consumer")"
  diff docs/tutorials/custom_op.expected <("$folder/custom_op") ||
    die "$name: custom_op prints something else"
  [[ ! -d $folder/embed ]] || read_digits "$name" "$folder/embed"
  local modules=$folder/braid/engines
  [[ -d $modules ]] || modules=$(echo "$prefix"/lib*/braid)
  check_ranks "$name" "$folder/consumer" "$modules"
}

kinds=(shared)
((!everything)) || kinds+=(static)
for kind in "${kinds[@]}"; do
  [[ $kind == shared ]] && shared=ON || shared=OFF
  prefix=$work/prefix-$kind
  configure install "${install[@]}" -DBUILD_SHARED_LIBS=$shared "-DCMAKE_INSTALL_PREFIX=$prefix"
  build install braid
  cmake --install build/install --component braid
  # After the build and the installation, the package may not depend on the sources or the build
  # folder.
  if grep -rlF -e "$root/core" -e "$root/build/install" "$prefix" --include='*.cmake' \
    --include='*.pc'; then
    die "the package names the build's own folders"
  fi
  consume "find_package-$kind" "-DCMAKE_PREFIX_PATH=$prefix"
done

# Component braid is the library alone. The tutorials are built where the package is found.
[[ ! -e $work/prefix-shared/share/doc ]] || die "component braid installs documentation"
cmake --install build/install --component braid_docs --prefix "$work/prefix-shared"
examples=$work/prefix-shared/share/doc/braid/docs/tutorials
if ((everything)); then
  cmake -S "$examples" -B "$work/tutorials" -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix-shared"
  cmake --build "$work/tutorials" --parallel "$jobs"
  diff docs/tutorials/custom_op.expected <("$work/tutorials/custom_op") ||
    die "the installed tutorials: custom_op prints something else"
  read_digits "the installed tutorials" "$work/tutorials/embed"
else
  cmake -S "$examples/embed" -B "$work/embed" -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix-shared"
  cmake --build "$work/embed" --parallel "$jobs"
  read_digits "the installed tutorials" "$work/embed"
fi

# told_by FOLDER VARIABLE: prints what the braid.pc under a folder says.
told_by() {
  env -u PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH="$(dirname "$(find "$1" -name braid.pc)")" \
    pkg-config --variable="$2" braid
}
if command -v pkg-config >/dev/null; then
  # With `cmake --install --prefix` and with DESTDIR, the prefix differs from the configured one.
  cmake --install build/install --component braid --prefix "$work/elsewhere" >/dev/null
  DESTDIR=$work/staged cmake --install build/install --component braid >/dev/null
  for folder in "$prefix" "$work/elsewhere" "$work/staged"; do
    [[ -f $(told_by "$folder" includedir)/braid/braid.hpp ]] ||
      die "pkg-config: expected the headers below $folder, got $(told_by "$folder" includedir)"
    compgen -G "$(told_by "$folder" libdir)/libbraid.*" >/dev/null ||
      die "pkg-config: expected the library below $folder, got $(told_by "$folder" libdir)"
  done
else
  echo "SKIP(no pkg-config): where an installed Braid is found"
fi
if grep -riE 'dnnl|opencl|zlib' "$work/prefix-shared/lib"*/cmake/braid; then
  die "the package of the shared library mentions a private dependency"
fi

# As a subfolder, Braid builds no tests and by default no precompiled headers, and its objects are
# compiled again. CI enables precompiled headers to save time. --all leaves them off, as check
# compilers does.
subfolder=(-DBRAID_SOURCE="$root" -DBRAID_GENERIC=ON -DBRAID_WERROR=ON -DCMAKE_BUILD_TYPE=Debug)
if ((everything)); then
  consume add_subdirectory-static "${subfolder[@]}" -DCMAKE_CXX_COMPILER=g++-11
elif ((turn % 2)); then
  consume add_subdirectory-static "${subfolder[@]}" -DBRAID_PRECOMPILE=ON
fi

if ((everything)) && command -v pkg-config >/dev/null; then
  echo "== pkg-config"
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix-shared" -name braid.pc)")
  # shellcheck disable=SC2046
  g++ -std=c++20 tests/consumer/main.cpp -o "$work/pkg-config" $(pkg-config --cflags --libs braid) \
    -Wl,-rpath,"$(pkg-config --variable=libdir braid)"
  check_output pkg-config "$("$work/pkg-config")"
fi
