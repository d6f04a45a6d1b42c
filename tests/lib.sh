#!/usr/bin/env bash
# Functions that the scripts of ./dev share. Source it from the top folder: . tests/lib.sh

root=$PWD
jobs=$(nproc)

# Finds the data sets: BRAID_DATA, or a folder next to or inside the checkout, or none.
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

# Returns whether mpicc links this library.
mpi_is() { [[ " $(mpicc -show 2>/dev/null) " == *" $1 "* ]]; }

# Returns whether the contents of the Debian package are present, however they were installed.
have_package() {
  case $1 in
    ninja-build) command -v ninja >/dev/null ;;
    catch2) have_file {/usr,/usr/local}/include/catch2/catch*.hpp ;;
    libdnnl-dev) have_file {/usr,/usr/local}/include/oneapi/dnnl/dnnl.hpp ;;
    zlib1g-dev) have_file {/usr,/usr/local}/include/zlib.h ;;
    libstb-dev) have_file {/usr,/usr/local}/include/stb/stb_image.h ;;
    libbenchmark-dev) have_file {/usr,/usr/local}/include/benchmark/benchmark.h ;;
    clang-14) command -v clang++-14 >/dev/null ;;
    # asked only after clang++-14 is installed
    libclang-rt-14-dev) have_file "$(clang++-14 -print-resource-dir)"/lib/*/libclang_rt.asan*.a ;;
    libopenmpi-dev) command -v mpicc.openmpi >/dev/null || mpi_is -lmpi ;;
    openmpi-bin) command -v mpirun >/dev/null ;;
    libmpich-dev) command -v mpicc.mpich >/dev/null || mpi_is -lmpich ;;
    mpich) command -v mpiexec.mpich >/dev/null || command -v mpiexec.hydra >/dev/null ;;
    libgloo-dev) have_file {/usr,/usr/local}/include/gloo/context.h ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;  # the package has the name of its program
  esac
}

# die WORDS...: prints FAIL and the words, and fails the check.
die() {
  echo "FAIL: $*"
  exit 1
}

# need PACKAGE...: installs missing packages with apt. If that needs a password, it prints the
# command line and stops. Calls apt only if a package is missing.
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
        libdnnl-dev | zlib1g-dev | libstb-dev) ;;  # the build works without them
        libopenmpi-dev | openmpi-bin | libmpich-dev | mpich | libgloo-dev | gdb) ;;
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

# ccache from the first build on: changing a build folder's launcher compiles everything again.
build_tools=(g++ cmake ninja-build ccache libdnnl-dev zlib1g-dev libstb-dev)

# The engines between processes, for their tests. Both MPIs can be installed side by side.
engine_packages=(libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev)

# For configure: builds only the library.
library_only=(-DBRAID_BUILD_TESTS=OFF -DBRAID_BUILD_DOCS=OFF -DBRAID_BUILD_BENCH=OFF)

# compiler_changes DIRECTORY [cmake arguments]: returns whether the arguments name another C++
# compiler than the build folder was configured with.
compiler_changes() {
  local cache=build/$1/CMakeCache.txt argument wanted='' had
  shift
  for argument in "$@"; do [[ $argument != -DCMAKE_CXX_COMPILER=* ]] || wanted=${argument#*=}; done
  [[ -n $wanted && -f $cache ]] || return 1
  had=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
  [[ $had != "$wanted" && $had != "$(command -v "$wanted")" ]]
}

# configure PRESET|DIRECTORY [cmake arguments]: prints only the summary line, or the whole log if it
# fails. BRAID_WERROR=ON in the environment makes warnings errors.
configure() {
  local name=$1 log
  shift
  mkdir -p build
  # Many builds share sources that are compiled with the same options. If ccache is installed, they
  # are compiled once.
  if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
    # a cache miss costs no separate preprocessing
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_DEPEND=1
    # objects of another checkout can be used here
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
    # Allows precompiled headers: none of our macros is defined after them, none uses the time, and
    # CMake writes them right before they are compiled.
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  fi
  [[ -z ${BRAID_WERROR:-} ]] || set -- -DBRAID_WERROR="$BRAID_WERROR" "$@"
  # CMake cannot change the compiler of a build folder: it would lose the preset's other values
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

# together "COMMAND..." "COMMAND...": runs both in parallel, and shows the output of the first after
# that of the second. Fails if one of them fails. Arguments are split at spaces; quotes have no
# effect.
together() {
  local first status=0 log=build/check/together.txt
  $1 >"$log" 2>&1 &
  first=$!
  $2 || status=$?
  wait "$first" || status=$?
  cat "$log"
  return $status
}

# Tests save many small files and wait for the disk each time. During a build this can take minutes,
# so the files go to memory if there is room and TMPDIR is not set.
tests_in_memory() {
  if [[ -z ${TMPDIR:-} && -d /dev/shm && -w /dev/shm ]] &&
    (($(df --output=avail -k /dev/shm | tail -n 1) > 1 << 20)); then
    export TMPDIR=/dev/shm
  fi
}

# run_ctest DIRECTORY [ctest arguments]: runs the tests, then prints why some were skipped.
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

# Selects the sample of a run of the checks: the number of commits, so that each submission differs.
check_turn() { git rev-list --count HEAD 2>/dev/null || date +%-j; }

# changed PATTERN: returns whether a commit since the last ./dev check --all, or if that is unknown
# of the last three days, changed a path that matches the pattern (grep -E). If both are unknown:
# yes.
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

# Prints the path of nvcc, or nothing.
find_nvcc() { echo "${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}"; }

# set_cuda_options NVCC: sets `options`, which the checks cuda and ptx share. C++ is compiled as in
# the plain build and the emulated one, so that ccache has most objects. nvcc's host code is not
# optimised (its -O applies to host code only, so the report of the kernels stays the same).
set_cuda_options() {
  options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -DNDEBUG" -DBRAID_CUDA=ON
    -DCMAKE_CUDA_COMPILER="$1" -DBRAID_WERROR=ON -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic
    -DBRAID_CUDA_COMPRESS=OFF -DBRAID_TEST_OPTIONS=-O0)
}

# wheels FOLDER PACKAGE==VERSION...: extracts the contents of PyPI packages into a new folder.
wheels() {
  local folder=$1 wheel
  shift
  rm -rf "$folder"
  mkdir -p "$folder"
  python3 -m pip download --quiet --no-deps --dest "$folder" "$@" >&2 || return 1
  for wheel in "$folder"/*.whl; do python3 -m zipfile -e "$wheel" "$folder" || return 1; done
}

# The formatter is pinned, because other versions format differently. PyPI has it in a wheel.
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

# files PATTERN...: prints the files that belong to the project and match a pattern.
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
# sources: all C++ and CUDA files. scripts: all scripts and build files.
sources() { files '*.cpp' '*.hpp' '*.cu' '*.cuh'; }
pages() { files '*.html' '*.css' '*.js'; }
scripts() { files '*.sh' '*.py' '*.cmake' '*CMakeLists.txt' dev .ci/run; }
