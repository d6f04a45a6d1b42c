#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// Copies between pageable host memory and a device, through a ring of pinned pieces: the DMA
/// engine reaches only pinned memory, so the driver would stage in any case, and wait for the
/// stream where we need not.
///
/// To the device: the host memory was read when the call returns, and may go; the copy itself is
/// queued. To the host: the numbers are there when the call returns. Large copies are a pipeline
/// over the pieces. One lock a device. Throws OutOfMemoryError (no pinned memory), CudaError,
/// DeviceLostError; to the host also what kernels reported (device_errors.hpp).
class PinnedRing {
 public:
  PinnedRing(Gpu& gpu, Device device);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  void to_device(void* to, const void* from, std::size_t bytes, CudaStream& stream);
  void to_host(void* to, const void* from, std::size_t bytes, CudaStream& stream);
  /// Between two GPUs, one of them this ring's: from the one into a piece on its stream, from there
  /// to the other on its own. Queued: the host waits only for pieces, where the copy has more parts
  /// than the ring.
  void between(void* to, CudaStream& to_stream, const void* from, CudaStream& from_stream,
               std::size_t bytes);

  static constexpr std::size_t kPieces = 16;
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

 private:
  struct Piece {
    char* data = nullptr;
    CudaEvent copied;  // the device is done with it
    Piece(Gpu& gpu, Device device) noexcept : copied(gpu, device) {}
  };
  void open();
  Piece& next();
  void queue(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Piece& piece,
             CudaStream& stream);

  Gpu& gpu_;
  const Device device_;
  std::mutex mutex_;
  char* memory_ = nullptr;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::size_t next_ = 0;
};

}  // namespace braid::cuda
