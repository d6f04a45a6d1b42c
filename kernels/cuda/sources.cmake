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
  cuda/runtime/graph.cpp
  cuda/runtime/peer.cpp
  cuda/runtime/pending_blocks.cpp
  cuda/runtime/pinned_memory.cpp
  cuda/runtime/staging.cpp
  cuda/runtime/stream.cpp
  cuda/runtime/tickets.cpp
  cuda/table.cpp
)
# Compiled by nvcc, or by the C++ compiler against the emulation: every .cu file of this folder but
# the fake (see below).
get_filename_component(kernels ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
file(GLOB BRAID_CUDA_KERNEL_SOURCES RELATIVE ${kernels} CONFIGURE_DEPENDS ${kernels}/cuda/*.cu)
list(REMOVE_ITEM BRAID_CUDA_KERNEL_SOURCES cuda/cublas_fake.cu)
# gemm by dtype and tile: each of these files of the build folder has some instances of
# cuda/gemm_parts.cuh.
include(${kernels}/cmake/BraidParts.cmake)
function(braid_gemm_part name)
  braid_part(BRAID_CUDA_KERNEL_SOURCES cuda/gemm_${name}.cu cuda/gemm_part.cu.in ${ARGN})
  set(BRAID_CUDA_KERNEL_SOURCES ${BRAID_CUDA_KERNEL_SOURCES} PARENT_SCOPE)
endfunction()
braid_gemm_part(float32 "BRAID_GEMM(float32, F32)" "BRAID_LINEAR_BACKWARD(float32, F32)")
braid_gemm_part(float32_large "BRAID_GEMM_TILES(large, square128, Square128, Tall128x64)")
braid_gemm_part(float32_skinny "BRAID_GEMM_TILES(skinny, columns128x16, Columns128x16, Rows16x128)")
braid_gemm_part(float32_square "BRAID_GEMM_TILES(square, square32, Square32, Square64)")
braid_gemm_part(float32_tf32 "BRAID_GEMM_TF32(tf32, tf32_128, Tf32Large, Tf32Small, Tf32Any)")
braid_gemm_part(float32_tf32x3
  "BRAID_GEMM_TF32(tf32x3, tf32x3_128x64, Tf32x3Large, Tf32x3Small, Tf32x3Any)")
braid_gemm_part(float64 "BRAID_GEMM(float64, F64)" "BRAID_LINEAR_BACKWARD(float64, F64)")
braid_gemm_part(integer "BRAID_GEMM(int32, Int32)" "BRAID_GEMM(int64, Int64)")
braid_gemm_part(narrow
  "BRAID_GEMM(float16, F16)" "BRAID_LINEAR_BACKWARD(float16, F16)"
  "BRAID_GEMM(bfloat16, BF16)" "BRAID_LINEAR_BACKWARD(bfloat16, BF16)")
# Where emulated devices have fakes of the vendor's libraries, and GPUs the libraries themselves.
if(BRAID_CUDA STREQUAL "SIMT")
  list(APPEND BRAID_CUDA_KERNEL_SOURCES cuda/cublas_fake.cu)
  list(APPEND BRAID_CUDA_RUNTIME_SOURCES cuda/linked_libraries_fake.cpp)
else()
  list(APPEND BRAID_CUDA_RUNTIME_SOURCES cuda/cublas_real.cpp cuda/linked_libraries_real.cpp)
endif()
# Those of them in which no compiler may fuse a product with a sum: random.cu, whose bits are
# guaranteed, and pool_resample.cu, where the sum cancels (a weight is o * scale + shift minus its
# integer part).
set(BRAID_CUDA_EXACT_SOURCES
  cuda/random.cu
  cuda/pool_resample.cu
)
