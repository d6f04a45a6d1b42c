#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda/runtime/gpu.hpp"
#include "simt/simt.hpp"

// What every kernel's host side needs of a stream, without the headers of the engine: .cu files compile in a fraction of the time.
namespace braid {

class Stream;

namespace cuda {

/// Holds the stream's device current while kernels are launched on it, and remembers `op` for the reports of errors that show later.
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

/// Queues one kernel on the stream.
template <class... P, class... A>
void run(const char* op, void (*kernel)(P...), dim3 grid, dim3 block, Stream& stream, A&&... arguments) {
  const LaunchScope scope(op, stream);
  scope.check(simt::launch(kernel, grid, block, 0, scope.stream(), static_cast<A&&>(arguments)...));
}

/// Memory of the stream's device for the kernels that are queued while it lives; freed in stream order. Throws OutOfMemoryError.
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

/// Threads of a block, unless a kernel says otherwise.
inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;

/// Blocks for `items` pieces of work, `per_block` to a block. Kernels stride over what a grid of this size leaves, so any number of items is right.
[[nodiscard]] constexpr unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  constexpr std::int64_t kMost = 8192;  // several times what any GPU holds at once
  const std::int64_t blocks = (items - 1) / per_block + 1;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

}  // namespace cuda
}  // namespace braid
