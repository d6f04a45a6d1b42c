#pragma once
#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/staging.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// One end of a copy between two GPUs.
struct PeerEnd {
  CudaStream& stream;
  PinnedRing& ring;
};

/// True if copies between the two GPUs may be peer copies; else they go through the host. At the
/// pair's first use, the driver is queried, and a test pattern is copied there and back and
/// compared at both ends: on some machines the driver reports peer access, but the copies deliver
/// wrong data. Then a warning is printed. The first use waits for the work queued on both streams;
/// later uses cost an atomic load. Errors are thrown, and the next use tries again.
[[nodiscard]] bool peer_copies_work(const PeerEnd& a, const PeerEnd& b);

/// Queues a peer copy on `stream`, the stream of one of the two ends, after the work that `other`
/// has queued and before its later work. With one GPU on both ends, it is a plain copy on the
/// device.
void copy_direct(void* to, Gpu& to_gpu, const void* from, Gpu& from_gpu, std::size_t bytes,
                 CudaStream& stream, CudaStream& other);

}  // namespace braid::cuda
