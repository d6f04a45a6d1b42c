# The sources of the CUDA backend; paths from the folder kernels.
# By the C++ compiler: they see the CUDA runtime through simt/cuda_runtime.hpp.
set(BRAID_CUDA_RUNTIME_SOURCES
  cuda/runtime/allocator.cpp
  cuda/runtime/cuda_backend.cpp
  cuda/runtime/device_errors.cpp
  cuda/runtime/errors.cpp
  cuda/runtime/gpu.cpp
  cuda/runtime/staging.cpp
  cuda/runtime/stream.cpp
)
# By nvcc, or by the C++ compiler against the emulation.
set(BRAID_CUDA_KERNEL_SOURCES
)
