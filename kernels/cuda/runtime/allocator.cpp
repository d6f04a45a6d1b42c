#include "cuda/runtime/allocator.hpp"

#include <algorithm>

#include <braid/core/error.hpp>

#include "cuda/runtime/annotate.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kStaleSlack = std::size_t{256} << 20;
// after each block, so that the checker detects accesses past its end
constexpr std::size_t kGuard = SIMT_EMULATED ? BlockPool::kUnit : 0;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + BlockPool::kUnit - 1) / BlockPool::kUnit * BlockPool::kUnit;
}

}  // namespace

StreamAllocator::StreamAllocator(Gpu& gpu, Device device, bool cache)
    : gpu_(gpu), device_(device), cache_(cache) {
  gpu.add(*this);
}

StreamAllocator::~StreamAllocator() { free_cached(0); }

std::size_t StreamAllocator::block_bytes(std::size_t bytes) const noexcept {
  if (bytes > BlockPool::kLargest - kGuard) return 0;
  return cache_ ? round_up(bytes) + kGuard : bytes;
}

Block StreamAllocator::allocate(std::size_t bytes, CudaStream& stream) {
  cudaStream_t native = stream.get();  // throws on a lost device
  const std::size_t size = block_bytes(bytes);
  if (const char* why = injected_failure()) fail(bytes, why);
  if (size == 0) fail(bytes, "no block is that large");
  if (!cache_) return allocate_direct(bytes);
  Part* part = nullptr;
  {
    const std::lock_guard lock(mutex_);
    part = cached(size, stream);
  }
  if (part == nullptr) {
    const char* why = nullptr;
    part = obtain(size, stream, &why);
    if (part == nullptr) fail(bytes, why);
  }
  try {
    annotate_allocated(part->data, bytes, native);
  } catch (...) {  // no host memory for the checker
    put(*part, stream);
    throw;
  }
  return {part->data, bytes, reinterpret_cast<std::uintptr_t>(part)};
}

void StreamAllocator::release(const Block& block, CudaStream& stream) noexcept {
  if (!cache_) return release_direct(block, stream);
  if (auto* const native = static_cast<cudaStream_t>(stream.native());
      native != nullptr && !gpu_.lost()) {
    try {
      annotate_freed(block.data, block.bytes, native);
    } catch (...) {  // no host memory: the checker misses this
    }
  }
  put(*reinterpret_cast<Part*>(static_cast<std::uintptr_t>(block.tag)), stream);
}

void StreamAllocator::put(Part& part, CudaStream& stream) noexcept {
  std::size_t target = 0;
  {
    const std::lock_guard lock(mutex_);
    in_use_ -= part.size;
    ++releases_;
    BlockPool& pool = *part.segment->pool;
    // it was borrowed
    if (CudaStream* const home = pool.stream();
        home != nullptr && home != &stream && !gpu_.lost()) {
      try {
        stream.precede(*home);
      } catch (...) {
        stream.settle_or_lose(gpu_);
      }
    }
    pool.put(part);
    if (capacity_ == 0 || reserved_ <= capacity_) return;
    target = capacity_;
  }
  free_cached(target);
}

// The functions up to segment_bytes, and hand_out, require the lock.

bool StreamAllocator::fits(std::size_t size) const noexcept {
  return capacity_ == 0 || (size <= capacity_ && in_use_ + kept_ <= capacity_ - size);
}

/// Returns a block of the stream's own pool, or null.
Part* StreamAllocator::cached(std::size_t size, CudaStream& stream) {
  if (!fits(size)) return nullptr;
  BlockPool* const pool = find_pool(stream);
  Part* const part = pool == nullptr ? nullptr : pool->take(size);
  if (part != nullptr) {
    ++hits_;
    hand_out(part->size);
  }
  return part;
}

/// Returns a block of another stream that is idle, or null. Its segment moves to this stream's
/// pool: the work queued on the other stream is done, and later work there does not use the
/// segment.
Part* StreamAllocator::from_idle(std::size_t size, CudaStream& stream) {
  if (!fits(size)) return nullptr;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    BlockPool& pool = *pools_[i];
    if (pool.stream() == nullptr || pool.stream() == &stream) continue;
    Segment* const segment = pool.smallest_whole(size);
    if (segment == nullptr || !pool.stream()->idle()) continue;
    pool_of(stream).adopt(pool, *segment);
    return cached(size, stream);
  }
  return nullptr;
}

