#include "cuda/runtime/allocator.hpp"

#include <algorithm>
#include <mutex>

#include <braid/core/internal/step_capture.hpp>

#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/graph.hpp"
#include "simt/portable.hpp"

namespace braid::cuda {
namespace {

// after each block, so that the emulation's checker detects accesses past its end
constexpr std::size_t kGuard = simt::kGuardBytes;
static_assert(kGuard % BlockPool::kUnit == 0);

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + BlockPool::kUnit - 1) / BlockPool::kUnit * BlockPool::kUnit;
}

}  // namespace

StreamAllocator::StreamAllocator(Gpu& gpu, Device device, bool cache, CudaStream* uploads)
    : gpu_(gpu), device_(device), cache_(cache), accounting_(device), uploads_(uploads) {
  gpu.add(*this);
}

StreamAllocator::~StreamAllocator() { free_cached(0); }

std::size_t StreamAllocator::block_bytes(std::size_t bytes) const noexcept {
  if (bytes == 0 || bytes > BlockPool::kLargest - kGuard) return 0;
  return cache_ ? round_up(bytes) + kGuard : bytes;
}

Block StreamAllocator::allocate(std::size_t bytes, CudaStream& stream) {
  cudaStream_t native = stream.get();  // throws on a lost device
  const std::size_t size = block_bytes(bytes);
  if (const char* why = accounting_.injected_failure()) accounting_.refuse(bytes, why);
  if (size == 0) accounting_.refuse(bytes, "no block is that large");
  if (!cache_) return allocate_direct(bytes);
  Part* part = nullptr;
  {
    const std::lock_guard lock(accounting_.mutex());
    if (&stream == uploads_ && !pending_.empty()) reclaim_done();
    part = cached(size, stream);
    if (part == nullptr && &stream == uploads_) part = from_pending(size);
  }
  if (part == nullptr) {
    const char* why = nullptr;
    part = obtain(size, stream, &why);
    if (part == nullptr) accounting_.refuse(bytes, why);
  }
  try {
    simt::annotate_allocated(part->data, bytes, native);
  } catch (...) {  // no host memory for the checker
    put(*part, stream);
    throw;
  }
  return {part->data, bytes, reinterpret_cast<std::uintptr_t>(part)};
}

void StreamAllocator::release(const Block& block, CudaStream& stream) noexcept {
  if (!cache_) return release_direct(block, stream);
  // a replay uses the block of a graph again, whether a tensor still has it or not
  const bool ends = !stream.has_private_memory() || stream.graph() != nullptr;
  if (auto* const native = static_cast<cudaStream_t>(stream.native());
      native != nullptr && ends && !gpu_.lost()) {
    try {
      simt::annotate_freed(block.data, block.bytes, native);
    } catch (...) {  // no host memory: the checker misses this
    }
  }
  put(*reinterpret_cast<Part*>(static_cast<std::uintptr_t>(block.tag)), stream);
}

void StreamAllocator::put(Part& part, CudaStream& stream) noexcept {
  std::size_t target = 0;
  {
    const std::lock_guard lock(accounting_.mutex());
    accounting_.take_back(part.size);
    accounting_.count_release();
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
    if (!accounting_.over_capacity() || stream.graph() != nullptr) return;
    target = accounting_.capacity();
  }
  free_cached(target);
}

// The functions up to segment_bytes, and hand_out, require the lock.

/// True if another stream may use memory of the pool.
bool StreamAllocator::lets_borrow(const BlockPool& pool, const CudaStream& stream) noexcept {
  const CudaStream* const owner = pool.stream();
  return owner != nullptr && owner != &stream && !owner->has_private_memory() &&
         !stream.has_private_memory();
}

/// Returns a block of the stream's own pool, or null.
Part* StreamAllocator::cached(std::size_t size, CudaStream& stream) {
  if (!accounting_.fits(size)) return nullptr;
  BlockPool* const pool = find_pool(stream);
  Part* const part = pool == nullptr ? nullptr : pool->take(size);
  if (part != nullptr) hand_out(part->size, true);
  return part;
}

