#include "cuda/runtime/allocator.hpp"

#include <algorithm>

#include <braid/core/caching_allocator.hpp>
#include <braid/core/error.hpp>

#include "cuda/runtime/annotate.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kAlign = 256;  // cudaMalloc's own
constexpr std::size_t kStaleSlack = std::size_t{256} << 20;

}  // namespace

StreamAllocator::~StreamAllocator() { free_cached(0); }

std::size_t StreamAllocator::block_bytes(std::size_t bytes) noexcept {
  const std::size_t size = CachingAllocator::block_bytes(bytes);
  return (size + kAlign - 1) / kAlign * kAlign;
}

Block StreamAllocator::allocate(std::size_t bytes, CudaStream& stream) {
  cudaStream_t native = stream.get();  // also refuses a lost device
  const std::size_t size = block_bytes(bytes);
  if (const char* why = injected_failure()) fail(bytes, why);
  if (size == 0) fail(bytes, "no block is that large");
  Found found;
  {
    const std::lock_guard lock(mutex_);
    if (capacity_ == 0 || reserved_ <= capacity_) found = take(size, stream, From::idle);
    if (found.data != nullptr) {
      ++hits_;
      hand_out(size);
    }
  }
  if (found.data == nullptr) {
    const char* why = nullptr;
    found = obtain(size, stream, &why);
    if (found.data == nullptr) fail(bytes, why);
  }
  if (found.after != nullptr) {
    try {
      found.after->precede(stream);
    } catch (...) {
      return_block(found.data, size, found.after);
      throw;
    }
  }
  try {
    if (found.fresh) annotate_freed(found.data, size, native);
    annotate_allocated(found.data, bytes, native);
  } catch (...) {  // no host memory for the checker
    return_block(found.data, size, &stream);
    throw;
  }
  return {found.data, bytes, size};
}

void StreamAllocator::release(const Block& block, CudaStream& stream) noexcept {
  if (auto* const native = static_cast<cudaStream_t>(stream.native()); native != nullptr && !gpu_.lost()) {
    try {
      annotate_freed(block.data, block.bytes, native);
    } catch (...) {  // no host memory: the checker knows less
    }
  }
  return_block(block.data, block.tag, &stream);
}

void StreamAllocator::return_block(void* data, std::size_t size, CudaStream* stream) noexcept {
  {
    const std::lock_guard lock(mutex_);
    in_use_ -= size;
    ++releases_;
    if (capacity_ == 0 || reserved_ <= capacity_) {
      try {
        pool_of(stream).free[size].push_back(data);
        return;
      } catch (...) {  // no host memory for the list: the block goes back to the driver
      }
    }
  }
  give_back(data, size, *stream);
}

// To the driver, after the work that may still use it. What cannot be given back stays counted, as the driver counts it. On a lost device
// nothing counts: it keeps its memory until the process ends.
void StreamAllocator::give_back(void* data, std::size_t size, CudaStream& stream) noexcept {
  if (!gpu_.lost() && !stream.settle_work() && !stream.settle_work() && !gpu_.lost()) return;  // it may still be in use: better kept than somebody else's
  if (gpu_.lost()) {
    const std::lock_guard lock(mutex_);
    reserved_ -= size;
    return;
  }
  try {
    annotate_allocated(data, size, static_cast<cudaStream_t>(stream.native()));  // the driver's again, whole, as it came
  } catch (...) {                                                                // no host memory: the checker knows less
  }
  settle(cudaFree(data), gpu_);
  const std::lock_guard lock(mutex_);
  reserved_ -= size;
}

void StreamAllocator::forget(const CudaStream& stream, CudaStream* heir) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto at = pools_.begin(); at != pools_.end();) {
    Pool& pool = **at;
    if (pool.stream != &stream) {
      ++at;
    } else if (heir != nullptr) {
      pool.stream = heir;
      ++at;
    } else {
      for (const auto& [size, list] : pool.free)
        if (gpu_.lost()) reserved_ -= size * list.size();  // else they stay counted: the driver has them
      at = pools_.erase(at);
    }
  }
}

// A free block of this size: of the stream itself, or else of another. Called with the lock held.
StreamAllocator::Found StreamAllocator::take(std::size_t size, const CudaStream& stream, From from) {
  const auto look = [&](auto&& wanted) -> Found {
    for (const auto& pool : pools_) {
      const auto at = pool->free.find(size);
      if (at == pool->free.end() || at->second.empty() || !wanted(pool->stream)) continue;
      void* const data = at->second.back();
      at->second.pop_back();
      return {data, pool->stream == &stream ? nullptr : pool->stream};
    }
    return {};
  };
  Found found = look([&](const CudaStream* s) { return s == &stream; });
  if (found.data == nullptr) found = look([from](const CudaStream* s) { return from == From::all || s->idle(); });
  return found;
}

