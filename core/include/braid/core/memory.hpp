#pragma once
#include <cstddef>
#include <cstdint>

#include <braid/core/device.hpp>

namespace braid {

/// Memory held by a device's allocator, in bytes (rounded up to its size classes), and counts of
/// its operations.
struct MemoryStats {
  std::size_t in_use = 0;         ///< allocated to tensors
  std::size_t cached = 0;         ///< free, kept for later requests
  std::size_t peak = 0;           ///< largest in_use since the start or the last reset_peak_memory
  std::size_t capacity = 0;       ///< 0 = unlimited
  std::uint64_t allocations = 0;  ///< successful requests
  std::uint64_t hits = 0;         ///< of those, served from the cache
  std::uint64_t releases = 0;
  std::uint64_t retries = 0;   ///< requests for which the cache was freed first
  std::uint64_t failures = 0;  ///< requests that threw OutOfMemoryError
};

/// Returns the statistics of the device's allocator.
///
/// Throws    DeviceError for a device that does not exist
///
///     print(memory_stats(device).peak >> 20, " MiB");
[[nodiscard]] MemoryStats memory_stats(Device device);
/// Sets peak to in_use.
void reset_peak_memory(Device device);
/// Limits in_use + cached to `bytes`; 0 = unlimited. A limit below in_use is allowed: then no
/// allocation succeeds until enough memory is released. Frees cached memory above the limit.
void set_memory_capacity(Device device, std::size_t bytes);
/// Returns all cached memory of the device to the system, including every thread's cache. Of a CUDA
/// device also the pinned memory of the host (Tensor::pin_memory) that no tensor and no copy uses.
void empty_cache(Device device);
/// For tests: the k-th allocation from now on (1 = the next one) throws OutOfMemoryError; with
/// `persistent` all later ones throw too. k = 0 turns this off.
void fail_allocation(Device device, std::uint64_t k, bool persistent = false);

}  // namespace braid
