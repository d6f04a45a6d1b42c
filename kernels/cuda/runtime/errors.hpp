#pragma once
#include <braid/core/device.hpp>

#include "cuda/runtime/gpu.hpp"
#include "simt/cuda_runtime.hpp"

// Converts CUDA's codes to exceptions. There are three classes:
//  - no memory                       → OutOfMemoryError, by the caller that knows the size
//  - a call or a resource failed     → CudaError; the device still works
//  - sticky, and every unknown code  → DeviceLostError now and at every later use: CUDA says that
//                                      the process must be restarted
namespace braid::cuda {

/// True if the context is broken after this code.
[[nodiscard]] bool is_sticky(int code) noexcept;

/// Throws unless the call succeeded; `call` is the function's name. A sticky code marks the GPU as
/// lost.
void check(cudaError_t error, const char* call, Gpu& gpu, Device device);
/// As check, but returns false if there is no memory, so that the caller can report it. Returns
/// true on success.
[[nodiscard]] bool check_memory(cudaError_t error, const char* call, Gpu& gpu, Device device);
/// For destructors and noexcept code: a sticky code marks the GPU as lost; nothing is thrown.
/// Returns true on success.
bool settle(cudaError_t error, Gpu& gpu) noexcept;
/// Throws DeviceLostError if the GPU is lost, without calling CUDA.
void require_working(const Gpu& gpu, Device device);

}  // namespace braid::cuda
