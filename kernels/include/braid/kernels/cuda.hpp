#pragma once
#include <string>

/// What a program may ask about CUDA. In every build, also one without CUDA.
///
/// CUDA work is queued: a call returns before it is done, and an error of a kernel shows at a later
/// call, at the latest at synchronize() or where numbers come to the host. CudaError means that one
/// call failed; DeviceLostError that the device cannot be used again in this process.
namespace braid::cuda {

/// True if there is at least one CUDA device, real or emulated. Never throws, whatever the driver
/// says.
[[nodiscard]] bool is_available() noexcept;

/// Why there is none: no CUDA in this build, no driver, no device, with the name of CUDA's error.
/// Empty where there is one.
[[nodiscard]] std::string unavailable_reason();

/// True in a build with BRAID_CUDA=SIMT: cuda devices are emulated on the CPU, and times say
/// nothing about a GPU.
[[nodiscard]] bool is_emulated() noexcept;

/// What multiplies matrices on CUDA devices.
enum class GemmEngine {
  braid,  ///< our own kernels (the default): the same bits for every stream, thread and run
  /// NVIDIA's library, opened at run time, for floating point; the rest is still done by our own
  /// kernels
  cublas,
};

/// The engine in use: what set_gemm_engine said last, else the environment variable BRAID_GEMM
/// (braid or cublas). Throws ArgumentError if that is something else.
[[nodiscard]] GemmEngine gemm_engine();
/// Chooses the engine for all later products of the process. Throws DeviceError if cuBLAS
/// (libcublas.so.13, .12, or without a version) cannot be opened: then nothing changes. With
/// BRAID_GEMM=cublas the first product throws it. In an emulated build plain loops replace the
/// library.
void set_gemm_engine(GemmEngine engine);

}  // namespace braid::cuda
