#pragma once
#include <cstddef>

#include <braid/core/tensor.hpp>

// Direct calls of the CUDA runtime, with which the engine's copies are compared. Only in builds
// with CUDA devices, real or emulated.
namespace bench::transfer {

/// Returns float32 numbers in pinned host memory (cudaMallocHost), which the device's copy engine
/// accesses directly. The memory is freed with the last tensor. Throws OutOfMemoryError.
[[nodiscard]] braid::Tensor pinned(std::int64_t count, braid::Device device);

/// Queues cudaMemcpyAsync of all of `from` to `to`, between the host and a device, on that device's
/// current stream. Both must have the same number of bytes.
void driver_copy(const braid::Tensor& to, const braid::Tensor& from);

}  // namespace bench::transfer
