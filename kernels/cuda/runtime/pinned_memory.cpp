#include "cuda/runtime/pinned_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <braid/core/error.hpp>

#include "cuda/runtime/device_guard.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kForgetAt = 4;  // copies of one block

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (const auto& entry : blocks_) {
    const Pinned& block = entry.second;
    for (const auto& copy : block.copies) {
      try {
        copy->await();
      } catch (...) {  // the memory of a lost device stays until the process ends
        return;
      }
    }
    if (gpu_.lost()) return;
    settle(cudaFreeHost(block.data), gpu_);
  }
}

/// The driver pins whole pages.
std::size_t PinnedMemory::rounded(std::size_t bytes) noexcept {
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, std::size_t{4096});
  return (bytes + step - 1) / step * step;
}

// The functions up to event require the lock.

/// Forgets the copies that are complete. Returns true if there are no others.
bool PinnedMemory::copied(Pinned& block) {
  for (std::size_t i = block.copies.size(); i-- > 0;) {
    auto& copy = block.copies[i];
    try {
      if (!copy->done()) continue;
    } catch (const Error&) {  // the device is lost: how far the copy came is unknown
      continue;
    }
    spare_.push_back(std::move(copy));
    copy = std::move(block.copies.back());
    block.copies.pop_back();
  }
  return block.copies.empty();
}

/// Takes a block out of the list; null if there is none that can be used.
PinnedMemory::Pinned* PinnedMemory::take(Cached& list) {
  Pinned* before = nullptr;
  for (Pinned* block = list.first; block != nullptr; before = block, block = block->next) {
    if (!copied(*block)) continue;
    (before == nullptr ? list.first : before->next) = block->next;
    if (list.last == block) list.last = before;
    block->next = nullptr;
    block->in_use = true;
    return block;
  }
  return nullptr;
}

std::unique_ptr<CudaEvent> PinnedMemory::event(Gpu& gpu, Device device) {
  const auto fits = [&](const auto& e) { return e->belongs_to(gpu, device); };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end()) return std::make_unique<CudaEvent>(gpu, device);
  std::unique_ptr<CudaEvent> taken = std::move(*found);
  spare_.erase(found);
  return taken;
}

Block PinnedMemory::allocate(std::size_t bytes) {
  const std::size_t size = bytes > PTRDIFF_MAX ? 0 : rounded(bytes);
  const auto refuse = [&](const char* why) -> void {
    throw OutOfMemoryError(Device(), bytes, 0, 0, 0, why);
  };
  if (size == 0) refuse("no block of pinned memory is that large");
  const std::lock_guard lock(mutex_);
  Cached& list = lists_[size];
  const auto block = [&](Pinned& pinned) {
    return Block{pinned.data, bytes, reinterpret_cast<std::uintptr_t>(&pinned)};
  };
  if (Pinned* const pinned = take(list)) return block(*pinned);
  void* data = nullptr;
  const DeviceGuard guard(gpu_, device_);
  for (const bool last : {false, true}) {
    if (check_memory(cudaHostAlloc(&data, size, cudaHostAllocPortable), "cudaHostAlloc", gpu_,
                     device_))
      break;
    if (last) refuse("cudaHostAlloc: no pinned host memory");
    free_unused();
  }
  try {
    Pinned& pinned = blocks_[static_cast<const char*>(data)];
    pinned.data = static_cast<char*>(data);
    pinned.bytes = size;
    pinned.cached = &list;
    pinned.in_use = true;
    return block(pinned);
  } catch (...) {
    settle(cudaFreeHost(data), gpu_);
    throw;
  }
}

void PinnedMemory::release(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  Pinned& pinned = *reinterpret_cast<Pinned*>(static_cast<std::uintptr_t>(block.tag));
  pinned.in_use = false;
  Cached& list = *pinned.cached;
  (list.last == nullptr ? list.first : list.last->next) = &pinned;
  list.last = &pinned;
}

bool PinnedMemory::copy_to_device(void* to, const void* from, std::size_t bytes,
                                  CudaStream& stream) {
  const std::lock_guard lock(mutex_);
  const char* const first = static_cast<const char*>(from);
  auto next = blocks_.upper_bound(first);
  if (next == blocks_.begin()) return false;
  Pinned& block = std::prev(next)->second;
  const auto offset = static_cast<std::size_t>(first - block.data);
  if (!block.in_use || offset >= block.bytes || bytes > block.bytes - offset) return false;
  if (block.copies.size() >= kForgetAt) (void)copied(block);
  block.copies.reserve(block.copies.size() + 1);
  std::unique_ptr<CudaEvent> done = event(stream.gpu(), stream.device());
  cudaStream_t native = stream.get();
  const DeviceGuard guard(stream.gpu(), stream.device());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native), "cudaMemcpyAsync",
        stream.gpu(), stream.device());
  try {
    stream.record(*done);
  } catch (...) {  // without its event the block would be reused too early
    stream.settle_or_lose(stream.gpu());
    throw;
  }
  block.copies.push_back(std::move(done));
  return true;
}

/// Returns the free blocks that no copy uses to the driver. Requires the lock.
void PinnedMemory::free_unused() noexcept {
  for (auto& [size, list] : lists_) {
    try {
      while (Pinned* const pinned = take(list)) {
        settle(cudaFreeHost(pinned->data), gpu_);
        blocks_.erase(pinned->data);
      }
    } catch (...) {  // no host memory for the list of events: the rest stays
    }
  }
}

void PinnedMemory::empty_cache() noexcept {
  const std::lock_guard lock(mutex_);
  if (gpu_.lost()) return;
  free_unused();
}

}  // namespace braid::cuda
