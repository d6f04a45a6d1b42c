#pragma once
#include <cstddef>
#include <cstdint>

#include <braid/core/device.hpp>

namespace braid {

/// What a device's allocator holds, in bytes (rounded to its size classes), and how often it was
/// asked.
struct MemoryStats {
  std::size_t in_use = 0;         ///< held by tensors
  std::size_t cached = 0;         ///< free, kept for the next request
  std::size_t peak = 0;           ///< largest in_use since the start or reset_peak_memory
  std::size_t capacity = 0;       ///< 0 = unlimited
  std::uint64_t allocations = 0;  ///< requests served
  std::uint64_t hits = 0;         ///< of them, from the cache
  std::uint64_t releases = 0;
  std::uint64_t retries = 0;   ///< requests for which the cache was freed first
  std::uint64_t failures = 0;  ///< requests that ended in OutOfMemoryError
};

[[nodiscard]] MemoryStats memory_stats(Device device);
/// Sets peak to in_use.
void reset_peak_memory(Device device);
/// Limits in_use + cached; 0 = unlimited. Less than what is in use is allowed: then nothing more
/// can be allocated. Frees cached memory above it.
void set_memory_capacity(Device device, std::size_t bytes);
/// Gives all cached memory of the device, of every thread's cache, back to the system.
void empty_cache(Device device);
/// Tests: the k-th allocation from now on (1 = the next) fails with OutOfMemoryError, once, or with
/// `persistent` each one from then on. 0 switches it off.
void fail_allocation(Device device, std::uint64_t k, bool persistent = false);

}  // namespace braid
