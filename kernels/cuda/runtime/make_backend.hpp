#pragma once
#include <memory>
#include <string>

#include <braid/core/backend.hpp>

// The door to the CUDA backend, without a CUDA header.
namespace braid::cuda {

/// All CUDA devices; none where there are none. Throws DeviceError if BRAID_CUDA_DEVICES_PER_GPU
/// cannot be obeyed.
[[nodiscard]] std::unique_ptr<Backend> make_backend();

/// GPUs that this process can use: 0 without a driver, without a GPU, and for every error. Never
/// throws. `reason`, if given, gets why there are none.
int gpu_count(std::string* reason = nullptr) noexcept;

/// True if the GPUs are emulated on the CPU.
[[nodiscard]] bool emulated() noexcept;

}  // namespace braid::cuda
