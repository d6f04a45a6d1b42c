#!/usr/bin/env bash
# What the scripts behind ./dev share. Source it from the top folder: . tests/lib.sh

root=$PWD
jobs=$(nproc)

# The data sets: BRAID_DATA, else beside or inside the checkout, else none.
if [[ -z ${BRAID_DATA:-} ]]; then
  for folder in "$root/../shared/data" "$root/data"; do
    if compgen -G "$folder/*ubyte*" >/dev/null; then
      BRAID_DATA=$(readlink -f "$folder")
      export BRAID_DATA
      break
    fi
  done
fi

have_file() {
  local pattern
  for pattern in "$@"; do compgen -G "$pattern" >/dev/null && return 0; done
  return 1
}

# Is what the Debian package gives already there, from wherever it came?
have_package() {
  case $1 in
    ninja-build) command -v ninja >/dev/null ;;
    catch2) have_file {/usr,/usr/local}/include/catch2/catch*.hpp ;;
    libdnnl-dev) have_file {/usr,/usr/local}/include/oneapi/dnnl/dnnl.hpp ;;
    zlib1g-dev) have_file {/usr,/usr/local}/include/zlib.h ;;
    libbenchmark-dev) have_file {/usr,/usr/local}/include/benchmark/benchmark.h ;;
    clang-14) command -v clang++-14 >/dev/null ;;
    # asked once clang++-14 is there
    libclang-rt-14-dev) have_file "$(clang++-14 -print-resource-dir)"/lib/*/libclang_rt.asan*.a ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;  # the package is named as its program
  esac
}

# die WORDS...: the check fails, with them.
die() {
  echo "FAIL: $*"
  exit 1
}

# need PACKAGE...: installs with apt what is missing; without the right to do so it prints the line
# and stops. Never touches apt otherwise.
need() {
  local missing=() package
  for package in "$@"; do
    have_package "$package" || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return 0
  if ! command -v apt-get >/dev/null; then
    echo "Missing, by the names of their Debian packages: ${missing[*]}" >&2
    for package in "${missing[@]}"; do
      case $package in
        libdnnl-dev | zlib1g-dev) ;;  # the build does without
        *) exit 1 ;;
      esac
    done
    return 0
  fi
  local sudo=""
  ((EUID == 0)) || sudo="sudo "
  local update="${sudo}apt-get update"
  local install="${sudo}apt-get install -y --no-install-recommends ${missing[*]}"
  echo "$update && $install" >&2
  if ((EUID != 0)) && ! sudo -n true 2>/dev/null; then
    echo "Neither root nor sudo without a password:" \
      "please run the line above, then this command again." >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  if ! { $update && $install; } >&2; then
    echo "apt failed: please run the line above by hand, then this command again." >&2
    exit 1
  fi
}

# ccache from the first build on: a build folder that changes its launcher compiles all again.
build_tools=(g++ cmake ninja-build ccache libdnnl-dev zlib1g-dev)

# For configure: nothing but the library.
library_only=(-DBRAID_BUILD_TESTS=OFF -DBRAID_BUILD_DOCS=OFF -DBRAID_BUILD_BENCH=OFF)

# compiler_changes DIRECTORY [cmake arguments]: do the arguments name another C++ compiler than the
# one that the build folder was configured with?
compiler_changes() {
  local cache=build/$1/CMakeCache.txt argument wanted='' had
  shift
  for argument in "$@"; do [[ $argument != -DCMAKE_CXX_COMPILER=* ]] || wanted=${argument#*=}; done
  [[ -n $wanted && -f $cache ]] || return 1
  had=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
  [[ $had != "$wanted" && $had != "$(command -v "$wanted")" ]]
}

# configure PRESET|DIRECTORY [cmake arguments]: quiet unless it fails; the summary line is shown.
# BRAID_WERROR=ON in the environment: warnings are errors.
configure() {
  local name=$1 log
  shift
  mkdir -p build
  # Many builds have sources in common, compiled with the same options: ccache, where there is one,
  # compiles them once.
  if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
    # an object that is new costs nothing more
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_DEPEND=1
    # another checkout's objects serve here
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
    # Precompiled headers: nothing of ours is defined after them or asks for the time, and CMake
    # writes them right before they are compiled.
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  fi
  [[ -z ${BRAID_WERROR:-} ]] || set -- -DBRAID_WERROR="$BRAID_WERROR" "$@"
  # CMake cannot change it in place: it would forget the preset's other values
  ! compiler_changes "$name" "$@" || rm -rf "build/$name"
  log=build/configure-$name.log
  local place=(-S . -B "build/$name" -G Ninja)
  case $name in release | simt | asan | tsan) place=(--preset "$name") ;; esac
  if ! cmake "${place[@]}" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  grep -- '-- Braid ' "$log" || true
}

# build DIRECTORY [targets]
build() {
  local name=$1
  shift
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  cmake --build "build/$name" --parallel "$jobs" "${targets[@]}"
}

# together "COMMAND..." "COMMAND...": in parallel, what the first says shown after the second;
# fails if one of them does. Words, not quotes, end an argument.
together() {
  local first status=0 log=build/check/together.txt
  $1 >"$log" 2>&1 &
  first=$!
  $2 || status=$?
  wait "$first" || status=$?
  cat "$log"
  return $status
}

# Tests save many small files and wait for the disk each time, which beside a build can take
# minutes: in memory, where there is room and nobody says otherwise.
tests_in_memory() {
  if [[ -z ${TMPDIR:-} && -d /dev/shm && -w /dev/shm ]] &&
    (($(df --output=avail -k /dev/shm | tail -n 1) > 1 << 20)); then
    export TMPDIR=/dev/shm
  fi
}

# run_ctest DIRECTORY [ctest arguments]: the tests, then why some were skipped.
run_ctest() {
  local name=$1 status=0
  shift
  tests_in_memory
  ctest --test-dir "build/$name" --parallel "$jobs" --output-on-failure --no-tests=error "$@" ||
    status=$?
  grep -h -o '^SKIP(.*)' "build/$name/Testing/Temporary/LastTest.log" | sort | uniq -c |
    sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 runs/' || true
  return $status
}

# What a run of the checks samples by: the number of commits, so that each submission has its own.
check_turn() { git rev-list --count HEAD 2>/dev/null || date +%-j; }

# changed PATTERN: does a commit since the last ./dev check --all, or of the last three days, touch
# a path that the pattern (grep -E) matches? Without git, or when both are unknown: yes.
changed_files=''
changed() {
  if [[ -z $changed_files ]]; then
    local recorded now
    recorded=$(sed -n 's/^commit //p' tests/check/all.txt 2>/dev/null || true)
    now=$(git show -s --format=%ct HEAD 2>/dev/null || echo 0)
    changed_files=$(git diff --name-only "${recorded:-none}..HEAD" 2>/dev/null ||
      git log --since="$((now - 259200))" --format= --name-only 2>/dev/null || true)
    changed_files=${changed_files:-none}
  fi
  [[ $changed_files == none ]] || grep -qE "$1" <<<"$changed_files"
}

processor() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

# The compiler of CUDA, or nothing.
find_nvcc() { echo "${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}"; }

# set_cuda_options NVCC: `options`, what the checks cuda and ptx configure alike. C++ as in the
# plain build and the emulated one, so that ccache has most objects; nvcc's host code without
# optimisation (its -O is of that alone: the kernels' report stays as it is).
set_cuda_options() {
  options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -DNDEBUG" -DBRAID_CUDA=ON
    -DCMAKE_CUDA_COMPILER="$1" -DBRAID_WERROR=ON -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic
    -DBRAID_CUDA_COMPRESS=OFF -DBRAID_TEST_OPTIONS=-O0)
}

# wheels FOLDER PACKAGE==VERSION...: what the packages of PyPI hold, in a new folder.
wheels() {
  local folder=$1 wheel
  shift
  rm -rf "$folder"
  mkdir -p "$folder"
  python3 -m pip download --quiet --no-deps --dest "$folder" "$@" >&2 || return 1
  for wheel in "$folder"/*.whl; do python3 -m zipfile -e "$wheel" "$folder" || return 1; done
}

# The formatter is pinned: another version formats otherwise. PyPI has the program in a wheel.
clang_format_version=22.1.8
clang_format_program() {
  local folder=build/tools/clang-format-$clang_format_version
  local program=$folder/clang_format/data/bin/clang-format
  if [[ ! -x $program ]]; then
    need python3-pip
    wheels "$folder" "clang-format==$clang_format_version"
    chmod +x "$program"
  fi
  echo "$program"
}

# files PATTERN...: those that belong to the project and match one.
files() {
  local pattern any=()
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -co --exclude-standard -- "$@" |
      while read -r file; do [[ ! -f $file ]] || echo "$file"; done
  else
    for pattern in "$@"; do any+=(-o -path "./$pattern"); done
    find . -path ./build -prune -o -type f \( "${any[@]:1}" \) -printf '%P\n'
  fi
}
# All C++ and CUDA files; all scripts and files of the build.
sources() { files '*.cpp' '*.hpp' '*.cu' '*.cuh'; }
scripts() { files '*.sh' '*.py' '*.cmake' '*CMakeLists.txt' dev .ci/run; }
