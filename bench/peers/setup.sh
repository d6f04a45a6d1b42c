#!/usr/bin/env bash
# Creates the virtual environment with PyTorch, the peer of the benchmarks, and builds the LibTorch
# peer from the same wheel. Only the benchmarks and the script that writes goldens use it, never the
# library or its tests.
#
#   bench/peers/setup.sh [--dir DIR] [--python-only] [--quiet]
#
#   --dir DIR       where to put it (default: build/peers-venv in the checkout, or the
#                   environment's BRAID_PEERS)
#   --python-only   do not compile the C++ peer
#   --quiet         print nothing if there is nothing to do
#
# A second run does only what is missing. Exit codes: 0 ready, 1 failed (the last line gives the
# reason). Needs Python >= 3.10 with venv, about 2.5 GB of disk, a package index for pip, and g++
# for the C++ peer.
set -euo pipefail

torch_version=2.15.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${BRAID_PEERS:-$(cd "$here/../.." && pwd)/build/peers-venv}
cpp=1 quiet=0
while [ $# -gt 0 ]; do
  case $1 in
    --dir) dir=${2:?--dir needs a folder}; shift 2 ;;
    --python-only) cpp=0; shift ;;
    --quiet) quiet=1; shift ;;
    *) echo "setup.sh: unknown argument '$1'" >&2; exit 1 ;;
  esac
done
say() { [ "$quiet" = 1 ] || echo "peers: $*"; }
fail() { echo "peers: cannot set up PyTorch: $*" >&2; exit 1; }

log=$dir/setup.log
pip_install() {  # $1: what is installed; the rest: arguments of pip install
  local what=$1; shift
  echo "peers: installing $what"
  "$dir/bin/python" -m pip install --disable-pip-version-check "$@" >>"$log" 2>&1 ||
    fail "pip could not install $what (see $log)"
}

# ---- Python and the wheel
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "no $python; install Python 3.10 or newer"
if [ ! -x "$dir/bin/python" ]; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$python is older than 3.10"
  say "making $dir"
  mkdir -p "$dir"
  "$python" -m venv "$dir" >>"$log" 2>&1 ||
    fail "'$python -m venv' failed (on Debian: apt-get install python3-venv)"
