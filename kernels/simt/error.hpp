#pragma once
#include <cstdint>
#include <string>

#include <braid/core/error.hpp>

#include "simt/types.hpp"

namespace braid::simt {

/// The kinds of findings.
enum class Finding : std::uint8_t {
  bad_launch,       ///< sizes of grid, block or shared memory that CUDA does not accept
  out_of_bounds,    ///< an access outside a shared array or an allocation
  invalid_address,  ///< memory that is not device memory: a host pointer, another thread's stack
  wrong_device,     ///< memory of another device without peer access
  use_after_free,   ///< memory that its allocator has freed
  misaligned,       ///< an access that is not aligned to its size
  uninitialised,    ///< memory that was never written
  race,             ///< unordered accesses of threads of one launch
  stream_race,      ///< unordered accesses of operations on different streams
  /// __syncthreads that some threads of the block do not reach, or reach at different source lines
  divergent_barrier,
  /// a warp operation that some lanes of its mask do not reach, or reach at different source lines
  divergent_warp,
  wrong_mask,  ///< a lane that is not in its own mask
  async_copy,  ///< cp.async without a wait
  /// a thread that waits for memory to change; fibers are not preempted, so it would wait forever
  spin_wait,
  stack_overflow,  ///< local variables larger than a fiber's stack
  shared_memory,   ///< more shared memory than the device has
  exception,       ///< a C++ exception left the kernel
};

/// `out of bounds`, `race`, …
[[nodiscard]] const char* to_string(Finding finding) noexcept;

/// A finding of the emulation. Its text is `kernel block (x,y,z) thread (x,y,z): what happened, to
/// which variable, at file:line`.
struct Error : braid::Error {
  struct Details {
    Finding finding = Finding::bad_launch;
    std::string kernel;
    uint3 block{}, thread{};
    /// name of the shared array, or a description of the allocation; empty if there is none
    std::string variable;
    std::string file;  ///< base name; empty if unknown
    int line = 0;
    std::string other_file;  ///< of a race, the other access; of a barrier, the other barrier
    int other_line = 0;
  };
  Error(std::string text, Details d) : braid::Error(std::move(text)), details(std::move(d)) {}
  [[nodiscard]] Finding finding() const noexcept { return details.finding; }
  Details details;
};

}  // namespace braid::simt
