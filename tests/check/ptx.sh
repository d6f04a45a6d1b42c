#!/usr/bin/env bash
# Executes the kernels' PTX, as nvcc compiles it, on the CPU (tests/ptx): the suites of the kernels
# and of the CUDA backend run on a CUDA runtime that interprets PTX. The emulation of simt runs the
# same sources compiled by g++; contraction, addressing and unrolling depend on the compiler. CI
# compiles an eighth of the .cu files for one architecture and runs their kernels in one order of
# threads, with the tests of the instructions. --all: every kernel, two architectures, three orders,
# and faults injected into the PTX, each of which must be detected. BRAID_CHECK_TURN selects the
# sample.
set -euo pipefail
. tests/lib.sh
everything=${BRAID_CHECK_ALL:-0} turn=${BRAID_CHECK_TURN:-$(check_turn)}
nvcc=$(find_nvcc)
if [[ -z $nvcc ]]; then
  [[ ${BRAID_REQUIRE_CUDA:-0} != 1 ]] || die "nvcc was not found, and BRAID_REQUIRE_CUDA=1"
  echo "no nvcc"
  exit 77
fi
start=$SECONDS
orders=(forward reverse "random:$turn")
set_cuda_options "$nvcc"
options+=(-DBRAID_BUILD_BENCH=OFF -DBRAID_BUILD_DOCS=OFF -DBRAID_TEST_PTX=ON)
# Without the cache, each block has exactly the bounds of its tensor. A test allocates 3 GB.
program="env BRAID_CUDA_CACHE=0 BRAID_PTX_MEMORY=4096 build/ptx/tests/ptx/braid_tests_ptx"
logs=build/check/ptx
rm -rf "$logs"
mkdir -p "$logs"
export BRAID_COMMUNICATOR=local  # NCCL needs a driver

# run NAME ARCH ORDER PROGRAM [FILTER]: one run; its log and its figures go to $logs.
run() {
  local log=$logs/$1.txt
  BRAID_PTX_STATS=$logs/$1.stats BRAID_PTX_ARCH=$2 BRAID_PTX_ORDER=$3 "${@:4}" >"$log" 2>&1 &&
    return
  tail -n 40 "$log"
  return 1  # not Catch's number of failures, which may be 77
}
# figures SECONDS FILE.stats…: prints a NOTE of what ran; with --all, fails if a kernel did not run.
# The template that instantiates a kernel for contiguous operands also instantiates one for strided
# operands. No call reaches the strided kernel below: mse_backward's operands are contiguous.
never='^_ZN5braid4cuda11map_strided.*15DifferenceTimes'
figures() {
  local seconds=$1 assertions executed compiled left_out instructions
  shift
  assertions=$(sed -nE 's/^assertions: *([0-9]+).*/\1/p; s/^All tests passed \(([0-9]+) .*/\1/p' \
    "${@/%.stats/.txt}" | awk '{ n += $1 } END { print n + 0 }')
  awk -v never="$never" '{ launches[$1] += $2; instructions += $3 }
       END { for (k in launches)
               if (k ~ never) ++left_out
               else { ++all; if (launches[k]) ++run; else print k >"/dev/stderr" }
             printf "%d %d %d %.0f\n", run, all, left_out, instructions }' "$@" \
    >"$logs/figures.txt" 2>"$logs/not-executed.txt"
  read -r executed compiled left_out instructions <"$logs/figures.txt"
  echo "NOTE: $executed of $compiled kernels executed (beside $left_out that no call can reach)," \
    "$assertions assertions, $instructions instructions, $seconds s"
  if ((everything && executed < compiled)); then
    c++filt <"$logs/not-executed.txt"
    die "kernels that no test reaches"
  fi
}

