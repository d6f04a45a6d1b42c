#pragma once
#include <cstddef>

#include "simt/cuda_runtime.hpp"

// What the emulation's checker is told of the caching allocator: which parts of the driver's memory are in use. Nothing on a GPU.
namespace braid::cuda {

/// `bytes` at `data` are in use, and uninitialised, for what is queued on the stream from now on.
inline void annotate_allocated([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes, [[maybe_unused]] cudaStream_t stream) {
#if SIMT_EMULATED
  simt::annotate_allocated(data, bytes, stream);
#endif
}
/// They are not, after what is queued on the stream now.
inline void annotate_freed([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes, [[maybe_unused]] cudaStream_t stream) {
#if SIMT_EMULATED
  simt::annotate_freed(data, bytes, stream);
#endif
}

}  // namespace braid::cuda
