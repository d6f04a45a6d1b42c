# The sources of the CUDA backend; paths are relative to the folder kernels.
# Compiled by the C++ compiler: they see the CUDA runtime through simt/cuda_runtime.hpp.
set(BRAID_CUDA_RUNTIME_SOURCES
  cuda/cublas.cpp
  cuda/cublas_library.cpp
  cuda/errors.cpp
  cuda/gemm_plan.cpp
  cuda/launch.cpp
  cuda/native.cpp
  cuda/runtime/allocator.cpp
  cuda/runtime/block_pool.cpp
  cuda/runtime/cuda_backend.cpp
  cuda/runtime/device_errors.cpp
  cuda/runtime/errors.cpp
  cuda/runtime/gpu.cpp
  cuda/runtime/peer.cpp
  cuda/runtime/staging.cpp
  cuda/runtime/stream.cpp
  cuda/table.cpp
)
# Compiled by nvcc, or by the C++ compiler against the emulation.
set(BRAID_CUDA_KERNEL_SOURCES
  cuda/activation.cu
  cuda/attention.cu
  cuda/binary.cu
  cuda/binary_functions.cu
  cuda/conv.cu
  cuda/copy.cu
  cuda/cross_entropy.cu
  cuda/dropout.cu
  cuda/fill.cu
  cuda/gather.cu
  cuda/gemm.cu
  cuda/gemm_float32.cu
  cuda/gemm_float32_large.cu
  cuda/gemm_float32_skinny.cu
  cuda/gemm_float32_square.cu
  cuda/gemm_float64.cu
  cuda/gemm_integer.cu
  cuda/gemm_narrow.cu
  cuda/max_pool.cu
  cuda/mse.cu
  cuda/norm_channels.cu
  cuda/norm_rows.cu
  cuda/norm_sums.cu
  cuda/optim.cu
  cuda/random.cu
  cuda/reduce.cu
  cuda/reduce_extreme.cu
  cuda/reduce_index.cu
  cuda/reduce_sum.cu
  cuda/rnn.cu
  cuda/resample.cu
  cuda/rows.cu
  cuda/scan.cu
  cuda/softmax.cu
  cuda/sort.cu
  cuda/unary.cu
  cuda/unary_functions.cu
  cuda/where.cu
)
if(BRAID_CUDA STREQUAL "SIMT")
  list(APPEND BRAID_CUDA_KERNEL_SOURCES cuda/cublas_stand_in.cu)
endif()
# Those of them in which no compiler may fuse a product with a sum: random.cu, whose bits are
# guaranteed, and resample.cu, where the sum cancels (a weight is o * scale + shift minus its
# integer part).
set(BRAID_CUDA_EXACT_SOURCES
  cuda/random.cu
  cuda/resample.cu
)