/// Borrows a block from another stream's pool, with a stream dependency on the work queued there.
Part* StreamAllocator::lent(std::size_t size, CudaStream& stream) {
  for (const auto& pool : pools_) {
    if (pool->stream() == nullptr || pool->stream() == &stream) continue;
    Part* const part = pool->take(size);
    if (part == nullptr) continue;
    try {
      pool->stream()->precede(stream);
    } catch (...) {
      pool->put(*part);
      throw;
    }
    ++hits_;
    hand_out(part->size);
    return part;
  }
  return nullptr;
}

BlockPool* StreamAllocator::find_pool(const CudaStream& stream) noexcept {
  for (const auto& pool : pools_)
    if (pool->stream() == &stream) return pool.get();
  return nullptr;
}

BlockPool& StreamAllocator::pool_of(CudaStream& stream) {
  if (BlockPool* const pool = find_pool(stream)) return *pool;
  pools_.push_back(std::make_unique<BlockPool>(&stream, parts_));
  return *pools_.back();
}

/// Returns the size of a new segment for a block of this size, or 0 if there is no room for one. On
/// the last attempt it is the block's size, and the capacity limits only in_use.
std::size_t StreamAllocator::segment_bytes(std::size_t size, bool last) const noexcept {
  if (last) return size;
  const std::size_t wanted = BlockPool::is_small(size) ? kSmallSegment : size;
  if (capacity_ != 0) {
    const std::size_t room =
        capacity_ > reserved_ ? (capacity_ - reserved_) / BlockPool::kUnit * BlockPool::kUnit : 0;
    return size <= room ? std::min(wanted, room) : 0;
  }
  const bool stale = reserved_ > in_use_ && reserved_ + wanted > 2 * most_ + kStaleSlack;
  return stale ? 0 : wanted;
}

void StreamAllocator::hand_out(std::size_t size) noexcept {
  ++allocations_;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  most_ = std::max(most_, in_use_);
}

// The functions below are called without the lock.

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

/// Returns a block that the stream's own pool does not have, or null and the reason.
Part* StreamAllocator::obtain(std::size_t size, CudaStream& stream, const char** why) {
  for (const bool last : {false, true}) {
    std::size_t segment = 0;
    {
      const std::lock_guard lock(mutex_);
      if (Part* const part = last ? cached(size, stream) : from_idle(size, stream)) return part;
      if (fits(size)) {
        segment = segment_bytes(size, last);
        if (segment == 0) {
          if (Part* const part = lent(size, stream)) return part;
        }
      }
      // claimed before the call of the driver, so that two threads cannot both take the last room
      reserved_ += segment;
      if (segment == 0 && !last) ++retries_;
    }
    if (segment != 0) {
      if (void* const data = allocate_new(segment)) return cut_new(data, segment, size, stream);
      *why = "cudaMalloc: cudaErrorMemoryAllocation";
      const std::lock_guard lock(mutex_);
      reserved_ -= segment;
      if (Part* const part = lent(size, stream)) return part;
      if (!last) ++retries_;
    } else {
      *why = "over its capacity";
    }
    if (last) break;
    if (segment != 0) trim();
    else free_cached(0);
  }
  return nullptr;
}

/// Adds a new segment and returns its first block.
Part* StreamAllocator::cut_new(void* data, std::size_t segment, std::size_t size,
                               CudaStream& stream) {
  try {
    annotate_freed(data, segment, stream.get());
    const std::lock_guard lock(mutex_);
    BlockPool& pool = pool_of(stream);
    pool.add(data, segment, BlockPool::is_small(size));
    Part* const part = pool.take(size);
    hand_out(part->size);
    return part;
  } catch (...) {  // no host memory; a segment that is already in its pool stays there
    const std::lock_guard lock(mutex_);
    BlockPool* const pool = find_pool(stream);
    if (pool == nullptr || !pool->owns(data)) {
      settle(cudaFree(data), gpu_);
      reserved_ -= segment;
    }
    throw;
  }
}

