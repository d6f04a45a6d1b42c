#include <braid/core/internal/memory_accounting.hpp>

#include <algorithm>
#include <mutex>

#include <braid/core/error.hpp>

namespace braid {

const char* MemoryAccounting::injected_failure() {
  if ((mode_.load(std::memory_order_relaxed) & kFailureArmed) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  if (fail_in_ == 0) return nullptr;
  if (fail_in_ > 1) {
    --fail_in_;
    return nullptr;
  }
  if (!fail_persistent_) fail_in_ = 0;
  update_mode();
  return "asked for by fail_allocation";
}

void MemoryAccounting::refuse(std::size_t bytes, const char* why) {
  MemoryStats now;
  {
    const std::lock_guard lock(mutex_);
    ++failures_;
    now = stats();
  }
  throw OutOfMemoryError(device_, bytes, now.in_use, now.cached, now.capacity, why);
}

void MemoryAccounting::reset_peak() {
  const std::lock_guard lock(mutex_);
  const std::size_t in_use = in_use_.load(std::memory_order_relaxed);
  most_ = std::max(most_, peak_.exchange(in_use, std::memory_order_relaxed));
}

void MemoryAccounting::set_capacity(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
  update_mode();
}

void MemoryAccounting::fail_allocation(std::uint64_t k, bool persistent) {
  const std::lock_guard lock(mutex_);
  fail_in_ = k;
  fail_persistent_ = persistent;
  update_mode();
}

bool MemoryAccounting::fits(std::size_t bytes) const noexcept {
  return capacity_ == 0 || (bytes <= capacity_ &&
                            in_use_.load(std::memory_order_relaxed) + kept_ <= capacity_ - bytes);
}

std::size_t MemoryAccounting::room() const noexcept {
  if (capacity_ == 0) return SIZE_MAX;
  return capacity_ > reserved_ ? capacity_ - reserved_ : 0;
}

bool MemoryAccounting::stale(std::size_t bytes) const noexcept {
  const std::size_t most = std::max(most_, peak_.load(std::memory_order_relaxed));
  return capacity_ == 0 && reserved_ > in_use_.load(std::memory_order_relaxed) &&
         reserved_ + bytes > 2 * most + kStaleSlack;
}

void MemoryAccounting::reserve(std::size_t bytes) noexcept {
  reserved_ += bytes;
  update_mode();
}

void MemoryAccounting::unreserve(std::size_t bytes) noexcept {
  reserved_ -= bytes;
  update_mode();
}

// Every thread reads mode_ on every call, so it is written only if it changes.
void MemoryAccounting::update_mode() noexcept {
  const std::uint32_t mode = (fail_in_ != 0 ? kFailureArmed : 0) |
                             (capacity_ != 0 && reserved_ > capacity_ ? kOverCapacity : 0);
  if (mode != mode_.load(std::memory_order_relaxed)) mode_.store(mode, std::memory_order_relaxed);
}

MemoryStats MemoryAccounting::stats() const noexcept {
  MemoryStats stats;
  stats.in_use = in_use_.load(std::memory_order_relaxed);
  stats.cached = reserved_ > stats.in_use ? reserved_ - stats.in_use : 0;
  stats.peak = std::max(peak_.load(std::memory_order_relaxed), stats.in_use);
  stats.capacity = capacity_;
  stats.allocations = allocations_;
  stats.hits = hits_;
  stats.releases = releases_;
  stats.retries = retries_;
  stats.failures = failures_;
  return stats;
}

}  // namespace braid