StreamAllocator::Pool& StreamAllocator::pool_of(CudaStream* stream) {
  for (const auto& pool : pools_)
    if (pool->stream == stream) return *pool;
  pools_.push_back(std::make_unique<Pool>(Pool{stream, {}}));
  return *pools_.back();
}

void StreamAllocator::hand_out(std::size_t size) noexcept {
  ++allocations_;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
}

const char* StreamAllocator::injected_failure() {
  const std::lock_guard lock(mutex_);
  if (fail_in_ == 0) return nullptr;
  if (fail_in_ > 1) {
    --fail_in_;
    return nullptr;
  }
  if (!fail_persistent_) fail_in_ = 0;
  return "asked for by fail_allocation";
}

// A new block. Where there is no room, one of a stream that still works, or a new one after the cache was given back; null and the reason if that does not help.
StreamAllocator::Found StreamAllocator::obtain(std::size_t size, const CudaStream& stream, const char** why) {
  const auto of_others = [&]() -> Found {  // called with the lock held
    if (capacity_ != 0 && reserved_ > capacity_) return {};
    const Found found = take(size, stream, From::all);
    if (found.data != nullptr) {
      ++hits_;
      hand_out(size);
    }
    return found;
  };
  for (int attempt = 0;; ++attempt) {
    bool room = false, stale = false;
    {
      const std::lock_guard lock(mutex_);
      room = capacity_ == 0 || (size <= capacity_ && reserved_ <= capacity_ - size);
      stale = attempt == 0 && capacity_ == 0 && reserved_ > in_use_ && reserved_ + size > 2 * peak_ + kStaleSlack;
      if (room && !stale) reserved_ += size;  // claimed before the driver is asked: two threads cannot both take the last room
      if (!room && attempt == 1) return {};
      if (!room || stale) {
        if (const Found found = of_others(); found.data != nullptr) return found;
        ++retries_;
      }
    }
    if (!room) *why = "over its capacity";
    if (room && !stale) {
      void* const data = allocate_new(size);
      const std::lock_guard lock(mutex_);
      if (data != nullptr) {
        hand_out(size);
        return {data, nullptr, true};
      }
      *why = "cudaMalloc: cudaErrorMemoryAllocation";
      reserved_ -= size;
      if (const Found found = of_others(); found.data != nullptr) return found;
      if (attempt == 1) return {};
      ++retries_;
    }
    free_cached(0);
  }
}

// Null if the driver has no more; anything else that fails is thrown, without the claim.
void* StreamAllocator::allocate_new(std::size_t size) {
  try {
    const DeviceGuard guard(gpu_, device_);
    void* data = nullptr;
    return check_memory(cudaMalloc(&data, size), "cudaMalloc", gpu_, device_) ? data : nullptr;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    reserved_ -= size;
    throw;
  }
}

// Gives cached blocks back, largest first, until in_use + cached is at most `target`.
void StreamAllocator::free_cached(std::size_t target) noexcept {
  for (;;) {
    void* data = nullptr;
    std::size_t size = 0;
    CudaStream* stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (reserved_ <= target) return;
      Pool* from = nullptr;
      for (const auto& pool : pools_)
        for (auto at = pool->free.rbegin(); at != pool->free.rend() && at->first > size; ++at)
          if (!at->second.empty()) {
            from = pool.get();
            size = at->first;
            break;
          }
      if (from == nullptr) return;
      std::vector<void*>& list = from->free.find(size)->second;
      data = list.back();
      stream = from->stream;
      list.pop_back();
    }
    give_back(data, size, *stream);
  }
}

void StreamAllocator::fail(std::size_t bytes, const char* why) {
  std::size_t in_use = 0, cached = 0, capacity = 0;
  {
    const std::lock_guard lock(mutex_);
    ++failures_;
    in_use = in_use_;
    cached = reserved_ - in_use_;
    capacity = capacity_;
  }
  throw OutOfMemoryError(device_, bytes, in_use, cached, capacity, why);
}

MemoryStats StreamAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats;
  stats.in_use = in_use_;
  stats.cached = reserved_ - in_use_;
  stats.peak = peak_;
  stats.capacity = capacity_;
  stats.allocations = allocations_;
  stats.hits = hits_;
  stats.releases = releases_;
  stats.retries = retries_;
  stats.failures = failures_;
  return stats;
}

void StreamAllocator::reset_peak() noexcept {
  const std::lock_guard lock(mutex_);
  peak_ = in_use_;
}

void StreamAllocator::set_capacity(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
  }
  if (bytes != 0) free_cached(bytes);
}

void StreamAllocator::fail_allocation(std::uint64_t k, bool persistent) {
  const std::lock_guard lock(mutex_);
  fail_in_ = k;
  fail_persistent_ = persistent;
}

}  // namespace braid::cuda
