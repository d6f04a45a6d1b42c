// The part of StreamAllocator for blocks that streams other than their own still use.
#include <algorithm>
#include <mutex>

#include <braid/core/error.hpp>

#include "cuda/runtime/allocator.hpp"
#include "cuda/runtime/errors.hpp"
#include "simt/portable.hpp"

namespace braid::cuda {

void StreamAllocator::release_after(const Block& block, CudaStream& stream,
                                    std::span<const std::shared_ptr<Stream>> users) noexcept {
  if (cache_ && &stream == uploads_ && !gpu_.lost()) {
    try {
      if (keep_pending(block, stream, users)) return;
    } catch (...) {  // no memory for the list, or no event: the upload stream waits instead
    }
  }
  for (const std::shared_ptr<Stream>& user : users) {
    try {
      stream.wait_for(*user);
    } catch (...) {  // the user's work is done, or the device is lost: see Stream::wait_for
    }
  }
  release(block, stream);
}

/// Returns false for a block that was borrowed from another stream.
bool StreamAllocator::keep_pending(const Block& block, CudaStream& stream,
                                   std::span<const std::shared_ptr<Stream>> users) {
  Part* const part = reinterpret_cast<Part*>(static_cast<std::uintptr_t>(block.tag));
  Pending pending{part, block.bytes, {}};
  pending.users.reserve(users.size());
  {
    const std::lock_guard lock(accounting_.mutex());
    if (part->segment->pool->stream() != &stream) return false;
    for (std::size_t i = 0; i < users.size() && !spare_.empty(); ++i) {
      pending.users.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
  }
  while (pending.users.size() < users.size())
    pending.users.push_back(std::make_unique<CudaEvent>(gpu_, device_));
  for (std::size_t i = 0; i < users.size(); ++i) users[i]->record(*pending.users[i]);
  std::size_t target = 0;
  {
    const std::lock_guard lock(accounting_.mutex());
    pending_.push_back(std::move(pending));
    accounting_.take_back(part->size);
    accounting_.count_release();
    if (!accounting_.over_capacity()) return true;
    target = accounting_.capacity();
  }
  free_cached(target);
  return true;
}

// The functions below require the lock.

bool StreamAllocator::done(const Pending& pending) noexcept {
  try {
    return std::all_of(pending.users.begin(), pending.users.end(),
                       [](const auto& event) { return event->done(); });
  } catch (...) {  // an error of the device: a call that may throw reports it
    return false;
  }
}

/// Returns a pending block to the free ones. The upload stream waits for its users.
void StreamAllocator::reclaim(std::size_t index) noexcept {
  const auto at = pending_.begin() + static_cast<std::ptrdiff_t>(index);
  Pending pending = std::move(*at);
  pending_.erase(at);
  for (auto& event : pending.users) {
    if (gpu_.lost()) break;
    try {
      uploads_->wait(*event);
    } catch (...) {
      try {
        event->await();
      } catch (...) {  // when its work ends is unknown, so its memory must not be used again
        gpu_.lose(cudaErrorUnknown);
      }
    }
  }
  try {
    if (!gpu_.lost() && uploads_->native() != nullptr)
      simt::annotate_freed(pending.part->data, pending.bytes,
                           static_cast<cudaStream_t>(uploads_->native()));
    for (auto& event : pending.users) spare_.push_back(std::move(event));
  } catch (...) {  // no host memory: the checker misses this, or an event is not kept
  }
  pending.part->segment->pool->put(*pending.part);
}

/// Reclaims the oldest blocks, as far as their users are done.
void StreamAllocator::reclaim_done() noexcept {
  while (!pending_.empty() && done(pending_.front())) reclaim(0);
}

void StreamAllocator::reclaim_all() noexcept {
  while (!pending_.empty()) reclaim(0);
}

/// Reclaims the oldest block that fits if enough of them are pending, and returns a block; else
/// null.
Part* StreamAllocator::from_pending(std::size_t size) {
  std::size_t count = 0, bytes = 0, oldest = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const std::size_t other = pending_[i].part->size;
    if (other < size || other / 2 > size) continue;
    if (count++ == 0) oldest = i;
    bytes += other;
  }
  if (count < kPending && (count < 2 || bytes <= kPendingBytes)) return nullptr;
  reclaim(oldest);
  return cached(size, *uploads_);
}

}  // namespace braid::cuda
