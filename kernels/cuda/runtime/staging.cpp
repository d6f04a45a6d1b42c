#include "cuda/runtime/staging.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>

#include <braid/core/error.hpp>

#include "cuda/runtime/device_errors.hpp"
#include "cuda/runtime/errors.hpp"
#include "simt/portable.hpp"

namespace braid::cuda {

PinnedRing::PinnedRing(Gpu& gpu, Device device, std::size_t most)
    : gpu_(gpu), device_(device), most_(most) {}

PinnedRing::~PinnedRing() {
  for (const auto& piece : pieces_)
    if (piece->copied.native() != nullptr && !gpu_.lost())
      settle(cudaEventSynchronize(piece->copied.native()), gpu_);
  for (char* const memory : memory_)
    if (!gpu_.lost()) settle(cudaFreeHost(memory), gpu_);
}

void PinnedRing::open() {
  if (!pieces_.empty()) return;
  void* memory = nullptr;
  if (!check_memory(cudaMallocHost(&memory, kPieces * kPieceBytes), "cudaMallocHost", gpu_,
                    device_))
    throw OutOfMemoryError(device_, kPieces * kPieceBytes, 0, 0, 0,
                           "cudaMallocHost: no pinned host memory for copies");
  try {
    add(static_cast<char*>(memory), 0);
  } catch (...) {
    settle(cudaFreeHost(memory), gpu_);
    throw;
  }
}

/// Adds pieces in front of the one with that index. Throws std::bad_alloc.
void PinnedRing::add(char* memory, std::size_t at) {
  std::vector<std::unique_ptr<Piece>> fresh;
  fresh.reserve(kPieces);
  for (std::size_t i = 0; i < kPieces; ++i) {
    fresh.push_back(std::make_unique<Piece>(gpu_, device_));
    fresh.back()->data = memory + i * kPieceBytes;
  }
  pieces_.reserve(pieces_.size() + kPieces);
  memory_.push_back(memory);
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at),
                 std::move_iterator(fresh.begin()), std::move_iterator(fresh.end()));
}

/// Returns false if the ring is as large as it may be, or there is no memory.
bool PinnedRing::grow() noexcept {
  if (pieces_.size() >= most_) return false;
  void* memory = nullptr;
  if (!settle(cudaMallocHost(&memory, kPieces * kPieceBytes), gpu_)) return false;
  try {
    add(static_cast<char*>(memory), next_);
    return true;
  } catch (...) {
    settle(cudaFreeHost(memory), gpu_);
    return false;
  }
}

PinnedRing::Piece& PinnedRing::next(bool may_grow) {
  if (!may_grow || (!pieces_[next_]->copied.done() && !grow())) pieces_[next_]->copied.await();
  Piece& piece = *pieces_[next_];
  if (small_ == &piece) small_ = nullptr;
  next_ = (next_ + 1) % pieces_.size();
  return piece;
}

/// Returns the piece whose next `bytes` a copy on this stream may use; its `filled` is where they
/// begin. One event tells that all copies of a piece are done, so they are on one stream.
PinnedRing::Piece& PinnedRing::piece_for(std::size_t bytes, const CudaStream& stream) {
  const bool small = bytes <= kSmallBytes;
  if (small && small_ != nullptr && small_stream_ == stream.id() &&
      kPieceBytes - small_->filled >= bytes)
    return *small_;
  Piece& piece = next(true);
  piece.filled = 0;
  if (small) small_ = &piece, small_stream_ = stream.id();
  return piece;
}

void PinnedRing::queue(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       Piece& piece, CudaStream& stream) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "cudaMemcpyAsync", gpu_, device_);
  try {
    stream.record(piece.copied);
  } catch (...) {  // without its event the piece would be reused too early
    stream.settle_or_lose(gpu_);
    throw;
  }
}

void PinnedRing::to_device(void* to, const void* from, std::size_t bytes, CudaStream& stream) {
  const DeviceGuard guard(gpu_, device_);
  const std::lock_guard lock(mutex_);
  open();
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    const std::size_t part = std::min(kPieceBytes, bytes - at);
    Piece& piece = piece_for(part, stream);
    char* const data = piece.data + piece.filled;
    piece.filled += (part + kAlign - 1) / kAlign * kAlign;
    std::memcpy(data, static_cast<const char*>(from) + at, part);
    queue(static_cast<char*>(to) + at, data, part, cudaMemcpyHostToDevice, piece, stream);
  }
}

void PinnedRing::to_host(void* to, const void* from, std::size_t bytes, CudaStream& stream) {
  const DeviceGuard guard(gpu_, device_);
  const std::lock_guard lock(mutex_);
  open();
  const std::size_t parts = (bytes + kPieceBytes - 1) / kPieceBytes;
  Piece* pieces[kPieces];
  for (std::size_t done = 0, queued = 0; done < parts; ++done) {
    for (; queued < parts && queued < done + kPieces; ++queued) {
      Piece& piece = next(false);
      const std::size_t at = queued * kPieceBytes;
      queue(piece.data, static_cast<const char*>(from) + at, std::min(kPieceBytes, bytes - at),
            cudaMemcpyDeviceToHost, piece, stream);
      pieces[queued % kPieces] = &piece;
    }
    const Piece& piece = *pieces[done % kPieces];
    piece.copied.await();
    const std::size_t at = done * kPieceBytes;
    const std::size_t part = std::min(kPieceBytes, bytes - at);
    (void)simt::host_read(piece.data, part);
    std::memcpy(static_cast<char*>(to) + at, piece.data, part);
  }
  throw_device_error(device_);  // data that a kernel could not compute is not returned
}

void PinnedRing::between(void* to, CudaStream& to_stream, const void* from, CudaStream& from_stream,
                         std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  {
    const DeviceGuard guard(gpu_, device_);
    open();
  }
  cudaStream_t reading = from_stream.get(), writing = to_stream.get();
  // the stream on this ring's GPU, whose events the pieces have
  CudaStream& last = &from_stream.gpu() == &gpu_ ? from_stream : to_stream;
  CudaStream& first = &last == &from_stream ? to_stream : from_stream;
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    const std::size_t part = std::min(kPieceBytes, bytes - at);
    Piece& piece = next(false);
    try {
      {
        const DeviceGuard guard(from_stream.gpu(), from_stream.device());
        check(cudaMemcpyAsync(piece.data, static_cast<const char*>(from) + at, part,
                              cudaMemcpyDeviceToHost, reading),
              "cudaMemcpyAsync", from_stream.gpu(), from_stream.device());
      }
      from_stream.precede(to_stream);
      {
        const DeviceGuard guard(to_stream.gpu(), to_stream.device());
        check(cudaMemcpyAsync(static_cast<char*>(to) + at, piece.data, part, cudaMemcpyHostToDevice,
                              writing),
              "cudaMemcpyAsync", to_stream.gpu(), to_stream.device());
      }
      if (&last == &from_stream) first.precede(last);
      last.record(piece.copied);
    } catch (...) {  // the piece would be reused too early
      from_stream.settle_or_lose(to_stream.gpu());
      to_stream.settle_or_lose(from_stream.gpu());
      throw;
    }
  }
}

}  // namespace braid::cuda
