#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <braid/core/device.hpp>
#include <braid/core/memory.hpp>

namespace braid {

/// The policy of memory of one device: the same capacity, peak, injected failures, statistics,
/// limit of cached memory and OutOfMemoryError for every kind of device. An allocator decides where
/// its blocks come from; it reports here what it does, and asks here what it may do.
///
/// Memory that was taken from the source (the system or the driver) is reserved. It is in use while
/// a tensor has a block of it, and cached otherwise. The capacity limits both. Without a capacity,
/// cached memory is stale, which means that it must be freed first, if a new block would make the
/// reserved memory more than twice the most that was ever in use plus 256 MiB. reset_peak, which a
/// program calls to measure, does not change that limit.
///
/// The mutex also guards the allocator's own lists, so that a request takes one lock at most.
class alignas(64) MemoryAccounting {
 public:
  explicit MemoryAccounting(Device device) noexcept : device_(device) {}
  MemoryAccounting(const MemoryAccounting&) = delete;
  MemoryAccounting& operator=(const MemoryAccounting&) = delete;

  // The functions of this group take no lock. A hit needs no others.

  /// True if no failure is to be injected, and the reserved memory is within the capacity.
  [[nodiscard]] bool unrestricted() const noexcept {
    return mode_.load(std::memory_order_relaxed) == 0;
  }
  /// True if more memory is reserved than the capacity. Exact while the caller holds the mutex.
  [[nodiscard]] bool over_capacity() const noexcept {
    return (mode_.load(std::memory_order_relaxed) & kOverCapacity) != 0;
  }
  /// A block of `bytes` is in use from now on.
  void hand_out(std::size_t bytes) noexcept {
    const std::size_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {}
  }
  /// A block of `bytes` is no longer in use.
  void take_back(std::size_t bytes) noexcept {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  // The functions of this group lock the mutex.

  /// Called for each request. Returns the reason why it must fail, or null. Locks only if a failure
  /// is to be injected.
  [[nodiscard]] const char* injected_failure();
  /// Counts a request for `bytes` that failed, and throws its OutOfMemoryError.
  [[noreturn]] void refuse(std::size_t bytes, const char* why);
  void reset_peak();
  /// Sets the capacity; 0 = unlimited. The allocator then frees what exceeds it.
  void set_capacity(std::size_t bytes);
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent);

  [[nodiscard]] std::mutex& mutex() const noexcept { return mutex_; }

  // The caller of the functions below holds the mutex.

  /// True if a block of `bytes` is within the capacity, at least after all cached memory is freed.
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;
  /// Returns how many more bytes may be reserved; SIZE_MAX without a capacity.
  [[nodiscard]] std::size_t room() const noexcept;
  /// True if cached memory must be freed before `bytes` are reserved. Always false with a capacity.
  [[nodiscard]] bool stale(std::size_t bytes) const noexcept;

  void reserve(std::size_t bytes) noexcept;
  void unreserve(std::size_t bytes) noexcept;
  /// Of the reserved memory, `bytes` can be neither used again nor returned to the source.
  void keep(std::size_t bytes) noexcept { kept_ += bytes; }
  void count_allocation(bool hit) noexcept { ++allocations_, hits_ += hit; }
  void count_release() noexcept { ++releases_; }
  void count_retry() noexcept { ++retries_; }

  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] MemoryStats stats() const noexcept;

 private:
  static constexpr std::size_t kStaleSlack = std::size_t{256} << 20;
  // Bits of mode_.
  static constexpr std::uint32_t kFailureArmed = 1;
  static constexpr std::uint32_t kOverCapacity = 2;

  void update_mode() noexcept;

  // Read on every call and rarely written, so it shares no cache line with what every call writes.
  const Device device_;
  std::atomic<std::uint32_t> mode_{0};

  alignas(64) std::atomic<std::size_t> in_use_{0};
  std::atomic<std::size_t> peak_{0};

  alignas(64) mutable std::mutex mutex_;  // guards everything below
  std::size_t reserved_ = 0, kept_ = 0, capacity_ = 0;
  std::size_t most_ = 0;  // the largest of the peaks that reset_peak ended
  std::uint64_t fail_in_ = 0;
  bool fail_persistent_ = false;
  std::uint64_t allocations_ = 0, hits_ = 0, releases_ = 0, retries_ = 0, failures_ = 0;
};

}  // namespace braid
