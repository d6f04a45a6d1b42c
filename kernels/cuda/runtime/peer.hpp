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

/// True if copies between the two GPUs may go over the bus between them; else they go through the
/// host. Asked of the driver and tried at the pair's first use: a pattern goes there and back, and
/// is compared at both ends, because there are machines whose driver says yes and whose copies
/// bring other numbers (then a warning is given). The first use waits for what is queued on both
/// streams; later ones cost an atomic load. What fails is thrown, and tried again at the next use.
[[nodiscard]] bool peer_copies_work(const PeerEnd& a, const PeerEnd& b);

/// A peer copy, queued on `stream`, one of the two ends', which is after what `other` has queued
/// and before what it will queue. With one GPU on both ends, a plain copy on the device.
void copy_direct(void* to, Gpu& to_gpu, const void* from, Gpu& from_gpu, std::size_t bytes,
                 CudaStream& stream, CudaStream& other);

}  // namespace braid::cuda
