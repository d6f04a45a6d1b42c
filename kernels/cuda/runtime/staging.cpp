#include "cuda/runtime/staging.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <braid/core/error.hpp>

#include "cuda/runtime/device_errors.hpp"
#include "cuda/runtime/errors.hpp"
#include "simt/portable.hpp"

namespace braid::cuda {

PinnedRing::PinnedRing(Gpu& gpu, Device device) : gpu_(gpu), device_(device) {
  for (std::size_t i = 0; i < kPieces; ++i) pieces_.push_back(std::make_unique<Piece>(gpu, device));
}

PinnedRing::~PinnedRing() {
  if (memory_ == nullptr || gpu_.lost()) return;
  for (const auto& piece : pieces_)
    if (piece->copied.native() != nullptr && !gpu_.lost())
      settle(cudaEventSynchronize(piece->copied.native()), gpu_);
  if (!gpu_.lost()) settle(cudaFreeHost(memory_), gpu_);
}

void PinnedRing::open() {
  if (memory_ != nullptr) return;
  void* memory = nullptr;
  if (!check_memory(cudaMallocHost(&memory, kPieces * kPieceBytes), "cudaMallocHost", gpu_,
                    device_))
    throw OutOfMemoryError(device_, kPieces * kPieceBytes, 0, 0, 0,
                           "cudaMallocHost: no pinned host memory for copies");
  memory_ = static_cast<char*>(memory);
  for (std::size_t i = 0; i < kPieces; ++i) pieces_[i]->data = memory_ + i * kPieceBytes;
}

PinnedRing::Piece& PinnedRing::next() {
  Piece& piece = *pieces_[next_];
  piece.copied.await();
  next_ = (next_ + 1) % kPieces;
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
    Piece& piece = next();
    std::memcpy(piece.data, static_cast<const char*>(from) + at, part);
    queue(static_cast<char*>(to) + at, piece.data, part, cudaMemcpyHostToDevice, piece, stream);
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
      Piece& piece = next();
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
    Piece& piece = next();
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
