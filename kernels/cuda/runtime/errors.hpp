#pragma once
#include <braid/core/device.hpp>

#include "cuda/runtime/gpu.hpp"
#include "simt/cuda_runtime.hpp"

// From CUDA's codes to exceptions. Three classes:
//  - no memory                    → OutOfMemoryError, by whoever knows how much was asked for
//  - a call or resource failed    → CudaError; the device works on
//  - sticky, and every code that is not known → DeviceLostError now and at every later use: CUDA
//    says that the process must be started again
namespace braid::cuda {

/// True if the context is broken after this code.
[[nodiscard]] bool is_sticky(int code) noexcept;

/// Throws unless the call succeeded; `call` is the function's name. A sticky code makes the GPU
/// lost.
void check(cudaError_t error, const char* call, Gpu& gpu, Device device);
/// As check, but out of memory is the caller's to explain: true = success, false = no memory.
[[nodiscard]] bool check_memory(cudaError_t error, const char* call, Gpu& gpu, Device device);
/// For destructors and noexcept code: a sticky code makes the GPU lost, nothing is thrown. True =
/// success.
bool settle(cudaError_t error, Gpu& gpu) noexcept;
/// Throws DeviceLostError if the GPU is lost, without a call of CUDA.
void require_working(const Gpu& gpu, Device device);

}  // namespace braid::cuda
