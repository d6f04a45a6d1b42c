#pragma once
#include <string>

/// What a program may ask about CUDA. In every build, also one without CUDA.
///
/// CUDA work is queued: a call returns before it is done, and an error of a kernel shows at a later call, at the latest at synchronize() or where numbers come to
/// the host. CudaError means that one call failed; DeviceLostError that the device cannot be used again in this process.
namespace braid::cuda {

/// True if there is at least one CUDA device, real or emulated. Never throws, whatever the driver says.
[[nodiscard]] bool is_available() noexcept;

/// Why there is none: no CUDA in this build, no driver, no device, with the name of CUDA's error. Empty where there is one.
[[nodiscard]] std::string unavailable_reason();

/// True in a build with BRAID_CUDA=SIMT: cuda devices are emulated on the CPU, and times say nothing about a GPU.
[[nodiscard]] bool is_emulated() noexcept;

}  // namespace braid::cuda