/// Returns null if the driver is out of memory. Throws for other errors, after undoing the claim.
void* StreamAllocator::allocate_new(std::size_t bytes) {
  try {
    const DeviceGuard guard(gpu_, device_);
    void* data = nullptr;
    return check_memory(cudaMalloc(&data, bytes), "cudaMalloc", gpu_, device_) ? data : nullptr;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    reserved_ -= bytes;
    throw;
  }
}

/// The driver is out of memory: returns to it all that this GPU's logical devices do not use.
void StreamAllocator::trim() noexcept {
  for (StreamAllocator* const allocator : gpu_.allocators()) allocator->free_cached(0);
}

/// Returns free segments to the driver, largest first, after the work that may still use them,
/// until in_use + cached is at most `target`. Memory that cannot be returned stays counted, as the
/// driver counts it: keeping it is safer than reusing it. On a lost device nothing stays counted:
/// the device keeps its memory until the process ends.
void StreamAllocator::free_cached(std::size_t target) noexcept {
  for (;;) {
    CudaEvent unused(gpu_, device_);
    void* data = nullptr;
    std::size_t size = 0;
    bool settled = false;
    {
      const std::lock_guard lock(mutex_);
      if (reserved_ <= target) return;
      BlockPool* from = nullptr;
      Segment* largest = nullptr;
      for (const auto& pool : pools_) {
        Segment* const segment =
            pool->stream() == nullptr && !gpu_.lost() ? nullptr : pool->largest_whole();
        if (segment != nullptr && (largest == nullptr || segment->size > largest->size))
          from = pool.get(), largest = segment;
      }
      if (largest == nullptr) return;
      data = largest->data;
      size = largest->size;
      if (!gpu_.lost()) {
        CudaStream& stream = *from->stream();  // may be destroyed once the lock is released
        try {
          annotate_allocated(data, size, stream.get());  // the driver expects the whole segment
          stream.record(unused);
          settled = true;
        } catch (...) {
          settled = stream.settle_work() || stream.settle_work();
        }
      }
      from->remove(*largest);
    }
    for (int attempt = 0; settled && attempt < 2; ++attempt) {
      try {
        unused.await();
        break;
      } catch (...) {
        settled = attempt == 0;
      }
    }
    const bool lost = gpu_.lost();
    if (settled && !lost) settle(cudaFree(data), gpu_);
    const std::lock_guard lock(mutex_);
    (settled || lost ? reserved_ -= size : kept_ += size);
  }
}

void StreamAllocator::retire(CudaStream& stream, CudaStream& heir) noexcept {
  const std::lock_guard lock(mutex_);
  BlockPool* const pool = find_pool(stream);
  if (pool == nullptr) return;
  try {
    stream.precede(heir);
  } catch (...) {
    if (!stream.settle_work()) return pool->set_stream(nullptr);
  }
  BlockPool* const other = find_pool(heir);
  if (other == nullptr) return pool->set_stream(&heir);
  try {
    other->adopt(*pool);
    pools_.erase(
        std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p.get() == pool; }));
  } catch (...) {
    // no host memory: two pools have this stream, and only free_cached uses the second
    pool->set_stream(&heir);
  }
}

Block StreamAllocator::allocate_direct(std::size_t bytes) {
  bool room = false;
  {
    const std::lock_guard lock(mutex_);
    room = fits(bytes);
    if (room) reserved_ += bytes;
  }
  if (!room) fail(bytes, "over its capacity");
  void* const data = allocate_new(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (data != nullptr) hand_out(bytes);
    else reserved_ -= bytes;
  }
  if (data == nullptr) fail(bytes, "cudaMalloc: cudaErrorMemoryAllocation");
  return {data, bytes, 0};
}

void StreamAllocator::release_direct(const Block& block, CudaStream& stream) noexcept {
  const bool settled = stream.settle_work() || stream.settle_work();
  if (settled) settle(cudaFree(block.data), gpu_);
  const std::lock_guard lock(mutex_);
  in_use_ -= block.bytes;
  (settled || gpu_.lost() ? reserved_ -= block.bytes : kept_ += block.bytes);
  ++releases_;
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