fi
site=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
version_of() { "$dir/bin/python" -c 'import importlib.metadata as m, sys
try: print(m.version(sys.argv[1]))
except m.PackageNotFoundError: pass' "$1"; }

if [ "$(version_of torch)" != "$torch_version" ]; then
  free_kb=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
  [ "$free_kb" -gt 3000000 ] || fail "$dir has $((free_kb / 1024)) MiB free, 3000 are needed"
  pip_install "torch $torch_version (about 540 MB)" --no-deps "torch==$torch_version"
fi
pure="typing_extensions sympy networkx jinja2 fsspec filelock mpmath MarkupSafe setuptools numpy"
pure="$pure safetensors"
missing=""
for package in $pure; do [ -n "$(version_of "$package")" ] || missing="$missing $package"; done
# shellcheck disable=SC2086  # a list of names
[ -z "$missing" ] || pip_install "what torch imports:$missing" --no-deps $missing

# The wheel is a CUDA build: its libraries must load even if only the CPU is used. A CUDA toolkit on
# the machine provides most of them. Missing ones are installed from the wheels that torch's
# metadata pins. NCCL always comes from a wheel: torch needs a newer one than toolkits have.
toolkit=""
for root in "${CUDA_HOME:-}" /usr/local/cuda; do
  if [ -n "$root" ] && [ -d "$root/lib64" ]; then toolkit=$root/lib64; break; fi
done
library_path() {
  local list="" folder
  for folder in "$site"/nvidia/*/lib; do [ ! -d "$folder" ] || list="$list:$folder"; done
  list="$list${1:+:$1}"
  echo "${list#:}"
}
pin_of() {  # torch's pinned requirement for package $1
  "$dir/bin/python" - "$1" <<'PY'
import importlib.metadata as m, re, sys
for r in m.requires("torch"):
    name = re.split(r"[\[=<>~; ]", r, maxsplit=1)[0]
    if name == sys.argv[1]:
        print(re.sub(r"\[.*?\]", "", r.split(";")[0]).strip())
PY
}
# Maps a library name to the package that contains it. Names with a colon are extras of
# cuda-toolkit, which pins their versions.
wheel_of() {
  case $1 in
    libnccl.*) echo nvidia-nccl-cu13 ;;
    libcudnn*) echo nvidia-cudnn-cu13 ;;
    libcusparseLt.*) echo nvidia-cusparselt-cu13 ;;
    libnvshmem*) echo nvidia-nvshmem-cu13 ;;
    libcublas* | libnvblas*) echo :cublas ;;
    libcudart.*) echo :cudart ;;
    libcufft*) echo :cufft ;;
    libcufile*) echo :cufile ;;
    libcupti.*) echo :cupti ;;
    libcurand.*) echo :curand ;;
    libcusolver*) echo :cusolver ;;
    libcusparse.*) echo :cusparse ;;
    libnvJitLink.*) echo :nvjitlink ;;
    libnvrtc*) echo :nvrtc ;;
    libnvToolsExt.* | libnvtx*) echo :nvtx ;;
    *) return 1 ;;
  esac
}
# Libraries that torch needs and the loader does not find. libcuda.so.1 belongs to the driver and is
# loaded only for a GPU.
unresolved() {
  local torch=$site/torch/lib
  LD_LIBRARY_PATH=$(library_path "$toolkit") ldd "$torch/libtorch.so" "$torch/libtorch_python.so" \
    2>/dev/null |
    awk '/not found/ { print $1 }' | grep -v '^libcuda\.so' | sort -u || true
}
install_for() {  # installs the packages that contain the given libraries
  local library package wheels="" extras="" toolkit_pin
  for library in "$@"; do
    package=$(wheel_of "$library") ||
      fail "torch needs $library, which neither a CUDA toolkit here nor a known package has"
    case $package in
      :*) extras="$extras,${package#:}" ;;
      *) wheels="$wheels $(pin_of "$package")" ;;
    esac
  done
  wheels=$(echo "$wheels" | tr ' ' '\n' | sort -u | tr '\n' ' ')
  # shellcheck disable=SC2086
  [ -z "${wheels// /}" ] || pip_install "$wheels" --no-deps $wheels
  if [ -n "$extras" ]; then
    toolkit_pin=$(pin_of cuda-toolkit)
    pip_install "cuda-toolkit[${extras#,}]" "cuda-toolkit[${extras#,}]${toolkit_pin#cuda-toolkit}"
  fi
}
imports() {
  LD_LIBRARY_PATH=$(library_path "$toolkit") \
    "$dir/bin/python" -c 'import torch; torch.ones(2).sum()' >>"$log" 2>&1
}
resolve() {
  local need
  [ -n "$(version_of nvidia-nccl-cu13)" ] || install_for libnccl.so.2
  for _ in 1 2 3; do
    need=$(unresolved)
    [ -n "$need" ] || return 0
    # shellcheck disable=SC2086
    install_for $need
  done
  need=$(unresolved)
  [ -z "$need" ] || fail "still missing after installing their packages: ${need//$'\n'/ }"
}
if [ ! -f "$dir/peers.env" ] || ! imports; then
  resolve
  # A toolkit of another release may lack symbols. Then take every library from the pinned wheels.
  if ! imports && [ -n "$toolkit" ]; then
    say "the CUDA toolkit at $toolkit does not serve this torch; using wheels only"
    toolkit=""
    resolve
  fi
  imports || fail "'import torch' fails: $(tail -n 1 "$log")"
fi

# The OpenMP runtime reads its environment when it is loaded, so the launcher converts
# BRAID_PIN_CORES=0,1 into OpenMP's variable.
cat >"$dir/peers.env.new" <<ENV
export LD_LIBRARY_PATH="$(library_path "$toolkit")\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
if [ -n "\${BRAID_PIN_CORES:-}" ]; then export GOMP_CPU_AFFINITY="\${BRAID_PIN_CORES//,/ }"; fi
ENV
mv "$dir/peers.env.new" "$dir/peers.env"
write_launcher() {  # $1: name, $2: command
  printf '#!/usr/bin/env bash\n. "%s/peers.env"\nexec %s "$@"\n' "$dir" "$2" >"$dir/bin/$1.new"
  chmod +x "$dir/bin/$1.new"
  mv "$dir/bin/$1.new" "$dir/bin/$1"
}
write_launcher peer-python "\"$dir/bin/python\" \"$here/peer.py\""

# ---- the C++ peer
if [ "$cpp" = 1 ]; then
  cxx=${PEERS_CXX:-g++}
  binary=$dir/bin/peer-libtorch.bin
  if [ ! -x "$binary" ] || [ "$here/peer.cpp" -nt "$binary" ] ||
    [ "$site/torch/version.py" -nt "$binary" ]; then
    command -v "$cxx" >/dev/null || fail "no $cxx for the C++ peer (on Debian: apt-get install g++)"
    echo "peers: compiling the LibTorch peer (about 20 s)"
    torch=$site/torch
    "$cxx" -std=c++20 -O2 -DNDEBUG -isystem "$torch/include" \
      -isystem "$torch/include/torch/csrc/api/include" "$here/peer.cpp" -o "$binary.new" \
      -L"$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--allow-shlib-undefined \
      -ltorch_cpu -lc10 -pthread \
      >>"$log" 2>&1 || fail "the C++ peer does not compile (see $log)"
    mv "$binary.new" "$binary"
  fi
  write_launcher peer-libtorch "\"$binary\""
fi
say "ready: torch $torch_version in $dir"
