#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda/runtime/device_guard.hpp"
#include "simt/cuda_runtime.hpp"

// The host-side functions that every kernel needs of a stream, without the engine's headers, so
// that .cu files compile in a fraction of the time.
namespace braid {

class Stream;

namespace cuda {

/// Makes the stream's device current while kernels are launched on it, and records `op` for reports
/// of errors that appear later.
class LaunchScope {
 public:
  /// Throws DeviceLostError if the device is lost. May create the stream.
  LaunchScope(const char* op, Stream& stream);
  [[nodiscard]] cudaStream_t stream() const noexcept { return native_; }
  /// Throws the exception for a launch's error code.
  void check(cudaError_t error) const {
    if (error != cudaSuccess) fail(error);
  }

 private:
  [[noreturn]] void fail(cudaError_t error) const;
  const char* op_;
  Stream& stream_;
  DeviceGuard guard_;
  cudaStream_t native_;
};

/// Returns the number of SMs of the stream's device.
[[nodiscard]] int processors_of(Stream& stream);

/// Returns the counters of device/tickets.cuh that kernels on this stream share: kTickets of them,
/// zero between kernels. Throws OutOfMemoryError at the first use.
[[nodiscard]] unsigned* tickets_of(Stream& stream);
inline constexpr std::int64_t kTickets = 1024;

/// Queues that `bytes` from `data` on become zero.
void set_zero(const char* op, void* data, std::size_t bytes, Stream& stream);

/// Memory on the stream's device for the kernels that are queued during its lifetime; freed in
/// stream order. Throws OutOfMemoryError.
class Scratch {
 public:
  Scratch(std::size_t bytes, Stream& stream);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
  std::uint64_t tag_;
  Stream& stream_;
};

}  // namespace cuda
}  // namespace braid
