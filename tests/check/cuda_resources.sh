#!/usr/bin/env bash
# Compares the resources that every CUDA kernel uses on sm_90, taken from the objects in build/cuda,
# with tests/check/cuda_resources.txt. `--write` rewrites that file: run it after a `./dev check
# cuda` that failed on it, or after any build in build/cuda. `--sass REGEX` prints the instruction
# counts of the kernels that match, `--loops REGEX` those of their main loops.
# docs/notes/cuda_resources.md explains the report.
set -euo pipefail
. tests/lib.sh
nvcc=$(find_nvcc)
[[ -n $nvcc ]] || { echo "no nvcc" && exit 77; }

# The toolkit's disassembler. Some installations of nvcc lack it; then PyPI's is used.
cuobjdump=$(command -v cuobjdump || ls "$(dirname "$nvcc")/cuobjdump" 2>/dev/null || true)
if [[ -z $cuobjdump ]]; then
  tools=$root/build/cuobjdump
  if [[ ! -f $tools/ready ]]; then
    wheels "$tools" nvidia-cuda-cuobjdump==13.2.51 nvidia-cuda-nvdisasm==13.2.51 ||
      { echo "there is no cuobjdump beside $nvcc, and pip could not download it" && exit 77; }
    chmod +x "$tools"/nvidia/cu13/bin/*
    touch "$tools/ready"
  fi
  PATH=$tools/nvidia/cu13/bin:$PATH  # it looks for nvdisasm there
  cuobjdump=$tools/nvidia/cu13/bin/cuobjdump
fi
objects=build/cuda/kernels/CMakeFiles/braid_cuda_kernels.dir/cuda
# The same objects hold machine code for sm_80 and sm_90, and PTX for later architectures.
held=$("$cuobjdump" -lelf -lptx "$objects/fill.cu.o")
for part in sm_80.cubin sm_90.cubin sm_90.ptx; do
  grep -qF "$part" <<<"$held" || die "expected $part in the objects of kernels, got: $held"
done
version=$("$nvcc" --version | sed -n 's/.*release .*, V\([0-9.]*\)$/\1/p')
python3 tests/check/cuda_resources.py --objects "$objects" --report tests/check/cuda_resources.txt \
  --toolkit "$version" --cuobjdump "$cuobjdump" "$@"
