#!/usr/bin/env bash
# ./dev gpu: runs every check and measurement that needs a GPU in one command, on a machine without
# network. docs/guides/run_on_a_gpu.md explains how to use it. Each step prints a line: PASS, FAIL
# or SKIP(reason), its name, its figures and its bar. A failing step does not stop the others; the
# exit status reports the result.
set -uo pipefail
. tests/lib.sh

steps=(card build conformance dependencies nccl tests sanitizer ladder)
asked=(profile) # steps that run only if they are named
# as table.py --list has them
rows=(ceilings G1 G1s G2 G3 G4 G5 G5h G6 G6h G6s G7 G8 G8b G8c G9 scores conv tf32 embedding clip
  G12 G13 G14 G15 G16 gpt2 captured)
usage() {
  cat <<TEXT
usage: ./dev gpu [--dry-run] [--only NAME,...] [--out FOLDER] [--seconds N] [--no-compile]
                 [--list]
       ./dev gpu --pack ARCHITECTURE

  --only     these steps or rows alone; table means all rows
  --out      where lines.txt, logs.tgz and the JSON file go (default: \$OUT, else build/gpu/out)
  --seconds  no step starts or goes on after that time (default 540, for machines that give ten
             minutes a command)
  --no-compile  leaves out torch.compile, which can take longer than all rows together
  --pack     builds for that architecture, such as 90a or 80, on this machine, which needs no GPU,
             and packs the programs into build/gpu-ARCHITECTURE.tar.xz; unpacked in the source tree
             on the other machine, they take the place of the step build
  --dry-run  every step on emulated devices, at tiny sizes: finds typos, measures nothing
steps: ${steps[*]}
rows:  ${rows[*]}
only when named: ${asked[*]}
TEXT
}

dry=0 compile=1 pack="" only="" out=${OUT:-build/gpu/out} seconds=540
while (($# > 0)); do
  case $1 in
    --dry-run) dry=1 ;;
    --no-compile) compile=0 ;;
    --pack) pack=${2:?--pack needs an architecture} && shift ;;
    --only) only=${2:?--only needs names} && shift ;;
    --out) out=${2:?--out needs a folder} && shift ;;
    --seconds) seconds=${2:?--seconds needs a number} && shift ;;
    --list) printf '%s\n' "${steps[@]}" "${asked[@]}" "${rows[@]}" && exit 0 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
chosen=()
IFS=, read -ra names <<<"${only:-$(IFS=,; echo "${steps[*]}"),table}"
for name in "${names[@]}"; do
  if [[ $name == table ]]; then chosen+=("${rows[@]}")
  elif [[ " ${steps[*]} ${asked[*]} ${rows[*]} " == *" $name "* ]]; then chosen+=("$name")
  else
    echo "./dev gpu: there is no step '$name'" >&2
    usage >&2
    exit 2
  fi
done

failed=0
line() { # VERDICT NAME TEXT
  [[ $1 == FAIL ]] && failed=1
  local verdict=$1
  ((dry)) && [[ $verdict == PASS ]] && verdict=DRY
  printf '%s  %s  %s\n' "$verdict" "$2" "$3"
}
left() { echo $((seconds - SECONDS)); }

# The logs are packed into one archive, which is easier to copy from the machine.
logs=build/gpu/logs
rm -rf "$logs"
mkdir -p "$out" "$logs"
out=$(readlink -f "$out") logs=$(readlink -f "$logs")
archive() { tar -czf "$out/logs.tgz" -C "$logs" --exclude bin .; }
# A command that does not exist, such as a mistyped function name, always counts as a failure.
command_not_found_handle() {
  echo "./dev gpu: no command '$1'" | tee -a "$logs/not-found" >&2
  return 127
}
folder=build/gpu
debs=$(readlink -f "${BRAID_DEBS:-build/debs}" || true)
PATH=$PATH:/usr/local/cuda/bin
[[ -d $debs/usr/bin ]] && PATH=$PATH:$debs/usr/bin
python=${BRAID_PYTHON:-python3}
# The tunable reserves memory for the thread-local variables of the emulation, which use static TLS.
# Python leaves little static TLS for libraries that are loaded later.
export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 PYTHONDONTWRITEBYTECODE=1
if ((dry)); then
  folder=build/simt
  # Fake versions of a GPU machine's tools, as far as this script uses them.
  fakes=$logs/bin
  mkdir -p "$fakes"
  cat >"$fakes/nvidia-smi" <<'TEXT'
