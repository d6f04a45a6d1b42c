#pragma once
#include <cstddef>

#include <braid/core/tensor.hpp>

// The CUDA runtime's own calls, beside which the engine's copies stand. Only in builds with CUDA
// devices, real or emulated.
namespace bench::transfer {

/// float32 numbers on the host, in memory that the device's engine for copies reaches by itself
/// (cudaMallocHost); freed with the last tensor. Throws OutOfMemoryError.
[[nodiscard]] braid::Tensor pinned(std::int64_t count, braid::Device device);

/// cudaMemcpyAsync between the host and a device, queued on that device's current stream, of all of
/// `from` into `to`. The two have one number of bytes.
void driver_copy(const braid::Tensor& to, const braid::Tensor& from);

}  // namespace bench::transfer
