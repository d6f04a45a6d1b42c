#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// Copies between pageable host memory and a device, through a ring of pinned pieces. The DMA
/// engine reaches only pinned memory, so the driver would stage the data in any case, and would
/// wait for the stream where Braid does not need to.
///
/// To the device: when the call returns, the host memory has been read and may be freed; the copy
/// itself is queued. Small copies share a piece. If all pieces are in use, the ring grows by
/// kPieces of them up to kMostPieces (64 MiB); then the host waits for the oldest. To the host: the
/// data is there when the call returns. Large copies are pipelined over the pieces. There is one
/// lock per ring. Throws OutOfMemoryError (no pinned memory), CudaError, DeviceLostError; copies to
/// the host also throw what kernels reported (device_errors.hpp).
class PinnedRing {
 public:
  /// `most`: the limit of its pieces.
  PinnedRing(Gpu& gpu, Device device, std::size_t most = kMostPieces);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  void to_device(void* to, const void* from, std::size_t bytes, CudaStream& stream);
  void to_host(void* to, const void* from, std::size_t bytes, CudaStream& stream);
  /// Copies between two GPUs, one of which is this ring's: from the source into a piece on the
  /// source's stream, and from there to the target on the target's stream. The copy is queued. The
  /// host waits only if the next piece of the ring is still in use, for example if the copy has
  /// more parts than the ring has pieces.
  void between(void* to, CudaStream& to_stream, const void* from, CudaStream& from_stream,
               std::size_t bytes);

  static constexpr std::size_t kPieces = 16, kMostPieces = 256;
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  static constexpr std::size_t kSmallBytes = kPieceBytes / 8, kAlign = 256;

 private:
  struct Piece {
    char* data = nullptr;
    CudaEvent copied;        // the device no longer uses the piece
    std::size_t filled = 0;  // bytes, of a piece that small copies share
    Piece(Gpu& gpu, Device device) noexcept : copied(gpu, device) {}
  };
  void open();
  void add(char* memory, std::size_t at);
  bool grow() noexcept;
  Piece& next(bool may_grow);
  Piece& piece_for(std::size_t bytes, const CudaStream& stream);
  void queue(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Piece& piece,
             CudaStream& stream);

  Gpu& gpu_;
  const Device device_;
  const std::size_t most_;
  std::mutex mutex_;
  std::vector<char*> memory_;  // kPieces each
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::size_t next_ = 0;
  Piece* small_ = nullptr;  // the piece of the latest small copies, and their stream
  std::uint64_t small_stream_ = 0;
};

}  // namespace braid::cuda