/// Returns a block of another stream that is idle, or null. Its segment moves to this stream's
/// pool: the work queued on the other stream is done, and later work there does not use the
/// segment.
Part* StreamAllocator::from_idle(std::size_t size, CudaStream& stream) {
  if (!accounting_.fits(size)) return nullptr;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    BlockPool& pool = *pools_[i];
    if (!lets_borrow(pool, stream)) continue;
    Segment* const segment = pool.smallest_whole(size);
    if (segment == nullptr || !pool.stream()->idle()) continue;
    pool_of(stream).adopt(pool, *segment);
    return cached(size, stream);
  }
  return nullptr;
}

/// Borrows a block from another stream's pool, with a stream dependency on the work queued there.
Part* StreamAllocator::borrow(std::size_t size, CudaStream& stream) {
  for (const auto& pool : pools_) {
    if (!lets_borrow(*pool, stream)) continue;
    Part* const part = pool->take(size);
    if (part == nullptr) continue;
    try {
      pool->stream()->precede(stream);
    } catch (...) {
      pool->put(*part);
      throw;
    }
    hand_out(part->size, true);
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

/// Returns the size of a new segment for a block of this size, or 0 if there is no room for one.
/// Where the capacity leaves less than the rule says, the segment is what is left. On the last
/// attempt it is the block's size, and the capacity limits only the memory in use.
std::size_t StreamAllocator::segment_bytes(std::size_t size, bool last) const noexcept {
  if (last) return size;
  const std::size_t wanted = BlockPool::segment_bytes(size);
  if (accounting_.stale(wanted)) return 0;
  const std::size_t room = accounting_.room() / BlockPool::kUnit * BlockPool::kUnit;
  return size <= room ? std::min(wanted, room) : 0;
}

void StreamAllocator::hand_out(std::size_t size, bool hit) noexcept {
  accounting_.count_allocation(hit);
  accounting_.hand_out(size);
}

// The functions below are called without the lock.

/// Returns a block that the stream's own pool does not have, or null and the reason.
Part* StreamAllocator::obtain(std::size_t size, CudaStream& stream, const char** why) {
  for (const bool last : {false, true}) {
    std::size_t segment = 0;
    {
      const std::lock_guard lock(accounting_.mutex());
      if (Part* const part = last ? cached(size, stream) : from_idle(size, stream)) return part;
      if (accounting_.fits(size)) {
        segment = segment_bytes(size, last);
        if (segment == 0) {
          reclaim_all();
          if (Part* const part = cached(size, stream)) return part;
          if (Part* const part = borrow(size, stream)) return part;
        }
      }
      // claimed before the call of the driver, so that two threads cannot both take the last room
      accounting_.reserve(segment);
      if (segment == 0 && !last) accounting_.count_retry();
    }
    if (segment != 0) {
      const RelaxedCapture relaxed(stream.graph() != nullptr);
      if (void* const data = allocate_new(segment)) return cut_new(data, segment, size, stream);
      *why = "cudaMalloc: cudaErrorMemoryAllocation";
      const std::lock_guard lock(accounting_.mutex());
      accounting_.unreserve(segment);
      reclaim_all();
      if (Part* const part = cached(size, stream)) return part;
      if (Part* const part = borrow(size, stream)) return part;
      if (!last) accounting_.count_retry();
    } else {
      *why = "over its capacity";
    }
    if (last) break;
    if (stream.graph() != nullptr) continue;
    if (segment != 0) trim();
    else free_cached(0);
  }
  return nullptr;
}

/// Adds a new segment and returns its first block.
Part* StreamAllocator::cut_new(void* data, std::size_t segment, std::size_t size,
                               CudaStream& stream) {
  try {
    simt::annotate_freed(data, segment, stream.beside().get());
    const std::lock_guard lock(accounting_.mutex());
    BlockPool& pool = pool_of(stream);
    pool.add(data, segment, BlockPool::is_small(size));
    Part* const part = pool.take(size);
    hand_out(part->size, false);
    return part;
  } catch (...) {  // no host memory; a segment that is already in its pool stays there
    const std::lock_guard lock(accounting_.mutex());
    BlockPool* const pool = find_pool(stream);
    if (pool == nullptr || !pool->owns(data)) {
      settle(cudaFree(data), gpu_);
      accounting_.unreserve(segment);
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
    const std::lock_guard lock(accounting_.mutex());
    accounting_.unreserve(bytes);
    throw;
  }
}

/// The driver is out of memory: returns to it all that this GPU's logical devices do not use.
void StreamAllocator::trim() noexcept {
  for (StreamAllocator* const allocator : gpu_.allocators()) allocator->free_cached(0);
}

/// True if the pool's memory must not be returned to the driver.
bool StreamAllocator::keeps(const BlockPool& pool) noexcept {
  return pool.stream() == nullptr || pool.stream()->has_private_memory();
}

/// Returns free segments to the driver, largest first, after the work that may still use them,
/// until in_use + cached is at most `target`. Memory that cannot be returned stays counted, as the
/// driver counts it: keeping it is safer than reusing it. On a lost device nothing stays counted:
/// the device keeps its memory until the process ends.
void StreamAllocator::free_cached(std::size_t target) noexcept {
  // cudaFree would end the thread's recording; a later release frees what is over the capacity
  if (detail::StepCapture::current() != nullptr) return;
  {
    const std::lock_guard lock(accounting_.mutex());
    if (accounting_.reserved() > target) reclaim_all();
  }
  for (;;) {
    CudaEvent unused(gpu_, device_);
    void* data = nullptr;
    std::size_t size = 0;
    bool settled = false;
    {
      const std::lock_guard lock(accounting_.mutex());
      if (accounting_.reserved() <= target) return;
      BlockPool* from = nullptr;
      Segment* largest = nullptr;
      for (const auto& pool : pools_) {
        Segment* const segment = keeps(*pool) && !gpu_.lost() ? nullptr : pool->largest_whole();
        if (segment != nullptr && (largest == nullptr || segment->size > largest->size))
          from = pool.get(), largest = segment;
      }
      if (largest == nullptr) return;
      data = largest->data;
      size = largest->size;
      if (!gpu_.lost()) {
        CudaStream& stream = *from->stream();  // may be destroyed once the lock is released
        try {
          // the driver expects the whole segment
          simt::annotate_allocated(data, size, stream.get());
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
    const std::lock_guard lock(accounting_.mutex());
    if (settled || lost) accounting_.unreserve(size);
    else accounting_.keep(size);
  }
}

void StreamAllocator::retire(CudaStream& stream, CudaStream& successor) noexcept {
  const std::lock_guard lock(accounting_.mutex());
  BlockPool* const pool = find_pool(stream);
  if (pool == nullptr) return;
  try {
    stream.precede(successor);
  } catch (...) {
    if (!stream.settle_work()) return pool->set_stream(nullptr);
  }
  BlockPool* const other = find_pool(successor);
  if (other == nullptr) return pool->set_stream(&successor);
  try {
    other->adopt(*pool);
    pools_.erase(
        std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p.get() == pool; }));
  } catch (...) {
    // no host memory: two pools have this stream, and only free_cached uses the second
    pool->set_stream(&successor);
  }
}

Block StreamAllocator::allocate_direct(std::size_t bytes) {
  bool room = false;
  {
    const std::lock_guard lock(accounting_.mutex());
    room = accounting_.fits(bytes);
    if (room) accounting_.reserve(bytes);
  }
  if (!room) accounting_.refuse(bytes, "over its capacity");
  void* const data = allocate_new(bytes);
  {
    const std::lock_guard lock(accounting_.mutex());
    if (data != nullptr) hand_out(bytes, false);
    else accounting_.unreserve(bytes);
  }
  if (data == nullptr) accounting_.refuse(bytes, "cudaMalloc: cudaErrorMemoryAllocation");
  return {data, bytes, 0};
}

void StreamAllocator::release_direct(const Block& block, CudaStream& stream) noexcept {
  const bool settled = stream.settle_work() || stream.settle_work();
  if (settled) settle(cudaFree(block.data), gpu_);
  const std::lock_guard lock(accounting_.mutex());
  accounting_.take_back(block.bytes);
  if (settled || gpu_.lost()) accounting_.unreserve(block.bytes);
  else accounting_.keep(block.bytes);
  accounting_.count_release();
}

MemoryStats StreamAllocator::stats() const {
  const std::lock_guard lock(accounting_.mutex());
  return accounting_.stats();
}

void StreamAllocator::set_capacity(std::size_t bytes) {
  accounting_.set_capacity(bytes);
  if (bytes != 0) free_cached(bytes);
}

}  // namespace braid::cuda
