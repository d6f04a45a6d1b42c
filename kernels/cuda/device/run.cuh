#pragma once
#include "cuda/launch.hpp"
#include "simt/simt.hpp"

// Grid sizes, and the function that launches all kernels.
namespace braid::cuda {

/// Threads of a block, unless a kernel defines another number.
inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;

/// The number of blocks for `items` work items, `per_block` per block. Kernels have grid-stride
/// loops, so the limited grid is correct for any number of items.
[[nodiscard]] constexpr unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  constexpr std::int64_t kMost = 8192;  // several times what any GPU holds at a time
  const std::int64_t blocks = (items - 1) / per_block + 1;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

/// Queues one kernel on the stream, with `shared` bytes of dynamic shared memory for a block.
template <class... P, class... A>
void run_with(std::size_t shared, const char* op, void (*kernel)(P...), dim3 grid, dim3 block,
              Stream& stream, A&&... arguments) {
  const LaunchScope scope(op, stream);
  scope.check(
      simt::launch(kernel, grid, block, shared, scope.stream(), static_cast<A&&>(arguments)...));
}

/// Queues one kernel on the stream.
template <class... P, class... A>
void run(const char* op, void (*kernel)(P...), dim3 grid, dim3 block, Stream& stream,
         A&&... arguments) {
  run_with(0, op, kernel, grid, block, stream, static_cast<A&&>(arguments)...);
}

}  // namespace braid::cuda
