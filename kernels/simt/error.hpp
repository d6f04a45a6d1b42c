#pragma once
#include <cstdint>
#include <string>

#include <braid/core/error.hpp>

#include "simt/types.hpp"

namespace braid::simt {

/// What the emulation found.
enum class Finding : std::uint8_t {
  bad_launch,       ///< grid, block or shared memory that CUDA refuses
  out_of_bounds,    ///< shared or global memory past an array or an allocation
  invalid_address,  ///< memory that is not device memory: a host pointer, another thread's stack
  wrong_device,     ///< memory of another device without peer access
  use_after_free,   ///< memory that its allocator has taken back
  misaligned,       ///< an access that is not aligned to its size
  uninitialised,    ///< memory that nobody wrote
  race,             ///< threads of one launch without an order between them
  stream_race,      ///< operations of different streams without an order between them
  /// __syncthreads that not all threads of the block reach, or at different places
  divergent_barrier,
  /// a warp operation that not all lanes of its mask reach, or at different places
  divergent_warp,
  wrong_mask,  ///< a lane that is not in its own mask
  async_copy,  ///< cp.async that nobody waited for
  /// a thread that waits for memory to change; fibers are not preempted, so it would wait for ever
  spin_wait,
  stack_overflow,  ///< local variables larger than a fiber's stack
  shared_memory,   ///< more shared memory than the device has
  exception,       ///< a C++ exception left the kernel
};

/// `out of bounds`, `race`, …
[[nodiscard]] const char* to_string(Finding finding) noexcept;

/// A finding of the emulation: `kernel block (x,y,z) thread (x,y,z): what happened, to which
/// variable, at file:line`.
struct Error : braid::Error {
  struct Details {
    Finding finding = Finding::bad_launch;
    std::string kernel;
    uint3 block{}, thread{};
    /// name of the shared array, or a description of the allocation; empty where there is none
    std::string variable;
    std::string file;  ///< base name; empty if it is not known
    int line = 0;
    std::string other_file;  ///< the other access of a race, the other barrier
    int other_line = 0;
  };
  Error(std::string text, Details d) : braid::Error(std::move(text)), details(std::move(d)) {}
  [[nodiscard]] Finding finding() const noexcept { return details.finding; }
  Details details;
};

}  // namespace braid::simt
