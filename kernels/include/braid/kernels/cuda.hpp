#pragma once
#include <cstdint>
#include <string>

/// Queries and settings of CUDA for programs. Available in every build, also in one without CUDA.
///
/// CUDA work is queued: a call returns before its work is done. An error of a kernel is thrown by a
/// later call, at the latest by synchronize() or by a copy to the host. CudaError means that one
/// call failed; DeviceLostError means that the device cannot be used again in this process.
namespace braid::cuda {

/// Returns true if there is at least one CUDA device, real or emulated. Never throws, even if the
/// driver reports an error.
[[nodiscard]] bool is_available() noexcept;

/// Returns why there is no CUDA device: no CUDA in this build, no driver, or no device, with the
/// name of CUDA's error. Empty if there is a device.
///
///     if (!cuda::is_available()) print("no CUDA: ", cuda::unavailable_reason());
[[nodiscard]] std::string unavailable_reason();

/// Returns true in a build with BRAID_CUDA=SIMT: there CUDA devices are emulated on the CPU, and
/// measured times say nothing about a GPU.
[[nodiscard]] bool is_emulated() noexcept;

/// LibTorch's names: the number of CUDA devices, 0 without CUDA; braid::synchronize of one, by
/// default of all; braid::manual_seed, for all devices.
///
/// Throws    DeviceError for a device that does not exist
[[nodiscard]] int device_count();
void synchronize(int index = -1);
void manual_seed(std::uint64_t seed);

/// The implementation of matrix products on CUDA devices.
enum class GemmEngine {
  /// The default: cuBLAS for float16, bfloat16, and float32 with Float32Precision::tf32, where it
  /// can be opened, Braid's kernels for all others, and for products of 16 bits with a bias or a
  /// matrix to add, which cuBLAS rounds twice. Emulated devices always use Braid's kernels
  automatic,
  braid,  ///< Braid's kernels: the same bits for every stream, thread and run
  /// NVIDIA's cuBLAS, opened at run time, for floating point products; Braid's kernels compute all
  /// others, those with Float32Precision::tf32x3, and those that cuBLAS cannot compute
  cublas,
};

/// Returns the engine in use: the one last set by set_gemm_engine, else that of the environment
/// variable BRAID_GEMM (automatic, braid or cublas).
///
/// Throws    ArgumentError if the variable has another value
[[nodiscard]] GemmEngine gemm_engine();
/// Sets the engine for all later products of the process. An emulated build uses a fake cuBLAS of
/// plain loops.
///
/// Throws    DeviceError if cuBLAS (libcublas.so.13, .12, or without a version) cannot be opened;
///           then nothing changes. With BRAID_GEMM=cublas the first product throws that error
///
///     cuda::set_gemm_engine(cuda::GemmEngine::cublas);
void set_gemm_engine(GemmEngine engine);

}  // namespace braid::cuda
