#pragma once
#include <memory>
#include <string>

#include <braid/core/backend.hpp>

// Entry to the CUDA backend, without a CUDA header.
namespace braid::cuda {

/// Returns the backend with all CUDA devices, which may be none. Throws as the constructor of
/// CudaBackend.
[[nodiscard]] std::unique_ptr<Backend> make_backend();

/// Returns the number of GPUs that this process can use: 0 without a driver, without a GPU, and
/// after any error. Never throws. If there are none, stores why in `reason`, if given.
int gpu_count(std::string* reason = nullptr) noexcept;

/// True if the GPUs are emulated on the CPU.
[[nodiscard]] bool emulated() noexcept;

}  // namespace braid::cuda