#!/usr/bin/env bash
[[ $1 == -L ]] && echo "GPU 0: emulated" && exit 0
[[ $2 == --format=csv,noheader,nounits ]] || exit 1
[[ $1 == --query-gpu=clocks.sm,power.draw,clocks_event_reasons.active ]] &&
  echo "0, 0, 0x0" && exit 0
[[ $1 == --query-gpu=name,* ]] || exit 1
echo "Emulated E100 1GB, 0, 9.0, 1024, 0, 0, 0, 0, 0, 0"
TEXT
  cat >"$fakes/compute-sanitizer" <<'TEXT'
#!/usr/bin/env bash
tools='^(memcheck|racecheck|initcheck|synccheck)$'
[[ $1 == --tool && $2 =~ $tools && $3 == --error-exitcode && $4 == 9 && -x $5 ]] || exit 1
exec "${@:5}"
TEXT
  cat >"$fakes/ncu" <<'TEXT'
#!/usr/bin/env bash
[[ $1 == --import && $3 == --page && $4 == details ]] && exit 0
[[ "$1 $2 $3 $4" == "--clock-control none --set full" && $5 == -k && $7 == -f ]] &&
  [[ $8 == -o && -x $(command -v "${10}") ]] || exit 1
exec "${@:10}"
TEXT
  chmod +x "$fakes"/*
  PATH=$fakes:$PATH
  peers=${BRAID_PEERS:-build/peers-venv}
  [[ -z ${BRAID_PYTHON:-} && -x $peers/bin/python ]] && python=$peers/bin/python
elif [[ -z $pack ]] && ! nvidia-smi -L 2>/dev/null | grep '^GPU' >/dev/null; then
  echo "SKIP(no GPU)  ./dev gpu needs a machine with an NVIDIA GPU; ./dev gpu --dry-run needs none"
  exit 0
fi

# Messages of sanitizers and tests about an error (case-sensitive), but not their summary at the
# end.
findings='FAILED|========= (Invalid|Error|Race|Uninit|Barrier)'

# run_program NAME SECONDS PROGRAM [arguments]: runs a test program, prints its line and keeps its
# log.
run_program() {
  local name=$1 limit=$2 log=$logs/$1.log status=0 text start=$SECONDS
  shift 2
  limit=$((limit < $(left) ? limit : $(left)))
  if ((limit <= 0)); then
    line "SKIP(no time left: ./dev gpu --only ${name%%.*})" "$name" ""
    return
  fi
  # Loads all kernels at the start. A first launch that loads its kernel waits for the device, so
  # tests that block a stream would never end.
  CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32 \
    timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
  text=$(grep -E '^(All tests passed|test cases:|No tests ran)' "$log" | tail -n 1)
  if ((status == 124 || status == 137)); then
    local found
    found=$(grep -cE "$findings" "$log")
    line FAIL "$name" "still running after $limit s, $found findings so far: $log"
    grep -E "$findings" "$log" | head -n 30 | sed 's/^/    /'
  elif ((status != 0)) || [[ $text != "All tests passed"* ]]; then
    line FAIL "$name" "exit status $status, ${text:-no summary}: $log"
    grep -E "$findings" "$log" | head -n 30 | sed 's/^/    /'
    grep -vE '^ *$' "$log" | tail -n 12 | sed 's/^/    /'
  else
    line PASS "$name" "$text, $(grep -c 'SKIP(' "$log") skipped, $((SECONDS - start)) s"
  fi
}

# beside NAME SECONDS PROGRAM [arguments]: as run_program, but beside the other programs that are
# started so. wait_for_programs prints their lines, in order. Emulated devices use all cores, so
# there the programs run one after the other.
started=()
beside() {
  if ((dry)); then
    run_program "$@"
  else
    run_program "$@" >"$logs/$1.lines" 2>&1 &
    started+=("$1")
  fi
}
wait_for_programs() {
  local name
  wait
  for name in "${started[@]}"; do
    [[ -s $logs/$name.lines ]] || line FAIL "$name" "it was ended" >"$logs/$name.lines"
    grep '^FAIL' "$logs/$name.lines" >/dev/null && failed=1
    cat "$logs/$name.lines"
    rm "$logs/$name.lines"
  done
  started=()
}

step_card() {
  local text
  text=$("$python" bench/gpu/card.py)
  if [[ -n $text ]]; then line PASS card "$text"; else line FAIL card "nvidia-smi names no GPU"; fi
}

# Configures and builds the programs of all steps for one architecture. Without Catch2 there are no
# tests.
targets=(braid_bench)
with_tests=OFF
if have_package catch2 || [[ -d $debs/usr/include/catch2 ]]; then
  targets+=(braid_tests_{cuda,cuda_kernels,core,nn,parallel,simt_conformance})
  with_tests=ON
fi
build_for() { # ARCHITECTURE SECONDS
  local generator=(-G Ninja) arguments=("-DBRAID_BUILD_TESTS=$with_tests")
  command -v ninja >/dev/null || generator=()
  [[ -d $debs/usr ]] && arguments+=("-DCMAKE_PREFIX_PATH=$debs/usr")
  arguments+=(
    -DCMAKE_BUILD_TYPE=Release -DBRAID_CUDA=ON "-DBRAID_CUDA_ARCHITECTURES=$1-real"
    -DBRAID_ONEDNN=OFF -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic -DBRAID_BUILD_BENCH=ON
    -DBUILD_SHARED_LIBS=OFF -DBRAID_BUILD_DOCS=OFF
  )
  cmake -S . -B "$folder" "${generator[@]}" "${arguments[@]}" &&
    timeout -k 5 "$2" cmake --build "$folder" --parallel "$jobs" --target "${targets[@]}" \
      bench_ladder
}

step_build() {
  local log=$logs/build.log status=0 capability architecture=emulated
  [[ $with_tests == ON ]] || line "SKIP(no Catch2: bench/gpu/pack.sh brings it)" build.tests ""
  if ((dry)); then
    { configure simt && build simt "${targets[@]}"; } >"$log" 2>&1 || status=$?
  else
    # Only the architecture of this GPU; 9.0 with its architecture-specific instructions
    # (-gencode=arch=compute_90a,code=sm_90a).
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)
    architecture=${capability/./}
    [[ $architecture == 90 ]] && architecture=90a
    build_for "$architecture" "$(left)" >"$log" 2>&1 || status=$?
  fi
  if ((status == 0)); then
    line PASS build "for $architecture, $jobs cores, ${#targets[@]} targets"
  else
    line FAIL build "exit status $status: $log"
    grep -E 'error|FAILED|Error' "$log" | head -n 12 | sed 's/^/    /'
  fi
}

# Several logical devices on one GPU: the tests of copies between devices and of parallel need more
# than one device.
group=(env BRAID_CUDA_DEVICES_PER_GPU=3)
((dry)) && group=(env BRAID_SIMT_DEVICES=3)
program() { echo "$folder/tests/$1/braid_tests_${2:-$1}"; }
built() { # NAME: true if the tests were built
  [[ -x $(program cuda) ]] && return 0
  line "SKIP(not built: ./dev gpu --only build)" "$1" ""
  return 1
}

# cases_of PROGRAM FILTER: the names of its cases, as Catch2's option -f takes them.
cases_of() {
  local list=(--list-test-names-only) # Catch2 2
  "$1" --help | grep -e --list-test-names-only >/dev/null || list=(--list-tests --verbosity quiet)
  "$1" "${list[@]}" "$2" 2>"$logs/core.err" | sed 's/,/\\,/g'
}

step_tests() {
  local all=("") kernels=("") split=("") nn=("")
  local gemm="[gemm]~[names]" every="[every]" core="~[.]~[io]~[hostile]"
  local i parts=6 sample=${BRAID_GPU_SAMPLE:-8}
  if ((dry)); then
    parts=1
    all=("[availability]") kernels=("[where]") split=("[gather][errors]") nn=("[parameter]")
    gemm="gemm: nothing along k*" every="every kernel of the CPU*" core="[linear][relu]"
  fi
  built tests || return
  beside tests.cuda 240 "${group[@]}" "${with_cublas[@]}" "$(program cuda)" "${all[@]}"
  beside tests.kernels 240 "$(program cuda_kernels)" "${kernels[@]}"
  # the largest programs: one part in `sample` of their long loops
  beside tests.every 240 env "BRAID_TEST_PART=0/$sample" "$(program cuda_kernels)" "$every"
  # a list of cases for each process
  cases_of "$(program core)" "$core" | split -n "r/$parts" -d -a 1 - "$logs/core.cases."
  if [[ ! -s $logs/core.cases.0 ]]; then
    line FAIL tests.core "the program lists no case: $logs/core.err"
    parts=0
  fi
  for ((i = 0; i < parts; ++i)); do
    beside "tests.core.$i" 240 "${group[@]}" BRAID_DEVICE=cuda:0 \
      "BRAID_TEST_PART=$((i % sample))/$sample" "$(program core)" -f "$logs/core.cases.$i"
  done
  beside tests.nn 240 "${group[@]}" BRAID_DEVICE=cuda:0 "$(program nn)" "${nn[@]}"
  if ((dry)) || [[ -n $cublas ]]; then
    beside tests.cublas 120 env BRAID_GEMM=cublas "${with_cublas[@]}" \
      "$(program cuda_kernels)" "$gemm"
  else
    line "SKIP(no cuBLAS)" tests.cublas ""
  fi
  beside tests.parallel 240 "${group[@]}" "$(program parallel)" "${split[@]}"
  wait_for_programs
}

# Checks bit for bit that the GPU follows the emulation's rules for mma, ldmatrix, cp.async, votes,
# shuffles and atomics.
step_conformance() {
  built conformance || return
  run_program conformance 120 "$(program simt/conformance simt_conformance)"
}

# Tests every place where memory passes from one stream to another, with the first stream held up.
step_dependencies() {
  built dependencies || return
  run_program dependencies 120 "${group[@]}" "$(program cuda)" "[dependencies]"
}

# Tests NCCL on the available GPUs, possibly only one: init, every collective, an error query, abort
# and shutdown, twice.
step_nccl() {
  built nccl || return
  if ((!dry)) && [[ -z $nccl ]]; then
    line "SKIP(no libnccl)" nccl ""
    return
  fi
  # NCCL_RAS_ENABLE=0 turns off its listener on localhost.
  local path=()
  [[ -n $nccl ]] && path=("LD_LIBRARY_PATH=$nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  run_program nccl 120 env NCCL_RAS_ENABLE=0 "${path[@]}" "$(program cuda)" "[nccl]"
  grep -E '^(SHOWS: |SKIP\()' "$logs/nccl.log" 2>/dev/null | sed 's/^SHOWS: //; s/^/    /' | sort -u
}

# The memory cache is off, so that every block comes from the driver and the sanitizer knows its
# bounds.
step_sanitizer() {
  local tool limit kernels conformance refused checked
  conformance=$(program simt/conformance simt_conformance)
  built sanitizer || return
  if ! command -v compute-sanitizer >/dev/null; then
    line "SKIP(no compute-sanitizer)" sanitizer ""
    return
  fi
  timeout -k 5 60 compute-sanitizer --tool memcheck --error-exitcode 9 "$conformance" "[warp]" \
    >"$logs/sanitizer.log" 2>&1 </dev/null
  refused='device not supported|not permitted|not supported on'
  if grep -iE "$refused" "$logs/sanitizer.log" >/dev/null; then
    line "SKIP(compute-sanitizer is refused here)" sanitizer "$logs/sanitizer.log"
    return
  fi
  for tool in memcheck racecheck synccheck initcheck; do
    # The other tools are much slower: run only kernels with shared memory, barriers and shuffles.
    limit=120 kernels="[softmax],[reduce],[loss],[gemm][names],[gemm][profile]"
    [[ $tool == memcheck ]] && limit=240 kernels="[kernels],[cuda_kernels]"
    ((dry)) && kernels="[where]"
    checked=(compute-sanitizer --tool "$tool" --error-exitcode 9)
    beside "sanitizer.$tool.conformance" 60 "${checked[@]}" "$conformance"
    beside "sanitizer.$tool.kernels" $limit env BRAID_CUDA_CACHE=0 "${checked[@]}" \
      "$(program cuda_kernels)" "$kernels"
  done
  wait_for_programs
}

# Times the three ladders of docs/guides/ladder.md.
step_ladder() {
  local ladder=$folder/bench/bench_ladder status=0 options=(--json "$out/ladder.json")
  ((dry)) && options=(--check)
  if [[ ! -x $ladder ]]; then
    local how="./dev gpu --only build"
    ((dry)) && how="./dev bench ladder"
    line "SKIP(not built: $how)" ladder ""
    return
  fi
  timeout -k 5 "$(left)" "$ladder" "${options[@]}" >"$logs/ladder.log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    line PASS ladder ""
  else
    line FAIL ladder "exit status $status: $logs/ladder.log"
  fi
  grep -vE '^ *$' "$logs/ladder.log" | sed 's/^/    /'
}

# Records Nsight Compute's counters of the kernels of profiled.py. ncu-ui opens the report on any
# machine; the log has its text. The clocks are not changed.
step_profile() {
  local library=$folder/bench/gpu/libbraid_bench.so status=0 size=()
  ((dry)) && size=(--tiny)
  if ! command -v ncu >/dev/null; then
    line "SKIP(no ncu)" profile ""
  elif [[ ! -f $library ]]; then
    line "SKIP(not built: ./dev gpu --only build)" profile ""
  else
    timeout -k 5 "$(left)" ncu --clock-control none --set full \
      -k "regex:linear_|matmul|attention|norm_rows|conv_" -f -o "$out/profile" \
      "$(command -v "$python")" bench/gpu/profiled.py "$library" "${size[@]}" \
      >"$logs/profile.log" 2>&1 </dev/null || status=$?
    if grep ERR_NVGPUCTRPERM "$logs/profile.log" >/dev/null; then
      line "SKIP(ncu is refused the counters here)" profile "$logs/profile.log"
    elif ((status != 0)) || { ((!dry)) && [[ ! -f $out/profile.ncu-rep ]]; }; then
      line FAIL profile "exit status $status: $logs/profile.log"
      tail -n 12 "$logs/profile.log" | sed 's/^/    /'
    else
      ncu --import "$out/profile.ncu-rep" --page details >>"$logs/profile.log" 2>&1 || status=$?
      if ((status == 0)); then line PASS profile "$out/profile.ncu-rep"
      else line FAIL profile "no text of the report: $logs/profile.log"; fi
    fi
  fi
}

# run_rows NAMES: runs the rows in one process, so that they share their ceilings.
run_rows() {
  local status=0 library=$folder/bench/gpu/libbraid_bench.so reason
  local options=(--out "$out" --results bench/results --seconds "$(left)")
  if [[ ! -f $library ]]; then
    line "SKIP(not built: ./dev gpu --only build)" "$1" ""
    return
  fi
  if (($(left) <= 0)); then
    line "SKIP(no time left: ./dev gpu --only $1)" "$1" ""
    return
  fi
  ((dry)) && options+=(--dry-run)
  ((compile)) || options+=(--no-compile)
  [[ -z $beside_torch && -n $cublas ]] && local -x "${with_cublas[@]}"
  PYTHONUNBUFFERED=1 timeout -k 5 "$(left)" \
    "$python" bench/gpu/table.py --library "$library" --rows "$1" "${options[@]}" \
    2>"$logs/table.err" </dev/null || status=$?
  if ((status != 0)); then
    failed=1
    reason="exit status $status"
    ((status == 124 || status == 137)) &&
      reason+=": out of time; the rows before are in the JSON file"
    ((status == 1)) || line FAIL table "$reason"
    grep -vE '^ *$' "$logs/table.err" | tail -n 20 | sed 's/^/    /'
  fi
}

# cuBLAS is opened at run time, from PyTorch's packages or from the CUDA toolkit. If PyTorch is in
# the process, its cuBLAS is already loaded.
cublas=""
packages=$("$python" -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)
for place in ${packages:+"$packages/cu13/lib" "$packages/cublas/lib"} /usr/local/cuda/lib64; do
  [[ -z $cublas ]] && have_file "$place/libcublas.so*" && cublas=$place
done
has_torch='import importlib.util; print(importlib.util.find_spec("torch") and 1 or "")'
beside_torch=$("$python" -c "$has_torch" 2>/dev/null)

# NCCL is opened in the same way.
nccl=""
for place in ${packages:+"$packages/nccl/lib"} /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
  [[ -z $nccl ]] && have_file "$place/libnccl.so.2*" && nccl=$place
done

with_cublas=()
[[ -n $cublas ]] && with_cublas=("LD_LIBRARY_PATH=$cublas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

# The programs of a build for another machine, without symbols, in one archive.
pack_programs() {
  local programs=("$folder/bench/bench_ladder" "$folder/bench/gpu/libbraid_bench.so")
  local name program stage
  build_for "$pack" 36000 || return
  for name in "${targets[@]:1}"; do
    program=$(find "$folder/tests" -name "$name" -type f -perm -u+x)
    [[ -n $program ]] || die "expected $name in $folder/tests, got none"
    programs+=("$program")
  done
  stage=$(mktemp -d)
  # All programs contain the same kernels. The dictionary of -9 is large enough to find them.
  cp --parents "${programs[@]}" "$stage" && find "$stage" -type f -exec strip {} + &&
    tar -C "$stage" -c build | xz -9 >"build/gpu-$pack.tar.xz" || return
  rm -r "$stage"
  du -h "build/gpu-$pack.tar.xz"
}
if [[ -n $pack ]]; then
  pack_programs
  exit
fi

{
  trap archive EXIT
  table=""
  for name in "${chosen[@]}"; do
    if [[ " ${rows[*]} " == *" $name "* ]]; then
      table+=${table:+,}$name
    elif (($(left) > 0)); then
      "step_$name"
    else
      line "SKIP(no time left: ./dev gpu --only $name)" "$name" ""
    fi
  done
  if [[ -n $table ]]; then
    archive # so that the logs exist if the machine is lost during the table
    run_rows "$table"
  fi
  [[ -e $logs/not-found ]] && line FAIL commands "$(head -n 1 "$logs/not-found")"
  verdict="nothing failed"
  ((failed)) && verdict="something failed"
  echo "./dev gpu: $verdict, $SECONDS s; logs in $out/logs.tgz"
  ((failed == 0))
} 2>&1 | tee "$out/lines.txt"
exit "${PIPESTATUS[0]}"