if ((!everything)); then
  # Files with a common first word form one piece, for example gemm.cu and gemm_float32.cu (which
  # CMake writes).
  mapfile -t pieces < <(sources | grep -v _fake |
    sed -nE 's|^kernels/cuda/([a-z]+)[a-z0-9_]*\.cu$|\1|p' | sort -u)
  sample=()
  for i in "${!pieces[@]}"; do ((i % 8 != turn % 8)) || sample+=("${pieces[$i]}"); done
  arch=$((turn / 8 % 2 ? 80 : 90)) order=${orders[$((turn % 3))]}
  configure ptx "${options[@]}" -DBRAID_CUDA_ARCHITECTURES=$arch-virtual \
    "-DBRAID_PTX_SAMPLE=$(IFS=';' && echo "${sample[*]}")"
  build ptx braid_tests_ptx
  built=$((SECONDS - start))
  filter='[ptx],[sample]'
  [[ " ${sample[*]} " != *" gemm "* ]] || filter+=,[gemm]  # with the tiles by explicit plans
  run sample "$arch" "$order" $program "$filter"
  echo "NOTE: ${sample[*]}: PTX of sm_$arch, order $order; compiled in $built s"
  sed -n 's/^SHOWS: /NOTE: /p' "$logs/sample.txt"
  figures $((SECONDS - start)) "$logs/sample.stats"
  exit 0
fi

configure ptx "${options[@]}" "-DBRAID_CUDA_ARCHITECTURES=80-virtual;90-virtual" -DBRAID_PTX_SAMPLE=
build ptx braid_tests_ptx braid_tests_ptx_cuda
echo "NOTE: compiled in $((SECONDS - start)) s"
start=$SECONDS
for arch in 80 90; do
  for order in "${orders[@]}"; do
    name=sm_$arch-${order%%:*}
    BRAID_PTX_DEVICES=3 run "$name-cuda" $arch "$order" build/ptx/tests/ptx/braid_tests_ptx_cuda \
      '~[.]~[cublas]~[nccl]'
    together "run $name-default $arch $order $program" \
      "run $name-every $arch $order $program [every]"
    sed -n "s/^SHOWS: /NOTE: sm_$arch, $order: /p" "$logs/$name-every.txt"
  done
done
figures $((SECONDS - start)) "$logs"/*.stats

# Injects faults into the PTX, each into the module of one kernel. The tests with that tag must
# fail.
BRAID_PTX_WRITE=$logs run write 90 forward $program 'ptx: predicates'
# fault NAME TAG ORDER KERNEL SED-SCRIPT
fault() {
  local name=$1 tag=$2 order=$3 kernel=$4 script=$5 text changed=$logs/changed.ptx status=0
  text=$(grep -l "entry .*$kernel" "$logs"/[0-9]*.ptx | head -n 1)
  [[ -n $text ]] || die "$name: no PTX with a kernel $kernel"
  BRAID_PTX_READ=$text run "unchanged" 90 "$order" $program "$tag" || die "$name: red without it"
  sed -E "$script" "$text" >"$changed"
  ! cmp -s "$text" "$changed" || die "$name: the text has not changed"
  BRAID_PTX_READ=$changed run "$name" 90 "$order" $program "$tag" >/dev/null || status=$?
  ((status != 0)) || die "$name: no test has noticed it"
  ! grep -q 'PTX: unknown' "$logs/$name.txt" || die "$name: the changed text is not PTX"
  echo "NOTE: noticed: $name: $(grep '^assertions:' "$logs/$name.txt" || echo "it ended early")"
}
fault removed-bar.sync '[softmax]~[optim]' forward softmax_blocks 's/^\s*bar\.sync.*$//'
fault changed-shuffle '[softmax]~[optim]' forward softmax_warps \
  's/shfl\.sync\.bfly/shfl.sync.down/'
fault dropped-cp.async.wait 'cuda gemm: a tile does not change a bit' forward \
  'GemmTileILi128ELi128E' 's/^\s*cp\.async\.wait.*$//'
fault weakened-cp.async.wait 'cuda gemm: tensor cores*' forward \
  'MmaTileILi128E' 's/cp\.async\.wait_group 2;/cp.async.wait_group 3;/'
fault mma-of-another-type 'cuda gemm: tensor cores*' forward \
  'MmaTileILi128E' 's/f32\.bf16\.bf16\.f32/f32.f16.f16.f32/'
fault ldmatrix-without-trans 'cuda gemm: tensor cores*' forward \
  'MmaTileILi128E' 's/\.x4\.trans\./.x4./'
echo "NOTE: $((SECONDS - start)) s after the build"
