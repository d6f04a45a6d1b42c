#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda/runtime/device_guard.hpp"
#include "simt/cuda_runtime.hpp"

// What every kernel's host side needs of a stream, without the headers of the engine: .cu files
// compile in a fraction of the time.
namespace braid {

class Stream;

namespace cuda {

/// Holds the stream's device current while kernels are launched on it, and remembers `op` for the
/// reports of errors that show later.
class LaunchScope {
 public:
  /// Throws DeviceLostError on a lost device; may make the stream.
  LaunchScope(const char* op, Stream& stream);
  [[nodiscard]] cudaStream_t stream() const noexcept { return native_; }
  /// Throws what a launch's code means.
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

/// SMs of the stream's device.
[[nodiscard]] int processors_of(Stream& stream);

/// Memory of the stream's device for the kernels that are queued while it lives; freed in stream
/// order. Throws OutOfMemoryError.
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
